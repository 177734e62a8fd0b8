// Codes with scales per group of columns (checkpoint_quant_matrix.h). Included inside an instruction set's namespace.

struct GroupRow {
  const uint8_t* codes;
  const void* scales;
  DType scale_type;
  const float* scale_table;
  const float* table;
  const int16_t* zeros;
  const float* float_zeros;
  float zero_point;
  const int32_t* group_of_chunk;

  Vec Scale(int32_t group) const {
    if (scale_table != nullptr) return Vec::Set1(scale_table[static_cast<const uint8_t*>(scales)[group]]);
    if (scale_type == DType::kFloat32) return Vec::Set1(static_cast<const float*>(scales)[group]);
    const uint16_t* half = static_cast<const uint16_t*>(scales) + group;
    if (scale_type == DType::kFloat16) return Vec::Set1(HalfToFloat(half));
    return Vec::Set1(__builtin_bit_cast(float, static_cast<uint32_t>(*half) << 16));
  }
  Vec Zero(int32_t group) const {
    if (zeros != nullptr) return Vec::Set1(static_cast<float>(zeros[group]));
    return Vec::Set1(float_zeros == nullptr ? zero_point : float_zeros[group]);
  }
  // Passes value(codes as floats, zero point, scale) to `sink` for the two chunks of a block. Usually both chunks
  // belong to the same group.
  template <typename Value, typename Sink>
  __attribute__((always_inline)) void Chunks(int64_t block, Vec first, Vec second, Value&& value, Sink&& sink) const {
    const int32_t a = group_of_chunk[2 * block], b = group_of_chunk[2 * block + 1];
    Vec scale = Scale(a), zero = Zero(a);
    sink(value(first, zero, scale));
    if (b != a) {
      scale = Scale(b);
      zero = Zero(b);
    }
    sink(value(second, zero, scale));
  }
};

__attribute__((always_inline)) static inline Vec Scaled(Vec code, Vec zero, Vec scale) {
  return Vec::Mul(Vec::Sub(code, zero), scale);
}

template <int kBits>
struct GroupRows {
  static constexpr int kColumns = static_cast<int>(kQuantColumns);
  using Row = GroupRow;
  static void Prefetch(const Row& row, int64_t block, int64_t ahead) {
    __builtin_prefetch(row.codes + block * (kColumns * kBits / 8) + ahead);
  }
  static Row RowOf(const CheckpointQuantMatrixView& w, int64_t n) {
    const int64_t first = n * w.num_groups;
    const int64_t scale_bytes = w.scale_table != nullptr ? 1 : w.scale_type == DType::kFloat32 ? 4 : 2;
    return {w.data + n * w.row_bytes,
            static_cast<const uint8_t*>(w.scales) + first * scale_bytes,
            w.scale_type,
            w.scale_table,
            w.table,
            w.zeros == nullptr ? nullptr : w.zeros + first,
            w.float_zeros == nullptr ? nullptr : w.float_zeros + first,
            static_cast<float>(w.zero_point),
            w.group_of_chunk};
  }
};

struct FormatGroupUInt4 : GroupRows<4> {
  template <typename Sink>
  __attribute__((always_inline)) static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const Bytes codes = LoadBytes(row.codes + block * 16);
    row.Chunks(block, UnsignedToFloat(LowHalves(codes)), UnsignedToFloat(HighHalves(codes)), Scaled, sink);
  }
};

struct FormatGroupUInt8 : GroupRows<8> {
  template <typename Sink>
  __attribute__((always_inline)) static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* codes = row.codes + block * kQuantColumns;
    row.Chunks(block, UnsignedToFloat(LoadBytes(codes)), UnsignedToFloat(LoadBytes(codes + kGroupChunk)), Scaled, sink);
  }
};

__attribute__((always_inline)) static inline Vec TimesScale(Vec value, Vec /*zero*/, Vec scale) {
  return Vec::Mul(value, scale);
}

struct FormatGroupTable4 : GroupRows<4> {
  template <typename Sink>
  __attribute__((always_inline)) static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const Bytes codes = LoadBytes(row.codes + block * 16);
    row.Chunks(block, LookUpFloats(row.table, LowHalves(codes)), LookUpFloats(row.table, HighHalves(codes)), TimesScale,
               sink);
  }
};

struct FormatGroupFloat8 : GroupRows<8> {
  template <typename Sink>
  __attribute__((always_inline)) static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const uint8_t* codes = row.codes + block * kQuantColumns;
    row.Chunks(block, Float8ToFloat(LoadBytes(codes)), Float8ToFloat(LoadBytes(codes + kGroupChunk)), TimesScale, sink);
  }
};
