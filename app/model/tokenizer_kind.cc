#include "app/model/tokenizer_kind.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "engine/model_loader/gguf/tokenizer.h"
#include "engine/model_loader/mapped_file.h"
#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {
namespace {

struct ModelMember {
  std::string type;
  bool byte_fallback = false;
};

// Reads the type and byte_fallback of the "model" object. In files written by Hugging Face tokenizers, both come before
// the vocabulary, so reading stops there. If no type comes before the vocabulary, the whole object is read.
ModelMember ReadModel(tokenizer::JsonScanner& scanner) {
  ModelMember model;
  std::string key;
  scanner.BeginObject();
  while (scanner.NextMember(key)) {
    if (key == "vocab" && !model.type.empty()) return model;
    if (key == "type" && scanner.Peek() == '"') {
      model.type = scanner.ReadString();
    } else {
      const std::string_view value = scanner.SkipValue();
      if (key == "byte_fallback") model.byte_fallback = value == "true";
    }
  }
  return model;
}

std::string KindOfTokenizerJson(const std::string& path) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  tokenizer::JsonScanner scanner(text, path);
  std::string key;
  bool byte_level = false;
  bool pre_tokenizer_seen = false;
  scanner.BeginObject();
  while (scanner.NextMember(key)) {
    if (key == "pre_tokenizer") {
      byte_level = scanner.SkipValue().find("\"ByteLevel\"") != std::string_view::npos;
      pre_tokenizer_seen = true;
    } else if (key == "model" && pre_tokenizer_seen) {
      const ModelMember model = ReadModel(scanner);
      for (const char* type : {"BPE", "Unigram", "WordPiece", "WordLevel"}) {
        if (model.type != type) continue;
        if (byte_level) return "byte-level " + model.type;
        return model.type + (model.byte_fallback ? " with byte fallback" : "");
      }
      break;
    } else {
      scanner.SkipValue();
    }
  }
  // The type is missing, as in old files, or unknown, or no "pre_tokenizer" comes before "model". Load the whole
  // tokenizer.
  return std::string(tokenizer::LoadTokenizerJson(path)->Kind());
}

}  // namespace

std::string TokenizerKind(const ModelLocation& location) {
  if (location.is_gguf()) return GgufTokenizerKind(GgufFile(location.gguf_file).metadata());
  const std::string json = location.directory + "/tokenizer.json";
  std::error_code error;
  if (std::filesystem::is_regular_file(json, error)) return KindOfTokenizerJson(json);
  return std::string(tokenizer::LoadTokenizer(location.directory)->Kind());
}

}  // namespace vllm::app
