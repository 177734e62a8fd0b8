#include "engine/model_loader/packed_cache/packed_key.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {
namespace {

// The header of a tensor file is usually in its first megabytes, which are hashed completely. Samples of the rest can
// detect a file that was changed in place and whose modification time was reset. Changes between the samples are
// detected only by size, time and inode.
constexpr size_t kBeginningBytes = size_t{4} << 20;
constexpr size_t kSampleBytes = 4096;
constexpr size_t kNumSamples = 64;

std::string Hex(const XXH128_hash_t& hash) {
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

std::string SampleDigest(std::span<const std::byte> bytes) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  const size_t beginning = std::min(bytes.size(), kBeginningBytes);
  XXH3_128bits_update(&state, bytes.data(), beginning);
  const size_t rest = bytes.size() - beginning;
  if (rest <= kSampleBytes) {
    XXH3_128bits_update(&state, bytes.data() + beginning, rest);
    return Hex(XXH3_128bits_digest(&state));
  }
  for (size_t i = 0; i < kNumSamples; ++i) {
    // The last sample ends at the end of the file.
    const size_t offset =
        beginning + (rest - kSampleBytes) / (kNumSamples - 1) * i + (rest - kSampleBytes) % (kNumSamples - 1);
    XXH3_128bits_update(&state, bytes.data() + offset, kSampleBytes);
  }
  return Hex(XXH3_128bits_digest(&state));
}

// Hashes a small file completely. A file that cannot be read, or is larger than kMaxBytes, counts as empty.
std::string FileDigest(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  std::string text;
  tokenizer::ReadRegularFile(path, kMaxBytes, text);
  return HexDigest(text);
}

}  // namespace

std::string HexDigest(std::string_view text) { return Hex(XXH3_128bits(text.data(), text.size())); }

std::string DescribeWeights(const VllmConfig& config, const WeightSource& weights, std::string_view isa,
                            std::string_view calibration) {
  const std::vector<const MappedFile*> files = weights.Files();
  if (files.empty()) return "";
  std::string text = "packed weights\n";
  const auto line = [&text](const char* name, const std::string& value) { text += name + (" " + value) + "\n"; };
  line("architecture", Escape(config.model.architecture));
  for (const char* name : {"config.json", "model.safetensors.index.json"}) {
    line(name, FileDigest(config.model.directory + "/" + name));
  }
  for (const MappedFile* file : files) {
    line("file", Escape(file->path().substr(file->path().rfind('/') + 1)) + " " + std::to_string(file->bytes().size()) +
                     " bytes " + std::to_string(file->modified_ns()) + " ns inode " + std::to_string(file->inode()) +
                     " " + SampleDigest(file->bytes()));
  }
  line("dtype", std::string(ToString(config.model.dtype)));
  line("quantization", std::string(ToString(config.model.quantization.method)));
  if (!calibration.empty()) line("calibration", std::string(calibration));
  line("backend", config.linear_backend == LinearBackend::kOpenBlas ? "openblas" : "native");
  line("isa", std::string(isa));
  return text;
}

}  // namespace vllm
