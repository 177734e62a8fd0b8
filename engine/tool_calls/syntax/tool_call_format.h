// ToolCallFormat: how the models of one family write tool calls. The table has the literal texts of each format, from
// which both ToolCallParser and the grammar of constrained calls are made, so a constrained output always parses.
// Formats are immutable and static; any thread.
//
// Calls have this form, in which SECTION and the parts in brackets may be empty:
//   SECTION  := [section_begin] CALL ([separator] CALL)* [section_end]
//   CALL     := [begin] [name_prefix] NAME [name_suffix] [arguments_begin] ARGUMENTS [arguments_end] [end]
// Example (hermes):
//   <tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>
//   begin = "<tool_call>\n", name_prefix = "{\"name\": \"", name_suffix = "\"", arguments_begin = ", \"arguments\": ",
//   arguments_end = "}", end = "\n</tool_call>", separator = "\n", trigger = "<tool_call>"
// "%INDEX%" stands for the index of the call in the output. ToolCallParser accepts any white space where these texts
// have some, and a few variants that models write.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

// How ARGUMENTS are written.
enum class ArgumentStyle : uint8_t {
  kJson,           // a JSON object
  kXmlParameters,  // parameter_begin KEY key_end VALUE parameter_end, for each argument
  kKeyValueTags,   // the same, with value_begin between key_end and VALUE
  kPythonic,       // KEY=LITERAL, ...
  kGemma,          // {KEY:VALUE,...} with string_mark around strings
};

struct CallSyntax {
  ArgumentStyle style = ArgumentStyle::kJson;
  std::string_view trigger = "";  // a call or section begins where this text occurs; a prefix of what is written first
  std::string_view section_begin = "", section_end = "";
  std::string_view begin = "", end = "";
  std::string_view name_prefix = "", name_suffix = "";
  std::string_view arguments_begin = "", arguments_end = "";
  std::string_view separator = "";
  // kXmlParameters and kKeyValueTags. Strings are written raw, other values as JSON. In a key_end, "%TYPE%" stands for
  // "true" if the value is a raw string, else "false".
  std::string_view parameter_begin = "", key_end = "", value_begin = "", parameter_end = "";
  std::string_view string_mark = "";  // kGemma
};

struct ToolCallFormat {
  // Which reader parses the calls.
  enum class Reader : uint8_t { kJsonCalls, kNamedJson, kTagged, kPythonic, kGemma, kHarmony };
  enum class CallIds : uint8_t {
    kHex,             // "call_" and 24 hexadecimal digits
    kNineCharacters,  // 9 letters and digits
    kKimi,            // "functions.NAME:INDEX"
  };

  std::string_view name = "";     // vLLM's name of its parser, where it has one
  std::string_view aliases = "";  // more names, separated by spaces
  Reader reader = Reader::kJsonCalls;
  CallSyntax syntax = {};
  // Other texts that begin and end calls, which the parser accepts too, separated by line breaks.
  std::string_view more_triggers = "";
  std::string_view more_ends = "";
  // Chosen without being named if the chat template contains one of these texts, which line breaks separate...
  std::string_view template_texts = "";
  // ...or, if no format's text is in the template, if this text is one token of the vocabulary.
  std::string_view vocabulary_text = "";
  CallIds call_ids = CallIds::kHex;
  // Only the name of a tool tells a call from other text, so only calls of known tools are recognized.
  bool is_bare = false;
};

// Returns true if thoughts and texts are messages with headers that the parser reads. `format` may be null.
inline bool IsHarmony(const ToolCallFormat* format) {
  return format != nullptr && format->reader == ToolCallFormat::Reader::kHarmony;
}

// Returns the texts of a list in which line breaks separate them.
std::vector<std::string_view> ListedTexts(std::string_view list);

std::span<const ToolCallFormat> ToolCallFormats();
// Returns the format with this name or alias, or null.
const ToolCallFormat* FindToolCallFormat(std::string_view name);

// Returns true if the text is one token of the vocabulary.
using IsTokenFunction = std::function<bool(std::string_view)>;

// Returns the format that the chat template or the vocabulary suggests, or null if there is none. `is_token` may be
// null.
const ToolCallFormat* DetectToolCallFormat(std::string_view chat_template, const IsTokenFunction& is_token);
// Like FindToolCallFormat, but chooses between the variants of a name by template and vocabulary: "mistral" may
// become mistral_v11. "auto" detects the format.
const ToolCallFormat* ChooseToolCallFormat(std::string_view name, std::string_view chat_template,
                                           const IsTokenFunction& is_token);

}  // namespace vllm
