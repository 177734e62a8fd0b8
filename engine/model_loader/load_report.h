// LoadReport: how the weights were loaded, for statistics and warnings. Returned once, by the executor's factory.
#pragma once

#include <cstdint>
#include <string>

namespace vllm {

struct LoadReport {
  int64_t mapped_bytes = 0;   // of packed weights, read from the packed-weight cache
  int64_t written_bytes = 0;  // of packed weights, written to it for the next start
  std::string rejection;      // why a file of the cache was not used, or only in part; empty: none was rejected
  std::string failure;        // why the cache cannot be trusted or could not be written; empty: no failure

  // Adds the report of another rank. The first rejection and the first failure are kept.
  void Add(const LoadReport& other) {
    mapped_bytes += other.mapped_bytes;
    written_bytes += other.written_bytes;
    if (rejection.empty()) rejection = other.rejection;
    if (failure.empty()) failure = other.failure;
  }
};

}  // namespace vllm
