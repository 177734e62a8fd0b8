// KernelVariants: which of several kernels with the same results to use. Which of them is faster depends on the CPU,
// and a short measurement finds out. Any thread may call these functions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace vllm::kernels {

// How linear_quant loads the units of x in tiles of one panel. kSingle: each dot product loads a unit. kQuad: in tiles
// of eight and more rows, a single load serves four rows, and each of them then needs a shuffle. That is faster if
// loads limit the dot products, and slower if shuffles do.
enum class UnitLoads : uint8_t { kSingle, kQuad };
// How pairs of bfloat16 are multiplied and added, in linear layers and attention. kDots: with vdpbf16ps. kFmas: with
// two FMAs instead, only on CPUs by Intel. Whether AMD's vdpbf16ps rounds as FMAs do has not been tested.
enum class PairProducts : uint8_t { kDots, kFmas };
// Whether linear_quant prefetches the weights for a single row of x, as it does for several.
enum class OneRowPrefetch : uint8_t { kOff, kOn };

struct KernelVariants {
  UnitLoads loads = UnitLoads::kSingle;
  PairProducts pairs = PairProducts::kDots;
  OneRowPrefetch prefetch = OneRowPrefetch::kOff;

  friend auto operator<=>(const KernelVariants&, const KernelVariants&) = default;
};

// Returns three words, such as "single_loads dots no_prefetch" or "quad_loads fmas prefetch".
std::string ToString(const KernelVariants& variants);
// Returns the variants of `isa` that give the same results on this CPU. The first is KernelVariants().
std::vector<KernelVariants> VariantsOf(Isa isa);
// Returns the element of VariantsOf(isa) that ToString turns into `text`.
std::optional<KernelVariants> ParseVariantsOf(Isa isa, std::string_view text);
// Multiplies weights that stay in the cache with each variant, which takes about 7 ms, and returns the faster ones.
// Differs from KernelVariants() only by what makes one of the multiplications at least 3 % faster. Only the prefetches
// are not measured, because that would take more memory than the caches have: they are on for CPUs made by Intel.
// REQUIRES: VariantsOf(isa) has several elements, and the CPU supports isa.
KernelVariants MeasureVariants(Isa isa);
// REQUIRES: VariantsOf(isa) contains `variants`.
const Kernels& KernelsFor(Isa isa, const KernelVariants& variants);

// Names the model of this CPU, by its maker and signature: "AuthenticAMD-00a10f11". Empty if it is unknown. Contains
// only letters, digits and '-'.
std::string CpuModel();

}  // namespace vllm::kernels
