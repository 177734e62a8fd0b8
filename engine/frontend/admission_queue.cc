#include "engine/frontend/admission_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vllm {

void AdmissionQueue::Add(const std::string& request_id, std::vector<EngineCoreRequestPtr> sequences,
                         const OutputMemory& memory, Rules rules) {
  Entry& entry = entries_[request_id];
  entry.first_id = sequences.front()->request_id;
  entry.end_id = entry.first_id + static_cast<RequestId>(sequences.size());
  entry.first_alone = rules.first_alone && sequences.size() > 1;
  if (entry.first_alone) first_of_.emplace(entry.first_id, request_id);
  entry.sequences = std::move(sequences);
  entry.memory = memory;
  if (rules.regardless_of_memory) {
    waiting_.push_front(request_id);
    AdmitFirst();
  } else {
    waiting_.push_back(request_id);
    AdmitWaiting();
  }
}

bool AdmissionQueue::Fits(const OutputMemory& memory) const {
  if (admitted_records_.empty()) return true;
  // Finished outputs are written one at a time, so only the largest record counts.
  const int64_t record_bytes = std::max(memory.record_bytes, *admitted_records_.rbegin());
  return memory.held_bytes <= max_output_memory_ - held_bytes_ &&
         record_bytes <= max_output_memory_ - held_bytes_ - memory.held_bytes;
}

void AdmissionQueue::AdmitWaiting() {
  while (!waiting_.empty()) {
    if (!Fits(entries_.at(waiting_.front()).memory)) return;
    AdmitFirst();
  }
}

void AdmissionQueue::AdmitFirst() {
  Entry& entry = entries_.at(waiting_.front());
  // Allocate first: if memory runs out, the request is still waiting, and Remove can remove it.
  const size_t num_ready = ready_.size() + entry.sequences.size();
  if (ready_.capacity() < num_ready) ready_.reserve(2 * num_ready);
  admitted_records_.insert(entry.memory.record_bytes);
  waiting_.pop_front();
  entry.admitted = true;
  held_bytes_ += entry.memory.held_bytes;
  Admit(entry);
}

void AdmissionQueue::Admit(Entry& entry) {
  const auto begin = entry.sequences.begin();
  const auto end = entry.first_alone ? std::next(begin) : entry.sequences.end();
  std::move(begin, end, std::back_inserter(ready_));
  entry.sequences.erase(begin, end);
}

void AdmissionQueue::Update(const EngineCoreOutputs& outputs) {
  if (first_of_.empty()) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const EngineCoreOutput& output = outputs[i];
    if (output.new_token_ids.empty() && output.finish_reason == FinishReason::kNone) continue;
    const auto first = first_of_.find(output.request_id);
    if (first == first_of_.end()) continue;
    Entry& entry = entries_.at(first->second);
    first_of_.erase(first);
    entry.first_alone = false;
    Admit(entry);
  }
}

void AdmissionQueue::Remove(const std::string& request_id) {
  const auto found = entries_.find(request_id);
  if (found == entries_.end()) return;
  const Entry& entry = found->second;
  if (entry.admitted) {
    held_bytes_ -= entry.memory.held_bytes;
    admitted_records_.erase(admitted_records_.find(entry.memory.record_bytes));
    std::erase_if(ready_, [&](const EngineCoreRequestPtr& request) {
      return request->request_id >= entry.first_id && request->request_id < entry.end_id;
    });
  } else {
    std::erase(waiting_, request_id);
  }
  first_of_.erase(entry.first_id);
  entries_.erase(found);
  AdmitWaiting();
}

void AdmissionQueue::TakeReady(std::vector<EngineCoreRequestPtr>& ready) {
  ready.clear();
  ready.swap(ready_);
}

}  // namespace vllm
