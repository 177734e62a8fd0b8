#include "tokenizer/loaders/gguf_vocabulary.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <utility>

#include "tokenizer/loaders/added_tokens.h"
#include "tokenizer/loaders/gguf_pre_tokenizers.h"
#include "tokenizer/loaders/merge_reader.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/sentence_piece_bpe.h"
#include "tokenizer/models/unigram.h"
#include "tokenizer/models/word_piece.h"
#include "tokenizer/normalizers/bert_normalizer.h"
#include "tokenizer/normalizers/sentence_piece_normalizer.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

// A model's values for fields that the file does not set.
struct GgufDefaults {
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  std::optional<int32_t> unk;
  std::optional<int32_t> sep;
  bool add_bos = false;
  bool add_eos = false;
};

class GgufLoader {
 public:
  GgufLoader(const GgufVocabulary& source, const std::string& name)
      : source_(source), name_("the vocabulary of " + name), parts_(std::make_unique<TokenizerParts>()) {
    Check();
  }

  std::unique_ptr<TokenizerParts> Load() {
    if (source_.model == "llama") {
      MakeSentencePieceBpe();
    } else if (source_.model == "gpt2") {
      MakeByteLevelBpe();
    } else if (source_.model == "gemma4") {
      MakeGemma4Bpe();
    } else if (source_.model == "t5") {
      MakeUnigram();
    } else if (source_.model == "bert") {
      MakeWordPiece();
    } else {
      Fail("tokenizer model " + QuoteForError(source_.model) +
           " is not supported (only llama, gpt2, gemma4, t5 and bert)");
    }
    return std::move(parts_);
  }

 private:
  [[noreturn]] void Fail(const std::string& why) const { throw TokenizerError("reading " + name_ + ": " + why); }

  void Check() const {
    const size_t count = source_.tokens.size();
    if (count == 0) Fail("no tokens");
    const auto check_size = [&](size_t size, const char* what) {
      if (size != 0 && size != count) {
        Fail(std::to_string(size) + " " + what + " for " + std::to_string(count) + " tokens");
      }
    };
    check_size(source_.scores.size(), "scores");
    check_size(source_.token_types.size(), "token types");
    for (size_t id = 0; id < count; ++id) {
      if (!IsValidUtf8(source_.tokens[id])) Fail("token " + std::to_string(id) + " is not valid UTF-8");
    }
    for (const float score : source_.scores) {
      if (!std::isfinite(score)) Fail("a score is NaN or infinite");
    }
  }

  PieceType TypeOf(size_t id) const {
    if (source_.token_types.empty()) return PieceType::kNormal;
    const int32_t type = source_.token_types[id];
    return type >= 1 && type <= 6 ? static_cast<PieceType>(type) : PieceType::kNormal;
  }

  float ScoreOf(size_t id) const { return source_.scores.empty() ? 0.0F : source_.scores[id]; }

  // Returns the id that the file sets (-1 for UINT32_MAX), else `fallback` if the vocabulary has it, else -1.
  int32_t IdOf(const std::optional<int64_t>& given, const std::optional<int32_t>& fallback, const char* what) const {
    const auto count = static_cast<int64_t>(source_.tokens.size());
    if (!given || *given == int64_t{UINT32_MAX}) {
      return !given && fallback && *fallback < count ? *fallback : -1;
    }
    if (!(*given >= 0 && *given < count)) {
      Fail(std::string(what) + " is " + std::to_string(*given) + " (limit " + std::to_string(count - 1) + ")");
    }
    return static_cast<int32_t>(*given);
  }

  Vocabulary MakeVocabulary() const {
    size_t num_bytes = 0;
    for (const std::string_view token : source_.tokens) num_bytes += token.size();
    Vocabulary vocabulary(source_.tokens.size(), num_bytes);
    for (size_t id = 0; id < source_.tokens.size(); ++id) {
      const std::string_view token = source_.tokens[id];
      // Some files fill gaps with empty tokens. llama.cpp gives them these names.
      const std::string placeholder = token.empty() ? "[EMPTY_" + std::to_string(id) + "]" : "";
      vocabulary.AddListed(token.empty() ? placeholder : token, static_cast<int64_t>(id), /*replace=*/false);
    }
    vocabulary.Finish();
    return vocabulary;
  }

  // Adds control, unknown and user-defined tokens as added tokens. Encode cuts user-defined tokens out of the text
  // before the model encodes the rest, and the others too if parse_special is true. A model that finds user-defined
  // tokens itself needs none of them as added tokens.
  void AddSpecialTokens(bool with_user_defined = true) {
    std::vector<AddedToken> tokens;
    for (size_t id = 0; id < source_.tokens.size(); ++id) {
      const PieceType type = TypeOf(id);
      const bool special = type == PieceType::kControl || type == PieceType::kUnknown;
      if (source_.tokens[id].empty()) continue;
      if (!special && !(with_user_defined && type == PieceType::kUserDefined)) continue;
      AddedToken token;
      token.content = source_.tokens[id];
      token.special = special;
      token.normalized = false;
      token.id = static_cast<int32_t>(id);
      tokens.push_back(std::move(token));
    }
    AddTokens(std::move(tokens), *parts_);
  }

  void SetPostProcessor(const GgufDefaults& defaults) {
    const int32_t bos = IdOf(source_.bos_id ? source_.bos_id : source_.cls_id, defaults.bos, "bos_token_id");
    const int32_t eos = IdOf(source_.eos_id, defaults.eos, "eos_token_id");
    const int32_t sep = IdOf(source_.sep_id, defaults.sep, "seperator_token_id");
    std::vector<int32_t> before;
    std::vector<int32_t> after;
    if (source_.add_bos.value_or(defaults.add_bos)) {
      if (bos < 0) Fail("add_bos_token is true or unset, but there is no bos_token_id or cls_token_id");
      before.push_back(bos);
    }
    if (source_.add_eos.value_or(defaults.add_eos)) {
      if (eos < 0) Fail("add_eos_token is true or unset, but there is no eos_token_id");
      after.push_back(eos);
    }
    const bool is_bert = source_.model == "bert";
    const bool add_sep = source_.add_sep.value_or(is_bert) && sep >= 0;
    if (is_bert && add_sep) after.push_back(sep);
    std::vector<int32_t> between = after;
    if (!is_bert && add_sep) between.push_back(sep);
    // Only encoders join texts. Their texts have tokens on both sides.
    if (before.empty() || after.empty()) between.clear();
    parts_->post_processor = PostProcessor(before, after, between, is_bert);
  }

  void SetSpaceDecoder(bool strips_first_space, bool has_byte_tokens) {
    DecoderStep step{.kind = DecoderStep::Kind::kSentencePiece, .text = {}, .content = {}, .pattern = nullptr};
    step.start = strips_first_space;
    step.flag = has_byte_tokens;
    parts_->decoder = TokenDecoder::Of(std::move(step));
  }

  void MakeSentencePieceBpe() {
    const GgufDefaults defaults{.bos = 1, .eos = 2, .unk = 0, .sep = {}, .add_bos = true};
    SentencePieceNormalization normalization;
    normalization.add_dummy_prefix = source_.add_space_prefix.value_or(true);
    normalization.remove_extra_whitespaces = false;
    parts_->normalizer = std::make_unique<SentencePieceNormalizer>(normalization, TokenTrie(), name_);
    SentencePieceBpeConfig config;
    config.unk_id = IdOf(source_.unk_id, defaults.unk, "unknown_token_id");
    config.byte_fallback = true;
    config.all_pieces_merge = true;
    std::vector<float> scores;
    std::vector<PieceType> types;
    for (size_t id = 0; id < source_.tokens.size(); ++id) {
      scores.push_back(ScoreOf(id));
      types.push_back(TypeOf(id));
    }
    parts_->model = std::make_unique<SentencePieceBpe>(config, MakeVocabulary(), std::move(scores), std::move(types));
    parts_->kind = "SentencePiece BPE";
    AddSpecialTokens();
    SetPostProcessor(defaults);
    SetSpaceDecoder(normalization.add_dummy_prefix, /*has_byte_tokens=*/true);
  }

  void MakeByteLevelBpe() {
    const GgufPreTokenizer* pre = FindGgufPreTokenizer(source_.pre);
    if (pre == nullptr) Fail("pre-tokenizer " + QuoteForError(source_.pre) + " is not known");
    const GgufDefaults defaults{.bos = 11, .eos = 11, .unk = {}, .sep = {}, .add_bos = pre->add_bos};
    BpeConfig config;
    config.byte_level = true;
    config.ignore_merges = pre->ignore_merges;
    Vocabulary vocabulary = MakeVocabulary();
    MergeReader merges(vocabulary, config.continuing_subword_prefix, source_.merges.size(), name_);
    for (const std::string_view merge : source_.merges) merges.AddLine(merge);
    MergeTable table = merges.Take();
    std::vector<std::string> regexes;
    for (const std::string_view regex : pre->regexes) {
      if (!regex.empty()) regexes.emplace_back(regex);
    }
    parts_->pre_tokenizers = ByteLevelPreTokenizers(regexes);
    parts_->model = std::make_unique<Bpe>(std::move(config), std::move(vocabulary), std::move(table));
    parts_->kind = "byte-level BPE";
    AddSpecialTokens();
    SetPostProcessor(defaults);
  }

  // BPE with merges over characters, in which U+2581 stands for a space. No merge crosses a line feed.
  void MakeGemma4Bpe() {
    const GgufDefaults defaults{.bos = 2, .eos = 1, .unk = 3, .sep = {}, .add_bos = true};
    SentencePieceNormalization normalization;
    normalization.add_dummy_prefix = source_.add_space_prefix.value_or(false);
    normalization.remove_extra_whitespaces = false;
    parts_->normalizer = std::make_unique<SentencePieceNormalizer>(normalization, TokenTrie(), name_);
    BpeConfig config;
    config.byte_fallback = true;
    config.fuse_unk = true;
    Vocabulary vocabulary = MakeVocabulary();
    const int32_t unk = IdOf(source_.unk_id, defaults.unk, "unknown_token_id");
    if (unk >= 0) config.unk_token = vocabulary.TokenOf(unk).value_or("");
    const std::string no_prefix;
    MergeReader merges(vocabulary, no_prefix, source_.merges.size(), name_);
    for (const std::string_view merge : source_.merges) merges.AddLine(merge);
    MergeTable table = merges.Take();
    parts_->pre_tokenizers = LinePreTokenizers();
    parts_->model = std::make_unique<Bpe>(std::move(config), std::move(vocabulary), std::move(table));
    parts_->kind = "BPE";
    AddSpecialTokens();
    SetPostProcessor(defaults);
    SetSpaceDecoder(normalization.add_dummy_prefix, /*has_byte_tokens=*/true);
  }

  void MakeUnigram() {
    const GgufDefaults defaults{.bos = {}, .eos = 1, .unk = 2, .sep = {}, .add_bos = false, .add_eos = true};
    SentencePieceNormalization normalization;
    normalization.precompiled_charsmap = source_.precompiled_charsmap;
    normalization.add_dummy_prefix = source_.add_space_prefix.value_or(false);
    normalization.remove_extra_whitespaces = source_.remove_extra_whitespaces.value_or(false);
    // The arithmetic is that of SentencePiece, with which these models were trained (see sentence_piece_loader.cc).
    // llama.cpp adds scores in double precision, so it breaks ties differently, and has no byte fallback.
    float min_score = FLT_MAX;
    std::vector<double> scores;
    std::vector<TokenTrie::Entry> user_defined;
    int64_t num_byte_tokens = 0;
    for (size_t id = 0; id < source_.tokens.size(); ++id) {
      const PieceType type = TypeOf(id);
      const bool in_text = type == PieceType::kNormal || type == PieceType::kUserDefined || type == PieceType::kUnused;
      if (type == PieceType::kNormal) min_score = std::min(min_score, ScoreOf(id));
      if (type == PieceType::kUserDefined) user_defined.push_back({source_.tokens[id], static_cast<int32_t>(id)});
      num_byte_tokens += type == PieceType::kByte ? 1 : 0;
      scores.push_back(!in_text                          ? Unigram::kNotUsed
                       : type == PieceType::kUserDefined ? Unigram::UserDefinedScore(source_.tokens[id])
                                                         : double{ScoreOf(id)});
    }
    parts_->normalizer =
        std::make_unique<SentencePieceNormalizer>(normalization, TokenTrie(std::move(user_defined)), name_);
    UnigramConfig config;
    config.unk_id = IdOf(source_.unk_id, defaults.unk, "unknown_token_id");
    config.unk_score = double{min_score - static_cast<float>(Unigram::kUnkPenalty)};
    config.single_precision = true;
    config.byte_fallback = num_byte_tokens == 256;
    parts_->model = std::make_unique<Unigram>(config, MakeVocabulary(), std::move(scores));
    parts_->kind = "Unigram";
    AddSpecialTokens(/*with_user_defined=*/false);
    SetPostProcessor(defaults);
    SetSpaceDecoder(normalization.add_dummy_prefix || normalization.remove_extra_whitespaces, config.byte_fallback);
  }

  // In GGUF, a token at the start of a word has the prefix U+2581, and the other tokens lack the prefix "##".
  void MakeWordPiece() {
    const GgufDefaults defaults{.bos = 101, .eos = {}, .unk = 100, .sep = 102, .add_bos = true};
    BertNormalizerConfig normalizer;
    normalizer.lowercase = source_.lowercase.value_or(true);
    normalizer.strip_accents = source_.strip_accents.value_or(normalizer.lowercase);
    parts_->normalizer = std::make_unique<BertNormalizer>(normalizer);
    parts_->pre_tokenizers = MarkedBertPreTokenizers();
    Vocabulary vocabulary = MakeVocabulary();
    const int32_t unk = IdOf(source_.unk_id, defaults.unk, "unknown_token_id");
    WordPieceConfig config;
    config.max_input_chars_per_word = SIZE_MAX;
    if (unk >= 0) config.unk_token = vocabulary.TokenOf(unk).value_or("");
    parts_->model = std::make_unique<WordPiece>(std::move(config), std::move(vocabulary));
    parts_->kind = "WordPiece";
    AddSpecialTokens();
    SetPostProcessor(defaults);
    SetSpaceDecoder(true, false);
  }

  const GgufVocabulary& source_;
  std::string name_;
  std::unique_ptr<TokenizerParts> parts_;
};

}  // namespace

std::unique_ptr<Tokenizer> MakeGgufTokenizer(const GgufVocabulary& vocabulary, const std::string& name_for_errors) {
  return std::make_unique<Tokenizer>(GgufLoader(vocabulary, name_for_errors).Load());
}

}  // namespace vllm::tokenizer
