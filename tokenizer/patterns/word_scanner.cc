#include "tokenizer/patterns/word_scanner.h"

#include <string>

#include "tokenizer/patterns/word_scans.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

#define CASED_WORD "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL_WORD "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

constexpr WordScanner kScanners[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Gpt2Scan},
    // Llama 3, and Qwen 2 with single digits.
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Llama3Scan<3, false>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Llama3Scan<1, false>},
    // Newer ways to write the same: Phi-4, GLM-4, Ling.
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     Llama3Scan<3, false>},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     Llama3Scan<1, false>},
    // Qwen 3.5.
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     MarkedWordScan},
    // tiktoken's cl100k_base; there {1,3}+ takes no more than three, which Oniguruma writes otherwise.
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|(?>\p{N}{1,3})| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     Llama3Scan<3, true>},
    // o200k_base, gpt-oss, Llama 4; then with single digits; then tekken.
    {"[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "*" SMALL_WORD
     "+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "+" SMALL_WORD
     "*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     CasedScan<3, true>},
    {"[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "*" SMALL_WORD
     "+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "+" SMALL_WORD
     "*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     CasedScan<1, true>},
    {"[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "*" SMALL_WORD "+|[^\\r\\n\\p{L}\\p{N}]?" CASED_WORD "+" SMALL_WORD
     "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     CasedScan<1, false>},
    // DeepSeek V3 and R1, after numbers and East Asian runs.
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     DeepSeekScan},
    {"[一-龥぀-ゟ゠-ヿ]+", HanKanaScan},
    {"[一-龥ࠀ-一가-퟿]+", EastAsianScan},
    {R"(\p{N}{1,3})", NumberScan<3>},
    {R"(\p{N})", NumberScan<1>},
    {"[0-9][0-9][0-9]", ThreeDigitsScan},
    {R"([\r\n])", LineBreakScan},
    {R"(\s?\p{L}+)", SpacedLettersScan},
    {R"(\s?\p{P}+)", SpacedPunctuationScan},
    {R"( ?[^(\s|[.,!?…。，、।۔،])]+)", BloomScan},
};

#undef CASED_WORD
#undef SMALL_WORD

}  // namespace

const WordScanner* FindWordScanner(std::string_view regex) {
  std::string escaped;
  for (const char c : regex) {
    if (c == '\r' || c == '\n') {
      escaped += c == '\r' ? "\\r" : "\\n";
    } else {
      escaped += c;
    }
  }
  for (const WordScanner& scanner : kScanners) {
    if (scanner.regex == escaped) return &scanner;
  }
  return nullptr;
}

std::span<const WordScanner> AllWordScanners() { return kScanners; }

const WordScanner& Gpt2WordScanner() { return kScanners[0]; }

size_t ScannerPattern::FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const {
  const size_t enough = matches.size() + kBatch;
  bool in_gap = false;
  size_t position = from;
  while (position < text.size()) {
    const size_t end = scanner_.match_end(text, position);
    if (end > position) {
      matches.push_back({position, end, true});
      in_gap = false;
      position = end;
      if (matches.size() >= enough) break;
      continue;
    }
    const size_t next = position + CodePointAt(text, position).length;
    if (in_gap) {
      matches.back().end = next;
    } else {
      matches.push_back({position, next, false});
    }
    in_gap = true;
    position = next;
  }
  return position;
}

}  // namespace vllm
