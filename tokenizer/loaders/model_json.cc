#include "tokenizer/loaders/model_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/loaders/merge_reader.h"
#include "tokenizer/models/unigram.h"
#include "tokenizer/models/word_piece.h"

namespace vllm::tokenizer {
namespace {

MergeTable ReadMerges(std::string_view json, const Vocabulary& vocabulary, const std::string& prefix,
                      const std::string& name) {
  // Reserves memory for one merge per 16 bytes of JSON.
  MergeReader reader(vocabulary, prefix, json.size() / 16, name);
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
    if (scanner.NextElement()) scanner.Fail("a merge of more than two tokens");
  }
  scanner.ExpectEnd();
  return reader.Take();
}

std::string TypeOf(const RawMembers& members, const std::string& name) {
  const std::string type = OptionalString(members, "type", name);
  if (!type.empty()) return type;
  if (members.contains("merges")) return "BPE";
  const auto vocab = members.find("vocab");
  if (vocab != members.end() && vocab->second.starts_with('[')) return "Unigram";
  if (members.contains("continuing_subword_prefix") || members.contains("max_input_chars_per_word")) return "WordPiece";
  return "WordLevel";
}

}  // namespace

Vocabulary ReadVocabulary(std::string_view json, const std::string& name) {
  // Reserves memory for one token per 18 bytes of JSON. If the estimate is too low, the table grows.
  Vocabulary vocabulary(json.size() / 18, json.size() / 2);
  JsonScanner scanner(json, name);
  scanner.BeginObject();
  for (std::string token; scanner.NextMember(token);) vocabulary.Add(token, scanner.ReadInteger());
  scanner.ExpectEnd();
  vocabulary.Finish();
  return vocabulary;
}

ModelJson::ModelJson(RawMembers members, std::string name_for_errors)
    : name_(std::move(name_for_errors)), members_(std::move(members)), type_(TypeOf(members_, name_)) {
  const std::string_view known[] = {"BPE", "Unigram", "WordPiece", "WordLevel"};
  if (std::find(std::begin(known), std::end(known), type_) == std::end(known)) {
    throw TokenizerError("reading " + name_ + ": model type " + QuoteForError(type_) +
                         " is not supported (only BPE, Unigram, WordPiece and WordLevel)");
  }
  if (type_ != "BPE") return;
  const nlohmann::json dropout = ParseMember(members_, "dropout", name_);
  if (!dropout.is_null() && !(dropout.is_number() && dropout.get<double>() == 0.0)) {
    throw TokenizerError("reading " + name_ + ": dropout is not supported");
  }
  bpe_.unk_token = OptionalString(members_, "unk_token", name_);
  bpe_.continuing_subword_prefix = OptionalString(members_, "continuing_subword_prefix", name_);
  bpe_.end_of_word_suffix = OptionalString(members_, "end_of_word_suffix", name_);
  bpe_.fuse_unk = OptionalBool(members_, "fuse_unk", name_);
  bpe_.byte_fallback = OptionalBool(members_, "byte_fallback", name_);
  bpe_.ignore_merges = OptionalBool(members_, "ignore_merges", name_);
}

std::string_view ModelJson::Large(std::string_view key) const {
  const auto it = members_.find(key);
  if (it == members_.end()) {
    throw TokenizerError("reading " + name_ + ": member " + std::string(key) + " is missing");
  }
  return it->second;
}

std::unique_ptr<TokenModel> ModelJson::Make(bool take_bytes) {
  if (type_ == "BPE") return MakeBpe(take_bytes);
  if (type_ == "Unigram") return MakeUnigram();
  if (type_ == "WordPiece") return MakeWordPiece();
  return std::make_unique<WordLevel>(OptionalString(members_, "unk_token", name_),
                                     ReadVocabulary(Large("vocab"), name_));
}

std::unique_ptr<TokenModel> ModelJson::MakeBpe(bool take_bytes) {
  bpe_.byte_level = take_bytes;
  const std::string_view merges_json = Large("merges");
  Vocabulary vocabulary = ReadVocabulary(Large("vocab"), name_);
  MergeTable merges = ReadMerges(merges_json, vocabulary, bpe_.continuing_subword_prefix, name_);
  return std::make_unique<Bpe>(bpe_, std::move(vocabulary), std::move(merges));
}

std::unique_ptr<TokenModel> ModelJson::MakeUnigram() {
  const std::string_view json = Large("vocab");
  Vocabulary vocabulary(json.size() / 24, json.size() / 2);
  std::vector<double> scores;
  double min_score = 0;
  JsonScanner scanner(json, name_);
  scanner.BeginArray();
  std::string token;
  while (scanner.NextElement()) {
    scanner.BeginArray();
    if (!scanner.NextElement()) scanner.Fail("a vocabulary entry without a token");
    token.assign(scanner.ReadString());
    if (!scanner.NextElement()) scanner.Fail("a vocabulary entry without a score");
    const double score = scanner.ReadNumber();
    if (scanner.NextElement()) scanner.Fail("a vocabulary entry with more than a token and a score");
    vocabulary.AddListed(token, static_cast<int64_t>(scores.size()), /*replace=*/true);
    min_score = scores.empty() ? score : std::min(min_score, score);
    scores.push_back(score);
  }
  scanner.ExpectEnd();
  vocabulary.Finish();
  // If a token is listed twice, only the id that Find returns is used.
  for (size_t id = 0; id < scores.size(); ++id) {
    const auto text = vocabulary.TokenOf(static_cast<int32_t>(id));
    if (text && vocabulary.Find(*text) != static_cast<int32_t>(id)) scores[id] = Unigram::kNotUsed;
  }
  UnigramConfig config;
  config.unk_id = static_cast<int32_t>(OptionalInteger(members_, "unk_id", name_, Vocabulary::kMaxId, -1));
  config.unk_score = min_score - Unigram::kUnkPenalty;
  config.byte_fallback = OptionalBool(members_, "byte_fallback", name_);
  config.look_up_unknown_runs = true;
  return std::make_unique<Unigram>(config, std::move(vocabulary), std::move(scores));
}

std::unique_ptr<TokenModel> ModelJson::MakeWordPiece() {
  WordPieceConfig config;
  config.unk_token = OptionalString(members_, "unk_token", name_);
  config.continuing_subword_prefix = OptionalString(members_, "continuing_subword_prefix", name_);
  config.max_input_chars_per_word =
      static_cast<size_t>(OptionalInteger(members_, "max_input_chars_per_word", name_, int64_t{1} << 62, 100));
  return std::make_unique<WordPiece>(std::move(config), ReadVocabulary(Large("vocab"), name_));
}

std::string ModelJson::Kind(bool byte_level) const {
  if (byte_level) return "byte-level " + type_;
  const bool falls_back =
      type_ == "BPE" ? bpe_.byte_fallback : type_ == "Unigram" && OptionalBool(members_, "byte_fallback", name_);
  return falls_back ? type_ + " with byte fallback" : type_;
}

}  // namespace vllm::tokenizer
