// What one rendering may use: operations and memory. Owned by the call of Render, one thread.
// A template is untrusted, so everything that loops spends fuel and everything that allocates is counted here. A unit
// of fuel stands for 10 to 15 ns of work of any kind, on one core of a server of 2023: all fuel for about 50 ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace vllm::jinja {

// Why an evaluation stopped; the caller adds the line.
class EvalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Budget {
 public:
  static constexpr int64_t kFuel = 4'000'000;
  static constexpr size_t kLiveBytes = size_t{32} << 20;     // values and the output
  static constexpr size_t kMaxTextBytes = size_t{16} << 20;  // one string, or the output
  static constexpr int kMaxValueDepth = 128;                 // lists in lists

  void Spend(size_t units) {
    if (units > static_cast<size_t>(fuel_)) {
      fuel_ = 0;
      throw EvalError("too many operations (limit " + std::to_string(kFuel) + ")");
    }
    fuel_ -= static_cast<int64_t>(units);
  }
  // Work on `bytes` bytes of text at memory speed. Work on single characters costs 8 to 32 times as much.
  void SpendBytes(size_t bytes) { Spend(1 + bytes / 64); }

  void CheckRoom(size_t bytes) const {
    const size_t used = live_ + output_bytes_;
    if (used > kLiveBytes || bytes > kLiveBytes - used) {
      throw EvalError("values and output need too much memory (limit " + std::to_string(kLiveBytes) + " bytes)");
    }
  }
  void Reserve(size_t bytes) {
    CheckRoom(bytes);
    live_ += bytes;
  }
  void Release(size_t bytes) noexcept { live_ -= bytes; }
  // What has been written so far, and is still to be kept.
  void SetOutput(size_t bytes) {
    output_bytes_ = 0;
    CheckRoom(bytes);
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

}  // namespace vllm::jinja
