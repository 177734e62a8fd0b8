// Fuzzes the matcher of grammars. The first bytes of the input choose a small grammar, the others a text: every byte
// must be allowed exactly if the slow matcher allows it, and the allowed tokens of a small vocabulary must be those
// that can be appended.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/structured_output/random_grammar.h"
#include "tests/structured_output/slow_matcher.h"

namespace vllm {
namespace {

constexpr size_t kMaxSteps = 12;

Grammar GrammarOf(std::string_view bytes) {
  size_t next = 0;
  return testing_support::RandomGrammar(
      [&](uint64_t n) { return next < bytes.size() ? static_cast<uint8_t>(bytes[next++]) % n : 0; });
}

const std::shared_ptr<const VocabTrie>& Vocabulary() {
  static const std::shared_ptr<const VocabTrie> trie = [] {
    // Ids 0 to 4 are special tokens. Each text that continues does so with one of the single bytes at the end, because
    // the grammars know no other letters than a, b and c.
    std::vector<std::string> tokens(5);
    for (const char* token :
         {"ab", "abc", "abcabc", "ccc", "a\"", "aaa\"b", "a\xC3", "\xC3\xA9", "aaaaaaaaaaaaaaaa", "ca"}) {
      tokens.emplace_back(token);
    }
    for (const int byte : {0x00, 0x1F, 0x22, 0x60, 0x61, 0x62, 0x63, 0x64, 0x7F, 0x80, 0xA9, 0xC3, 0xE2, 0xF0, 0xFE}) {
      tokens.emplace_back(1, static_cast<char>(byte));
    }
    const auto size = static_cast<int64_t>(tokens.size());
    return std::make_shared<const VocabTrie>(std::move(tokens), size);
  }();
  return trie;
}

void CheckMask(GrammarAutomaton& automaton, GrammarAutomaton::Position& position) {
  const TokenBitmask mask = automaton.AllowedTokens(position);
  GrammarAutomaton::Position next = position;
  for (int32_t id = 0; id < Vocabulary()->vocab_size(); ++id) {
    const bool is_allowed = (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0;
    Require(automaton.AdvanceToken(next, id) == is_allowed, "the mask has exactly the tokens that may follow");
    if (is_allowed) next = position;
  }
}

void CheckForced(GrammarAutomaton& automaton, GrammarAutomaton::Position position) {
  const ForcedText forced = automaton.Forced(position, 8);
  Require(forced.bytes.empty() || !automaton.MayEnd(position), "no text is forced where the text may end");
  for (const char byte : forced.bytes) {
    const char other = byte == 'a' ? 'b' : 'a';
    GrammarAutomaton::Position next = position;
    Require(!automaton.Advance(next, std::string_view(&other, 1)), "no other byte may follow than a forced one");
    Require(automaton.Advance(position, std::string_view(&byte, 1)), "a forced byte may follow");
  }
  Require(!forced.ends || automaton.MayEnd(position), "the text may end where it must");
}

void Compare(std::string_view grammar, std::string_view text) {
  testing_support::SlowMatcher slow(GrammarOf(grammar));
  GrammarAutomaton fast(GrammarOf(grammar), Vocabulary());
  GrammarAutomaton::Position position;
  slow.Start();
  for (size_t i = 0;; ++i) {
    Require(fast.MayEnd(position) == slow.MayEnd(), "the text may end where the slow matcher says so");
    const bool is_last = i == std::min(text.size(), kMaxSteps);
    // Only of the last position, because masks take most of the time, and other inputs end at the others.
    if (is_last && fast.has_text() && !fast.Forced(position, 1).ends) CheckMask(fast, position);
    CheckForced(fast, position);
    if (is_last) return;
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool is_token = byte >= 0xF0;
    const int32_t id = byte % 5;
    const char letter = byte < 0xC0 ? static_cast<char>('a' + byte % 3) : static_cast<char>(byte - 0x80);
    const bool expected = is_token ? slow.StepToken(id) : slow.Step(static_cast<uint8_t>(letter));
    const bool actual =
        is_token ? fast.AdvanceToken(position, id) : fast.Advance(position, std::string_view(&letter, 1));
    Require(actual == expected, "a step is allowed if the slow matcher allows it");
    if (!actual) return;
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  if (input.empty()) return;
  const std::string_view grammar = input.substr(1, static_cast<uint8_t>(input[0]));
  const std::string_view text = input.substr(1 + grammar.size());
  try {
    Compare(grammar, text);
  } catch (const GrammarLimitError& error) {
    Require(std::string_view(error.what()).find("more than") != std::string_view::npos, "a limit is named");
  }
}

}  // namespace vllm
