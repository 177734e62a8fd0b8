#include "tokenizer/models/sentence_piece_model.h"

#include <cmath>

#include "tokenizer/formats/proto_reader.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

Piece ReadPiece(std::string_view bytes, const std::string& name) {
  Piece piece;
  ProtoReader reader(bytes, name);
  while (reader.Next()) {
    switch (reader.number()) {
      case 1:
        piece.text = reader.Bytes();
        break;
      case 2:
        piece.score = reader.Float();
        break;
      case 3:
        if (!(reader.Varint() >= 1 && reader.Varint() <= 6)) {
          throw TokenizerError("reading " + name + ": unknown piece type " + std::to_string(reader.Varint()) +
                               " (must be 1 to 6)");
        }
        piece.type = static_cast<PieceType>(reader.Varint());
        break;
      default:
        break;
    }
  }
  const std::string where = "reading " + name + ": the piece " + QuoteForError(piece.text);
  if (piece.text.empty()) throw TokenizerError("reading " + name + ": a piece without text");
  if (!IsValidUtf8(piece.text)) throw TokenizerError(where + " is not valid UTF-8");
  if (!std::isfinite(piece.score)) throw TokenizerError(where + " has a score that is NaN or infinite");
  return piece;
}

std::string Text(const ProtoReader& reader, const std::string& name) {
  if (!IsValidUtf8(reader.Bytes())) throw TokenizerError("reading " + name + ": a string is not valid UTF-8");
  return std::string(reader.Bytes());
}

void ReadTrainerSpec(std::string_view bytes, const std::string& name, SentencePieceModel& model) {
  ProtoReader reader(bytes, name);
  while (reader.Next()) {
    switch (reader.number()) {
      case 3:
        if (reader.Varint() != 1 && reader.Varint() != 2) {
          throw TokenizerError("reading " + name + ": model type " + std::to_string(reader.Varint()) +
                               " is not supported (supported: 1 = unigram, 2 = BPE)");
        }
        model.type = static_cast<SentencePieceModel::Type>(reader.Varint());
        break;
      case 24:
        model.normalization.treat_whitespace_as_suffix = reader.Bool();
        break;
      case 35:
        model.byte_fallback = reader.Bool();
        break;
      case 44:
        model.unk_surface = Text(reader, name);
        break;
      case 46:
        model.bos_piece = Text(reader, name);
        break;
      case 47:
        model.eos_piece = Text(reader, name);
        break;
      default:
        break;
    }
  }
}

void ReadNormalizerSpec(std::string_view bytes, const std::string& name, SentencePieceNormalization& normalization) {
  ProtoReader reader(bytes, name);
  while (reader.Next()) {
    switch (reader.number()) {
      case 2:
        normalization.precompiled_charsmap = reader.Bytes();
        break;
      case 3:
        normalization.add_dummy_prefix = reader.Bool();
        break;
      case 4:
        normalization.remove_extra_whitespaces = reader.Bool();
        break;
      case 5:
        normalization.escape_whitespaces = reader.Bool();
        break;
      default:
        break;
    }
  }
}

}  // namespace

SentencePieceModel ReadSentencePieceModel(std::string_view bytes, const std::string& name) {
  SentencePieceModel model;
  ProtoReader reader(bytes, name);
  size_t num_unknown = 0;
  bool has_bytes = false;
  while (reader.Next()) {
    if (reader.number() == 1) {
      model.pieces.push_back(ReadPiece(reader.Bytes(), name));
      num_unknown += model.pieces.back().type == PieceType::kUnknown;
      has_bytes = has_bytes || model.pieces.back().type == PieceType::kByte;
    } else if (reader.number() == 2) {
      ReadTrainerSpec(reader.Bytes(), name, model);
    } else if (reader.number() == 3) {
      ReadNormalizerSpec(reader.Bytes(), name, model.normalization);
    } else if (reader.number() == 5) {
      SentencePieceNormalization denormalization;
      ReadNormalizerSpec(reader.Bytes(), name, denormalization);
      if (!denormalization.precompiled_charsmap.empty()) {
        throw TokenizerError("reading " + name + ": a denormalizer is not supported");
      }
    }
  }
  if (num_unknown != 1) {
    throw TokenizerError("reading " + name + ": " + std::to_string(num_unknown) +
                         " pieces of type unknown (must be 1)");
  }
  if (has_bytes && !model.byte_fallback) {
    throw TokenizerError("reading " + name + ": byte pieces without byte_fallback");
  }
  return model;
}

}  // namespace vllm::tokenizer
