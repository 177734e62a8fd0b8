#include "engine/model_loader/shared_weights.h"

#include <utility>

namespace vllm {

void SharedRankWeights::Complete(const LoadReport& load_report) {
  load_report_ = load_report;
  is_complete_ = true;
}

SharedWeightMemory::SharedWeightMemory(SharedRankWeights& shared, WeightMemory* source)
    : shared_(shared), source_(source) {}

kernels::BufferSource SharedWeightMemory::Buffers(const std::string& name) {
  if (shared_.is_complete()) {
    return [this, name](const std::vector<size_t>& sizes) { return Take(name, sizes); };
  }
  return [this, name, buffers = source_->Buffers(name)](const std::vector<size_t>& sizes) {
    return Record(name, sizes, buffers);
  };
}

bool SharedWeightMemory::Contains(const std::string& name, const std::vector<size_t>& sizes) const {
  return shared_.is_complete() ? Next(name, sizes) != nullptr : source_->Contains(name, sizes);
}

kernels::BufferSource SharedWeightMemory::TemporaryBuffers() {
  return shared_.is_complete() ? kernels::NewBuffers : source_->TemporaryBuffers();
}

std::vector<kernels::AlignedBuffer> SharedWeightMemory::Record(const std::string& name,
                                                               const std::vector<size_t>& sizes,
                                                               const kernels::BufferSource& buffers) {
  SharedRankWeights::Matrix& matrix = shared_.matrices_[name].emplace_back();
  std::vector<kernels::AlignedBuffer> recorded;
  for (kernels::AlignedBuffer& buffer : buffers(sizes)) {
    const bool is_filled = buffer.is_filled();
    const auto& owner = matrix.emplace_back(std::make_shared<const kernels::AlignedBuffer>(std::move(buffer)));
    recorded.emplace_back(owner, owner->data(), owner->size_bytes(), is_filled);
  }
  return recorded;
}

const SharedRankWeights::Matrix* SharedWeightMemory::Next(const std::string& name,
                                                          const std::vector<size_t>& sizes) const {
  const auto found = shared_.matrices_.find(name);
  if (found == shared_.matrices_.end()) return nullptr;
  const auto used = num_used_.find(name);
  const size_t index = used == num_used_.end() ? 0 : used->second;
  if (index >= found->second.size()) return nullptr;
  const SharedRankWeights::Matrix& matrix = found->second[index];
  if (matrix.size() != sizes.size()) return nullptr;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (matrix[i]->size_bytes() != sizes[i]) return nullptr;
  }
  return &matrix;
}

std::vector<kernels::AlignedBuffer> SharedWeightMemory::Take(const std::string& name,
                                                             const std::vector<size_t>& sizes) {
  const SharedRankWeights::Matrix* matrix = Next(name, sizes);
  // Unreachable as long as all engines have the same configuration. The matrix would be packed again.
  if (matrix == nullptr) return kernels::NewBuffers(sizes);
  ++num_used_[name];
  std::vector<kernels::AlignedBuffer> buffers;
  for (const auto& buffer : *matrix) buffers.emplace_back(buffer, buffer->data(), buffer->size_bytes());
  return buffers;
}

}  // namespace vllm
