#include "engine/worker/kernel_choice.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "engine/files/private_directory.h"
#include "kernels/isa.h"
#include "kernels/isa/kernels_for.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {
namespace {

constexpr char kContents[] = "tile shapes";

// Part of the file's name. Increment it when the kernels or the measurement change, so that old answers are not used.
constexpr char kMeasurementVersion[] = "2";

std::string FileName(kernels::Isa isa) {
  return kernels::CpuModel() + "." + std::string(kernels::ToString(isa)) + "." + kMeasurementVersion;
}

std::optional<kernels::TileShape> ReadShape(const tokenizer::RegularFile& file) {
  std::array<char, 32> text{};
  const ssize_t size = pread(file.fd.get(), text.data(), text.size(), 0);
  if (size <= 0 || text[static_cast<size_t>(size) - 1] != '\n') return std::nullopt;
  return kernels::ParseTileShape({text.data(), static_cast<size_t>(size) - 1});
}

void StoreShape(const std::string& directory, kernels::Isa isa, kernels::TileShape shape) {
  const PrivateDirectory files = PrivateDirectory::OpenOrCreate(directory, kContents, OtherUsers::kMayRead);
  const tokenizer::RegularFile file = files.OpenFileForUpdate(FileName(isa), O_CREAT);
  if (!file.ok() || ftruncate(file.fd.get(), 0) != 0) return;
  tokenizer::WriteAll(file.fd.get(), std::string(ToString(shape)) + "\n");
}

}  // namespace

kernels::TileShape StoredTileShape(const std::string& directory, kernels::Isa isa,
                                   kernels::TileShape (*measure)(kernels::Isa isa)) {
  try {
    const std::optional<PrivateDirectory> files = PrivateDirectory::Open(directory, kContents, OtherUsers::kMayRead);
    const std::optional<tokenizer::RegularFile> file = files ? files->OpenFile(FileName(isa)) : std::nullopt;
    if (const auto shape = file ? ReadShape(*file) : std::nullopt) return *shape;
  } catch (const std::runtime_error&) {
    // An untrusted file is not read.
  }
  const kernels::TileShape shape = measure(isa);
  try {
    StoreShape(directory, isa, shape);
  } catch (const std::runtime_error&) {
    // Without the file, the next process measures again.
  }
  return shape;
}

const kernels::Kernels& ChooseKernels(const VllmConfig& config) {
  const kernels::Isa isa = config.isa.value_or(kernels::BestIsa());
  if (!kernels::HasTwoPanels(isa)) return kernels::KernelsFor(isa);
  static std::mutex mutex;
  static std::map<kernels::Isa, kernels::TileShape> shapes;
  const std::lock_guard lock(mutex);
  if (!shapes.contains(isa)) {
    const std::string& directory = config.load.tile_shape_directory;
    shapes[isa] = directory.empty() || kernels::CpuModel().empty()
                      ? kernels::MeasureTileShape(isa)
                      : StoredTileShape(directory, isa, kernels::MeasureTileShape);
  }
  return kernels::KernelsFor(isa, shapes[isa]);
}

}  // namespace vllm
