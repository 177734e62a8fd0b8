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
constexpr char kMeasurementVersion[] = "4";

std::string FileName(kernels::Isa isa) {
  return kernels::CpuModel() + "." + std::string(kernels::ToString(isa)) + "." + kMeasurementVersion;
}

std::optional<kernels::KernelVariants> ReadVariants(const tokenizer::RegularFile& file, kernels::Isa isa) {
  std::array<char, 64> text{};
  const ssize_t size = pread(file.fd.get(), text.data(), text.size(), 0);
  if (size <= 0 || text[static_cast<size_t>(size) - 1] != '\n') return std::nullopt;
  return kernels::ParseVariantsOf(isa, {text.data(), static_cast<size_t>(size) - 1});
}

void StoreVariants(const std::string& directory, kernels::Isa isa, const kernels::KernelVariants& variants) {
  const PrivateDirectory files = PrivateDirectory::OpenOrCreate(directory, kContents, OtherUsers::kMayRead);
  const tokenizer::RegularFile file = files.OpenFileForUpdate(FileName(isa), O_CREAT);
  if (!file.ok() || ftruncate(file.fd.get(), 0) != 0) return;
  tokenizer::WriteAll(file.fd.get(), ToString(variants) + "\n");
}

}  // namespace

kernels::KernelVariants StoredVariants(const std::string& directory, kernels::Isa isa,
                                       kernels::KernelVariants (*measure)(kernels::Isa isa)) {
  try {
    const std::optional<PrivateDirectory> files = PrivateDirectory::Open(directory, kContents, OtherUsers::kMayRead);
    const std::optional<tokenizer::RegularFile> file = files ? files->OpenFile(FileName(isa)) : std::nullopt;
    if (const auto stored = file ? ReadVariants(*file, isa) : std::nullopt) return *stored;
  } catch (const std::runtime_error&) {
    // An untrusted file is not read.
  }
  const kernels::KernelVariants variants = measure(isa);
  try {
    StoreVariants(directory, isa, variants);
  } catch (const std::runtime_error&) {
    // Without the file, the next process measures again.
  }
  return variants;
}

const kernels::Kernels& ChooseKernels(const VllmConfig& config) {
  const kernels::Isa isa = config.isa.value_or(kernels::BestIsa());
  if (kernels::VariantsOf(isa).size() == 1) return kernels::KernelsFor(isa);
  static std::mutex mutex;
  static std::map<kernels::Isa, kernels::KernelVariants> chosen;
  const std::lock_guard lock(mutex);
  if (!chosen.contains(isa)) {
    const std::string& directory = config.load.kernel_variants_directory;
    chosen[isa] = directory.empty() || kernels::CpuModel().empty()
                      ? kernels::MeasureVariants(isa)
                      : StoredVariants(directory, isa, kernels::MeasureVariants);
  }
  return kernels::KernelsFor(isa, chosen[isa]);
}

}  // namespace vllm
