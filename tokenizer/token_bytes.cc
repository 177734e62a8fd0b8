#include "tokenizer/token_bytes.h"

#include <algorithm>
#include <string_view>

#include "tokenizer/decoders/token_decoder.h"
#include "tokenizer/unicode/byte_level.h"
#include "tokenizer/unicode/metaspace.h"

namespace vllm::tokenizer {
namespace {

void ReplaceAll(std::string_view from, std::string_view to, std::string& text) {
  if (from.empty()) return;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Applies `step` to one token. Returns false if the step changes a token depending on its neighbors, other than at the
// start of the text. Sets `is_byte` if `text` has become a byte that later steps must not change.
bool ApplyStep(const DecoderStep& step, std::string& text, bool& is_byte) {
  switch (step.kind) {
    case DecoderStep::Kind::kByteLevel: {
      std::string bytes;
      AppendFromByteLevel(text, bytes);
      text = std::move(bytes);
      is_byte = true;
      return true;
    }
    case DecoderStep::Kind::kByteFallback:
      if (const int byte = ParseByteToken(text); byte >= 0) {
        text.assign(1, static_cast<char>(byte));
        is_byte = true;
      }
      return true;
    case DecoderStep::Kind::kReplace:
      if (step.pattern != nullptr) return false;
      ReplaceAll(step.text, step.content, text);
      return true;
    case DecoderStep::Kind::kMetaspace:
      ReplaceAll(step.text, " ", text);
      return true;
    case DecoderStep::Kind::kSentencePiece:
      if (const int byte = step.flag ? ParseByteToken(text) : -1; byte >= 0) {
        text.assign(1, static_cast<char>(byte));
        is_byte = true;
      } else if (text == step.text) {
        text = step.content;
      } else {
        ReplaceAll(kMetaspace, " ", text);
      }
      return true;
    case DecoderStep::Kind::kFuse:
      return true;
    case DecoderStep::Kind::kStrip:
      // After kFuse, this strips the start and the end of the whole text. TokenBytes has checked the order.
      return step.stop == 0;
    case DecoderStep::Kind::kWordPiece:
    case DecoderStep::Kind::kBpe:
    case DecoderStep::Kind::kCtc:
    case DecoderStep::Kind::kJoin:
      return false;
  }
  return false;
}

// Returns false if a step before kFuse strips each token.
bool StripsOnlyWholeText(const std::vector<DecoderStep>& steps) {
  const auto is = [](DecoderStep::Kind kind) { return [kind](const DecoderStep& step) { return step.kind == kind; }; };
  const auto fuse = std::find_if(steps.begin(), steps.end(), is(DecoderStep::Kind::kFuse));
  return std::none_of(steps.begin(), fuse, is(DecoderStep::Kind::kStrip));
}

}  // namespace

std::optional<std::vector<std::string>> TokenBytes(const Tokenizer& tokenizer) {
  const std::vector<DecoderStep>& steps = tokenizer.decoder().steps();
  if (steps.empty() || !StripsOnlyWholeText(steps)) return std::nullopt;
  std::vector<std::string> all(static_cast<size_t>(tokenizer.VocabSize()));
  for (int32_t id = 0; id < tokenizer.VocabSize(); ++id) {
    const std::optional<std::string_view> token = tokenizer.TokenForDecoding(id, /*skip_special_tokens=*/true);
    if (!token) continue;
    std::string text(*token);
    bool is_byte = false;
    for (const DecoderStep& step : steps) {
      if (is_byte) break;
      if (!ApplyStep(step, text, is_byte)) return std::nullopt;
    }
    all[static_cast<size_t>(id)] = std::move(text);
  }
  return all;
}

}  // namespace vllm::tokenizer
