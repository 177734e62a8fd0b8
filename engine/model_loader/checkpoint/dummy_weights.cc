#include "engine/model_loader/checkpoint/dummy_weights.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/config/hash.h"

namespace vllm {
namespace {

// The number of pages is prime, so that a matrix whose row size is a power of two repeats only after at least 4093
// rows.
constexpr size_t kPatternBytes = size_t{4096} * 4093;
constexpr float kBound = 0.02f;

uint64_t Mix(uint64_t x) { return MixBits(x + kSplitMixGamma); }

uint64_t HashName(std::string_view name) {
  uint64_t hash = 0;
  for (char c : name) hash = Mix(hash ^ static_cast<uint8_t>(c));
  return hash;
}

template <typename T, typename Convert>
void Fill(void* memory, bool ones, Convert convert) {
  T* out = static_cast<T*>(memory);
  for (size_t i = 0; i < kPatternBytes / sizeof(T); ++i) {
    float unit = static_cast<float>(Mix(i) >> 40) * 0x1p-24f;
    out[i] = convert(ones ? 1.0f : (2.0f * unit - 1.0f) * kBound);
  }
}

int MakePattern(kernels::DType dtype, bool ones) {
  int fd = memfd_create("dummy-weights", MFD_CLOEXEC);
  void* memory = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(kPatternBytes)) == 0) {
    memory = mmap(nullptr, kPatternBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (memory == MAP_FAILED) {
    int error = errno;
    if (fd >= 0) close(fd);
    throw ResourceError(std::string("dummy weights: cannot create a memory file: ") + std::strerror(error));
  }
  switch (dtype) {
    case kernels::DType::kFloat32:
      Fill<float>(memory, ones, [](float x) { return x; });
      break;
    case kernels::DType::kFloat16:
      Fill<uint16_t>(memory, ones, kernels::FloatToFloat16);
      break;
    case kernels::DType::kBFloat16:
      Fill<uint16_t>(memory, ones, kernels::FloatToBFloat16);
      break;
  }
  munmap(memory, kPatternBytes);
  return fd;
}

}  // namespace

DummyWeights::DummyWeights(kernels::DType dtype, bool tie_word_embeddings)
    : dtype_(dtype), tie_word_embeddings_(tie_word_embeddings) {}

DummyWeights::~DummyWeights() {
  for (Pattern* pattern : {&random_, &ones_}) {
    for (auto mapping : pattern->mappings) munmap(const_cast<std::byte*>(mapping.data()), mapping.size());
    if (pattern->fd >= 0) close(pattern->fd);
  }
}

bool DummyWeights::Contains(std::string_view name) const { return !(tie_word_embeddings_ && name == "lm_head.weight"); }

std::span<const std::byte> DummyWeights::Window(Pattern& pattern, size_t bytes) const {
  if (!pattern.mappings.empty() && pattern.mappings.back().size() >= bytes) return pattern.mappings.back();
  size_t size = (bytes + kPatternBytes - 1) / kPatternBytes * kPatternBytes;
  if (!pattern.mappings.empty()) size = std::max(size, 2 * pattern.mappings.back().size());
  void* memory = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw ResourceError(std::string("dummy weights: cannot reserve address space: ") + std::strerror(errno));
  std::byte* base = static_cast<std::byte*>(memory);
  pattern.mappings.emplace_back(base, size);
  for (size_t offset = 0; offset < size; offset += kPatternBytes) {
    void* part = mmap(base + offset, kPatternBytes, PROT_READ, MAP_SHARED | MAP_FIXED, pattern.fd, 0);
    if (part == MAP_FAILED)
      throw ResourceError(std::string("dummy weights: cannot map memory: ") + std::strerror(errno));
  }
  return pattern.mappings.back();
}

TensorView DummyWeights::Get(std::string_view name, std::span<const int64_t> shape) const {
  size_t bytes = SizeOf(dtype_);
  for (int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(dim), &bytes) || bytes > (size_t{1} << 46)) {
      throw ModelError("tensor " + Escape(name) +
                       " of dummy weights: a dimension is negative or the shape is too large (limit 2^46 bytes)");
    }
  }
  bool ones = name.find("norm") != std::string_view::npos;
  std::lock_guard<std::mutex> lock(mutex_);
  Pattern& pattern = ones ? ones_ : random_;
  if (pattern.fd < 0) pattern.fd = MakePattern(dtype_, ones);
  // The name selects the tensor's offset in the pattern, a multiple of the cache line size.
  size_t begin = HashName(name) % (kPatternBytes / 64) * 64;
  return {.name = std::string(name),
          .type = kernels::ToWeightType(dtype_),
          .shape = {shape.begin(), shape.end()},
          .data = Window(pattern, begin + bytes).subspan(begin, bytes)};
}

}  // namespace vllm
