#include "tokenizer/gguf_vocabulary.h"

namespace vllm {

std::unique_ptr<Tokenizer> MakeGgufTokenizer(const GgufVocabulary& vocabulary, const std::string& name_for_errors) {
  throw TokenizerError("reading the vocabulary of " + name_for_errors + ": tokenizer model " +
                       QuoteForError(vocabulary.model) + " is not supported");
}

}  // namespace vllm
