#include "tokenizer/tiktoken_loader.h"

#include "tokenizer/tokenizer_error.h"

namespace vllm {

bool LooksLikeTiktoken(std::string_view) { return false; }

std::unique_ptr<TokenizerParts> MakeTiktokenParts(std::string_view, const std::string& name, const FolderSettings&) {
  throw TokenizerError("reading " + name + ": not supported");
}

}  // namespace vllm
