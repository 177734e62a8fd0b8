// RankContext: what every layer of one tensor-parallel rank works with. Owned by the Worker; outlives its layers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/layers/attention_workspace.h"
#include "engine/layers/communicator.h"
#include "engine/layers/moe_workspace.h"
#include "engine/model_loader/packed_cache/packed_store.h"
#include "kernels/kernels.h"
#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/packed_activations.h"
#include "kernels/threading/thread_pool.h"

namespace vllm {

struct RankContext {
  const Kernels* kernels = nullptr;
  ThreadPool* threads = nullptr;
  Communicator* communicator = nullptr;
  LinearBackend linear_backend = LinearBackend::kNative;
  PackedStore* packed_store = nullptr;  // while weights are loaded; null: they are packed into memory of their own
  // Layers look their tensors up and read none: their matrices have no memory. For CheckWeights.
  bool is_check = false;
  // x as the tile kernels take it. For LinearWeight alone.
  std::shared_ptr<PackedActivations> packed_activations = std::make_shared<PackedActivations>();
  // Rows of x in the order of a stored weight's columns. For LinearWeight alone.
  std::shared_ptr<AlignedBuffer> ordered_x = std::make_shared<AlignedBuffer>();

  // For Attention alone.
  std::shared_ptr<AttentionWorkspace> attention = std::make_shared<AttentionWorkspace>();
  // For SparseMoe alone.
  std::shared_ptr<MoeWorkspace> moe = std::make_shared<MoeWorkspace>();

  // Of the buffers above.
  size_t scratch_bytes() const {
    return packed_activations->size_bytes() + ordered_x->size_bytes() + attention->size_bytes() + moe->size_bytes();
  }

  int rank() const { return communicator->rank(); }
  int size() const { return communicator->size(); }
  // Of the weight, or part of one, that is called `name`.
  BufferSource Buffers(const std::string& name) const {
    if (is_check) return FilledBuffer;
    return packed_store == nullptr ? BufferSource(NewBuffer) : packed_store->Buffers(name);
  }
  // Of a form that is packed into another one at once, and so is not worth keeping.
  BufferSource TemporaryBuffers() const { return is_check ? BufferSource(FilledBuffer) : BufferSource(NewBuffer); }
  // Whether the next buffer, asked for under this name, comes filled.
  bool Holds(const std::string& name) const {
    return is_check || (packed_store != nullptr && packed_store->Holds(name));
  }

 private:
  // Counts as filled, so nobody writes to it; has no bytes to read.
  static AlignedBuffer FilledBuffer(size_t size_bytes) {
    static const std::shared_ptr<const void> owner = std::make_shared<char>();
    return AlignedBuffer(owner, nullptr, size_bytes);
  }
};

// Elements [begin, begin + count) of a dimension that belong to one rank.
struct Shard {
  int64_t begin = 0;
  int64_t count = 0;
};

// Splits `total` into `size` runs whose lengths differ by at most one.
inline Shard ShardOf(int64_t total, int rank, int size) {
  const int64_t begin = total * rank / size;
  return {begin, total * (rank + 1) / size - begin};
}

}  // namespace vllm
