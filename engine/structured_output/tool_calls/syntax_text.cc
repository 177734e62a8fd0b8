#include "engine/structured_output/tool_calls/syntax_text.h"

#include <vector>

#include "engine/structured_output/patterns/pattern.h"

namespace vllm {
namespace {

using NodeId = GrammarTree::NodeId;

constexpr std::string_view kIndexMark = "%INDEX%";
constexpr uint32_t kMaxIndent = 64;
constexpr uint32_t kMaxIndexDigits = 4;

}  // namespace

SyntaxText::SyntaxText(GrammarBuilder& builder, const GrammarVocabulary& vocabulary, const ToolCallFormat& format)
    : builder_(builder), vocabulary_(vocabulary), is_json_(format.syntax.name_prefix.starts_with('{')) {
  RegexStore& store = builder.regexes();
  const RegexId indent = store.Repeat(store.Or({store.Literal(" "), store.Literal("\t")}), 0, kMaxIndent);
  space_ = store.Optional(store.Or({store.Literal(" "), store.Concat(store.Literal("\n"), indent)}));
}

std::optional<std::pair<int32_t, size_t>> SyntaxText::SpecialTokenAt(std::string_view text) const {
  if (vocabulary_.find == nullptr || vocabulary_.bytes == nullptr) return std::nullopt;
  for (size_t size = text.size(); size > 0; --size) {
    const std::optional<int32_t> id = vocabulary_.find(text.substr(0, size));
    if (id && vocabulary_.bytes(*id) == "") return std::pair(*id, size);
  }
  return std::nullopt;
}

RegexId SyntaxText::Bytes(std::string_view text) {
  RegexStore& store = builder_.regexes();
  if (!is_json_) return store.Literal(text);
  std::vector<RegexId> parts;
  bool may_have_space = false;
  for (const char c : text) {
    may_have_space = may_have_space || c == ' ' || c == '\n' || c == '}';
    if (c == ' ' || c == '\n') continue;
    if (may_have_space) parts.push_back(space_);
    parts.push_back(store.Literal(std::string_view(&c, 1)));
    may_have_space = c == '{' || c == ':' || c == ',';
  }
  if (may_have_space) parts.push_back(space_);
  return store.Concat(parts);
}

RegexId SyntaxText::Pattern(std::string_view pattern) {
  return ParsePattern(builder_.regexes(), pattern, PatternSyntax::kRe2, PatternMatch::kWhole, TextSpelling::kUtf8);
}

NodeId SyntaxText::AddBytes(GrammarTree& tree, std::string_view text) {
  const size_t mark = text.find(kIndexMark);
  if (mark == std::string_view::npos) return tree.AddRegex(Bytes(text));
  // The parser does not compare the index with the number of calls.
  const RegexId digit = builder_.regexes().Bytes(ByteSet::Range('0', '9'));
  return tree.AddSequence({tree.AddRegex(Bytes(text.substr(0, mark))),
                           tree.AddRegex(builder_.regexes().Repeat(digit, 1, kMaxIndexDigits)),
                           tree.AddRegex(Bytes(text.substr(mark + kIndexMark.size())))});
}

NodeId SyntaxText::Add(GrammarTree& tree, std::string_view text) {
  std::vector<NodeId> parts;
  size_t begin = 0;  // of the bytes before the next special token
  for (size_t i = 0; i < text.size();) {
    const std::optional<std::pair<int32_t, size_t>> token = SpecialTokenAt(text.substr(i));
    if (!token) {
      ++i;
      continue;
    }
    if (i > begin) parts.push_back(AddBytes(tree, text.substr(begin, i - begin)));
    parts.push_back(tree.AddSymbol(builder_.AddTokens({{token->first, token->first}})));
    i += token->second;
    begin = i;
  }
  if (begin < text.size()) parts.push_back(AddBytes(tree, text.substr(begin)));
  return tree.AddSequence(std::move(parts));
}

}  // namespace vllm
