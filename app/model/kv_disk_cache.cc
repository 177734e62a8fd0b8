#include "app/model/kv_disk_cache.h"

#include <sys/stat.h>

#include <optional>

#include "app/cli/parse_value.h"
#include "app/cli/xdg.h"
#include "app/model/model_digest.h"
#include "engine/config/errors.h"
#include "engine/model_loader/gguf/format/file.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

constexpr int64_t kDefaultBytes = 4'000'000'000;
// Smaller models compute a prompt about as fast as its KV is read.
constexpr int64_t kMinModelBytes = 200'000'000;

std::string FileState(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "none;";
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) + ":" + std::to_string(status.st_size) +
         ":" + std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) + ";";
}

// The digest reads only samples of large files. Their modification times and inodes reveal other changes. The program's
// own file stands for its kernels, because another build may round differently.
std::string ModelIdentity(const Settings& settings, const ModelLocation& location) {
  std::string identity = "digest=" + std::to_string(ModelContentDigest(location)) + "\nfiles=";
  if (location.is_gguf()) {
    for (const std::string& part : GgufFile::PartsOf(location.gguf_file)) identity += FileState(part);
  } else {
    for (const std::string& name : tokenizer::NamesInDirectory(location.directory)) {
      identity += FileState(location.directory + "/" + name);
    }
  }
  identity += "\nprogram=" + FileState("/proc/self/exe");
  for (const char* name : {"dtype", "quantization", "load-format"}) {
    identity += "\n" + std::string(name) + "=" + settings.Text(name).value_or("");
  }
  // The weights depend on the text.
  if (const std::string text = settings.Text("calibration").value_or(""); !text.empty()) {
    identity += "\ncalibration=" + FileState(text);
  }
  return identity;
}

}  // namespace

std::string KVDiskCacheDirectory() {
  const std::string cache = CacheHome();
  return cache.empty() ? cache : cache + "/kv";
}

KVDiskCacheConfig MakeKVDiskCacheConfig(const Settings& settings, const ModelLocation& location) {
  KVDiskCacheConfig config;
  if (const std::optional<std::string> text = settings.Text("kv-disk-cache")) {
    try {
      config.max_bytes = *text == "off" ? 0 : ParseSize(*text);
    } catch (const ConfigError& error) {
      throw ConfigError(std::string("--kv-disk-cache: ") + error.what());
    }
    if (config.max_bytes < 0) throw ConfigError("--kv-disk-cache: must not be negative (" + *text + ")");
  } else {
    const bool is_on_by_default =
        settings.command == Command::kChat || settings.command == Command::kRun || settings.command == Command::kBatch;
    if (is_on_by_default && ModelBytes(location) > kMinModelBytes) config.max_bytes = kDefaultBytes;
  }
  const bool stores = settings.Switch("save") && !settings.Switch("ephemeral");
  if (!stores || settings.Text("load-format").value_or("auto") == "dummy") config.max_bytes = 0;
  config.directory = KVDiskCacheDirectory();
  if (!config.enabled()) return {};
  config.model_identity = ModelIdentity(settings, location);
  config.label = location.short_name();
  return config;
}

}  // namespace vllm::app
