#include "engine/structured_output/json_schema/unescaped_strings.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/structured_output/json_schema/json_text.h"
#include "engine/structured_output/regex/code_point_set.h"

namespace vllm {
namespace {

constexpr size_t kMaxStates = 16'384;
constexpr int32_t kDead = -1;

class TableAutomaton : public ByteAutomaton {
 public:
  TableAutomaton(std::vector<ByteSet> classes, std::vector<int32_t> next, std::vector<bool> is_final)
      : classes_(std::move(classes)), next_(std::move(next)), is_final_(std::move(is_final)) {
    for (size_t i = 0; i < classes_.size(); ++i) {
      for (int byte = 0; byte < 256; ++byte) {
        if (classes_[i].Contains(static_cast<uint8_t>(byte))) class_of_[static_cast<size_t>(byte)] = i;
      }
    }
  }
  int32_t Next(int32_t state, uint8_t byte) const override {
    return next_[static_cast<size_t>(state) * classes_.size() + class_of_[byte]];
  }
  bool IsFinal(int32_t state) const override { return is_final_[static_cast<size_t>(state)]; }
  std::vector<ByteSet> ByteClasses() const override { return classes_; }

 private:
  std::vector<ByteSet> classes_;
  std::vector<int32_t> next_;  // [states, classes]
  std::vector<bool> is_final_;
  std::array<size_t, 256> class_of_{};
};

// Returns the spelling of a byte inside a JSON string, with an escape only if it needs one.
std::string Spelling(uint8_t byte) {
  const char c = static_cast<char>(byte);
  const std::string quoted = QuoteJson(std::string_view(&c, 1));
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

RegexId UnescapedStrings(RegexStore& store, RegexId strings) {
  if (strings == AnyText(store, TextSpelling::kJsonString)) return AnyText(store, TextSpelling::kUtf8);
  if (store.IsNothing(strings)) return RegexStore::kNothing;
  std::vector<ByteSet> classes;
  std::vector<std::string> spellings;  // of a byte of each class
  std::map<std::pair<bool, int>, size_t> class_of;
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelling = Spelling(static_cast<uint8_t>(byte));
    const bool has_escape = spelling.size() > 1;
    const int key = has_escape ? byte : store.byte_classes()[static_cast<size_t>(byte)];
    const auto [it, inserted] = class_of.try_emplace({has_escape, key}, classes.size());
    if (inserted) {
      classes.emplace_back();
      spellings.push_back(std::move(spelling));
    }
    classes[it->second].Add(static_cast<uint8_t>(byte));
  }
  std::vector<RegexId> states = {strings};
  std::unordered_map<RegexId, int32_t> ids = {{strings, 0}};
  std::vector<int32_t> next;
  std::vector<bool> is_final;
  for (size_t state = 0; state < states.size(); ++state) {
    is_final.push_back(store.MatchesEmpty(states[state]));
    for (const std::string& spelling : spellings) {
      RegexId rest = states[state];
      for (const char c : spelling) rest = store.Derivative(rest, static_cast<uint8_t>(c));
      if (store.IsNothing(rest)) {
        next.push_back(kDead);
        continue;
      }
      const auto [it, inserted] = ids.try_emplace(rest, static_cast<int32_t>(states.size()));
      if (inserted) states.push_back(rest);
      next.push_back(it->second);
      if (states.size() > kMaxStates) {
        throw GrammarLimitError("the strings need too many states (limit " + std::to_string(kMaxStates) + ")");
      }
    }
  }
  return store.Automaton(std::make_shared<TableAutomaton>(std::move(classes), std::move(next), std::move(is_final)));
}

}  // namespace vllm
