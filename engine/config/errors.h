// The exceptions for errors that the outside world can cause, each with the program's exit status. Except for
// EngineDeadError, the engine throws them only while it checks its configuration, loads a model or validates a request.
// A request that fails later ends with FinishReason::kError instead. Plain values; any thread.
#pragma once

#include <stdexcept>
#include <string>

namespace vllm {

// An invalid flag, argument or configuration value (exit status 2).
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A model, tokenizer or input file that cannot be used (exit status 3).
class ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Memory, threads or disk space that could not be obtained (exit status 4).
class ResourceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A request rejected before it enters the engine (exit status 1, or a row's error record). Most messages have the form
// `<field>: <why> (<value>)`.
class RequestError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The engine core has failed and lost all its requests, or it was shut down (exit status 1). what() is the first cause.
class EngineDeadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The message that users see for std::bad_alloc. It is so short that a std::string stores it without an allocation.
inline constexpr char kOutOfMemory[] = "out of memory";

}  // namespace vllm
