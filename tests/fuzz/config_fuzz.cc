// Fuzzes LoadModelConfig. The bytes before the first NUL become config.json, and the bytes after it become
// generation_config.json. Without a NUL, config.json gets all bytes and generation_config.json is {}.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "engine/config/errors.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {
namespace {

// Returns a directory for this process only, which is in memory if /dev/shm is writable.
const std::string& Directory() {
  static const std::string directory = [] {
    const std::string root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    const std::string path = root + "/vllmcli_config_fuzz_" + std::to_string(getpid());
    std::filesystem::create_directories(path);
    return path;
  }();
  return directory;
}

struct RemoveAtExit {
  ~RemoveAtExit() { std::filesystem::remove_all(Directory()); }
};

void Write(const std::string& name, std::string_view text) {
  std::ofstream(Directory() + "/" + name, std::ios::binary)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  Directory();
  static const RemoveAtExit remove_at_exit;
  const size_t separator = bytes.find('\0');
  Write("config.json", bytes.substr(0, separator));
  Write("generation_config.json", separator == std::string_view::npos ? "{}" : bytes.substr(separator + 1));
  try {
    const ModelConfig config = LoadModelConfig(Directory());
    Require(config.num_hidden_layers > 0 && config.head_dim > 0 && config.vocab_size > 0, "sizes are positive");
    Require(config.num_attention_heads % config.num_key_value_heads == 0,
            "the number of KV heads divides the number of attention heads");
    Require(config.layers.size() == static_cast<size_t>(config.num_hidden_layers), "every layer has a config");
    Require(config.rope_theta > 0.0, "rope_theta is positive");
  } catch (const ModelError&) {
  }
}

}  // namespace vllm
