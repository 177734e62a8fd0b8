// AdmissionQueue: decides when the sequences of a request may enter the engine. Requests enter in the order in which
// they were added, each as soon as the memory that its outputs and those of all admitted requests may take is within
// the limit. A request always enters if no other request is admitted, and an interactive request enters at once. With n
// > 1, the second and later sequences of a request can wait until the first has a token, for example to find the prompt
// in the prefix cache. Waiting changes no result. Owned by LLMEngine, called from the front-end thread.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/frontend/output_memory.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/engine_core_request.h"

namespace vllm {

class AdmissionQueue {
 public:
  explicit AdmissionQueue(int64_t max_output_memory) : max_output_memory_(max_output_memory) {}

  struct Rules {
    bool first_alone = false;           // only the first sequence enters until Update admits the others
    bool regardless_of_memory = false;  // the request enters at once; it counts towards the limit of later ones
  };
  // Queues the sequences of a request. REQUIRES: request_id is not queued or admitted.
  void Add(const std::string& request_id, std::vector<EngineCoreRequestPtr> sequences, const OutputMemory& memory,
           Rules rules);
  // Admits the other sequences of each request whose first sequence has a token or has ended.
  void Update(const EngineCoreOutputs& outputs);
  // Removes a request and releases its share of the limit, so that waiting requests may enter. Ignores unknown ids.
  void Remove(const std::string& request_id);

  // Replaces the contents of `ready` with the sequences that may enter the engine now, in order.
  void TakeReady(std::vector<EngineCoreRequestPtr>& ready);

 private:
  struct Entry {
    std::vector<EngineCoreRequestPtr> sequences;  // not yet moved to ready_
    RequestId first_id = 0;
    RequestId end_id = 0;  // all sequences of the request, moved or not, have ids in [first_id, end_id)
    OutputMemory memory;
    bool first_alone = false;
    bool admitted = false;
  };

  bool Fits(const OutputMemory& memory) const;
  void AdmitWaiting();
  // Admits waiting_.front().
  void AdmitFirst();
  void Admit(Entry& entry);

  const int64_t max_output_memory_;
  std::unordered_map<std::string, Entry> entries_;
  std::deque<std::string> waiting_;                      // requests that are not admitted yet, in order
  std::unordered_map<RequestId, std::string> first_of_;  // id of a first sequence that the others wait for -> request
  std::vector<EngineCoreRequestPtr> ready_;
  int64_t held_bytes_ = 0;                   // of all admitted requests
  std::multiset<int64_t> admitted_records_;  // record_bytes of each admitted request
};

}  // namespace vllm
