#include "app/model/model_digest.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/model_loader/gguf/format/file.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxBytes = size_t{32} << 20;

class Digest {
 public:
  Digest() { XXH3_64bits_reset(&state_); }
  void Add(std::string_view text) {
    // The length keeps "ab" + "c" apart from "a" + "bc".
    const uint64_t size = text.size();
    XXH3_64bits_update(&state_, &size, sizeof size);
    XXH3_64bits_update(&state_, text.data(), text.size());
  }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

// Returns the first kMaxBytes bytes of a file.
std::string Beginning(const std::string& path) {
  const tokenizer::RegularFile file = tokenizer::OpenRegularFile(path);
  std::string text;
  if (!file.ok()) return text;
  text.resize(std::min(kMaxBytes, static_cast<size_t>(file.status.st_size)));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = pread(file.fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

bool IsWeights(std::string_view name) {
  return name.ends_with(".safetensors") || name.ends_with(".bin") || name.ends_with(".gguf") || name.ends_with(".pt");
}

}  // namespace

uint64_t ModelDigest(const ModelLocation& location, const PromptRenderer& renderer) {
  Digest digest;
  digest.Add(renderer.source().text);
  digest.Add(renderer.source().bos_token);
  digest.Add(renderer.source().eos_token);
  if (location.is_gguf()) {
    struct stat status {};
    if (stat(location.gguf_file.c_str(), &status) == 0) digest.Add(std::to_string(status.st_size));
    digest.Add(Beginning(location.gguf_file));
    return digest.value();
  }
  for (const std::string& name : tokenizer::NamesInDirectory(location.directory)) {
    const std::string path = location.directory + "/" + name;
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    digest.Add(name);
    digest.Add(std::to_string(status.st_size));
    if (!IsWeights(name) && static_cast<size_t>(status.st_size) <= kMaxBytes) digest.Add(Beginning(path));
  }
  return digest.value();
}

uint64_t ModelContentDigest(const ModelLocation& location) {
  Digest digest;
  const auto add = [&](const std::string& path, const std::string& name) {
    const tokenizer::RegularFile file = tokenizer::OpenRegularFile(path);
    if (!file.ok()) return;
    digest.Add(name);
    digest.Add(std::to_string(file.status.st_size));
    if (static_cast<size_t>(file.status.st_size) <= kMaxBytes) {
      digest.Add(Beginning(path));
      return;
    }
    constexpr off_t kStride = off_t{4} << 20;
    std::string sample;
    for (off_t offset = 0; offset < file.status.st_size; offset += kStride) {
      sample.resize(offset == 0 ? size_t{1} << 20 : size_t{4} << 10);
      const ssize_t count = pread(file.fd.get(), sample.data(), sample.size(), offset);
      digest.Add(std::string_view(sample).substr(0, static_cast<size_t>(std::max<ssize_t>(count, 0))));
    }
  };
  if (location.is_gguf()) {
    for (const std::string& part : GgufFile::PartsOf(location.gguf_file)) add(part, "part");
    return digest.value();
  }
  for (const std::string& name : tokenizer::NamesInDirectory(location.directory)) {
    add(location.directory + "/" + name, name);
  }
  return digest.value();
}

}  // namespace vllm::app
