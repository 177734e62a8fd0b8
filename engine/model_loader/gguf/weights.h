// GgufWeights: the tensors of a GGUF model under the names and in the row order of its Hugging Face checkpoint. Mapped,
// not copied, but for the biases whose elements llama.cpp's converter reorders. Immutable after opening; any thread may
// read.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/architecture.h"
#include "engine/model_loader/gguf/file.h"
#include "engine/model_loader/weights.h"

namespace vllm {

class GgufWeights : public WeightSource {
 public:
  // Opens config.gguf_file. Throws ModelError, also for tensors that are no part of the model: what is not computed
  // with would be left out silently.
  explicit GgufWeights(const ModelConfig& config);

  bool Contains(std::string_view name) const override { return tensors_.contains(name); }
  // Types that no model computes on throw ModelError naming the tensor and its type. Leading dimensions of 1 do not
  // count.
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override;
  void DropPages() const override { file_.DropPages(); }
  // As in llama.cpp, where each bias is optional.
  bool DecidesBiases() const override { return true; }
  std::vector<std::string> Names() const override;
  std::vector<const MappedFile*> Files() const override { return file_.files(); }
  int64_t TotalBytes() const override;

 private:
  // Rows [first_row, + num_rows) of a tensor seen as a matrix.
  struct Entry {
    const GgufTensor* tensor = nullptr;
    int64_t first_row = 0;
    std::vector<int64_t> shape = {};
    int64_t interleaved_head_dim = 0;
    std::vector<std::byte> owned = {};  // in place of the file's bytes, when not empty
  };
  void AddLayerTensor(const ModelConfig& config, const GgufTensor& tensor, int64_t layer, std::string_view stem,
                      std::string_view ending);
  // Each of the `count` matrices of a stack of them, or vectors, under its own name; of a matrix, some of the rows.
  void AddStack(const GgufTensor& tensor, const std::string& prefix, std::string_view pattern, std::string_view ending,
                int64_t count, int64_t first_row, int64_t num_rows);
  void Add(std::string name, Entry entry);
  [[noreturn]] void Fail(std::string_view tensor, const std::string& why) const;

  GgufFile file_;
  const GgufArchitecture* family_ = nullptr;
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace vllm
