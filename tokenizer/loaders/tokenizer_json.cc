// LoadTokenizerJson and ParseTokenizerJson. They validate every member that they use before they return.
#include "tokenizer/formats/json_fields.h"
#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/loaders/added_tokens.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/loaders/model_json.h"
#include "tokenizer/loaders/tokenizer_config.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

std::vector<AddedToken> ReadAddedTokens(const nlohmann::json& json) {
  std::vector<AddedToken> tokens;
  if (json.is_null()) return tokens;
  if (!json.is_array()) throw TokenizerError("reading added_tokens: not a list");
  for (const nlohmann::json& item : json) {
    AddedToken token = ReadAddedToken(item);
    IntegerField(item, "id", "the added token " + QuoteForError(token.content), Vocabulary::kMaxId + 1);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::unique_ptr<TokenizerParts> ReadParts(std::string_view json, const std::string& name) {
  if (json.size() > kMaxTokenizerFileBytes) {
    throw TokenizerError("reading " + name + ": too large (limit " + std::to_string(kMaxTokenizerFileBytes) +
                         " bytes)");
  }
  if (!IsValidUtf8(json)) throw TokenizerError("reading " + name + ": not valid UTF-8");
  NestedMembers nested = ReadNestedMembers(json, "model", name);
  const RawMembers& members = nested.outer;
  auto parts = std::make_unique<TokenizerParts>();
  parts->normalizer = MakeNormalizer(ParseMember(members, "normalizer", name));
  if (!nested.has_inner) throw TokenizerError("reading " + name + ": member model is missing");
  ModelJson model_json(std::move(nested.inner), "the model of " + name);
  parts->pre_tokenizers = MakePreTokenizers(ParseMember(members, "pre_tokenizer", name), model_json.CanTakeBytes());
  const bool byte_level = parts->pre_tokenizers.byte_level;
  parts->model = model_json.Make(byte_level && model_json.CanTakeBytes());
  parts->kind = model_json.Kind(byte_level);
  AddTokens(ReadAddedTokens(ParseMember(members, "added_tokens", name)), *parts);
  parts->post_processor = PostProcessor(ParseMember(members, "post_processor", name), parts->vocab_size);
  parts->decoder = TokenDecoder(ParseMember(members, "decoder", name));
  return parts;
}

}  // namespace

std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::string& tokenizer_json_path) {
  return ParseTokenizerJson(ReadTokenizerFile(tokenizer_json_path), QuoteForError(tokenizer_json_path));
}

std::unique_ptr<Tokenizer> ParseTokenizerJson(std::string_view json, const std::string& name_for_errors) {
  try {
    return std::unique_ptr<Tokenizer>(new Tokenizer(ReadParts(json, name_for_errors)));
  } catch (const nlohmann::json::exception& error) {
    throw TokenizerError("reading " + name_for_errors + ": " + error.what());
  }
}

}  // namespace vllm::tokenizer
