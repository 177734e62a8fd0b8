// The exceptions for errors that the outside world can cause, each with the program's exit status. Except for
// EngineDeadError, the engine throws them only while it checks its configuration, loads a model or validates a request.
// A request that fails later ends with FinishReason::kError instead. Plain values; any thread.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace vllm {

// An error that may have a hint: one line that says what the user can do about it.
class HintedError : public std::runtime_error {
 public:
  explicit HintedError(const std::string& what) : std::runtime_error(what) {}
  HintedError(const std::string& what, std::string hint)
      : std::runtime_error(what), hint_(std::make_shared<const std::string>(std::move(hint))) {}

  // Returns "" if there is no hint.
  std::string hint() const { return hint_ == nullptr ? "" : *hint_; }

 private:
  std::shared_ptr<const std::string> hint_;  // shared, because copying an exception must not throw
};

// An invalid flag, argument or configuration value (exit status 2).
class ConfigError : public HintedError {
 public:
  using HintedError::HintedError;
};

// A model, tokenizer or input file that cannot be used (exit status 3).
class ModelError : public HintedError {
 public:
  using HintedError::HintedError;
};

// Memory, threads or disk space that could not be obtained (exit status 4).
class ResourceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A request rejected before it enters the engine (exit status 1, or a row's error record). Most messages have the form
// `<field>: <why> (<value>)`.
class RequestError : public HintedError {
 public:
  using HintedError::HintedError;
};

// The engine core has failed and lost all its requests, or it was shut down (exit status 1). what() is the first cause.
class EngineDeadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The message that users see for std::bad_alloc. It is so short that a std::string stores it without an allocation.
inline constexpr char kOutOfMemory[] = "out of memory";

}  // namespace vllm
