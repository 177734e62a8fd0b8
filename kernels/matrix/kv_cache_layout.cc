#include "kernels/matrix/kv_cache_layout.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace vllm::kernels {

namespace {

template <typename T, typename Convert>
void StoreToken(const KVCacheLayout& layout, std::byte* key_block, std::byte* value_block, int64_t offset,
                const float* key, const float* value, Convert convert_key, Convert convert_value) {
  const int64_t head_dim = layout.head_dim;
  auto* k = reinterpret_cast<T*>(key_block) + offset / kTokensPerKeyGroup * head_dim * kTokensPerKeyGroup +
            offset % kTokensPerKeyGroup;
  auto* v = reinterpret_cast<T*>(value_block) + offset * PaddedHeadDim(head_dim);
  for (int64_t d = 0; d < head_dim; ++d) {
    k[d * kTokensPerKeyGroup] = convert_key(key[d]);
    v[d] = convert_value(value[d]);
  }
}

void StoreTokenInPairs(const KVCacheLayout& layout, std::byte* key_block, std::byte* value_block, int64_t offset,
                       const float* key, const float* value) {
  const int64_t head_dim = layout.head_dim;
  auto* k = reinterpret_cast<uint16_t*>(key_block) +
            offset / kTokensPerKeyGroup * layout.KeyDims() * kTokensPerKeyGroup + offset % kTokensPerKeyGroup * 2;
  auto* v = reinterpret_cast<uint16_t*>(value_block) + offset / 2 * 2 * PaddedHeadDim(head_dim) + offset % 2;
  const auto key_at = [k](int64_t d) -> uint16_t& { return k[d / 2 * 2 * kTokensPerKeyGroup + d % 2]; };
  for (int64_t d = 0; d < head_dim; ++d) {
    key_at(d) = FloatToBFloat16(key[d]);
    v[2 * d] = FloatToBFloat16(value[d]);
  }
  if (layout.KeyDims() > head_dim) key_at(head_dim) = 0;
}

// Writes a token's vector in the layout of V, with zeros in the padding.
template <typename T, typename Convert>
void StoreLatent(const KVCacheLayout& layout, std::byte* block, int64_t offset, const float* vector, Convert convert) {
  const int64_t padded = PaddedHeadDim(layout.head_dim);
  const int64_t step = layout.InPairs() ? 2 : 1;
  T* to = reinterpret_cast<T*>(block) + offset / step * step * padded + offset % step;
  for (int64_t d = 0; d < padded; ++d) to[step * d] = d < layout.head_dim ? convert(vector[d]) : T{0};
}

// Returns the scale for int8, or NaN if an element is not finite. A NaN scale makes the token's score (for K) or all of
// its values (for V) NaN, so that quantization does not hide the error.
float ScaleOf(const float* x, int64_t n) {
  float largest = 0.0f;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(x[i]);
    finite = finite && magnitude <= std::numeric_limits<float>::max();
    largest = magnitude > largest ? magnitude : largest;
  }
  return finite ? largest / 127.0f : std::numeric_limits<float>::quiet_NaN();
}

struct ToInt8 {
  float scale;

  // If the scale is NaN, the value is NaN with any code. If the scale is at most the smallest normal float, the value
  // is practically zero.
  int8_t operator()(float x) const {
    return scale > std::numeric_limits<float>::min() ? static_cast<int8_t>(std::nearbyintf(x / scale)) : int8_t{0};
  }
};

void StoreScale(std::byte* scales, int64_t offset, float scale) {
  std::memcpy(scales + offset * static_cast<int64_t>(sizeof(float)), &scale, sizeof(float));
}

void WriteLatent(const KVCacheLayout& layout, std::byte* block, int64_t offset, const float* vector) {
  switch (layout.dtype) {
    case KVDType::kFloat32:
      return StoreLatent<float>(layout, block, offset, vector, [](float x) { return x; });
    case KVDType::kBFloat16:
      return StoreLatent<uint16_t>(layout, block, offset, vector, FloatToBFloat16);
    case KVDType::kFloat16:
      return StoreLatent<uint16_t>(layout, block, offset, vector, FloatToFloat16);
    case KVDType::kInt8: {
      const ToInt8 to_code{ScaleOf(vector, layout.head_dim)};
      StoreLatent<int8_t>(layout, block, offset, vector, to_code);
      return StoreScale(block + layout.block_size * PaddedHeadDim(layout.head_dim), offset, to_code.scale);
    }
  }
}

}  // namespace

void WriteKV(const KVCacheLayout& layout, void* key_cache, void* value_cache, int64_t slot, int64_t kv_head,
             const float* key, const float* value) {
  const int64_t block = slot / layout.block_size;
  const int64_t offset = slot % layout.block_size;
  std::byte* v = static_cast<std::byte*>(value_cache) + block * layout.ValueStride() + kv_head * layout.ValueBytes();
  if (layout.IsLatent()) return WriteLatent(layout, v, offset, key);
  std::byte* k = static_cast<std::byte*>(key_cache) + block * layout.KeyStride() + kv_head * layout.KeyBytes();
  switch (layout.dtype) {
    case KVDType::kFloat32: {
      const auto same = [](float x) { return x; };
      return StoreToken<float>(layout, k, v, offset, key, value, same, same);
    }
    case KVDType::kBFloat16:
      return StoreTokenInPairs(layout, k, v, offset, key, value);
    case KVDType::kFloat16:
      return StoreToken<uint16_t>(layout, k, v, offset, key, value, FloatToFloat16, FloatToFloat16);
    case KVDType::kInt8: {
      const ToInt8 to_key{ScaleOf(key, layout.head_dim)}, to_value{ScaleOf(value, layout.head_dim)};
      StoreToken<int8_t>(layout, k, v, offset, key, value, to_key, to_value);
      StoreScale(k + layout.block_size * layout.head_dim, offset, to_key.scale);
      StoreScale(v + layout.block_size * PaddedHeadDim(layout.head_dim), offset, to_value.scale);
      return;
    }
  }
}

}  // namespace vllm::kernels
