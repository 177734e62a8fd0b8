// CalibratedWeights: the codes and scales of the linear layers that were quantized on a calibration text. Filled by the
// thread that reads the text; after that, immutable, and any thread may read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace vllm {

// IQ4_NL codes and scales of a matrix [num_rows, num_columns].
class CalibratedMatrix {
 public:
  CalibratedMatrix(int64_t num_rows, int64_t num_columns);

  int64_t num_rows() const { return num_rows_; }
  int64_t num_columns() const { return num_columns_; }
  // Scales of a row, one per kGroupColumns columns.
  int64_t num_scales() const { return num_scales_; }
  // codes: [num_columns]; scales: [num_scales], values of float16. Different threads may set different rows.
  void SetRow(int64_t row, const uint8_t* codes, const float* scales);
  void GetRow(int64_t row, uint8_t* codes, float* scales) const;

 private:
  int64_t num_rows_;
  int64_t num_columns_;
  int64_t num_scales_;
  std::vector<uint8_t> codes_;  // [num_rows, ceil(num_columns / 2)], the low nibble first
  std::vector<uint16_t> scales_;
};

class CalibratedWeights {
 public:
  struct Row {
    const CalibratedMatrix* matrix = nullptr;  // null: the row was not quantized
    int64_t row = 0;
  };

  // Adds rows [begin, begin + count) of the checkpoint matrix `name`, which are those from `first_row` on of `matrix`.
  void Add(const std::string& name, int64_t begin, int64_t count, std::shared_ptr<const CalibratedMatrix> matrix,
           int64_t first_row);
  // Returns where row `row` of the checkpoint matrix `name` is.
  Row Find(const std::string& name, int64_t row) const;

 private:
  struct Rows {
    int64_t begin = 0;
    int64_t count = 0;
    std::shared_ptr<const CalibratedMatrix> matrix;
    int64_t first_row = 0;
  };
  std::map<std::string, std::vector<Rows>> matrices_;
};

}  // namespace vllm
