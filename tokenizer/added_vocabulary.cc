#include "tokenizer/added_vocabulary.h"

#include <algorithm>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

// ClassBefore returns true if there is a character before `position` and it has one of `classes`. ClassAt does the same
// for the character at `position`.
bool ClassBefore(std::string_view text, size_t position, uint16_t classes) {
  if (position == 0) return false;
  return UnicodeTable::Get().Is(CodePointAt(text, PreviousCodePoint(text, position)).value, classes);
}

bool ClassAt(std::string_view text, size_t position, uint16_t classes) {
  return position < text.size() && UnicodeTable::Get().Is(CodePointAt(text, position).value, classes);
}

}  // namespace

void AddedVocabulary::Add(AddedToken token) {
  if (token.content.size() > kMaxTokenBytes || token.normalized_content.size() > kMaxTokenBytes) {
    throw TokenizerError("reading the added token " + QuoteForError(token.content) + ": too long (limit " +
                         std::to_string(kMaxTokenBytes) + " bytes)");
  }
  const auto [it, is_new] = by_id_.try_emplace(token.id, tokens_.size());
  by_content_[token.content] = it->second;
  if (is_new) {
    tokens_.push_back(std::move(token));
  } else {
    tokens_[it->second] = std::move(token);
  }
}

void AddedVocabulary::Finish() {
  for (const AddedToken& token : tokens_) {
    PatternSet& set = token.normalized ? normalized_ : raw_;
    const std::string& text = token.normalized ? token.normalized_content : token.content;
    if (text.empty()) continue;
    set.patterns.push_back({text, &token});
    set.starts[static_cast<unsigned char>(text[0])] = true;
  }
  for (PatternSet* set : {&raw_, &normalized_}) {
    std::stable_sort(set->patterns.begin(), set->patterns.end(),
                     [](const Pattern& a, const Pattern& b) { return a.text < b.text; });
  }
}

const AddedToken* AddedVocabulary::FindId(int32_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedVocabulary::FindContent(std::string_view content) const {
  const auto it = by_content_.find(std::string(content));
  return it == by_content_.end() ? nullptr : &tokens_[it->second];
}

bool AddedVocabulary::IsSpecialText(std::string_view text) const {
  const AddedToken* token = FindContent(text);
  return token != nullptr && token->special;
}

// Returns the longest pattern that is a prefix of `text`, or null. Narrows the range of sorted patterns byte by byte.
const AddedVocabulary::Pattern* AddedVocabulary::LongestMatch(const PatternSet& set, std::string_view text) {
  const Pattern* longest = nullptr;
  auto low = set.patterns.begin();
  auto high = set.patterns.end();
  for (size_t depth = 0; low != high; ++depth) {
    if (low->text.size() == depth) {
      longest = &*low;
      while (low != high && low->text.size() == depth) ++low;
      if (low == high) break;
    }
    if (depth == text.size()) break;
    const auto byte = static_cast<unsigned char>(text[depth]);
    const auto at_depth = [depth](const Pattern& pattern) { return static_cast<unsigned char>(pattern.text[depth]); };
    low = std::partition_point(low, high, [&](const Pattern& pattern) { return at_depth(pattern) < byte; });
    high = std::partition_point(low, high, [&](const Pattern& pattern) { return at_depth(pattern) == byte; });
  }
  return longest;
}

void AddedVocabulary::Split(std::string_view text, bool normalized, bool special,
                            std::vector<Segment>& segments) const {
  const PatternSet& set = normalized ? normalized_ : raw_;
  segments.clear();
  size_t done = 0;
  size_t space_end = 0;  // end of the whitespace after the last match with rstrip
  if (!set.patterns.empty()) {
    for (size_t position = 0; position < text.size();) {
      if (!set.starts[static_cast<unsigned char>(text[position])]) {
        ++position;
        continue;
      }
      const Pattern* match = LongestMatch(set, text.substr(position));
      if (match == nullptr) {
        ++position;
        continue;
      }
      const AddedToken& token = *match->token;
      size_t begin = position;
      size_t end = position + match->text.size();
      position = end;
      if (token.special && !special) continue;
      if (token.single_word && (ClassBefore(text, begin, kWord) || ClassAt(text, end, kWord))) continue;
      if (token.lstrip) {
        while (begin > done && ClassBefore(text, begin, kSpace)) begin = PreviousCodePoint(text, begin);
        begin = std::max(begin, done);
      }
      if (token.rstrip) {
        // The search continues inside this whitespace. Remembering its end keeps the search linear.
        space_end = std::max(space_end, end);
        while (ClassAt(text, space_end, kSpace)) space_end += CodePointAt(text, space_end).length;
        end = space_end;
      }
      if (done < begin) segments.push_back({done, begin, -1});
      segments.push_back({begin, end, token.id});
      done = end;
    }
  }
  if (done != text.size()) segments.push_back({done, text.size(), -1});
}

}  // namespace vllm::tokenizer
