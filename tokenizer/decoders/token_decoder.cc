#include "tokenizer/decoders/token_decoder.h"

#include <algorithm>

#include "tokenizer/decoders/decoder_stages.h"
#include "tokenizer/formats/json_fields.h"
#include "tokenizer/patterns/pattern_json.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

std::string OneCharacter(const nlohmann::json& json, const char* key, const std::string& where) {
  std::string text = StringField(json, key, where);
  if (CountCodePoints(text) != 1) {
    throw TokenizerError("reading " + where + ": field " + key + " is not one character");
  }
  return text;
}

}  // namespace

TokenDecoder::TokenDecoder(const nlohmann::json& json) {
  if (json.is_null()) {
    steps_.push_back({.kind = DecoderStep::Kind::kJoin, .text = {}, .content = {}, .pattern = nullptr});
  } else {
    AddSteps(json);
  }
}

TokenDecoder TokenDecoder::ByteLevel() {
  return Of({.kind = DecoderStep::Kind::kByteLevel, .text = {}, .content = {}, .pattern = nullptr});
}

TokenDecoder TokenDecoder::Of(DecoderStep step) {
  TokenDecoder decoder;
  decoder.steps_.push_back(std::move(step));
  return decoder;
}

void TokenDecoder::AddSteps(const nlohmann::json& json) {
  using Kind = DecoderStep::Kind;
  const std::string type = StringField(json, "type", "the decoder");
  const std::string where = "the decoder " + QuoteForError(type);
  constexpr int64_t kMaxStrip = 1 << 20;
  DecoderStep step{.kind = Kind::kJoin, .text = {}, .content = {}, .pattern = nullptr};
  if (type == "Sequence") {
    for (const nlohmann::json& inner : ArrayField(json, "decoders", where)) AddSteps(inner);
    return;
  }
  if (type == "ByteLevel") {
    step.kind = Kind::kByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = Kind::kByteFallback;
  } else if (type == "Fuse") {
    step.kind = Kind::kFuse;
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    step.text = OneCharacter(json, "content", where);
    step.start = static_cast<size_t>(IntegerField(json, "start", where, kMaxStrip));
    step.stop = static_cast<size_t>(IntegerField(json, "stop", where, kMaxStrip));
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    step.content = StringField(json, "content", where);
    const nlohmann::json& pattern = Field(json, "pattern", where);
    if (pattern.is_object() && pattern.contains("String")) step.text = StringField(pattern, "String", where);
    if (step.text.empty()) step.pattern = MakePattern(pattern, where);
    growth_ *= std::max(1.0, ReplaceGrowth(pattern, step.content));
  } else if (type == "Metaspace") {
    step.kind = Kind::kMetaspace;
    step.text = OneCharacter(json, "replacement", where);
    step.flag = BoolField(json, "add_prefix_space", where, true) &&
                !(json.contains("prepend_scheme") && StringField(json, "prepend_scheme", where) == "never");
  } else if (type == "WordPiece") {
    step.kind = Kind::kWordPiece;
    step.text = StringField(json, "prefix", where);
    step.flag = BoolField(json, "cleanup", where);
  } else if (type == "BPEDecoder") {
    step.kind = Kind::kBpe;
    step.text = StringField(json, "suffix", where);
  } else if (type == "CTC") {
    step.kind = Kind::kCtc;
    step.text = StringField(json, "pad_token", where);
    step.content = StringField(json, "word_delimiter_token", where);
    step.flag = BoolField(json, "cleanup", where);
  } else {
    throw TokenizerError("reading " + where + ": not supported");
  }
  steps_.push_back(std::move(step));
  // A text must not grow without bound on its way through a chain of Replace.
  constexpr size_t kMaxSteps = 64;
  constexpr double kMaxGrowth = 256;
  if (steps_.size() > kMaxSteps || !(growth_ <= kMaxGrowth)) {
    throw TokenizerError("reading " + where + ": too many steps, or texts grow too much (limit 64 steps, 256 times)");
  }
}

class DecoderRun::Output : public TokenSink {
 public:
  void Chunk(std::string_view text) override { target->append(text); }
  void EndToken() override {}
  void Finish() override {}

  std::string* target = nullptr;
};

DecoderRun::DecoderRun(const TokenDecoder& decoder) : output_(std::make_unique<Output>()), first_(output_.get()) {
  for (auto step = decoder.steps().rbegin(); step != decoder.steps().rend(); ++step) {
    stages_.push_back(MakeDecoderStage(*step, *first_));
    first_ = stages_.back().get();
  }
}

DecoderRun::~DecoderRun() = default;

void DecoderRun::Feed(std::string_view token, std::string& out) {
  output_->target = &out;
  first_->Chunk(token);
  first_->EndToken();
}

void DecoderRun::Finish(std::string& out) {
  output_->target = &out;
  first_->Finish();
}

}  // namespace vllm
