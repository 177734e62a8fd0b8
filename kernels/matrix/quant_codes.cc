#include "kernels/matrix/quant_codes.h"

#include <cstring>

namespace vllm::kernels {

namespace {

constexpr PackedQuantForm kSigned4 = {4, 32, false, 8};
constexpr PackedQuantForm kSigned4WithMinimums = {4, 32, true, 8};
constexpr PackedQuantForm kWideSigned4 = {4, kScaleColumns, false, 8};
constexpr PackedQuantForm kWideSigned4WithMinimums = {4, kScaleColumns, true, 8};
constexpr PackedQuantForm kUnsigned4 = {4, 32, true, 0};
constexpr PackedQuantForm kSuper4 = {4, 32, true, 0, nullptr, true};
constexpr PackedQuantForm kSuper5 = {5, 32, true, 0, nullptr, true};
constexpr PackedQuantForm kSuper6 = {6, 16, false, 32, nullptr, true};
constexpr PackedQuantForm kSuperLevels = {4, 32, false, 128, kIQ4_NLLevels, true};
constexpr PackedQuantForm kSigned8 = {8, 32};
constexpr PackedQuantForm kUnsigned8 = {8, 32, true};
constexpr PackedQuantForm kSigned5 = {5, 32, false, 16};
constexpr PackedQuantForm kUnsigned5 = {5, 32, true, 0};

// Where to write a block or a row: the addresses for its first column.
using Out = QuantRowBuffers;

float Half(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return Float16ToFloat(bits);
}

// The code below uses vectors because g++ makes slow code of the same loops over single bytes.
constexpr int kVectorBytes = 16;
using Bytes = uint8_t __attribute__((vector_size(kVectorBytes)));

Bytes Load(const uint8_t* from) {
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return bytes;
}

void Store(Bytes bytes, uint8_t* to) { std::memcpy(to, &bytes, sizeof(bytes)); }

// Splits 16 bytes into nibbles. The low nibbles are columns 0 to 15, the high nibbles are columns 16 to 31.
void SplitHalves(const uint8_t* bytes, uint8_t* codes) {
  if (codes == nullptr) return;
  const Bytes both = Load(bytes);
  Store(both & 0x0f, codes);
  Store(both >> 4, codes + 16);
}

void ReadQ8_0(const uint8_t* b, Out out) {
  out.scales[0] = Half(b);
  if (out.codes == nullptr) return;
  for (int i = 0; i < 32; i += kVectorBytes) Store(Load(b + 2 + i) ^ 0x80, out.codes + i);
}

// Reads a Q4_0 or IQ4_NL block.
void ReadHalves(const uint8_t* b, Out out) {
  out.scales[0] = Half(b);
  SplitHalves(b + 2, out.codes);
}

void ReadQ4_1(const uint8_t* b, Out out) {
  out.scales[0] = Half(b);
  out.minimums[0] = Half(b + 2);
  SplitHalves(b + 4, out.codes);
}

// Reads 32 five-bit codes: four bytes with the fifth bit of each column, then 16 bytes of nibbles.
void ReadFiveBits(const uint8_t* b, uint8_t* codes) {
  if (codes == nullptr) return;
  SplitHalves(b + 4, codes);
  constexpr Bytes kBits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  for (int i = 0; i < 32; i += kVectorBytes) {
    const uint8_t x = b[i / 8], y = b[i / 8 + 1];
    const Bytes fifths = Bytes{x, x, x, x, x, x, x, x, y, y, y, y, y, y, y, y} & kBits;
    Store(Load(codes + i) | (__builtin_convertvector(fifths != 0, Bytes) & 16), codes + i);
  }
}

void ReadQ5_0(const uint8_t* b, Out out) {
  out.scales[0] = Half(b);
  ReadFiveBits(b + 2, out.codes);
}

void ReadQ5_1(const uint8_t* b, Out out) {
  out.scales[0] = Half(b);
  out.minimums[0] = Half(b + 2);
  ReadFiveBits(b + 4, out.codes);
}

// Reads eight 6-bit scales and eight 6-bit minimums from 12 bytes, d and -dmin.
void ReadSixBitScales(const uint8_t* b, Out out) {
  out.super_scales[0] = Half(b);
  out.super_minimums[0] = -Half(b + 2);
  const uint8_t* p = b + 4;
  for (int i = 0; i < 8; ++i) {
    const int scale = i < 4 ? p[i] & 0x3f : (p[i + 4] & 0x0f) | ((p[i - 4] >> 2) & 0x30);
    const int minimum = i < 4 ? p[i + 4] & 0x3f : (p[i + 4] >> 4) | ((p[i] >> 2) & 0x30);
    out.scales[i] = static_cast<float>(scale);
    out.minimums[i] = static_cast<float>(minimum);
  }
}

void ReadQ4_K(const uint8_t* b, Out out) {
  ReadSixBitScales(b, out);
  if (out.codes == nullptr) return;
  for (int k = 0; k < 256; k += 64) {
    for (int i = 0; i < 32; i += kVectorBytes) {
      const Bytes both = Load(b + 16 + k / 2 + i);
      Store(both & 0x0f, out.codes + k + i);
      Store(both >> 4, out.codes + k + 32 + i);
    }
  }
}

void ReadQ5_K(const uint8_t* b, Out out) {
  ReadSixBitScales(b, out);
  if (out.codes == nullptr) return;
  for (int i = 0; i < 32; i += kVectorBytes) {
    const Bytes fifths = Load(b + 16 + i);  // bit j belongs to column 32 j + i
    for (int k = 0; k < 256; k += 64) {
      const Bytes both = Load(b + 48 + k / 2 + i);
      Store((both & 0x0f) | ((fifths >> (k / 32)) & 1) << 4, out.codes + k + i);
      Store((both >> 4) | ((fifths >> (k / 32 + 1)) & 1) << 4, out.codes + k + 32 + i);
    }
  }
}

void ReadQ6_K(const uint8_t* b, Out out) {
  out.super_scales[0] = Half(b + 208);
  for (int i = 0; i < 16; ++i) out.scales[i] = static_cast<float>(static_cast<int8_t>(b[192 + i]));
  if (out.codes == nullptr) return;
  for (int half = 0; half < 2; ++half) {
    uint8_t* const codes = out.codes + 128 * half;
    for (int i = 0; i < 64; i += kVectorBytes) {
      const Bytes both = Load(b + half * 64 + i);
      // Bits 2 j and 2 j + 1 belong to column 32 j + i % 32 of this half.
      const Bytes upper = Load(b + 128 + half * 32 + i % 32);
      const int shift = i / 32 * 2;
      Store((both & 0x0f) | ((upper >> shift) & 3) << 4, codes + i);
      Store((both >> 4) | ((upper >> (shift + 4)) & 3) << 4, codes + 64 + i);
    }
  }
}

void ReadIQ4_XS(const uint8_t* b, Out out) {
  out.super_scales[0] = Half(b);
  for (int i = 0; i < 8; ++i) {
    const int low = (b[4 + i / 2] >> (i % 2 * 4)) & 0x0f;
    const int high = (b[2 + i / 4] >> (i % 4 * 2)) & 3;
    out.scales[i] = static_cast<float>((low | high << 4) - 32);
    if (out.codes != nullptr) SplitHalves(b + 8 + i * 16, out.codes + i * 32);
  }
}

struct CodeReader {
  PackedQuantForm form;
  void (*read)(const uint8_t* block, Out out);
};

std::optional<CodeReader> ReaderOf(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ8_0:
      return CodeReader{kSigned8, ReadQ8_0};
    case QuantFormat::kQ4_0:
      return CodeReader{kSigned4, ReadHalves};
    case QuantFormat::kIQ4_NL:
      return CodeReader{kInt4Form, ReadHalves};
    case QuantFormat::kQ4_1:
      return CodeReader{kUnsigned4, ReadQ4_1};
    case QuantFormat::kQ5_0:
      return CodeReader{kSigned5, ReadQ5_0};
    case QuantFormat::kQ5_1:
      return CodeReader{kUnsigned5, ReadQ5_1};
    case QuantFormat::kQ4_K:
      return CodeReader{kSuper4, ReadQ4_K};
    case QuantFormat::kQ5_K:
      return CodeReader{kSuper5, ReadQ5_K};
    case QuantFormat::kQ6_K:
      return CodeReader{kSuper6, ReadQ6_K};
    case QuantFormat::kIQ4_XS:
      return CodeReader{kSuperLevels, ReadIQ4_XS};
    default:
      return std::nullopt;
  }
}

// Returns true if every aligned run of `columns` columns is within one group.
bool GroupsAreWholeRuns(const CheckpointQuantMatrixView& w, int64_t columns) {
  const int64_t chunks = columns / kGroupChunk;
  for (int64_t chunk = 0; chunk < w.num_columns / kGroupChunk; ++chunk) {
    if (w.group_of_chunk[chunk] != w.group_of_chunk[chunk / chunks * chunks]) return false;
  }
  return true;
}

int32_t MiddleOf(const CheckpointQuantMatrixView& w) { return w.format == QuantFormat::kGroupUInt4 ? 8 : 128; }

std::optional<PackedQuantForm> GroupForm(const CheckpointQuantMatrixView& w) {
  if (!GroupsAreWholeRuns(w, kBlockColumns)) return std::nullopt;
  const bool symmetric = w.zeros == nullptr && w.float_zeros == nullptr && w.zero_point == MiddleOf(w);
  const bool is_wide = GroupsAreWholeRuns(w, kScaleColumns);
  if (w.format == QuantFormat::kGroupUInt4) {
    if (is_wide) return symmetric ? kWideSigned4 : kWideSigned4WithMinimums;
    return symmetric ? kSigned4 : kSigned4WithMinimums;
  }
  if (!symmetric) return kUnsigned8;
  if (w.has_scale_per_input_row && w.num_groups == 1 && w.num_columns <= kRowColumns) return kInt8RowForm;
  return is_wide ? kInt8Form : kSigned8;
}

float GroupScale(const CheckpointQuantMatrixView& w, int64_t index) {
  if (w.scale_type == DType::kFloat32) return static_cast<const float*>(w.scales)[index];
  const uint16_t bits = static_cast<const uint16_t*>(w.scales)[index];
  return w.scale_type == DType::kFloat16 ? Float16ToFloat(bits) : BFloat16ToFloat(bits);
}

void ReadGroups(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, int64_t row, Out out) {
  const uint8_t* data = w.data + row * w.row_bytes;
  if (out.codes != nullptr && w.format == QuantFormat::kGroupUInt4) {
    for (int64_t k = 0; k < w.num_columns; k += kQuantColumns) SplitHalves(data + k / 2, out.codes + k);
  } else if (out.codes != nullptr) {
    std::memcpy(out.codes, data, static_cast<size_t>(w.num_columns));
  }
  for (int64_t i = 0; i * form.scale_columns < w.num_columns; ++i) {
    const int64_t index = row * w.num_groups + w.group_of_chunk[i * form.scale_columns / kGroupChunk];
    out.scales[i] = GroupScale(w, index);
    if (!form.has_minimums) continue;
    const auto middle = static_cast<float>(MiddleOf(w));
    if (w.float_zeros != nullptr) {
      out.minimums[i] = (middle - w.float_zeros[index]) * out.scales[i];
      continue;
    }
    const int32_t zero = w.zeros == nullptr ? w.zero_point : w.zeros[index];
    out.minimums[i] = (middle - static_cast<float>(zero)) * out.scales[i];
  }
}

}  // namespace

std::optional<PackedQuantForm> PackedFormOf(const CheckpointQuantMatrixView& w) {
  if (w.format == QuantFormat::kGroupUInt4 || w.format == QuantFormat::kGroupUInt8) return GroupForm(w);
  const std::optional<CodeReader> reader = ReaderOf(w.format);
  if (!reader) return std::nullopt;
  return reader->form;
}

void ReadCodes(const CheckpointQuantMatrixView& w, const PackedQuantForm& form, int64_t row,
               const QuantRowBuffers& to) {
  if (w.format == QuantFormat::kGroupUInt4 || w.format == QuantFormat::kGroupUInt8) return ReadGroups(w, form, row, to);
  const auto read = ReaderOf(w.format)->read;
  const int64_t columns = BlockColumns(w.format);
  const int64_t bytes = QuantRowBytes(w.format, columns);
  for (int64_t block = 0; block < w.num_columns / columns; ++block) {
    const int64_t scale = block * columns / form.scale_columns;
    Out out = to;
    if (to.codes != nullptr) out.codes += block * columns;
    out.scales += scale;
    if (form.has_minimums) out.minimums += scale;
    if (form.has_super_scales) out.super_scales += block;
    if (form.has_super_scales && form.has_minimums) out.super_minimums += block;
    read(w.data + row * w.row_bytes + block * bytes, out);
  }
}

}  // namespace vllm::kernels
