// Tokenizer::FromFile and FromJson: everything is validated here, before anything is used.
#include <algorithm>

#include "tokenizer/folder_settings.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/model_json.h"
#include "tokenizer/raw_json.h"
#include "tokenizer/regular_file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace vllm {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;

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
  if (json.size() > kMaxFileBytes) {
    throw TokenizerError("reading " + name + ": too large (limit " + std::to_string(kMaxFileBytes) + " bytes)");
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

void AddTokens(std::vector<AddedToken> tokens, TokenizerParts& parts) {
  UnicodeTable::Get();  // Built here, so that the first Encode cannot fail and is not slow.
  const Vocabulary& vocabulary = parts.model->vocabulary();
  auto next_id = static_cast<int64_t>(vocabulary.size());
  int32_t vocab_size = vocabulary.IdLimit();
  for (AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    if (token.id >= 0) {
      // Given by the caller.
    } else if (const AddedToken* known = parts.added.FindContent(token.content)) {
      token.id = known->id;
    } else {
      const int32_t model_id = vocabulary.Find(token.content);
      token.id = model_id >= 0 ? model_id : static_cast<int32_t>(next_id++);
    }
    token.normalized_content = token.content;
    if (token.normalized && parts.normalizer) parts.normalizer->Apply(token.normalized_content);
    vocab_size = std::max(vocab_size, token.id + 1);
    parts.added.Add(std::move(token));
  }
  parts.added.Finish();
  parts.vocab_size = vocab_size;
}

std::string ReadFileForTokenizer(const std::string& path) {
  std::string bytes;
  const RegularFile file = ReadRegularFile(path, kMaxFileBytes, bytes);
  if (!file.ok()) throw TokenizerError("reading " + QuoteForError(path) + ": " + file.error);
  return bytes;
}

std::unique_ptr<Tokenizer> Tokenizer::FromFile(const std::string& tokenizer_json_path) {
  return FromJson(ReadFileForTokenizer(tokenizer_json_path), QuoteForError(tokenizer_json_path));
}

std::unique_ptr<Tokenizer> Tokenizer::FromJson(std::string_view json, const std::string& name_for_errors) {
  try {
    return std::unique_ptr<Tokenizer>(new Tokenizer(ReadParts(json, name_for_errors)));
  } catch (const nlohmann::json::exception& error) {
    throw TokenizerError("reading " + name_for_errors + ": " + error.what());
  }
}

}  // namespace vllm
