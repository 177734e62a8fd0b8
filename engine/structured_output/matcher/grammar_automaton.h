// GrammarAutomaton: which bytes and tokens may come next in the texts of one Grammar. A state is a set of threads: a
// RowStore row and a Lexer state, which has read the beginning of a terminal that the row expects. Mostly there is one
// thread; there are more where a terminal may end or continue. States, rows and masks are a cache, which all sequences
// of the grammar share, and which is discarded when it is large: a Position has the text to make its state again.
// Any thread: a lock protects everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"
#include "engine/structured_output/matcher/lexer.h"
#include "engine/structured_output/matcher/row_store.h"
#include "engine/structured_output/matcher/vocab_trie.h"

namespace vllm {

// The tokens that may follow: token t is bit t % 32 of word t / 32, as in vLLM. [(vocab_size + 31) / 32]
using TokenBitmask = std::vector<uint32_t>;

// The only text that may follow.
struct ForcedText {
  std::string bytes;
  bool ends = false;  // after these bytes, nothing but the end may follow
};

class GrammarAutomaton {
 public:
  // Limits that are functions of the text. A text that exceeds one is not allowed; if no token remains for this reason,
  // the sequence fails with an error that names the limit. See also RowStore.
  static constexpr size_t kMaxThreads = 1024;  // of one state
  static constexpr size_t kMaxLimitHits = 64;  // while one mask is computed; more fail the sequence
  // The cache is discarded when it has more than this many bytes, or twice as many as the longest text needed.
  static constexpr size_t kKeptBytes = size_t{16} << 20;
  static constexpr size_t kKeptMasks = 256;

  // A position in a text that the grammar allows. Initially the start of the text. Copy it to come back to it later.
  struct Position {
    std::string text;  // a special token is 0xFF, which no text contains, and four bytes of its id
    // For GrammarAutomaton: the state, unless the automaton has discarded its states since.
    uint64_t generation = 0;
    int32_t state = 0;
  };

  GrammarAutomaton(Grammar grammar, std::shared_ptr<const VocabTrie> trie);

  // Moves the position past `bytes`. Returns false and leaves it unchanged if the grammar does not allow them. Throws
  // GrammarLimitError if they exceed a limit.
  bool Advance(Position& position, std::string_view bytes);
  // Moves the position past a token, by its bytes or as a special token. Returns and throws like Advance.
  bool AdvanceToken(Position& position, int32_t token_id);
  // Returns the tokens that may follow. Throws GrammarLimitError if there are none because of limits.
  std::shared_ptr<const TokenBitmask> AllowedTokens(Position& position);
  // Returns true if the text may end here.
  bool MayEnd(Position& position);
  // Returns the text that must follow, up to max_bytes bytes of it.
  ForcedText Forced(Position& position, size_t max_bytes);

  // Returns whether the grammar has any text.
  bool has_text() const { return has_text_; }
  const VocabTrie& trie() const { return *trie_; }
  size_t memory_bytes();

 private:
  static constexpr int32_t kDead = -1;
  static constexpr int32_t kUnknown = -2;
  static constexpr int32_t kLimit = -3;  // the text exceeds a limit
  static constexpr char kTokenMark = '\xFF';
  struct Thread {
    RowStore::RowId row;
    Lexer::StateId lexer;  // kDead: the row expects no terminal with bytes
    bool at_start;         // no byte of the terminal was read
    auto operator<=>(const Thread&) const = default;
  };
  struct State {
    std::vector<Thread> threads;  // sorted
    bool may_end = false;
    std::vector<int32_t> next;                    // by byte class; empty: nothing is known yet
    std::shared_ptr<const TokenBitmask> allowed;  // null: not computed
  };

  void Clear();
  int32_t StateAt(Position& position);
  int32_t Replay(std::string_view text);
  // Returns kLimit instead of throwing GrammarLimitError, whose message it keeps.
  int32_t Step(int32_t state, uint8_t byte);
  int32_t StepToken(int32_t state, int32_t token_id);
  int32_t ComputeStep(int32_t state, uint8_t byte);
  void AddRow(RowStore::RowId row, std::vector<Thread>& threads, bool& may_end);
  RowStore::RowId Scan(const Thread& thread, Lexer::StateId lexer_state);
  int32_t Intern(std::vector<Thread> threads, bool may_end);
  // Returns how many times a limit was exceeded on the way.
  size_t AddTextTokens(int32_t state, TokenBitmask& mask);
  void AddSpecialTokens(int32_t state, TokenBitmask& mask);
  [[noreturn]] void ThrowLimit() const { throw GrammarLimitError(limit_error_); }
  size_t CacheBytes() const { return lexer_.memory_bytes() + rows_.memory_bytes() + state_bytes_; }

  Grammar grammar_;
  const std::shared_ptr<const VocabTrie> trie_;
  bool has_text_ = false;

  std::mutex mutex_;  // protects everything below
  Lexer lexer_;
  RowStore rows_;
  uint64_t generation_ = 0;
  std::vector<State> states_;
  std::unordered_map<std::string, int32_t> state_ids_;
  std::unordered_map<uint64_t, RowStore::RowId> scans_;  // by row and lexer state
  size_t state_bytes_ = 0;
  size_t num_masks_ = 0;
  size_t max_bytes_ = kKeptBytes;  // more are discarded
  std::vector<int32_t> path_;      // scratch of AddTextTokens
  std::string limit_error_;
};

}  // namespace vllm
