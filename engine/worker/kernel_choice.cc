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

constexpr char kContents[] = "choices of kernels";

// Part of the file's name. Increment it when the kernels or the measurement change, so that old answers are not used.
constexpr char kMeasurementVersion[] = "3";

std::string FileName(kernels::Isa isa) {
  return kernels::CpuModel() + "." + std::string(kernels::ToString(isa)) + "." + kMeasurementVersion;
}

std::optional<kernels::UnitLoads> ReadLoads(const tokenizer::RegularFile& file) {
  std::array<char, 32> text{};
  const ssize_t size = pread(file.fd.get(), text.data(), text.size(), 0);
  if (size <= 0 || text[static_cast<size_t>(size) - 1] != '\n') return std::nullopt;
  return kernels::ParseUnitLoads({text.data(), static_cast<size_t>(size) - 1});
}

void StoreLoads(const std::string& directory, kernels::Isa isa, kernels::UnitLoads loads) {
  const PrivateDirectory files = PrivateDirectory::OpenOrCreate(directory, kContents, OtherUsers::kMayRead);
  const tokenizer::RegularFile file = files.OpenFileForUpdate(FileName(isa), O_CREAT);
  if (!file.ok() || ftruncate(file.fd.get(), 0) != 0) return;
  tokenizer::WriteAll(file.fd.get(), std::string(ToString(loads)) + "\n");
}

}  // namespace

kernels::UnitLoads StoredUnitLoads(const std::string& directory, kernels::Isa isa,
                                   kernels::UnitLoads (*measure)(kernels::Isa isa)) {
  try {
    const std::optional<PrivateDirectory> files = PrivateDirectory::Open(directory, kContents, OtherUsers::kMayRead);
    const std::optional<tokenizer::RegularFile> file = files ? files->OpenFile(FileName(isa)) : std::nullopt;
    if (const auto loads = file ? ReadLoads(*file) : std::nullopt) return *loads;
  } catch (const std::runtime_error&) {
    // An untrusted file is not read.
  }
  const kernels::UnitLoads loads = measure(isa);
  try {
    StoreLoads(directory, isa, loads);
  } catch (const std::runtime_error&) {
    // Without the file, the next process measures again.
  }
  return loads;
}

const kernels::Kernels& ChooseKernels(const VllmConfig& config) {
  const kernels::Isa isa = config.isa.value_or(kernels::BestIsa());
  if (!kernels::HasQuadLoads(isa)) return kernels::KernelsFor(isa);
  static std::mutex mutex;
  static std::map<kernels::Isa, kernels::UnitLoads> chosen;
  const std::lock_guard lock(mutex);
  if (!chosen.contains(isa)) {
    const std::string& directory = config.load.unit_loads_directory;
    chosen[isa] = directory.empty() || kernels::CpuModel().empty()
                      ? kernels::MeasureUnitLoads(isa)
                      : StoredUnitLoads(directory, isa, kernels::MeasureUnitLoads);
  }
  return kernels::KernelsFor(isa, chosen[isa]);
}

}  // namespace vllm
