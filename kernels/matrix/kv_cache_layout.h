// Layout of K and V in the paged KV cache: element types, block sizes in bytes, and where the vectors of a token are
// written. Any thread; several threads may write different tokens or KV heads.
//
// K of a layer is [num_blocks, num_kv_heads, KeyBytes], V is [num_blocks, num_kv_heads, ValueBytes]. If block_stride is
// set, blocks of K and blocks of V are block_stride bytes apart instead. Within a block and head:
//
//   K  [block_size / 16, head_dim, 16]  sixteen tokens interleaved, so that one vector holds a dimension of 16 keys
//   V  [block_size, head_dim_padded]    head_dim_padded: head_dim rounded up to a multiple of 16
//
// bfloat16 is stored in pairs, the operands of the CPU's dot product. K pairs adjacent dimensions; if head_dim is odd,
// a zero dimension is added, and key_dims is head_dim + 1. V pairs adjacent tokens.
//
//   K  [block_size / 16, key_dims / 2, 16, 2]
//   V  [block_size / 2, head_dim_padded, 2]
//
// After the int8 codes there is one scale per token: float [block_size]. A value is code * scale. The scale is the
// largest magnitude of the vector / 127, so the bytes of a token do not depend on other tokens.
//
// With latent attention (value_dim above 0), a token has one vector of head_dim elements. The whole vector is the key,
// and its first value_dim elements are the value. It is stored once, in the layout of V, and there is no K. The padding
// up to head_dim_padded is zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/matrix/dtype.h"

namespace vllm::kernels {

enum class KVDType : uint8_t { kFloat32, kFloat16, kBFloat16, kInt8 };

inline constexpr int64_t kTokensPerKeyGroup = 16;

constexpr int64_t PaddedHeadDim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

constexpr size_t SizeOf(KVDType dtype) { return dtype == KVDType::kFloat32 ? 4 : dtype == KVDType::kInt8 ? 1 : 2; }

constexpr std::string_view ToString(KVDType dtype) {
  switch (dtype) {
    case KVDType::kFloat32:
      return "float32";
    case KVDType::kFloat16:
      return "float16";
    case KVDType::kBFloat16:
      return "bfloat16";
    case KVDType::kInt8:
      return "int8";
  }
  return "unknown";
}

// Returns the type that stores values of `dtype` without loss.
constexpr KVDType KVDTypeOf(DType dtype) {
  if (dtype == DType::kFloat16) return KVDType::kFloat16;
  return dtype == DType::kBFloat16 ? KVDType::kBFloat16 : KVDType::kFloat32;
}

struct KVCacheLayout {
  KVDType dtype = KVDType::kFloat32;
  int64_t block_size = 16;  // a multiple of 16
  int64_t num_kv_heads = 1;
  int64_t head_dim = 0;
  int64_t block_stride = 0;  // 0: blocks are adjacent
  int64_t value_dim = 0;     // above 0: latent attention

  bool IsLatent() const { return value_dim > 0; }
  // Number of dimensions of a value.
  int64_t ValueDim() const { return IsLatent() ? value_dim : head_dim; }
  bool InPairs() const { return dtype == KVDType::kBFloat16; }
  // Number of stored dimensions of K: head_dim, rounded up to even if stored in pairs.
  int64_t KeyDims() const { return InPairs() ? (head_dim + 1) / 2 * 2 : head_dim; }

  // Bytes of one block of one layer: K of one KV head, V of one KV head, and K and V of all KV heads.
  int64_t KeyBytes() const { return IsLatent() ? 0 : block_size * KeyDims() * ElementBytes() + ScaleBytes(); }
  int64_t ValueBytes() const { return block_size * PaddedHeadDim(head_dim) * ElementBytes() + ScaleBytes(); }
  int64_t BlockBytes() const { return num_kv_heads * (KeyBytes() + ValueBytes()); }
  // Bytes from K (or V) of one block to K (or V) of the next.
  int64_t KeyStride() const { return block_stride > 0 ? block_stride : num_kv_heads * KeyBytes(); }
  int64_t ValueStride() const { return block_stride > 0 ? block_stride : num_kv_heads * ValueBytes(); }

 private:
  int64_t ElementBytes() const { return static_cast<int64_t>(SizeOf(dtype)); }
  int64_t ScaleBytes() const { return dtype == KVDType::kInt8 ? block_size * static_cast<int64_t>(sizeof(float)) : 0; }
};

// Writes K and V of one token and one KV head to `slot` = block * block_size + offset. key, value: [head_dim]. With
// latent attention, writes only `key`, to value_cache, and ignores key_cache and `value`.
void WriteKV(const KVCacheLayout& layout, void* key_cache, void* value_cache, int64_t slot, int64_t kv_head,
             const float* key, const float* value);

}  // namespace vllm::kernels
