#include "app/installed/shipped_model.h"

#include <filesystem>
#include <system_error>

#include "app/installed/directory_files.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> FindDirectory() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path directory = self.parent_path();
    const fs::path installed = directory / VLLMCLI_DATADIR_FROM_BINDIR / "vllmcli" / "guide_model";
    if (IsFile(installed / "config.json")) return installed.lexically_normal();
    // In a build tree, the program is build/<preset>/vllmcli or build/<preset>/tests/app_test.
    for (const char* up : {"", ".."}) {
      const fs::path build = (directory / up).lexically_normal();
      if (!IsFile(build / "CMakeCache.txt")) continue;
      const fs::path source = (build / ".." / ".." / "app" / "guide_model").lexically_normal();
      if (IsFile(source / "config.json")) return source;
    }
  }
  const fs::path fixed = fs::path(VLLMCLI_FULL_DATADIR) / "vllmcli" / "guide_model";
  if (IsFile(fixed / "config.json")) return fixed;
  return std::nullopt;
}

}  // namespace

std::optional<ModelLocation> FindShippedModel() {
  const std::optional<fs::path> directory = FindDirectory();
  if (!directory) return std::nullopt;
  return ModelLocation{kShippedModelName, directory->string(), kShippedOrigin};
}

ModelLocation ShippedModel() {
  if (std::optional<ModelLocation> location = FindShippedModel()) return *std::move(location);
  throw ModelError("model: the bundled model is not installed; set another with -m or $VLLMCLI_MODEL",
                   "vllmcli models lists the installed models; -m also takes a .gguf file or a Hugging Face model "
                   "directory");
}

}  // namespace vllm::app
