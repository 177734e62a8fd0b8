// BytePartition: some byte values in disjoint groups. A plain value; any thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/structured_output/regex/byte_set.h"

namespace vllm {

class BytePartition {
 public:
  // All bytes of `universe` in one group.
  explicit BytePartition(const ByteSet& universe) : universe_(universe) { sizes_[0] = universe.size(); }

  // Splits each group into the bytes that are in `set` and those that are not.
  void Split(const ByteSet& set) {
    ByteSet members = set;
    members &= universe_;
    if (members.empty()) return;
    std::array<uint16_t, 256> num_members{};
    ForEach(members, [&](uint8_t byte) { ++num_members[groups_[byte]]; });
    std::array<uint8_t, 256> new_group{};  // 0: none yet; group 0 is never new
    ForEach(members, [&](uint8_t byte) {
      const uint8_t group = groups_[byte];
      if (num_members[group] == 0) return;  // all of it is in the set
      if (new_group[group] == 0) {
        if (num_members[group] == sizes_[group]) {
          num_members[group] = 0;
          return;
        }
        sizes_[num_groups_] = num_members[group];
        sizes_[group] = sizes_[group] - num_members[group];
        new_group[group] = static_cast<uint8_t>(num_groups_++);
      }
      groups_[byte] = new_group[group];
    });
  }

  size_t num_groups() const { return num_groups_; }
  // The group of a byte of the universe, less than num_groups().
  uint8_t GroupOf(uint8_t byte) const { return groups_[byte]; }
  // Returns the smallest byte of each group, ascending.
  std::vector<uint8_t> Representatives() const {
    std::vector<uint8_t> bytes;
    std::array<bool, 256> seen{};
    ForEach(universe_, [&](uint8_t byte) {
      if (!std::exchange(seen[groups_[byte]], true)) bytes.push_back(byte);
    });
    return bytes;
  }

 private:
  template <typename Function>
  static void ForEach(const ByteSet& set, const Function& function) {
    for (size_t i = 0; i < 4; ++i) {
      for (uint64_t word = set.words()[i]; word != 0; word &= word - 1) {
        function(static_cast<uint8_t>(i * 64 + static_cast<size_t>(std::countr_zero(word))));
      }
    }
  }

  ByteSet universe_;
  std::array<uint8_t, 256> groups_{};
  std::array<size_t, 256> sizes_{};
  size_t num_groups_ = 1;
};

}  // namespace vllm
