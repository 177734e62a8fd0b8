#include "engine/lora/lora_adapter.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/config/hash.h"

namespace vllm {

std::string CanonicalModuleName(std::string_view name) {
  constexpr std::array<std::string_view, 4> kPrefixes = {"base_model.", "model.", "language_model.", "transformer."};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view prefix : kPrefixes) {
      if (!name.starts_with(prefix)) continue;
      name.remove_prefix(prefix.size());
      found = true;
    }
  }
  return std::string(name);
}

std::string LoRADigest(std::string_view config, const MappedFile& weights) {
  const std::span<const std::byte> bytes = weights.bytes();
  const Hash128 parts[2] = {HashBytes128(config),
                            HashBytes128({reinterpret_cast<const char*>(bytes.data()), bytes.size()})};
  const Hash128 hash = HashBytes128({reinterpret_cast<const char*>(parts), sizeof parts});
  return {reinterpret_cast<const char*>(&hash), sizeof hash};
}

void SortModules(LoRAAdapter& adapter) {
  const std::string what = "adapter " + Escape(adapter.path) + ": ";
  if (adapter.modules.empty()) throw ModelError(what + "the file has no LoRA tensors");
  const auto key = [](const LoRAModule& module) { return std::tie(module.name, module.kind); };
  std::sort(adapter.modules.begin(), adapter.modules.end(),
            [&](const LoRAModule& a, const LoRAModule& b) { return key(a) < key(b); });
  const auto same = std::adjacent_find(adapter.modules.begin(), adapter.modules.end(),
                                       [&](const LoRAModule& a, const LoRAModule& b) { return key(a) == key(b); });
  if (same == adapter.modules.end()) return;
  throw ModelError(what + "two tensors belong to the same module (" + Escape(same->tensor_name) + " and " +
                   Escape((same + 1)->tensor_name) + ")");
}

int32_t SlotOf(std::span<const std::shared_ptr<const LoRAAdapter>> adapters, std::string_view name) {
  for (size_t i = adapters.size(); i-- > 0;) {
    if (adapters[i]->name == name) return static_cast<int32_t>(i);
  }
  return -1;
}

std::vector<std::shared_ptr<const LoRAAdapter>> NamedAdapters(
    std::span<const std::shared_ptr<const LoRAAdapter>> adapters) {
  std::vector<std::shared_ptr<const LoRAAdapter>> named;
  for (size_t i = 0; i < adapters.size(); ++i) {
    if (SlotOf(adapters, adapters[i]->name) == static_cast<int32_t>(i)) named.push_back(adapters[i]);
  }
  return named;
}

std::string AdapterNames(std::span<const std::shared_ptr<const LoRAAdapter>> adapters) {
  std::string names;
  for (const auto& adapter : NamedAdapters(adapters)) names += (names.empty() ? "" : ", ") + Escape(adapter->name);
  return names.empty() ? "none" : names;
}

}  // namespace vllm
