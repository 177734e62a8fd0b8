// The contents of a SentencePiece file (tokenizer.model) that matter for encoding and decoding. Plain values and a pure
// function, any thread. The file consists of protocol buffer messages; the numbers are field numbers:
//
//   ModelProto      pieces = 1 (repeated), trainer_spec = 2, normalizer_spec = 3, denormalizer_spec = 5
//   SentencePiece   piece = 1, score = 2 (float), type = 3
//   TrainerSpec     model_type = 3, treat_whitespace_as_suffix = 24, byte_fallback = 35, unk_surface = 44,
//                   bos_piece = 46, eos_piece = 47
//   NormalizerSpec  precompiled_charsmap = 2, add_dummy_prefix = 3, remove_extra_whitespaces = 4,
//                   escape_whitespaces = 5
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

enum class PieceType : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct Piece {
  std::string_view text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

struct SentencePieceNormalization {
  std::string_view precompiled_charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
};

// All views point into the bytes of the file.
struct SentencePieceModel {
  enum class Type { kUnigram = 1, kBpe = 2 };

  Type type = Type::kUnigram;
  std::vector<Piece> pieces;
  bool byte_fallback = false;
  std::string unk_surface = " \xE2\x81\x87 ";
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
  SentencePieceNormalization normalization;
};

// The result borrows `bytes`. Throws TokenizerError if the file is damaged, its pieces are inconsistent, or it needs an
// unsupported feature.
SentencePieceModel ReadSentencePieceModel(std::string_view bytes, const std::string& name_for_errors);

}  // namespace vllm::tokenizer
