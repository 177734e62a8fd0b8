// MappedTable: a large embedding table that stays in the checkpoint's file. Only the rows that are read take memory, in
// the page cache. Every rank maps the file itself. Owned by PerLayerInputs. Built at load, then read by the threads of
// the rank's pool.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/layers/load_context.h"
#include "engine/model_loader/mapped_file.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"

namespace vllm {

class MappedTable {
 public:
  // Reads tensor `name` [num_rows, num_columns], which may be quantized in GGML blocks. Dummy weights have no file: of
  // these, it copies a few rows and repeats them. Throws ModelError if the tensor is missing, has the wrong shape or
  // type, or its file was replaced while the model was loading.
  MappedTable(const LoadContext& load, const std::string& name, int64_t num_rows, int64_t num_columns);

  int64_t num_columns() const { return num_columns_; }
  // Writes row `i` as float32 to out, [num_columns]. REQUIRES: 0 <= i < num_rows.
  void Read(int64_t i, float* out) const;

 private:
  const StepContext& step_;
  int64_t num_columns_;
  std::unique_ptr<MappedFile> file_;
  std::vector<std::byte> copied_;  // rows of dummy weights
  int64_t num_stored_rows_;
  const std::byte* rows_ = nullptr;
  int64_t row_bytes_;
  kernels::WeightType type_;
  float scale_;  // a factor of all rows
};

}  // namespace vllm
