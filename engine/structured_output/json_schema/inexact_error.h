// InexactError: a combination of schemas that cannot be described exactly. The keyword that needs it turns it into a
// RequestError with its JSON Pointer. SelfReferenceError: a schema that refers to itself for the same value. Any
// thread.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace vllm {

class InexactError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A set of values is needed while it is being computed.
class SelfReferenceError : public std::runtime_error {
 public:
  explicit SelfReferenceError(std::string pointer)
      : std::runtime_error("self reference"), pointer_(std::move(pointer)) {}
  const std::string& pointer() const { return pointer_; }

 private:
  std::string pointer_;
};

}  // namespace vllm
