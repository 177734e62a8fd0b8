#include "engine/model_loader/calibration/calibrated_weights.h"

#include <utility>

#include "engine/model_loader/calibration/scale_search.h"
#include "kernels/matrix/dtype.h"

namespace vllm {

CalibratedMatrix::CalibratedMatrix(int64_t num_rows, int64_t num_columns)
    : num_rows_(num_rows),
      num_columns_(num_columns),
      num_scales_((num_columns + kGroupColumns - 1) / kGroupColumns),
      codes_(static_cast<size_t>(num_rows * ((num_columns + 1) / 2))),
      scales_(static_cast<size_t>(num_rows * num_scales_)) {}

void CalibratedMatrix::SetRow(int64_t row, const uint8_t* codes, const float* scales) {
  uint8_t* const to = codes_.data() + row * ((num_columns_ + 1) / 2);
  for (int64_t k = 0; k < num_columns_; k += 2) {
    const int high = k + 1 < num_columns_ ? codes[k + 1] : 0;
    to[k / 2] = static_cast<uint8_t>(codes[k] | high << 4);
  }
  for (int64_t i = 0; i < num_scales_; ++i) {
    scales_[static_cast<size_t>(row * num_scales_ + i)] = kernels::FloatToFloat16(scales[i]);
  }
}

void CalibratedMatrix::GetRow(int64_t row, uint8_t* codes, float* scales) const {
  const uint8_t* const from = codes_.data() + row * ((num_columns_ + 1) / 2);
  for (int64_t k = 0; k < num_columns_; ++k) codes[k] = k % 2 == 0 ? from[k / 2] & 15 : from[k / 2] >> 4;
  for (int64_t i = 0; i < num_scales_; ++i) {
    scales[i] = kernels::Float16ToFloat(scales_[static_cast<size_t>(row * num_scales_ + i)]);
  }
}

void CalibratedWeights::Add(const std::string& name, int64_t begin, int64_t count,
                            std::shared_ptr<const CalibratedMatrix> matrix, int64_t first_row) {
  matrices_[name].push_back({begin, count, std::move(matrix), first_row});
}

CalibratedWeights::Row CalibratedWeights::Find(const std::string& name, int64_t row) const {
  const auto found = matrices_.find(name);
  if (found == matrices_.end()) return {};
  for (const Rows& rows : found->second) {
    if (row >= rows.begin && row < rows.begin + rows.count) {
      return {rows.matrix.get(), rows.first_row + row - rows.begin};
    }
  }
  return {};
}

}  // namespace vllm
