// Fuzzes chat templates. The input is the variables as JSON, a line "---" and the template.
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/jinja/chat_template.h"

namespace vllm {

void FuzzOne(std::string_view bytes) {
  const size_t middle = bytes.find("\n---\n");
  if (middle == std::string_view::npos) return;
  tokenizer::RenderOptions options;
  options.bos_token = "<s>";
  options.now = "2024-07-26";
  try {
    const auto chat_template = tokenizer::ChatTemplate::Parse(std::string(bytes.substr(middle + 5)));
    chat_template->RenderJson(bytes.substr(0, middle), options);
  } catch (const tokenizer::ChatTemplateError&) {
  }
}

}  // namespace vllm
