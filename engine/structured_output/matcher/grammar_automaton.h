// GrammarAutomaton: which bytes and tokens may come next in the texts of one Grammar. A state is a set of threads: a
// RowStore row and a Lexer state, which has read the beginning of a terminal that the row expects. Mostly there is one
// thread; there are more where a terminal may end or continue, at most one for each byte of the text. States, rows and
// masks are a cache, which all sequences of the grammar share, and which is discarded when it is large: a Position has
// the text to make its state again. Any thread: a lock protects everything.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"
#include "engine/structured_output/matcher/lexer.h"
#include "engine/structured_output/matcher/plain_text.h"
#include "engine/structured_output/matcher/row_store.h"
#include "engine/structured_output/matcher/stored_mask.h"
#include "engine/structured_output/matcher/vocab_trie.h"

namespace vllm {

// The only text that may follow.
struct ForcedText {
  std::string bytes;
  bool ends = false;  // after these bytes, only the end may follow
};

class GrammarAutomaton {
 public:
  // Limits that are functions of the text. A text that exceeds one is not allowed; if no token remains for this reason,
  // the sequence fails with an error that names the limit. See also RowStore.
  static constexpr size_t kMaxThreads = 1024;  // of one state
  static constexpr size_t kMaxLimitHits = 64;  // while one mask is computed; more fail the sequence
  // The most work for one mask, in threads and expected symbols of its states.
  static constexpr size_t kMaxMaskWork = 4'000'000;
  // The cache is discarded when it has more than this many bytes, or twice as many as the longest text needed.
  static constexpr size_t kKeptBytes = size_t{16} << 20;
  // The masks are discarded when they have more than this many bytes.
  static constexpr size_t kKeptMaskBytes = size_t{4} << 20;

  // A position in a text that the grammar allows. Initially the start of the text. Copy it to come back to it later.
  struct Position {
    std::string text;  // a special token is 0xFF, which no text contains, and four bytes of its id
    // For GrammarAutomaton: the state, unless the automaton has discarded its states since.
    uint64_t generation = 0;
    int32_t state = 0;
  };

  // Returns the tokens of a text that continues another one, or none if no tokens spell it; see ContinuationTokens.
  using Encoder = std::function<std::vector<int32_t>(std::string_view text)>;
  // The most bytes of a forced text that are encoded at a time.
  static constexpr size_t kMaxForcedBytes = 256;

  // Without an encoder, no token is forced.
  GrammarAutomaton(Grammar grammar, std::shared_ptr<const VocabTrie> trie, Encoder encoder = nullptr);
  ~GrammarAutomaton();

  // Adds memory_bytes() to `total` as long as the automaton lives. Other automata may share `total`. Called once.
  void CountMemory(std::shared_ptr<std::atomic<size_t>> total);
  // Discards the states, unless another thread uses the automaton at this moment. Texts make them again.
  void TryDiscardStates();

  // Moves the position past `bytes`. Returns false and leaves it unchanged if the grammar does not allow them. Throws
  // GrammarLimitError if they exceed a limit.
  bool Advance(Position& position, std::string_view bytes);
  // Moves the position past a token, by its bytes or as a special token. Returns and throws like Advance.
  bool AdvanceToken(Position& position, int32_t token_id);
  // Makes `mask` the tokens that may follow. Throws GrammarLimitError if there are none because of limits, or if too
  // many tokens exceed limits; `mask` is then undefined.
  void FindAllowedTokens(Position& position, TokenBitmask& mask);
  TokenBitmask AllowedTokens(Position& position) {
    TokenBitmask mask;
    FindAllowedTokens(position, mask);
    return mask;
  }
  // Returns true if FindAllowedTokens would not have to compute the tokens.
  bool HasAllowedTokens(Position& position);
  // Returns true if the text may end here.
  bool MayEnd(Position& position);
  // Returns the text that must follow, up to max_bytes bytes of it.
  ForcedText Forced(Position& position, size_t max_bytes);
  // Returns the token that must follow, or -1 if several may. If the text that must follow has more than one token, its
  // first token must. The last token of that text is free, because it may be longer and contain what follows, unless
  // the text ends there. The tokens that spell a text are those of Encoder.
  int32_t ForcedToken(Position& position);
  // Appends the tokens that must follow `token_id`, one after the other as by ForcedToken, at most max_tokens of them
  // and none from the first one that is in `excluded`. Appends none if the token may not follow.
  void AppendForcedAfter(Position& position, int32_t token_id, std::span<const int32_t> excluded, size_t max_tokens,
                         std::vector<int32_t>& forced);

  // Returns whether the grammar has any text.
  bool has_text() const { return has_text_; }
  const VocabTrie& trie() const { return *trie_; }
  // Returns about how much memory the grammar, the states and the masks need.
  size_t memory_bytes();

 private:
  static constexpr int32_t kDead = -1;
  static constexpr int32_t kUnknown = -2;
  static constexpr int32_t kLimit = -3;  // the text exceeds a limit
  static constexpr int32_t kMixed = -4;
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
    int32_t after_plain = kUnknown;             // see AfterPlain
    int32_t forced_token = kUnknown;            // see ForcedToken
    CharacterKinds known_kinds = 0;             // those for which it is known if they are in repeated_kinds
    CharacterKinds repeated_kinds = 0;          // whose characters lead back to this state
    uint32_t work = 0;                          // see kMaxMaskWork
    uint64_t last_mask = 0;                     // the last mask that counted the work
    std::unique_ptr<const StoredMask> allowed;  // null: not computed
  };
  // An edge of the automaton of plain text, for one byte of each class.
  struct PlainEdge {
    uint8_t byte;
    PlainTextState to;
  };

  void Clear();
  int32_t StateAt(Position& position);
  int32_t Replay(std::string_view text);
  // Returns kLimit instead of throwing GrammarLimitError, whose message it keeps. Throws EmptinessLimitError.
  int32_t Step(int32_t state, uint8_t byte) {
    const int32_t next = next_[static_cast<size_t>(state) * num_classes_ + classes_[byte]];
    return next != kUnknown ? next : StepSlowly(state, byte);
  }
  int32_t Step(int32_t state, std::string_view bytes);
  int32_t StepSlowly(int32_t state, uint8_t byte);
  int32_t StepToken(int32_t state, int32_t token_id);
  int32_t ComputeStep(int32_t state, uint8_t byte);
  void AddRow(RowStore::RowId row, std::vector<Thread>& threads, bool& may_end);
  RowStore::RowId ScanOne(RowStore::RowId row, Lexer::StateId lexer_state);
  int32_t Intern(std::vector<Thread> threads, bool may_end);
  ForcedText ForcedAt(int32_t state, size_t max_bytes);
  int32_t ForcedTokenAt(int32_t state);
  // The functions below are in allowed_tokens.cc. They count work_ and num_limit_hits_.
  void AddTextTokens(int32_t state, TokenBitmask& mask);
  // Returns false and adds nothing if the next 32 plain characters lead to more than one state each.
  bool AddAlongLine(int32_t state, TokenBitmask& mask);
  void AddPlainTokens(int32_t state, TokenBitmask& mask);
  // Adds the tokens of tokens.nodes()[begin..end) that may follow. REQUIRES: the nodes are whole subtrees of the root.
  void Walk(int32_t state, const TokenTrie& tokens, size_t begin, size_t end, TokenBitmask& mask);
  void Walk(int32_t state, const TokenTrie& tokens, TokenBitmask& mask) {
    Walk(state, tokens, 0, tokens.nodes().size(), mask);
  }
  void CountWork(int32_t state);
  void FindPlainEdges();
  // What follows the next plain characters. `to` is not complete if both are false.
  struct PlainStep {
    bool all_allowed = true, none_allowed = true;
    std::vector<int32_t> to;  // the states after the character
  };
  // Finds the states after each plain character, or after the rest of one. More than max_to states are none allowed.
  PlainStep StepPlain(int32_t state, PlainTextState plain, size_t max_to) {
    return StepPlain({{state, plain}}, max_to);
  }
  PlainStep StepPlain(std::vector<std::pair<int32_t, PlainTextState>> starts, size_t max_to);
  // Returns the state after any plain character if that is one state, kDead if none may follow, kMixed otherwise.
  int32_t AfterPlain(int32_t state);
  // Returns whether all plain texts may follow, if few states are enough to find out.
  bool AllowsPlain(int32_t state);
  // Returns whether all texts of these characters may follow and lead back to the state.
  bool Repeats(int32_t state, CharacterKinds kinds);
  bool RepeatsKind(int32_t state, uint32_t kind);
  // Returns whether all tokens below the node may follow, if they lead back to `state`, the state at the node, or to
  // `before`, the one before its byte.
  bool AllowsBelow(int32_t before, int32_t state, const TokenTrie::Node& node);
  // The same for a node of the first byte. REQUIRES: the byte is plain text. All tokens may lead to any state.
  bool AllowsBelowRoot(int32_t state, const TokenTrie::Node& node);
  void AddSpecialTokens(int32_t state, TokenBitmask& mask);
  [[noreturn]] void ThrowLimit() const { throw GrammarLimitError(limit_error_); }
  size_t CacheBytes() const { return lexer_.memory_bytes() + rows_.memory_bytes() + state_bytes_; }
  size_t MemoryBytes() const { return grammar_bytes_ + CacheBytes() + mask_bytes_; }
  // Updates the total of CountMemory.
  void CountChange() {
    if (memory_total_ == nullptr) return;
    const size_t num_bytes = MemoryBytes();
    if (num_bytes == counted_bytes_) return;
    memory_total_->fetch_add(num_bytes - counted_bytes_, std::memory_order_relaxed);  // wraps around if it is less
    counted_bytes_ = num_bytes;
  }

  Grammar grammar_;
  const std::shared_ptr<const VocabTrie> trie_;
  const Encoder encoder_;
  bool has_text_ = false;
  std::array<uint16_t, 256> classes_{};  // of bytes: those of the lexer, and one for 0xFF
  size_t num_classes_ = 0;
  std::vector<uint8_t> class_bytes_;  // one byte of each class of the lexer
  std::array<std::vector<PlainEdge>, kNumPlainTextStates> plain_edges_;
  std::array<std::vector<uint8_t>, kNonAsciiKind> kind_bytes_;  // one byte of each class in which the kind has bytes

  std::mutex mutex_;  // protects everything below
  Lexer lexer_;
  RowStore rows_;
  uint64_t generation_ = 0;
  std::vector<State> states_;
  std::vector<int32_t> next_;  // [num_states, num_classes_]
  std::unordered_map<std::string, int32_t> state_ids_;
  std::unordered_map<uint64_t, RowStore::RowId> scans_;  // by row and lexer state
  size_t state_bytes_ = 0;
  size_t mask_bytes_ = 0;
  size_t grammar_bytes_ = 0;  // without the expressions that the lexer has made
  std::shared_ptr<std::atomic<size_t>> memory_total_;
  size_t counted_bytes_ = 0;       // the share of this automaton in memory_total_
  size_t max_bytes_ = kKeptBytes;  // more are discarded
  uint64_t num_walks_ = 0;         // the masks that were computed
  // While a mask is computed:
  std::vector<int32_t> path_;  // the states after the first bytes of a token
  size_t num_limit_hits_ = 0;
  size_t work_ = 0;
  std::string limit_error_;
};

}  // namespace vllm
