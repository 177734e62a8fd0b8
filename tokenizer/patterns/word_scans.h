// The match functions of the word scanners, one for each family of expressions; see word_scanner.h for what they return
// and word_scanner.cc for the expressions. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace vllm {

using WordScan = size_t (*)(std::string_view text, size_t position);

size_t Gpt2Scan(std::string_view text, size_t position);

// Llama 3 (kMaxDigits 3), Qwen 2 (1) and relatives. kTakesLastSpace: white space at the end of the text is one match
// even with line breaks in it, as tiktoken's cl100k has it.
template <int kMaxDigits, bool kTakesLastSpace>
size_t Llama3Scan(std::string_view text, size_t position);

// The same with marks as parts of words, as Qwen 3.5 has it.
size_t MarkedWordScan(std::string_view text, size_t position);

// o200k (kMaxDigits 3, kContractions), tekken (1, none): words are split where small letters meet capitals.
template <int kMaxDigits, bool kContractions>
size_t CasedScan(std::string_view text, size_t position);

// The main expression of DeepSeek V3; leaves characters that it does not match.
size_t DeepSeekScan(std::string_view text, size_t position);

// ` ?` and then everything but white space and some punctuation.
size_t BloomScan(std::string_view text, size_t position);

// Single expressions: \p{N}{1,max}, [0-9][0-9][0-9], [\r\n], \s?\p{L}+, \s?\p{P}+.
template <int kMaxDigits>
size_t NumberScan(std::string_view text, size_t position);
size_t ThreeDigitsScan(std::string_view text, size_t position);
size_t LineBreakScan(std::string_view text, size_t position);
size_t SpacedLettersScan(std::string_view text, size_t position);
size_t SpacedPunctuationScan(std::string_view text, size_t position);
// [一-龥぀-ゟ゠-ヿ]+ and [一-龥ࠀ-一가-퟿]+
size_t HanKanaScan(std::string_view text, size_t position);
size_t EastAsianScan(std::string_view text, size_t position);

}  // namespace vllm
