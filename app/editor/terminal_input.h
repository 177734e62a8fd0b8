// TerminalInput: takes the bytes that a terminal sends apart into keys, which readline reads one byte at a time, and
// bracketed pastes. Keys end between two characters, so that a reader never waits for the rest of one. Keeps both until
// they are taken. Owned by LineEditor; main thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vllm::app {

class TerminalInput {
 public:
  // A longer paste is dropped.
  static constexpr size_t kMaxPasteBytes = size_t{16} << 20;

  // Adds bytes from the terminal. Those that can still become a longer sequence are kept until more arrive or Flush is
  // called.
  void Feed(std::string_view bytes);
  // Returns true if bytes are kept that only Flush or more bytes release: ESC, which is a key and begins pastes, and
  // ESC ESC, which begins some arrow keys.
  bool IsWaitingForMore() const;
  // Releases them, and returns the number of ESC that now are keys.
  int Flush();

  // Returns true if a key or a paste can be taken. A paste is one once its end has arrived.
  bool HasKey() const { return !keys_.empty(); }
  bool HasPaste() const { return keys_.empty() && is_paste_complete_; }
  // Returns the next byte of a key. REQUIRES: HasKey().
  char TakeKey();
  // Returns the text of the paste, or nullopt if it was too long. CR LF and CR, which terminals send for line breaks,
  // become LF. NUL and invalid UTF-8 become U+FFFD. REQUIRES: HasPaste().
  std::optional<std::string> TakePaste();
  // Ends a paste whose end does not arrive. Does nothing if none has begun.
  void EndPaste();
  bool IsInPaste() const { return is_in_paste_; }

 private:
  void Sort();

  std::string raw_;   // not sorted yet
  std::string keys_;  // the keys before the paste, from next_key_
  size_t next_key_ = 0;
  std::string paste_;               // at most one byte more than kMaxPasteBytes
  bool is_in_paste_ = false;        // the beginning of a paste has arrived, but not its end
  bool is_paste_complete_ = false;  // `paste_` can be taken; `raw_` follows it
};

// Returns text that can be part of a draft: CR LF and CR become LF, NUL and invalid UTF-8 become U+FFFD.
std::string DraftText(std::string_view text);
// Returns the part of a paste that is added to a search of the history: the first line without control characters, at
// most 1,000 bytes, because readline searches again after each byte.
std::string SearchText(std::string_view paste);

}  // namespace vllm::app
