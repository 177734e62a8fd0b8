// The errors that the outside world can cause, one type an exit status of the program. Thrown at load and validation
// time only; once a request is inside the engine a failure is a value (FinishReason::kError).
#pragma once

#include <stdexcept>
#include <string>

namespace vllm {

// A flag or configuration value that cannot be (exit status 2).
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A model directory, tensor file or tokenizer that cannot be used (exit status 3).
class ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Memory, threads or disk that the machine refuses (exit status 4).
class ResourceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A request refused before it enters the engine: `<field>: <why> (<value>)` (exit status 1, or a row's error record).
class RequestError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The engine core has failed and every request in it is lost; what() is the first cause.
class EngineDeadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What users read of a std::bad_alloc. Short enough that storing it in a std::string allocates nothing.
inline constexpr char kOutOfMemory[] = "out of memory";

}  // namespace vllm
