// LoadReport: how the weights were loaded, for statistics and warnings. A plain value, which MatrixStore fills.
#pragma once

#include <cstdint>
#include <string>

namespace vllm {

struct LoadReport {
  int64_t mapped_bytes = 0;   // total size of the packed-weight cache files that weights were mapped from
  int64_t written_bytes = 0;  // total size of the cache files written for the next start
  std::string rejection;      // why a cache file was not used, or used only in part; empty: no file was rejected
  std::string failure;        // why the cache is not trusted or could not be opened or written; empty: no failure

  // Adds the report of another file. The first rejection and the first failure are kept.
  void Add(const LoadReport& other) {
    mapped_bytes += other.mapped_bytes;
    written_bytes += other.written_bytes;
    if (rejection.empty()) rejection = other.rejection;
    if (failure.empty()) failure = other.failure;
  }
};

}  // namespace vllm
