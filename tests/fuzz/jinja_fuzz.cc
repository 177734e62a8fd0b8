// A chat template with its variables: JSON, a line of three dashes, the template. Rendering ends within its budget.
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/jinja/chat_template.h"

namespace vllm {

void FuzzOne(std::string_view bytes) {
  const size_t middle = bytes.find("\n---\n");
  if (middle == std::string_view::npos) return;
  RenderOptions options;
  options.bos_token = "<s>";
  options.now = "2024-07-26";
  try {
    const auto chat_template = ChatTemplate::Parse(std::string(bytes.substr(middle + 5)));
    chat_template->RenderJson(bytes.substr(0, middle), options);
  } catch (const ChatTemplateError&) {
  }
}

}  // namespace vllm
