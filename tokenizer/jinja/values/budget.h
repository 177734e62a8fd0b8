// The operations and memory that one rendering may use. Owned by one call of ChatTemplate::Render or RenderJson and
// used only by its thread. Templates are untrusted, so evaluation spends fuel, and values, call frames and the output
// count against a memory limit. One unit of fuel pays for about 10 to 15 ns of work on one core of a 2023 server, so
// the fuel of a rendering lasts about 50 ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace vllm::tokenizer::jinja {

// Thrown to stop an evaluation. The message has no line number (see Evaluator::line).
class EvalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Budget {
 public:
  static constexpr int64_t kFuel = 4'000'000;
  static constexpr size_t kLiveBytes = size_t{32} << 20;     // values, call frames and the output
  static constexpr size_t kMaxTextBytes = size_t{16} << 20;  // one string, or the output
  static constexpr int kMaxValueDepth = 128;                 // nesting of containers

  void Spend(size_t units) {
    if (units > static_cast<size_t>(fuel_)) {
      fuel_ = 0;
      throw EvalError("too many operations (limit " + std::to_string(kFuel) + ")");
    }
    fuel_ -= static_cast<int64_t>(units);
  }
  // Pays for reading or copying `bytes` bytes of text at memory speed. Code that handles each character separately is 4
  // to 32 times slower, so it passes the number of bytes times that factor.
  void SpendBytes(size_t bytes) { Spend(1 + bytes / 64); }

  // Throws EvalError if `bytes` more bytes would exceed kLiveBytes.
  void CheckMemory(size_t bytes) const {
    const size_t used = live_ + output_bytes_;
    if (used > kLiveBytes || bytes > kLiveBytes - used) {
      throw EvalError("rendering needs too much memory (limit " + std::to_string(kLiveBytes) + " bytes)");
    }
  }
  void Reserve(size_t bytes) {
    CheckMemory(bytes);
    live_ += bytes;
  }
  void Release(size_t bytes) noexcept { live_ -= bytes; }
  // Sets the size of the output written so far, including captured text that is not emitted yet.
  void SetOutput(size_t bytes) {
    output_bytes_ = 0;
    CheckMemory(bytes);
    output_bytes_ = bytes;
  }

  static void CheckText(size_t bytes) {
    if (bytes > kMaxTextBytes) throw EvalError("text is too long (limit " + std::to_string(kMaxTextBytes) + " bytes)");
  }

 private:
  int64_t fuel_ = kFuel;
  size_t live_ = 0;
  size_t output_bytes_ = 0;
};

}  // namespace vllm::tokenizer::jinja
