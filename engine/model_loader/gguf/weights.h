// GgufWeights: the tensors of a GGUF model, with the names and the row order of its Hugging Face checkpoint. Tensors
// are mapped and not copied, except for some vectors: biases that llama.cpp's converter fuses or reorders, and norms
// that it stacks. Owned by the code that opened it. Immutable after opening; any thread may read.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/architecture.h"
#include "engine/model_loader/gguf/format/file.h"
#include "engine/model_loader/weights.h"

namespace vllm {

class GgufWeights : public WeightSource {
 public:
  // Opens config.gguf_file. Throws ModelError if the file is malformed, has no tensors, or has a tensor that the
  // architecture does not use, because ignoring such a tensor would silently change the model's results. Throws
  // ResourceError if a file cannot be mapped.
  explicit GgufWeights(const ModelConfig& config);

  bool Contains(std::string_view name) const override { return tensors_.contains(name); }
  // Ignores leading dimensions of 1. Also throws ModelError, naming the tensor and its type, if the type is not
  // supported.
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override;
  void DropPages() const override { file_.DropPages(); }
  // In llama.cpp every bias is optional.
  bool DecidesBiases() const override { return true; }
  std::vector<std::string> Names() const override;
  std::vector<const MappedFile*> Files() const override { return file_.files(); }
  int64_t TotalBytes() const override;

 private:
  // A Hugging Face tensor of `shape`. Its data starts at row first_row of `tensor`, viewed as a matrix.
  struct Entry {
    const GgufTensor* tensor = nullptr;
    int64_t first_row = 0;
    std::vector<int64_t> shape = {};
    int64_t interleaved_head_dim = 0;
    std::vector<std::byte> owned = {};  // if not empty, replaces the file's bytes
    float scale = 1.0f;                 // see TensorView
  };
  void AddLayerTensor(const ModelConfig& config, const GgufTensor& tensor, int64_t layer, std::string_view stem,
                      std::string_view suffix);
  // `tensor` is a stack of `count` matrices or vectors. Adds each of them under its own name, restricted to rows
  // [first_row, first_row + num_rows). The rows of a vector are its elements.
  void AddStack(const GgufTensor& tensor, const std::string& prefix, std::string_view pattern, std::string_view suffix,
                int64_t count, int64_t first_row, int64_t num_rows);
  void Add(std::string name, Entry entry);
  // Gives the matrices of `tensor`, whose type is NVFP4, the factors in `scales`: one, or one per expert.
  void SetScales(const GgufTensor& tensor, const GgufTensor& scales);
  [[noreturn]] void Fail(std::string_view tensor, const std::string& why) const;

  GgufFile file_;
  const GgufArchitecture* architecture_ = nullptr;
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace vllm
