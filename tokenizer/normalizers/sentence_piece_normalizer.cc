#include "tokenizer/normalizers/sentence_piece_normalizer.h"

#include <utility>

#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {

SentencePieceNormalizer::SentencePieceNormalizer(const SentencePieceNormalization& config, TokenTrie user_defined,
                                                 const std::string& where)
    : config_(config), charsmap_(config.precompiled_charsmap, where), user_defined_(std::move(user_defined)) {
  config_.precompiled_charsmap = {};
}

SentencePieceNormalizer::Step SentencePieceNormalizer::Next(std::string_view text) const {
  if (const auto found = user_defined_.LongestPrefix(text); found.length > 0) {
    return {found.length, text.substr(0, found.length)};
  }
  if (const Charsmap::Rule rule = charsmap_.Longest(text); rule.length > 0) return {rule.length, rule.replacement};
  const size_t length = CodePointAt(text, 0).length;
  return {length, text.substr(0, length)};
}

void SentencePieceNormalizer::Apply(std::string& text) const {
  std::string_view input = text;
  const bool remove_extra = config_.remove_extra_whitespaces;
  while (remove_extra && !input.empty()) {
    const Step step = Next(input);
    if (step.result != " ") break;
    input.remove_prefix(step.consumed);
  }
  const std::string_view space = config_.escape_whitespaces ? "\xE2\x96\x81" : " ";
  std::string out;
  if (!input.empty()) {
    out.reserve(input.size() + input.size() / 2 + space.size());
    if (config_.add_dummy_prefix && !config_.treat_whitespace_as_suffix) out += space;
    bool after_space = remove_extra;
    while (!input.empty()) {
      const Step step = Next(input);
      std::string_view result = step.result;
      while (after_space && result.starts_with(' ')) result.remove_prefix(1);
      for (const char c : result) {
        if (c == ' ') {
          out += space;
        } else {
          out += c;
        }
      }
      if (!result.empty()) after_space = remove_extra && result.ends_with(' ');
      input.remove_prefix(step.consumed);
    }
    while (remove_extra && out.ends_with(space)) out.resize(out.size() - space.size());
    if (config_.add_dummy_prefix && config_.treat_whitespace_as_suffix) out += space;
  }
  text = std::move(out);
}

}  // namespace vllm::tokenizer
