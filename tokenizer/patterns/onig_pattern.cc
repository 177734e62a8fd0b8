#include "tokenizer/patterns/onig_pattern.h"

#include <oniguruma.h>

#include <memory>
#include <optional>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/oniguruma.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

constexpr size_t kMaxRegexBytes = 64 << 10;
constexpr unsigned int kMaxStackEntries = 8 << 20;
constexpr unsigned long kMaxRetriesInMatch = 20'000'000;
constexpr unsigned long kMaxRetriesInSearch = 40'000'000;

const OnigUChar* Bytes(const char* text) { return reinterpret_cast<const OnigUChar*>(text); }

struct RegionDeleter {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};
struct ParamDeleter {
  void operator()(OnigMatchParam* param) const { onig_free_match_param(param); }
};

// Returns the position after the next whitespace character, or the end of the text.
size_t AfterNextWhiteSpace(std::string_view text, size_t position) {
  const UnicodeTable& table = UnicodeTable::Get();
  while (position < text.size()) {
    const auto [code_point, length] = CodePointAt(text, position);
    position += length;
    if (table.Is(code_point, kSpace)) break;
  }
  return position;
}

}  // namespace

OnigPattern::OnigPattern(const std::string& regex) {
  InitializeOniguruma();
  if (regex.size() > kMaxRegexBytes) {
    throw TokenizerError("compiling the regular expression " + QuoteForError(regex) + ": too long (limit " +
                         std::to_string(kMaxRegexBytes) + " bytes)");
  }
  OnigErrorInfo info;
  const int status = onig_new(&regex_, Bytes(regex.data()), Bytes(regex.data() + regex.size()), ONIG_OPTION_NONE,
                              ONIG_ENCODING_UTF8, ONIG_SYNTAX_ONIGURUMA, &info);
  if (status != ONIG_NORMAL) {
    OnigUChar message[ONIG_MAX_ERROR_MESSAGE_LEN] = {};
    const int length = onig_error_code_to_str(message, status, &info);
    throw TokenizerError("compiling the regular expression " + QuoteForError(regex) + ": " +
                         QuoteForError({reinterpret_cast<const char*>(message), static_cast<size_t>(length)}));
  }
}

OnigPattern::~OnigPattern() { onig_free(regex_); }

size_t OnigPattern::FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const {
  const std::unique_ptr<OnigRegion, RegionDeleter> region(onig_region_new());
  const std::unique_ptr<OnigMatchParam, ParamDeleter> param(onig_new_match_param());
  if (!region || !param) throw std::bad_alloc();
  onig_initialize_match_param(param.get());
  onig_set_match_stack_limit_size_of_match_param(param.get(), kMaxStackEntries);
  onig_set_retry_limit_in_match_of_match_param(param.get(), kMaxRetriesInMatch);
  onig_set_retry_limit_in_search_of_match_param(param.get(), kMaxRetriesInSearch);

  const OnigUChar* begin = Bytes(text.data());
  const OnigUChar* end = begin + text.size();
  const size_t batch_end = matches.size() + kBatch;
  size_t covered = from;
  std::optional<size_t> last_match_end;
  if (from > 0) last_match_end = from;
  while (!text.empty() && from <= text.size()) {
    onig_region_clear(region.get());
    const int found =
        onig_search_with_param(regex_, begin, end, begin + from, end, region.get(), ONIG_OPTION_NONE, param.get());
    if (found == ONIG_MISMATCH) break;
    if (found < 0) {
      from = AfterNextWhiteSpace(text, from);
      if (from >= text.size()) break;
      continue;
    }
    const auto match_begin = static_cast<size_t>(region->beg[0]);
    const auto match_end = static_cast<size_t>(region->end[0]);
    if (match_begin == match_end && last_match_end == match_end) {
      // Skip an empty match right after the last match. Otherwise the search would find it forever.
      from += from < text.size() ? CodePointAt(text, from).length : 1;
      continue;
    }
    if (covered < match_begin) matches.push_back({covered, match_begin, false});
    matches.push_back({match_begin, match_end, true});
    covered = from = match_end;
    last_match_end = match_end;
    // Stop only after a match that is not empty, so that every call advances.
    if (matches.size() >= batch_end && match_begin < match_end && match_end < text.size()) return match_end;
  }
  if (covered < text.size()) matches.push_back({covered, text.size(), false});
  return text.size();
}

}  // namespace vllm::tokenizer
