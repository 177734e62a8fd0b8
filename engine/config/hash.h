// The engine's general-purpose hash functions: SplitMix64's finalizer for integers and XXH3 for bytes. Pure functions;
// any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace vllm {

// SplitMix64's finalizer (Steele, Lea and Flood, 2014). Flipping an input bit flips each output bit with a probability
// of about 1/2.
inline uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The increment of SplitMix64: the odd integer closest to 2^64 divided by the golden ratio.
inline constexpr uint64_t kSplitMixGamma = 0x9e3779b97f4a7c15u;

struct Hash128 {
  uint64_t lo = 0;
  uint64_t hi = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// Return the XXH3 hash of the bytes. It has no seed, so it is the same in every process and on every machine.
uint64_t Hash64(std::string_view bytes);
Hash128 HashBytes128(std::string_view bytes);

// Computes Hash64 of bytes that come in pieces.
class Hash64Stream {
 public:
  Hash64Stream();
  ~Hash64Stream();
  Hash64Stream(const Hash64Stream&) = delete;
  Hash64Stream& operator=(const Hash64Stream&) = delete;

  void Add(std::string_view bytes);
  // Returns the hash of all bytes so far.
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vllm
