// Turns tokens back into text ("decoder" in tokenizer.json). One implementation for whole texts and for streams: a
// TokenDecoder is the read-only description (any thread), a DecoderRun takes the tokens of one text one by one and
// writes what is certain (one thread, owned by one decoding).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm {

struct DecoderStep {
  enum class Kind {
    kByteLevel,      // the byte-level alphabet back into bytes, all tokens fused
    kByteFallback,   // runs of "<0x0A>" into text
    kFuse,           // all tokens into one
    kStrip,          // up to `start` and `stop` times `text` off the ends of each token
    kReplace,        // matches of `pattern` become `content`
    kMetaspace,      // `text` becomes a space; nothing in the first token when `flag`
    kWordPiece,      // `text` marks a continued word; `flag`: clean up spaces before punctuation
    kBpe,            // `text` ends a word
    kCtc,            // a repeated token and `text` are nothing; `flag`: clean up, and `content` is a space
    kSentencePiece,  // U+2581 is a space, none at the beginning when `start`, or not even several when `stop`; the
                     // unknown piece `text` is `content`; runs of "<0x0A>" are bytes when `flag`
    kJoin,           // no decoder: tokens joined by spaces
  };
  Kind kind;
  std::string text;
  std::string content;
  size_t start = 0;
  size_t stop = 0;
  bool flag = false;
  std::shared_ptr<const TextPattern> pattern;  // null: `text` is a literal
};

class TokenDecoder {
 public:
  // Joins tokens by spaces when `json` is null. Throws TokenizerError, by name for a type that is not supported.
  explicit TokenDecoder(const nlohmann::json& json);
  // Only the byte-level step.
  static TokenDecoder ByteLevel();
  // Only this step.
  static TokenDecoder Of(DecoderStep step);

  const std::vector<DecoderStep>& steps() const { return steps_; }

 private:
  TokenDecoder() = default;
  void AddSteps(const nlohmann::json& json);

  std::vector<DecoderStep> steps_;
  double growth_ = 1;  // by how much the steps can lengthen a text at most
};

// Receives a sequence of tokens, each as any number of chunks of valid UTF-8 and an end.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void Chunk(std::string_view text) = 0;
  virtual void EndToken() = 0;
  virtual void Finish() = 0;
};

class DecoderRun {
 public:
  // REQUIRES: decoder outlives this.
  explicit DecoderRun(const TokenDecoder& decoder);
  ~DecoderRun();

  // Appends to `out` the text that is certain once `token` is there.
  void Feed(std::string_view token, std::string& out);
  // Appends what was withheld. Nothing may be fed afterwards.
  void Finish(std::string& out);

 private:
  class Output;
  std::unique_ptr<Output> output_;
  std::vector<std::unique_ptr<TokenSink>> stages_;  // the first takes the tokens, each writes into the next
  TokenSink* first_;
};

}  // namespace vllm
