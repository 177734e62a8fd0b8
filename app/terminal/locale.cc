#include "app/terminal/locale.h"

#include <langinfo.h>

#include <clocale>
#include <cstring>

namespace vllm::app {

bool SetCharacterLocale() {
  const char* name = std::setlocale(LC_CTYPE, "");
  const bool uses_utf8 = name != nullptr && std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  if (name == nullptr || std::strcmp(name, "C") == 0 || std::strcmp(name, "POSIX") == 0) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  return uses_utf8;
}

}  // namespace vllm::app
