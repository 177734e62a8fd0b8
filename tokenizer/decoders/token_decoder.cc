#include "tokenizer/decoders/token_decoder.h"

#include <algorithm>
#include <utility>

#include "tokenizer/formats/json_fields.h"
#include "tokenizer/patterns/pattern_json.h"
#include "tokenizer/unicode/byte_level.h"
#include "tokenizer/unicode/metaspace.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

std::string OneCharacter(const nlohmann::json& json, const char* key, const std::string& where) {
  std::string text = StringField(json, key, where);
  if (CountCodePoints(text) != 1) {
    throw TokenizerError("reading " + where + ": field " + key + " is not one character");
  }
  return text;
}

// Base of stages that need whole tokens.
class WholeTokenStage : public DecoderStage {
 public:
  using DecoderStage::DecoderStage;
  void Chunk(std::string_view text) override { token_ += text; }
  void EndToken() override {
    Token(token_);
    token_.clear();
  }

 protected:
  virtual void Token(std::string& token) = 0;

 private:
  std::string token_;
};

class ByteLevelStage : public WholeTokenStage {
 public:
  using WholeTokenStage::WholeTokenStage;
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<ByteLevelStage>(*this); }
  void Finish() override {
    text_.clear();
    AppendValidUtf8(bytes_, text_);
    Emit(text_);
    next_->Finish();
  }

 protected:
  void Token(std::string& token) override {
    AppendFromByteLevel(token, bytes_);
    const size_t certain = bytes_.size() - IncompleteUtf8Tail(bytes_);
    text_.clear();
    AppendValidUtf8(std::string_view(bytes_).substr(0, certain), text_);
    bytes_.erase(0, certain);
    next_->Chunk(text_);
  }

 private:
  std::string bytes_;
  std::string text_;
};

// A run of byte tokens becomes the text of its bytes if they are valid UTF-8. Otherwise, each byte becomes U+FFFD.
// Therefore a run is withheld until it ends.
class ByteFallbackStage : public DecoderStage {
 public:
  using DecoderStage::DecoderStage;
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<ByteFallbackStage>(*this); }

  void Chunk(std::string_view text) override {
    if (is_passing_through_) {
      next_->Chunk(text);
      return;
    }
    token_ += text;
    if (token_.size() <= kByteTokenLength) return;
    FlushRun();
    next_->Chunk(token_);
    is_passing_through_ = true;
  }

  void EndToken() override {
    if (!is_passing_through_) {
      const int byte = ParseByteToken(token_);
      if (byte >= 0) {
        run_ += static_cast<char>(byte);
        token_.clear();
        return;
      }
      FlushRun();
      next_->Chunk(token_);
    }
    next_->EndToken();
    token_.clear();
    is_passing_through_ = false;
  }

  void Finish() override {
    FlushRun();
    next_->Finish();
  }

 private:
  static constexpr size_t kByteTokenLength = 6;

  void FlushRun() {
    if (run_.empty()) return;
    if (IsValidUtf8(run_)) {
      Emit(run_);
    } else {
      for (size_t i = 0; i < run_.size(); ++i) Emit(kReplacementCharacter);
    }
    run_.clear();
  }

  std::string token_;
  std::string run_;
  bool is_passing_through_ = false;
};

class FuseStage : public DecoderStage {
 public:
  using DecoderStage::DecoderStage;
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<FuseStage>(*this); }
  void Chunk(std::string_view text) override { next_->Chunk(text); }
  void EndToken() override {}
  void Finish() override {
    next_->EndToken();
    next_->Finish();
  }
};

class StripStage : public DecoderStage {
 public:
  StripStage(const DecoderStep& step, TokenSink& next) : DecoderStage(next), step_(step) {}
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<StripStage>(*this); }

  void Chunk(std::string_view text) override {
    const std::string_view content = step_.text;
    while (at_start_ && text.starts_with(content) && stripped_ < step_.start) {
      text.remove_prefix(content.size());
      ++stripped_;
    }
    at_start_ = at_start_ && text.empty();
    if (text.empty()) return;
    size_t body = text.size();
    size_t tail = 0;
    while (tail < step_.stop && text.substr(0, body).ends_with(content)) {
      body -= content.size();
      ++tail;
    }
    if (body > 0 || tail == step_.stop) {
      // Release withheld copies of `content`. A copy is not stripped if other text or `stop` more copies follow it.
      const size_t release = body > 0 ? withheld_ : std::min(withheld_, withheld_ + tail - step_.stop);
      Repeat(release);
      withheld_ -= release;
      next_->Chunk(text.substr(0, body));
    }
    withheld_ += tail;
    while (withheld_ > step_.stop) {
      Repeat(1);
      --withheld_;
    }
  }

  void EndToken() override {
    next_->EndToken();
    at_start_ = true;
    stripped_ = withheld_ = 0;
  }

 private:
  void Repeat(size_t count) {
    for (; count > 0; --count) next_->Chunk(step_.text);
  }

  const DecoderStep& step_;
  bool at_start_ = true;
  size_t stripped_ = 0;
  size_t withheld_ = 0;  // number of copies of step_.text withheld at the end; at most step_.stop
};

class ReplaceLiteralStage : public DecoderStage {
 public:
  ReplaceLiteralStage(const DecoderStep& step, TokenSink& next) : DecoderStage(next), step_(step) {}
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<ReplaceLiteralStage>(*this); }

  void Chunk(std::string_view text) override {
    if (!withheld_.empty()) {
      withheld_ += text;
      joined_.swap(withheld_);
      withheld_.clear();
      text = joined_;
    }
    const std::string_view literal = step_.text;
    for (size_t found; (found = text.find(literal)) != text.npos; text.remove_prefix(found + literal.size())) {
      next_->Chunk(text.substr(0, found));
      next_->Chunk(step_.content);
    }
    size_t keep = std::min(text.size(), literal.size() - 1);
    while (keep > 0 && !literal.starts_with(text.substr(text.size() - keep))) --keep;
    next_->Chunk(text.substr(0, text.size() - keep));
    withheld_ = text.substr(text.size() - keep);
  }

  void EndToken() override {
    Emit(withheld_);
    withheld_.clear();
  }

 private:
  const DecoderStep& step_;
  std::string withheld_;  // a tail that may be the start of step_.text
  std::string joined_;
};

class ReplacePatternStage : public WholeTokenStage {
 public:
  ReplacePatternStage(const DecoderStep& step, TokenSink& next) : WholeTokenStage(next), step_(step) {}
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<ReplacePatternStage>(*this); }

 protected:
  void Token(std::string& token) override { Emit(ReplaceMatches(*step_.pattern, token, step_.content)); }

 private:
  const DecoderStep& step_;
};

class MetaspaceStage : public DecoderStage {
 public:
  MetaspaceStage(const DecoderStep& step, TokenSink& next) : DecoderStage(next), step_(step) {}
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<MetaspaceStage>(*this); }

  void Chunk(std::string_view text) override {
    const std::string_view replacement = step_.text;
    for (size_t found; (found = text.find(replacement)) != text.npos; text.remove_prefix(found + replacement.size())) {
      next_->Chunk(text.substr(0, found));
      if (!(first_ && step_.flag)) next_->Chunk(" ");
    }
    next_->Chunk(text);
  }

  void EndToken() override {
    first_ = false;
    next_->EndToken();
  }

 private:
  const DecoderStep& step_;
  bool first_ = true;
};

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t pos = text.find(from); pos != text.npos; pos = text.find(from, pos + to.size())) {
    text.replace(pos, from.size(), to);
  }
}

void CleanUpWordPiece(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) ReplaceAll(text, from, to);
}

class WordPieceStage : public WholeTokenStage {
 public:
  WordPieceStage(const DecoderStep& step, TokenSink& next) : WholeTokenStage(next), step_(step) {}
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<WordPieceStage>(*this); }

 protected:
  void Token(std::string& token) override {
    if (!first_) {
      if (token.starts_with(step_.text)) {
        token.erase(0, step_.text.size());
      } else {
        token.insert(0, 1, ' ');
      }
    }
    first_ = false;
    if (step_.flag) CleanUpWordPiece(token);
    Emit(token);
  }

 private:
  const DecoderStep& step_;
  bool first_ = true;
};

class CtcStage : public WholeTokenStage {
 public:
  CtcStage(const DecoderStep& step, TokenSink& next) : WholeTokenStage(next), step_(step) {}
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<CtcStage>(*this); }

 protected:
  void Token(std::string& token) override {
    if (!first_ && token == last_) return;
    first_ = false;
    last_ = token;
    if (!step_.text.empty()) ReplaceAll(token, step_.text, "");
    if (step_.flag) {
      CleanUpWordPiece(token);
      if (!step_.content.empty()) ReplaceAll(token, step_.content, " ");
    }
    if (!token.empty()) Emit(token);
  }

 private:
  const DecoderStep& step_;
  std::string last_;
  bool first_ = true;
};

// The suffix becomes a space except in the last token, so each token is withheld until the next token arrives.
class BpeStage : public WholeTokenStage {
 public:
  BpeStage(const DecoderStep& step, TokenSink& next) : WholeTokenStage(next), step_(step) {}
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<BpeStage>(*this); }

  void Finish() override {
    if (has_pending_) Release("");
    next_->Finish();
  }

 protected:
  void Token(std::string& token) override {
    if (has_pending_) Release(" ");
    pending_.swap(token);
    has_pending_ = true;
  }

 private:
  void Release(std::string_view replacement) {
    if (!step_.text.empty()) ReplaceAll(pending_, step_.text, replacement);
    Emit(pending_);
  }

  const DecoderStep& step_;
  std::string pending_;
  bool has_pending_ = false;
};

class SentencePieceStage : public WholeTokenStage {
 public:
  SentencePieceStage(const DecoderStep& step, TokenSink& next)
      : WholeTokenStage(next), step_(step), strips_(step.start != 0) {}
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<SentencePieceStage>(*this); }

  void Finish() override {
    FlushBytes(/*all=*/true);
    next_->EndToken();
    next_->Finish();
  }

 protected:
  void Token(std::string& token) override {
    if (const int byte = step_.flag ? ParseByteToken(token) : -1; byte >= 0) {
      bytes_ += static_cast<char>(byte);
      FlushBytes(/*all=*/false);
      return;
    }
    FlushBytes(/*all=*/true);
    if (token == step_.text) {
      Write(step_.content);
      return;
    }
    if (strips_ && !written_ && token.starts_with(kMetaspace)) {
      token.erase(0, kMetaspace.size());
      strips_ = step_.stop != 0;
    }
    ReplaceAll(token, kMetaspace, " ");
    Write(token);
  }

 private:
  void Write(std::string_view text) {
    written_ = written_ || !text.empty();
    next_->Chunk(text);
  }

  // Writes complete characters, and U+FFFD for each byte that is not part of one. Keeps an incomplete character at the
  // end unless `all` is set.
  void FlushBytes(bool all) {
    while (!bytes_.empty()) {
      const Utf8Step step = DecodeUtf8(bytes_, 0);
      if (step.kind == Utf8Step::Kind::kIncomplete && !all) return;
      const bool valid = step.kind == Utf8Step::Kind::kValid;
      const size_t length = valid ? step.length : 1;
      Write(valid ? std::string_view(bytes_).substr(0, length) : kReplacementCharacter);
      bytes_.erase(0, length);
    }
  }

  const DecoderStep& step_;
  std::string bytes_;
  bool strips_;
  bool written_ = false;
};

class JoinStage : public DecoderStage {
 public:
  using DecoderStage::DecoderStage;
  std::unique_ptr<DecoderStage> Copy() const override { return std::make_unique<JoinStage>(*this); }
  void Chunk(std::string_view text) override {
    if (pending_space_) next_->Chunk(" ");
    pending_space_ = false;
    next_->Chunk(text);
  }
  void EndToken() override { pending_space_ = true; }

 private:
  bool pending_space_ = false;
};

// Makes the stage for step.kind. REQUIRES: step and next outlive the stage.
std::unique_ptr<DecoderStage> MakeDecoderStage(const DecoderStep& step, TokenSink& next) {
  switch (step.kind) {
    case DecoderStep::Kind::kByteLevel:
      return std::make_unique<ByteLevelStage>(next);
    case DecoderStep::Kind::kByteFallback:
      return std::make_unique<ByteFallbackStage>(next);
    case DecoderStep::Kind::kFuse:
      return std::make_unique<FuseStage>(next);
    case DecoderStep::Kind::kStrip:
      return std::make_unique<StripStage>(step, next);
    case DecoderStep::Kind::kReplace:
      if (step.pattern) return std::make_unique<ReplacePatternStage>(step, next);
      return std::make_unique<ReplaceLiteralStage>(step, next);
    case DecoderStep::Kind::kMetaspace:
      return std::make_unique<MetaspaceStage>(step, next);
    case DecoderStep::Kind::kWordPiece:
      return std::make_unique<WordPieceStage>(step, next);
    case DecoderStep::Kind::kBpe:
      return std::make_unique<BpeStage>(step, next);
    case DecoderStep::Kind::kCtc:
      return std::make_unique<CtcStage>(step, next);
    case DecoderStep::Kind::kSentencePiece:
      return std::make_unique<SentencePieceStage>(step, next);
    case DecoderStep::Kind::kJoin:
      break;
  }
  return std::make_unique<JoinStage>(next);
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
  // A chain of Replace steps must not lengthen a text without bound.
  constexpr size_t kMaxSteps = 64;
  constexpr double kMaxGrowth = 256;
  if (steps_.size() > kMaxSteps || !(growth_ <= kMaxGrowth)) {
    throw TokenizerError("reading " + where + ": too many steps (limit 64), or texts grow too much (limit 256-fold)");
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

DecoderRun::DecoderRun(const DecoderRun& other) : output_(std::make_unique<Output>()), first_(output_.get()) {
  for (const std::unique_ptr<DecoderStage>& stage : other.stages_) {
    stages_.push_back(stage->Copy());
    stages_.back()->SetNext(*first_);
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

}  // namespace vllm::tokenizer
