// Tokenizer::FromFile, FromJson and FromVocabAndMerges: everything is validated here, before anything is used.
#include <algorithm>
#include <fstream>
#include <map>

#include "tokenizer/json_fields.h"
#include "tokenizer/json_scanner.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace vllm {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;

using RawMembers = std::map<std::string, std::string_view, std::less<>>;

// The members of an object as raw text; a repeated member counts as its last.
RawMembers ReadMembers(std::string_view json, const std::string& name) {
  RawMembers members;
  JsonScanner scanner(json, name);
  scanner.BeginObject();
  for (std::string key; scanner.NextMember(key);) members.insert_or_assign(key, scanner.SkipValue());
  scanner.ExpectEnd();
  return members;
}

// A small member as a tree; null when it is absent.
nlohmann::json ParseMember(const RawMembers& members, std::string_view key, const std::string& name) {
  const auto it = members.find(key);
  if (it == members.end()) return nullptr;
  nlohmann::json json = nlohmann::json::parse(it->second, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    throw TokenizerError("reading " + name + ": member " + std::string(key) + " is not valid JSON");
  }
  return json;
}

Vocabulary ReadVocabulary(std::string_view json, const std::string& name) {
  // An entry takes about 18 bytes of file; a guess too low only costs a rehash.
  Vocabulary vocabulary(json.size() / 18, json.size() / 2);
  JsonScanner scanner(json, name);
  scanner.BeginObject();
  for (std::string token; scanner.NextMember(token);) vocabulary.Add(token, scanner.ReadInteger());
  scanner.ExpectEnd();
  vocabulary.Finish();
  return vocabulary;
}

class MergeReader {
 public:
  MergeReader(const Vocabulary& vocabulary, const BpeConfig& config, size_t num_bytes, const std::string& name)
      : vocabulary_(vocabulary), prefix_(config.continuing_subword_prefix), merges_(num_bytes / 16), name_(name) {}

  void Add(std::string_view left, std::string_view right) {
    const int32_t left_id = IdOf(left);
    const int32_t right_id = IdOf(right);
    if (right.size() < prefix_.size()) Fail(right, "is shorter than continuing_subword_prefix");
    result_.assign(left);
    result_ += right.substr(prefix_.size());
    merges_.Add(left_id, right_id, rank_, IdOf(result_));
    ++rank_;
  }

  // "left right", as in merges.txt.
  void AddLine(std::string_view line) {
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos) Fail(line, "is not two tokens and a space");
    Add(line.substr(0, space), line.substr(space + 1));
  }

  MergeTable Take() { return std::move(merges_); }

 private:
  [[noreturn]] void Fail(std::string_view what, const std::string& why) const {
    throw TokenizerError("reading merge " + std::to_string(rank_) + " of " + name_ + ": " + QuoteForError(what) + " " +
                         why);
  }

  int32_t IdOf(std::string_view token) const {
    const int32_t id = vocabulary_.Find(token);
    if (id < 0) Fail(token, "is not in the vocabulary");
    return id;
  }

  const Vocabulary& vocabulary_;
  const std::string& prefix_;
  MergeTable merges_;
  const std::string& name_;
  std::string result_;
  uint32_t rank_ = 0;
};

MergeTable ReadMerges(std::string_view json, const Vocabulary& vocabulary, const BpeConfig& config,
                      const std::string& name) {
  MergeReader reader(vocabulary, config, json.size(), name);
  JsonScanner scanner(json, name);
  scanner.BeginArray();
  std::string left;
  while (scanner.NextElement()) {
    if (scanner.Peek() == '"') {
      const std::string_view line = scanner.ReadString();
      if (!line.starts_with("#version")) reader.AddLine(line);
      continue;
    }
    scanner.BeginArray();
    if (!scanner.NextElement()) scanner.Fail("a merge without tokens");
    left.assign(scanner.ReadString());
    if (!scanner.NextElement()) scanner.Fail("a merge of one token");
    const std::string_view right = scanner.ReadString();
    reader.Add(left, right);
    if (scanner.NextElement()) scanner.Fail("a merge of three tokens");
  }
  scanner.ExpectEnd();
  return reader.Take();
}

std::string OptionalString(const RawMembers& members, std::string_view key, const std::string& name) {
  const nlohmann::json json = ParseMember(members, key, name);
  if (json.is_null()) return "";
  if (!json.is_string()) throw TokenizerError("reading " + name + ": " + std::string(key) + " is not a string");
  return json.get<std::string>();
}

bool OptionalBool(const RawMembers& members, std::string_view key, const std::string& name) {
  const nlohmann::json json = ParseMember(members, key, name);
  if (json.is_null()) return false;
  if (!json.is_boolean()) throw TokenizerError("reading " + name + ": " + std::string(key) + " is not true or false");
  return json.get<bool>();
}

BpeConfig ReadModelConfig(const RawMembers& members, const std::string& name) {
  const std::string type = OptionalString(members, "type", name);
  if (!type.empty() && type != "BPE") {
    throw TokenizerError("reading " + name + ": model type " + QuoteForError(type) + " is not supported (only BPE)");
  }
  const nlohmann::json dropout = ParseMember(members, "dropout", name);
  if (!dropout.is_null() && !(dropout.is_number() && dropout.get<double>() == 0.0)) {
    throw TokenizerError("reading " + name + ": dropout is not supported");
  }
  for (const char* key : {"vocab", "merges"}) {
    if (!members.contains(key)) throw TokenizerError("reading " + name + ": member " + key + " is missing");
  }
  BpeConfig config;
  config.unk_token = OptionalString(members, "unk_token", name);
  config.continuing_subword_prefix = OptionalString(members, "continuing_subword_prefix", name);
  config.end_of_word_suffix = OptionalString(members, "end_of_word_suffix", name);
  config.fuse_unk = OptionalBool(members, "fuse_unk", name);
  config.byte_fallback = OptionalBool(members, "byte_fallback", name);
  config.ignore_merges = OptionalBool(members, "ignore_merges", name);
  return config;
}

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
  const std::string model_name = "the model of " + name;
  const RawMembers model_members = ReadMembers(model->second, model_name);
  BpeConfig config = ReadModelConfig(model_members, model_name);
  parts->pre_tokenizers = MakePreTokenizers(ParseMember(members, "pre_tokenizer", name), config.CanTakeBytes());
  config.byte_level = parts->pre_tokenizers.byte_level && config.CanTakeBytes();
  Vocabulary vocabulary = ReadVocabulary(model_members.find("vocab")->second, model_name);
  MergeTable merges = ReadMerges(model_members.find("merges")->second, vocabulary, config, model_name);
  parts->model = std::make_unique<Bpe>(std::move(config), std::move(vocabulary), std::move(merges));
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
  MergeReader reader(vocabulary, config, merges.size(), QuoteForError(merges_path));
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
