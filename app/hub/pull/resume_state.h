// ResumeState: how much of a file an interrupted download has stored, so that another process can continue. The file
// next to the partial blob has this format:
//
//   state := "vllmcli-partial 1\n" "etag " ETAG "\n" "size " N "\n" "owner " PID " " HOST "\n" range* "end\n"
//   range := "range " BEGIN " " END "\n"        ascending, END exclusive
//
//   vllmcli-partial 1
//   etag e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
//   size 1048576
//   owner 4711 build1
//   range 0 524288
//   end
//
// Plain values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "app/hub/pull/byte_ranges.h"

namespace vllm::app {

struct ResumeState {
  static constexpr size_t kMaxBytes = size_t{64} << 10;

  std::string etag;
  int64_t size = 0;
  int64_t owner_pid = 0;  // the process that last wrote the partial blob
  std::string owner_host;
  ByteRanges ranges;
};

std::string FormatResumeState(const ResumeState& state);
// Returns nullopt if the text has another format, for example because it was cut.
std::optional<ResumeState> ParseResumeState(std::string_view text);

}  // namespace vllm::app
