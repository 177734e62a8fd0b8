// Turns tokens back into text ("decoder" in tokenizer.json). The same code decodes whole texts and streams.
// TokenDecoder describes the steps and is read-only; any thread may use it. DecoderRun receives the tokens of one text
// one by one and writes the text that no later token can change. Each call of Tokenizer::Decode and each
// DecodeStream owns a DecoderRun and uses it in one thread.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm::tokenizer {

struct DecoderStep {
  enum class Kind {
    kByteLevel,      // maps the byte-level alphabet to bytes and fuses all tokens
    kByteFallback,   // turns runs of byte tokens ("<0x0A>") into text
    kFuse,           // fuses all tokens into one
    kStrip,          // removes up to `start` copies of `text` from the start of a token and up to `stop` from its end
    kReplace,        // replaces matches of `pattern` with `content`
    kMetaspace,      // replaces `text` with a space; with `flag`, removes it in the first token
    kWordPiece,      // removes the continuation prefix `text` and puts spaces between words; `flag`: cleans up spaces
    kBpe,            // replaces the end-of-word suffix `text` with a space; in the last token, removes it
    kCtc,            // drops a token equal to the one before it, and removes `text`; `flag`: cleans up spaces and
                     // replaces `content` with a space
    kSentencePiece,  // replaces U+2581 with a space and the unknown piece `text` with `content`. `start`: removes
                     // U+2581 at the start of the text; `stop`: also at the start of later tokens while the text is
                     // empty; `flag`: decodes byte tokens
    kJoin,           // joins tokens with spaces; used if the file has no decoder
  };
  Kind kind;
  std::string text;
  std::string content;
  size_t start = 0;
  size_t stop = 0;
  bool flag = false;
  std::shared_ptr<const TextPattern> pattern;  // for kReplace; null: replaces the literal `text`
};

class TokenDecoder {
 public:
  // If `json` is null, tokens are joined with spaces. Throws TokenizerError if `json` is malformed, has an unsupported
  // type or exceeds the limits on steps and growth.
  explicit TokenDecoder(const nlohmann::json& json);
  // Makes a decoder with only the byte-level step.
  static TokenDecoder ByteLevel();
  // Makes a decoder with only this step.
  static TokenDecoder Of(DecoderStep step);

  const std::vector<DecoderStep>& steps() const { return steps_; }

 private:
  TokenDecoder() = default;
  void AddSteps(const nlohmann::json& json);

  std::vector<DecoderStep> steps_;
  double growth_ = 1;  // largest factor by which the Replace steps can lengthen a text
};

// Receives a sequence of tokens: for each token, any number of Chunk calls with valid UTF-8, then EndToken.
// Finish follows the last token.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void Chunk(std::string_view text) = 0;
  virtual void EndToken() = 0;
  virtual void Finish() = 0;
};

// One step of a decoder at work: receives tokens, and passes others to the next sink.
class DecoderStage : public TokenSink {
 public:
  // REQUIRES: next outlives this.
  explicit DecoderStage(TokenSink& next) : next_(&next) {}
  void Finish() override { next_->Finish(); }
  // Returns a stage with the same state, which passes its tokens to the same sink until SetNext.
  virtual std::unique_ptr<DecoderStage> Copy() const = 0;
  void SetNext(TokenSink& next) { next_ = &next; }

 protected:
  void Emit(std::string_view token) {
    next_->Chunk(token);
    next_->EndToken();
  }

  TokenSink* next_;
};

class DecoderRun {
 public:
  // REQUIRES: decoder outlives this.
  explicit DecoderRun(const TokenDecoder& decoder);
  // The copy has received the same tokens, and is independent.
  DecoderRun(const DecoderRun& other);
  DecoderRun& operator=(const DecoderRun&) = delete;
  ~DecoderRun();

  // Feeds `token` and appends to `out` the text that later tokens cannot change.
  void Feed(std::string_view token, std::string& out);
  // Appends the withheld text. Must be the last call.
  void Finish(std::string& out);

 private:
  class Output;
  std::unique_ptr<Output> output_;
  // In reverse order: the first stage of the list writes into output_, each other stage into the one before it.
  std::vector<std::unique_ptr<DecoderStage>> stages_;
  TokenSink* first_;
};

}  // namespace vllm::tokenizer
