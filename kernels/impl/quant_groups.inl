// Codes with scales for groups of columns (quant_matrix.h). Included inside an instruction set's namespace.

struct GroupRow {
  const uint8_t* codes;
  const void* scales;
  DType scale_type;
  const int16_t* zeros;
  float zero_point;
  const int32_t* group_of_chunk;

  Vec Scale(int64_t chunk) const {
    const int64_t group = group_of_chunk[chunk];
    if (scale_type == DType::kFloat32) return Vec::Set1(static_cast<const float*>(scales)[group]);
    const uint16_t* half = static_cast<const uint16_t*>(scales) + group;
    if (scale_type == DType::kFloat16) return Vec::Set1(HalfToFloat(half));
    return Vec::Set1(__builtin_bit_cast(float, static_cast<uint32_t>(*half) << 16));
  }
  Vec Zero(int64_t chunk) const {
    return Vec::Set1(zeros == nullptr ? zero_point : static_cast<float>(zeros[group_of_chunk[chunk]]));
  }
};

struct GroupRows {
  static constexpr int kColumns = static_cast<int>(kQuantColumns);
  using Row = GroupRow;
  static Row RowOf(const QuantMatrixView& w, int64_t n) {
    const int64_t first = n * w.num_groups;
    const int64_t scale_bytes = w.scale_type == DType::kFloat32 ? 4 : 2;
    return {w.data + n * w.row_bytes,
            static_cast<const uint8_t*>(w.scales) + first * scale_bytes,
            w.scale_type,
            w.zeros == nullptr ? nullptr : w.zeros + first,
            static_cast<float>(w.zero_point),
            w.group_of_chunk};
  }
};

struct FormatGroupUInt4 : GroupRows {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    const Bytes codes = LoadBytes(row.codes + block * 16);
    sink(Vec::Mul(Vec::Sub(UnsignedToFloat(LowHalves(codes)), row.Zero(2 * block)), row.Scale(2 * block)));
    sink(Vec::Mul(Vec::Sub(UnsignedToFloat(HighHalves(codes)), row.Zero(2 * block + 1)), row.Scale(2 * block + 1)));
  }
};

struct FormatGroupUInt8 : GroupRows {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    for (int64_t chunk = 2 * block; chunk < 2 * block + 2; ++chunk) {
      const Bytes codes = LoadBytes(row.codes + chunk * kGroupChunk);
      sink(Vec::Mul(Vec::Sub(UnsignedToFloat(codes), row.Zero(chunk)), row.Scale(chunk)));
    }
  }
};

struct FormatGroupFloat8 : GroupRows {
  template <typename Sink>
  static inline void Visit(const Row& row, int64_t block, Sink&& sink) {
    for (int64_t chunk = 2 * block; chunk < 2 * block + 2; ++chunk) {
      sink(Vec::Mul(Float8ToFloat(LoadBytes(row.codes + chunk * kGroupChunk)), row.Scale(chunk)));
    }
  }
};
