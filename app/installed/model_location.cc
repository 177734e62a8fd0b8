#include "app/installed/model_location.h"

#include <sys/stat.h>

#include "app/cli/xdg.h"
#include "engine/model_loader/gguf/format/file.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

// Returns the size of a regular file, or 0 if there is none.
int64_t FileBytes(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? static_cast<int64_t>(status.st_size) : 0;
}

}  // namespace

std::string ModelLocation::short_name() const {
  struct stat status {};
  if (stat(name.c_str(), &status) != 0 || (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))) return name;
  fs::path path = name;
  if (path.filename().empty()) path = path.parent_path();
  const std::string last = path.filename().string();
  return last.empty() || last == "." || last == ".." ? name : last;
}

fs::path OwnModelsDirectory() {
  const std::string data = DataHome();
  return data.empty() ? fs::path() : fs::path(data) / "models";
}

int64_t ModelBytes(const ModelLocation& location) {
  int64_t bytes = 0;
  if (location.is_gguf()) {
    for (const std::string& part : GgufFile::PartsOf(location.gguf_file)) bytes += FileBytes(part);
    return bytes;
  }
  for (const std::string& name : tokenizer::NamesInDirectory(location.directory)) {
    bytes += FileBytes(location.directory + "/" + name);
  }
  return bytes;
}

}  // namespace vllm::app
