#include "tokenizer/loaders/sentence_piece_loader.h"

#include <algorithm>
#include <cfloat>
#include <utility>
#include <vector>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/loaders/added_tokens.h"
#include "tokenizer/models/sentence_piece_bpe.h"
#include "tokenizer/models/sentence_piece_model.h"
#include "tokenizer/models/unigram.h"
#include "tokenizer/normalizers/sentence_piece_normalizer.h"

namespace vllm::tokenizer {
namespace {

// Returns true for the types whose pieces the SentencePiece library looks up in text. If such a piece has the same
// string as a control, unknown or byte piece, Vocabulary::Find must return the piece that is looked up.
bool IsInText(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined || type == PieceType::kUnused;
}

Vocabulary MakeVocabulary(const SentencePieceModel& model, const std::string& name) {
  size_t num_bytes = 0;
  for (const Piece& piece : model.pieces) num_bytes += piece.text.size();
  Vocabulary vocabulary(model.pieces.size(), num_bytes);
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    const int32_t known = vocabulary.Find(piece.text);
    if (known >= 0 && IsInText(model.pieces[static_cast<size_t>(known)].type) == IsInText(piece.type)) {
      throw TokenizerError("reading " + name + ": the piece " + QuoteForError(piece.text) + " is repeated");
    }
    vocabulary.AddListed(piece.text, static_cast<int64_t>(id), /*replace=*/IsInText(piece.type));
  }
  vocabulary.Finish();
  return vocabulary;
}

std::unique_ptr<TokenModel> MakeUnigram(const SentencePieceModel& model, int32_t unk_id, Vocabulary vocabulary) {
  // Uses the exact arithmetic of the SentencePiece library, because its rounding and initial values decide ties.
  float min_score = FLT_MAX;
  for (const Piece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    min_score = std::min(min_score, piece.score);
  }
  std::vector<double> scores;
  scores.reserve(model.pieces.size());
  for (const Piece& piece : model.pieces) {
    double score = Unigram::kNotUsed;
    if (piece.type == PieceType::kNormal) score = static_cast<double>(piece.score);
    if (piece.type == PieceType::kUserDefined) score = Unigram::UserDefinedScore(piece.text);
    scores.push_back(score);
  }
  UnigramConfig config;
  config.unk_id = unk_id;
  config.unk_score = static_cast<double>(min_score - static_cast<float>(Unigram::kUnkPenalty));
  config.byte_fallback = model.byte_fallback;
  config.single_precision = true;
  return std::make_unique<Unigram>(config, std::move(vocabulary), std::move(scores));
}

std::unique_ptr<TokenModel> MakeBpe(const SentencePieceModel& model, int32_t unk_id, Vocabulary vocabulary) {
  std::vector<float> scores;
  std::vector<PieceType> types;
  for (const Piece& piece : model.pieces) {
    scores.push_back(piece.score);
    types.push_back(piece.type);
  }
  SentencePieceBpeConfig config;
  config.unk_id = unk_id;
  config.byte_fallback = model.byte_fallback;
  return std::make_unique<SentencePieceBpe>(config, std::move(vocabulary), std::move(scores), std::move(types));
}

}  // namespace

std::unique_ptr<TokenizerParts> MakeSentencePieceParts(std::string_view bytes, const std::string& name,
                                                       const TokenizerConfig& settings) {
  const SentencePieceModel model = ReadSentencePieceModel(bytes, name);
  int32_t unk_id = -1;
  int32_t bos_id = -1;
  int32_t eos_id = -1;
  std::vector<TokenTrie::Entry> user_defined;
  std::vector<AddedToken> added;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (piece.type == PieceType::kUnknown) unk_id = id;
    if (piece.type == PieceType::kUserDefined) user_defined.push_back({piece.text, id});
    if (piece.type != PieceType::kControl) continue;
    if (piece.text == settings.bos_token.value_or(model.bos_piece)) bos_id = id;
    if (piece.text == settings.eos_token.value_or(model.eos_piece)) eos_id = id;
    AddedToken token;
    token.content = piece.text;
    token.special = true;
    token.normalized = false;
    token.id = id;
    added.push_back(std::move(token));
  }
  for (const AddedToken& token : settings.added_tokens) {
    // The model determines the types of its pieces, so skip an entry that repeats a piece and is not special.
    const bool is_piece = token.id < static_cast<int32_t>(model.pieces.size());
    if (!is_piece || model.pieces[static_cast<size_t>(token.id)].text != token.content || token.special) {
      added.push_back(token);
    }
  }
  auto parts = std::make_unique<TokenizerParts>();
  parts->normalizer =
      std::make_unique<SentencePieceNormalizer>(model.normalization, TokenTrie(std::move(user_defined)), name);
  Vocabulary vocabulary = MakeVocabulary(model, name);
  const bool is_unigram = model.type == SentencePieceModel::Type::kUnigram;
  parts->model =
      is_unigram ? MakeUnigram(model, unk_id, std::move(vocabulary)) : MakeBpe(model, unk_id, std::move(vocabulary));
  parts->kind = is_unigram ? "SentencePiece Unigram" : "SentencePiece BPE";
  AddTokens(std::move(added), *parts);
  const bool is_t5 = settings.tokenizer_class.starts_with("T5");
  std::vector<int32_t> before;
  std::vector<int32_t> after;
  if (bos_id >= 0 && settings.add_bos_token.value_or(!is_t5)) before.push_back(bos_id);
  if (eos_id >= 0 && settings.add_eos_token.value_or(is_t5)) after.push_back(eos_id);
  parts->post_processor = PostProcessor(std::move(before), after);
  DecoderStep step{.kind = DecoderStep::Kind::kSentencePiece,
                   .text = std::string(model.pieces[static_cast<size_t>(unk_id)].text),
                   .content = model.unk_surface,
                   .pattern = nullptr};
  const SentencePieceNormalization& normalization = model.normalization;
  step.start = normalization.add_dummy_prefix || normalization.remove_extra_whitespaces;
  step.stop = normalization.remove_extra_whitespaces;
  step.flag = model.byte_fallback;
  parts->decoder = TokenDecoder::Of(std::move(step));
  return parts;
}

}  // namespace vllm::tokenizer
