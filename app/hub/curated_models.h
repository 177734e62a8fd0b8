// A short list of models that run well on CPUs, for people who do not know yet what to download. The table in
// docs/MODELS.md is tested against it. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vllm::app {

struct CuratedModel {
  std::string_view name;             // as for `vllmcli pull`; a repository without a tag has safetensors
  int64_t download_mb;               // about; in millions of bytes
  int64_t kv_cache_bytes_per_token;  // in 16 bits: 4 * layers * KV heads * head dimension
  std::string_view license;
  std::string_view remark;  // a few words
};

// Returns the models in order of their size.
std::span<const CuratedModel> CuratedModels();

// Returns the memory that a model needs, in millions of bytes: its weights, and the KV cache of a conversation of 4096
// tokens. Sliding windows, which need less, are not considered.
int64_t MemoryMb(const CuratedModel& model);

// Returns "0.4 GB" for 386.
std::string GigabytesText(int64_t megabytes);

}  // namespace vllm::app
