// Fuzzes ToolCallParser. The first byte chooses the format, the second one the size of the pieces. Pieces must give the
// events of the whole text, complete calls must have valid arguments, and text must not be invented or, without calls
// and markers, lost.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/tool_calls/tool_call_parser.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/tool_calls/call_text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Returns true if `part`, without white space, is a subsequence of `whole`.
bool IsSubsequence(std::string_view part, std::string_view whole) {
  size_t i = 0;
  for (const char c : part) {
    if (IsSpace(c)) continue;
    while (i < whole.size() && whole[i] != c) ++i;
    if (i == whole.size()) return false;
    ++i;
  }
  return true;
}

// nlohmann/json rejects numbers that a double cannot represent.
bool MayOverflow(std::string_view json) {
  return json.find_first_of("eE") != std::string_view::npos || json.size() > 300;
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  static const std::shared_ptr<const ToolSet> tools = testing_support::TestTools();
  if (bytes.size() < 2) return;
  const auto formats = ToolCallFormats();
  const ToolCallFormat& format = formats[static_cast<unsigned char>(bytes[0]) % formats.size()];
  const size_t piece = 1 + static_cast<unsigned char>(bytes[1]) % 32;
  bytes.remove_prefix(2);
  std::vector<size_t> ends;
  for (size_t end = piece; end < bytes.size(); end += piece) ends.push_back(end);
  const std::vector<ToolCallEvent> whole = testing_support::EventsOf(format, tools, bytes, {});
  Require(testing_support::EventsOf(format, tools, bytes, ends) == whole, "pieces give the events of the whole text");

  ToolCallOutput output;
  output.Add(whole);
  const bool is_harmony = format.reader == ToolCallFormat::Reader::kHarmony;
  Require(IsSubsequence(output.text, bytes), "text is part of the output");
  Require(IsSubsequence(output.reasoning, bytes), "the thought is part of the output");
  const ToolCallOutput cut = ParseToolCalls(format, tools, "request", bytes, /*is_cut=*/true);
  Require(output.text.starts_with(cut.text), "a cut output has no other text");
  Require(cut.calls.size() == output.calls.size(), "a cut output has the same calls");
  const bool has_marker = bytes.find(format.syntax.trigger) != std::string_view::npos;
  if (output.calls.empty() && !is_harmony && !has_marker && format.more_triggers.empty()) {
    Require(output.text == bytes, "an output without markers is text");
  }
  const bool is_utf8 = tokenizer::IsValidUtf8(bytes);
  for (const ToolCall& call : output.calls) {
    Require(!call.name.empty() && !call.id.empty(), "calls have names and ids");
    if (!call.error.empty() || !is_utf8 || MayOverflow(call.arguments)) continue;
    const nlohmann::json arguments = nlohmann::json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
    Require(arguments.is_object(), "arguments are a JSON object");
  }
}

}  // namespace vllm
