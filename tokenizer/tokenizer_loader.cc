// Tokenizer::FromFile, FromJson and FromVocabAndMerges: everything is validated here, before anything is used.
#include <algorithm>
#include <fstream>

#include "tokenizer/bpe.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/merge_reader.h"
#include "tokenizer/model_json.h"
#include "tokenizer/raw_json.h"
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
    AddedToken token;
    token.content = StringField(item, "content", "an added token");
    const std::string where = "the added token " + QuoteForError(token.content);
    IntegerField(item, "id", where, Vocabulary::kMaxId + 1);
    token.single_word = BoolField(item, "single_word", where, false);
    token.lstrip = BoolField(item, "lstrip", where, false);
    token.rstrip = BoolField(item, "rstrip", where, false);
    token.special = BoolField(item, "special", where, false);
    token.normalized = BoolField(item, "normalized", where, !token.special);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::unique_ptr<TokenizerParts> ReadParts(std::string_view json, const std::string& name) {
  if (json.size() > kMaxFileBytes) {
    throw TokenizerError("reading " + name + ": too large (limit " + std::to_string(kMaxFileBytes) + " bytes)");
  }
  if (!IsValidUtf8(json)) throw TokenizerError("reading " + name + ": not valid UTF-8");
  const RawMembers members = ReadMembers(json, name);
  auto parts = std::make_unique<TokenizerParts>();
  parts->normalizer = MakeNormalizer(ParseMember(members, "normalizer", name));
  const auto model = members.find("model");
  if (model == members.end()) throw TokenizerError("reading " + name + ": member model is missing");
  ModelJson model_json(model->second, "the model of " + name);
  parts->pre_tokenizers = MakePreTokenizers(ParseMember(members, "pre_tokenizer", name), model_json.CanTakeBytes());
  const bool byte_level = parts->pre_tokenizers.byte_level;
  parts->model = model_json.Make(byte_level && model_json.CanTakeBytes());
  parts->kind = model_json.Kind(byte_level);
  AddTokens(ReadAddedTokens(ParseMember(members, "added_tokens", name)), *parts);
  parts->post_processor = PostProcessor(ParseMember(members, "post_processor", name), parts->vocab_size);
  parts->decoder = Decoder(ParseMember(members, "decoder", name));
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
    if (const AddedToken* known = parts.added.FindContent(token.content)) {
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
  std::ifstream file(path, std::ios::binary);
  if (!file) throw TokenizerError("opening " + QuoteForError(path) + ": no such file, or not readable");
  std::string bytes;
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::streamoff>(file.tellg());
  if (!(size >= 0 && static_cast<size_t>(size) <= kMaxFileBytes)) {
    throw TokenizerError("reading " + QuoteForError(path) + ": too large (limit " + std::to_string(kMaxFileBytes) +
                         " bytes)");
  }
  bytes.resize(static_cast<size_t>(size));
  file.seekg(0);
  file.read(bytes.data(), size);
  if (!file) throw TokenizerError("reading " + QuoteForError(path) + ": input error");
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

std::unique_ptr<Tokenizer> Tokenizer::FromVocabAndMerges(const std::string& vocab_path, const std::string& merges_path,
                                                         const std::string& tokenizer_config_path) {
  const std::string vocab = ReadFileForTokenizer(vocab_path);
  const std::string merges = ReadFileForTokenizer(merges_path);
  const std::string name = QuoteForError(vocab_path);
  if (!IsValidUtf8(vocab) || !IsValidUtf8(merges)) throw TokenizerError("reading " + name + ": not valid UTF-8");
  nlohmann::json settings = nlohmann::json::object();
  if (!tokenizer_config_path.empty()) {
    settings = nlohmann::json::parse(ReadFileForTokenizer(tokenizer_config_path), nullptr, false);
    if (!settings.is_object()) {
      throw TokenizerError("reading " + QuoteForError(tokenizer_config_path) + ": not a JSON object");
    }
  }
  BpeConfig config;
  config.byte_level = true;
  Vocabulary vocabulary = ReadVocabulary(vocab, name);
  const std::string merges_name = QuoteForError(merges_path);
  MergeReader reader(vocabulary, config.continuing_subword_prefix, merges.size() / 8, merges_name);
  for (std::string_view rest = merges; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) reader.AddLine(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  auto parts = std::make_unique<TokenizerParts>();
  parts->pre_tokenizers = Gpt2PreTokenizers(BoolField(settings, "add_prefix_space", "tokenizer_config.json", false));
  MergeTable table = reader.Take();
  parts->model = std::make_unique<Bpe>(std::move(config), std::move(vocabulary), std::move(table));
  parts->kind = "BPE byte-level";
  std::string bos;
  std::vector<AddedToken> tokens;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    nlohmann::json value = settings.contains(key) ? settings[key] : nlohmann::json();
    if (value.is_object() && value.contains("content")) value = value["content"];
    std::string content = value.is_string() ? value.get<std::string>() : "";
    if (content.empty() && value.is_null() && std::string_view(key) != "pad_token") content = "<|endoftext|>";
    if (parts->model->vocabulary().Find(content) < 0) continue;
    if (std::string_view(key) == "bos_token") bos = content;
    AddedToken token;
    token.content = content;
    token.special = true;
    token.normalized = false;
    tokens.push_back(std::move(token));
  }
  AddTokens(std::move(tokens), *parts);
  if (!bos.empty() && BoolField(settings, "add_bos_token", "tokenizer_config.json", false)) {
    parts->post_processor = PostProcessor({parts->added.FindContent(bos)->id});
  }
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(parts)));
}

}  // namespace vllm
