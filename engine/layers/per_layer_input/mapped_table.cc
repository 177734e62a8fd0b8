#include "engine/layers/per_layer_input/mapped_table.h"

#include <algorithm>
#include <array>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "kernels/matrix/packed_matrix.h"

namespace vllm {

namespace {

const MappedFile* FileOf(const WeightSource& weights, std::span<const std::byte> data) {
  for (const MappedFile* file : weights.Files()) {
    const std::span<const std::byte> bytes = file->bytes();
    if (data.data() >= bytes.data() && data.data() + data.size() <= bytes.data() + bytes.size()) return file;
  }
  return nullptr;
}

}  // namespace

MappedTable::MappedTable(const LoadContext& load, const std::string& name, int64_t num_rows, int64_t num_columns)
    : step_(load.step), num_columns_(num_columns), num_stored_rows_(num_rows) {
  const TensorView view = load.weights.Get(name, std::array{num_rows, num_columns});
  if (!kernels::BlockFormat(view.type)) view.CheckFloatingPoint();
  type_ = view.type;
  scale_ = view.scale;
  row_bytes_ = view.RowBytes();
  if (const MappedFile* file = FileOf(load.weights, view.data)) {
    // The weight source unmaps its files when the model is built.
    file_ = std::make_unique<MappedFile>(file->path());
    if (file_->inode() != file->inode() || file_->bytes().size() != file->bytes().size()) {
      throw ModelError("tensor file " + Escape(file->path()) + ": was replaced while it was being read");
    }
    rows_ = file_->bytes().data() + (view.data.data() - file->bytes().data());
    return;
  }
  constexpr int64_t kDummyRows = 256;
  num_stored_rows_ = std::min(num_rows, kDummyRows);
  copied_.assign(view.data.begin(), view.data.begin() + num_stored_rows_ * row_bytes_);
  rows_ = copied_.data();
}

void MappedTable::Read(int64_t i, float* out) const {
  const std::byte* row = rows_ + i % num_stored_rows_ * row_bytes_;
  if (const auto dtype = kernels::ToDType(type_)) return kernels::ConvertToFloat(row, *dtype, num_columns_, out);
  kernels::CheckpointQuantMatrixView blocks;
  blocks.format = *kernels::BlockFormat(type_);
  blocks.num_rows = 1;
  blocks.num_columns = num_columns_;
  blocks.row_bytes = row_bytes_;
  blocks.data = reinterpret_cast<const uint8_t*>(row);
  step_.kernels->quant->dequantize(blocks, 0, 0, num_columns_, out);
  if (scale_ != 1.0f) step_.kernels->scale(out, scale_, num_columns_);
}

}  // namespace vllm
