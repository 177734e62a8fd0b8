#include "app/editor/terminal_input.h"

#include <algorithm>
#include <utility>

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr std::string_view kPasteBegin = "\x1b[200~";
constexpr std::string_view kPasteEnd = "\x1b[201~";
constexpr std::string_view kOneEscape = "\x1b";
constexpr std::string_view kTwoEscapes = "\x1b\x1b";
// In octal, because the letters are hexadecimal digits.
constexpr std::string_view kWordRight = "\033f";
constexpr std::string_view kWordLeft = "\033b";

// Returns the length of the longest end of `text` that is a beginning of `sequence`, but not all of it.
size_t PartialEnd(std::string_view text, std::string_view sequence) {
  for (size_t length = std::min(text.size(), sequence.size() - 1); length > 1; --length) {
    if (text.ends_with(sequence.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

std::string DraftText(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      if (i + 1 >= text.size() || text[i + 1] != '\n') result += '\n';
    } else if (text[i] == '\0') {
      result += tokenizer::kReplacementCharacter;
    } else {
      result += text[i];
    }
  }
  return tokenizer::ReplaceInvalidUtf8(result);
}

std::string SearchText(std::string_view paste) {
  constexpr size_t kMaxBytes = 1000;
  std::string_view line = paste.substr(0, paste.find('\n'));
  if (line.size() > kMaxBytes) {
    size_t size = kMaxBytes;
    while (tokenizer::IsUtf8Continuation(line[size])) --size;
    line = line.substr(0, size);
  }
  std::string text(line);
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }),
             text.end());
  return text;
}

void TerminalInput::Feed(std::string_view bytes) {
  raw_ += bytes;
  Sort();
}

bool TerminalInput::IsWaitingForMore() const {
  return !is_in_paste_ && !is_paste_complete_ && (raw_ == kOneEscape || raw_ == kTwoEscapes);
}

int TerminalInput::Flush() {
  if (!IsWaitingForMore()) return 0;
  const auto num_escapes = static_cast<int>(raw_.size());
  keys_ += std::exchange(raw_, "");
  return num_escapes;
}

char TerminalInput::TakeKey() {
  const char key = keys_[next_key_++];
  if (next_key_ == keys_.size()) {
    keys_.clear();
    next_key_ = 0;
  }
  return key;
}

std::optional<std::string> TerminalInput::TakePaste() {
  is_paste_complete_ = false;
  const std::string paste = std::exchange(paste_, "");
  Sort();
  if (paste.size() > kMaxPasteBytes) return std::nullopt;
  return DraftText(paste);
}

void TerminalInput::EndPaste() {
  if (!is_in_paste_) return;
  paste_ += std::exchange(raw_, "");
  is_in_paste_ = false;
  is_paste_complete_ = true;
}

void TerminalInput::Sort() {
  while (!raw_.empty() && !is_paste_complete_) {
    if (is_in_paste_) {
      const size_t end = raw_.find(kPasteEnd);
      const size_t num_bytes = end == std::string::npos ? raw_.size() - PartialEnd(raw_, kPasteEnd) : end;
      // A lone ESC at the end may begin the sequence that ends the paste.
      const size_t num_taken = end == std::string::npos && raw_.ends_with('\x1b') ? num_bytes - 1 : num_bytes;
      paste_.append(raw_, 0, std::min(num_taken, kMaxPasteBytes + 1 - paste_.size()));
      raw_.erase(0, num_taken);
      if (end == std::string::npos) return;
      raw_.erase(0, kPasteEnd.size());
      is_in_paste_ = false;
      is_paste_complete_ = true;
      return;
    }
    const size_t escape = raw_.find('\x1b');
    if (escape != 0) {
      std::string_view plain = std::string_view(raw_).substr(0, escape);
      if (escape == std::string::npos) plain.remove_suffix(tokenizer::IncompleteUtf8Tail(plain));
      keys_ += plain;
      raw_.erase(0, plain.size());
      if (escape == std::string::npos) return;
      continue;
    }
    const std::string_view rest = raw_;
    if (rest.starts_with(kPasteBegin)) {
      raw_.erase(0, kPasteBegin.size());
      is_in_paste_ = true;
    } else if (kPasteBegin.starts_with(rest) || rest == kTwoEscapes) {
      return;
    } else if (rest == "\x1b\x1b[" || rest == "\x1b\x1bO") {
      return;
    } else if (rest.starts_with("\x1b\x1b[") || rest.starts_with("\x1b\x1bO")) {
      // Some terminals send ESC before the sequence of an arrow key for Alt with that key. Readline would take ESC ESC
      // for a key. Alt-Left and Alt-Right move by words.
      const char last = rest[3];
      if (last == 'C' || last == 'D') {
        keys_ += last == 'C' ? kWordRight : kWordLeft;
        raw_.erase(0, 4);
      } else {
        raw_.erase(0, 1);
      }
    } else {
      // ESC ESC stays together.
      const size_t length = rest.starts_with(kTwoEscapes) ? 2 : 1;
      keys_ += rest.substr(0, length);
      raw_.erase(0, length);
    }
  }
}

}  // namespace vllm::app
