// PatternTree: the syntax of one pattern. Made by ParsePatternTree; a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/structured_output/patterns/pattern.h"

namespace vllm {

struct PatternTree {
  static constexpr size_t kMaxNodes = 100'000;
  static constexpr int kMaxDepth = 250;
  static constexpr size_t kMaxLookaheads = 1000;         // each may repeat the alternatives that follow it
  static constexpr size_t kMaxRanges = size_t{1} << 18;  // of all classes together
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  enum class Kind : uint8_t {
    kEmpty,
    kClass,
    kSequence,
    kAlternatives,
    kRepeat,
    kStart,
    kEnd,
    kLookahead,
    kNegativeLookahead
  };
  struct Node {
    Kind kind = Kind::kEmpty;
    CodePointSet set;                // kClass
    std::vector<uint32_t> children;  // kSequence, kAlternatives; one for kRepeat and look-ahead
    uint32_t min = 0, max = 0;       // kRepeat
    bool has_lookahead = false;      // this or a descendant is look-ahead
  };
  std::vector<Node> nodes;
  uint32_t root = 0;
};

// Throws RequestError like ParsePattern.
PatternTree ParsePatternTree(std::string_view pattern, PatternSyntax syntax);

}  // namespace vllm
