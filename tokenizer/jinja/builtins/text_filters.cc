#include <algorithm>
#include <deque>
#include <optional>

#include "tokenizer/jinja/builtins/filters.h"
#include "tokenizer/jinja/values/format.h"
#include "tokenizer/jinja/values/json_text.h"
#include "tokenizer/jinja/values/letter_case.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/pretty_print.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/string_operations.h"
#include "tokenizer/jinja/values/text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

// markupsafe.soft_str: converts values to strings and returns strings unchanged, so that Markup stays Markup.
Value SoftText(Runtime& runtime, const Value& input) {
  return input.is_string() ? input : MakeString(&runtime.budget, Str(runtime.budget, input));
}

template <std::string (*Convert)(std::string_view)>
Value Converted(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("text filter", args, {});
  const Value text = SoftText(runtime, input);
  runtime.budget.SpendBytes(text.text().size() * 32);
  return MakeString(&runtime.budget, Convert(text.text()), text.is_markup());
}

// The filter title. Unlike in str.title, only whitespace, hyphens and opening brackets separate words.
std::string TitleWords(std::string_view text) {
  std::string result;
  bool separator = true;
  size_t word = 0;
  const auto flush = [&](size_t end) {
    const std::string_view item = text.substr(word, end - word);
    if (item.empty()) return;
    size_t first = 0;
    NextCodePoint(item, first);
    result += ToUpper(item.substr(0, first)) + ToLower(item.substr(first));
  };
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = NextCodePoint(text, i);
    const bool is_separator = IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (is_separator != separator || start == 0) {
      flush(start);
      word = start;
      separator = is_separator;
    }
  }
  flush(text.size());
  return result;
}

Value Trim(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("trim", args, {"chars"});
  const Value text = SoftText(runtime, input);
  std::string_view view = text.text();
  if (bound.NotNone(0) == nullptr) {
    view = StripLeft(StripRight(view));
    runtime.budget.SpendBytes((text.text().size() - view.size()) * 16);
  } else {
    const std::string& chars = bound.Text(0);
    runtime.budget.SpendBytes(view.size() * (8 + chars.size() / 8));
    view = StripLeft(StripRight(view, chars), chars);
  }
  return MakeString(&runtime.budget, std::string(view), text.is_markup());
}

Value Replace(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("replace", args, {"old", "new", "count"}, 2);
  const std::string from = Str(runtime.budget, *bound[0]);
  const std::string to = Str(runtime.budget, *bound[1]);
  const int64_t count = bound.NotNone(2) == nullptr ? -1 : bound.Int(2, -1);
  return MakeString(&runtime.budget, ReplaceText(runtime.budget, Str(runtime.budget, input), from, to, count));
}

Value String(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("string", args, {});
  return SoftText(runtime, input);
}

Value Safe(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("safe", args, {});
  return MakeString(&runtime.budget, Str(runtime.budget, input), true);
}

Value Escape(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("escape", args, {});
  if (input.is_markup()) return input;
  const std::string text = Str(runtime.budget, input);
  Budget::CheckText(text.size() * 2);
  return MakeString(&runtime.budget, EscapeHtml(text), true);
}

Value ForceEscape(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("forceescape", args, {});
  const std::string text = Str(runtime.budget, input);
  Budget::CheckText(text.size() * 2);
  return MakeString(&runtime.budget, EscapeHtml(text), true);
}

Value Center(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("center", args, {"width"});
  return MakeString(&runtime.budget, PadText(Str(runtime.budget, input), bound.Int(0, 80), " ", 0));
}

Value Indent(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("indent", args, {"width", "first", "blank"});
  if (!input.is_string()) {
    throw EvalError(input.is_undefined() ? input.UndefinedMessage()
                                         : std::string("indent needs a string, not ") + TypeName(input.kind()));
  }
  std::string indentation;
  if (bound[0] != nullptr && bound[0]->is_string()) {
    indentation = bound[0]->text();
  } else {
    indentation = PadText("", bound.Int(0, 4), " ", -1);
  }
  const bool first = bound.Bool(1, false);
  const bool blank = bound.Bool(2, false);
  std::string text = input.text();
  text += '\n';
  runtime.budget.SpendBytes(text.size() * 16);
  std::string result = first ? indentation : "";
  bool is_first = true;
  for (const std::string_view line : SplitLines(text)) {
    Budget::CheckText(result.size() + line.size() + indentation.size() + 1);
    if (!is_first) result += "\n";
    if (!is_first && (blank || !line.empty())) result += indentation;
    is_first = false;
    result += line;
  }
  return MakeString(&runtime.budget, std::move(result), input.is_markup());
}

Value Truncate(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("truncate", args, {"length", "killwords", "end", "leeway"});
  if (!Length(input)) throw EvalError(std::string("truncate needs a string, not ") + TypeName(input.kind()));
  const std::string end = bound[2] == nullptr ? "..." : bound.Text(2);
  const auto end_length = static_cast<int64_t>(NumCodePoints(end));
  const int64_t length = bound.Int(0, 255);
  const int64_t leeway = bound.NotNone(3) == nullptr ? 5 : bound.Int(3, 5);
  if (length < end_length || leeway < 0)
    throw EvalError("truncate: length is less than the length of end, or leeway is negative");
  if (*Length(input) <= length || *Length(input) - length <= leeway) return input;
  if (!input.is_string()) throw EvalError(std::string("truncate needs a string, not ") + TypeName(input.kind()));
  runtime.budget.SpendBytes(input.text().size() * 16);
  const size_t keep = CodePointOffset(input.text(), static_cast<size_t>(length - end_length));
  std::string result = input.text().substr(0, keep);
  if (!bound.Bool(1, false)) result.resize(std::min(result.rfind(' '), result.size()));
  return MakeString(&runtime.budget, result + end, input.is_markup());
}

Value WordCount(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("wordcount", args, {});
  const std::string text = Str(runtime.budget, input);
  runtime.budget.SpendBytes(text.size() * 8);
  int64_t count = 0;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    const bool is_word = c == '_' || IsAlpha(c) || IsDigit(c);
    count += is_word && !in_word ? 1 : 0;
    in_word = is_word;
  }
  return Value::Int(count);
}

Value Format(Runtime& runtime, const Value& input, const Args& args) {
  if (!args.positional.empty() && !args.keywords.empty()) {
    throw EvalError("format cannot take positional and keyword arguments at the same time");
  }
  Value values;
  if (args.keywords.empty()) {
    values = MakeSequence(&runtime.budget, Kind::kTuple, args.positional);
  } else {
    auto dict = std::make_shared<DictObject>();
    for (const auto& [name, value] : args.keywords) dict->Set(MakeString(&runtime.budget, name), value);
    values = MakeDict(&runtime.budget, std::move(dict));
  }
  const Value text = SoftText(runtime, input);
  return MakeString(&runtime.budget, PercentFormat(runtime.budget, text.text(), values), text.is_markup());
}

Value PPrint(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("pprint", args, {});
  return MakeString(&runtime.budget, PrettyPrint(runtime.budget, input));
}

// The options of textwrap.wrap that templates can set with the filter wordwrap. Tabs are not expanded, and no
// whitespace is replaced by spaces. Whitespace is dropped at line breaks and at the end of the paragraph.
struct WrapStyle {
  int64_t width = 79;  // in code points
  bool break_long_words = true;
  bool break_on_hyphens = true;
};

using Text = std::u32string_view;

bool IsBlank(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsLetter(char32_t c) { return c == '_' || IsAlpha(c); }
bool IsWord(char32_t c) { return IsLetter(c) || IsDigit(c); }
bool IsWordOrMark(char32_t c) { return IsWord(c) || (c < 0x80 && Text(U"!\"'&.,?").find(c) != Text::npos); }

// If two or more hyphens start at `begin` and a word character follows, returns the end of the hyphens. If not, returns
// `begin`.
size_t DashEnd(Text text, size_t begin) {
  const size_t end = std::min(text.find_first_not_of(U'-', begin), text.size());
  return end - begin >= 2 && end < text.size() && IsWord(text[end]) ? end : begin;
}

// Returns true if a hyphenated word may be broken at `i`. REQUIRES: text[i - 1] is a hyphen.
bool CanCutAfterHyphen(Text text, size_t i) {
  const auto letter = [&](size_t k) { return k < text.size() && IsLetter(text[k]); };
  const bool after_word = i >= 3 && letter(i - 2) && letter(i - 3);
  const bool after_initial = i >= 4 && letter(i - 2) && text[i - 3] == '-' && letter(i - 4);
  if (!after_word && !after_initial) return false;
  return letter(i) && (letter(i + 1) || (i + 1 < text.size() && text[i + 1] == '-' && letter(i + 2)));
}

// Returns the end of the word that starts at `begin`: before whitespace or a dash between words, or after a hyphen.
size_t WordEnd(Text text, size_t begin) {
  for (size_t end = begin + 1; end < text.size(); ++end) {
    if (IsBlank(text[end])) return end;
    if (end - begin > 1 && text[end - 1] == '-' && CanCutAfterHyphen(text, end)) return end;
    if (IsWordOrMark(text[end - 1]) && DashEnd(text, end) > end) return end;
  }
  return text.size();
}

// Splits the text into the pieces that lines consist of, like TextWrapper.wordsep_re or wordsep_simple_re.
std::deque<Text> Pieces(Text text, bool break_on_hyphens) {
  std::deque<Text> pieces;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = begin;
    if (IsBlank(text[begin])) {
      while (end < text.size() && IsBlank(text[end])) ++end;
    } else if (!break_on_hyphens) {
      while (end < text.size() && !IsBlank(text[end])) ++end;
    } else {
      end = begin > 0 && IsWordOrMark(text[begin - 1]) ? DashEnd(text, begin) : begin;
      if (end == begin) end = WordEnd(text, begin);
    }
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

bool IsAllSpace(Text text) { return std::all_of(text.begin(), text.end(), IsSpace); }

// Handles a first piece that is longer than a line. If long words may be broken, removes and returns as much of the
// piece as fits into the `remaining` code points of the line, possibly nothing. With break_on_hyphens, this part ends
// after a hyphen if possible. If long words may not be broken, removes and returns the whole piece if the line is
// empty, and returns nullopt otherwise.
std::optional<Text> TakeFromLongWord(std::deque<Text>& pieces, size_t remaining, bool line_is_empty,
                                     const WrapStyle& style) {
  const Text word = pieces.front();
  if (!style.break_long_words) {
    if (!line_is_empty) return std::nullopt;
    pieces.pop_front();
    return word;
  }
  size_t end = remaining;
  if (style.break_on_hyphens && word.size() > remaining) {
    const size_t hyphen = word.substr(0, remaining).rfind('-');
    // Break after the last hyphen that fits, unless only hyphens precede it.
    if (hyphen != Text::npos && hyphen > 0 && word.find_first_not_of(U'-') < hyphen) end = hyphen + 1;
  }
  pieces.front() = word.substr(end);
  return word.substr(0, end);
}

// textwrap.wrap: returns the lines of one paragraph. Throws EvalError, also if the width is not positive.
std::vector<std::string> WrapText(Budget& budget, std::string_view paragraph, const WrapStyle& style) {
  if (style.width <= 0) throw EvalError("wordwrap: invalid width " + std::to_string(style.width) + " (must be > 0)");
  const auto width = static_cast<size_t>(style.width);
  budget.SpendBytes(paragraph.size() * 32);
  budget.CheckMemory(paragraph.size() * (sizeof(char32_t) + sizeof(Text)));
  std::u32string text;
  for (size_t i = 0; i < paragraph.size();) text += NextCodePoint(paragraph, i);
  std::deque<Text> pieces = Pieces(text, style.break_on_hyphens);
  std::vector<std::string> lines;
  while (!pieces.empty()) {
    std::vector<Text> line;
    size_t length = 0;
    if (!lines.empty() && IsAllSpace(pieces.front())) pieces.pop_front();
    while (!pieces.empty() && length + pieces.front().size() <= width) {
      length += pieces.front().size();
      line.push_back(pieces.front());
      pieces.pop_front();
    }
    if (!pieces.empty() && pieces.front().size() > width) {
      if (const auto part = TakeFromLongWord(pieces, width - length, line.empty(), style)) line.push_back(*part);
    }
    if (!line.empty() && IsAllSpace(line.back())) line.pop_back();
    if (line.empty()) continue;
    budget.Spend(1 + line.size());
    std::string& out = lines.emplace_back();
    for (const Text piece : line) {
      for (const char32_t c : piece) AppendCodePoint(c, out);
    }
  }
  return lines;
}

Value WordWrap(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("wordwrap", args, {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  if (!input.is_string()) {
    throw EvalError(input.is_undefined() ? input.UndefinedMessage()
                                         : std::string("wordwrap needs a string, not ") + TypeName(input.kind()));
  }
  WrapStyle style;
  style.width = bound.Int(0, style.width);
  style.break_long_words = bound.Bool(1, true);
  style.break_on_hyphens = bound.Bool(3, true);
  const std::string newline = bound.NotNone(2) == nullptr ? "\n" : bound.Text(2);
  std::string result;
  bool is_first_paragraph = true;
  for (const std::string_view paragraph : SplitLines(input.text())) {
    if (!is_first_paragraph) result += newline;
    is_first_paragraph = false;
    bool is_first_line = true;
    for (const std::string& line : WrapText(runtime.budget, paragraph, style)) {
      if (!is_first_line) result += newline;
      is_first_line = false;
      result += line;
      Budget::CheckText(result.size());
    }
  }
  return MakeString(&runtime.budget, std::move(result));
}

Value ToJsonFilter(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.Bool(0, false);
  style.sort_keys = bound.Bool(3, false);
  if (const Value* indent = bound.NotNone(1)) {
    style.multiline = true;
    style.item_separator = std::string(1, ',');
    style.indent = indent->is_string() ? indent->text() : PadText("", bound.Int(1, 0), " ", -1);
  }
  if (const Value* separators = bound.NotNone(2)) {
    if (!separators->is_sequence() || separators->items().size() != 2 || !separators->items()[0].is_string() ||
        !separators->items()[1].is_string()) {
      throw EvalError("tojson needs two strings as separators");
    }
    style.item_separator = separators->items()[0].text();
    style.key_separator = separators->items()[1].text();
  }
  return MakeString(&runtime.budget, ToJson(runtime.budget, input, style));
}

constexpr NamedFilter kFilters[] = {
    {"trim", Trim},
    {"tojson", ToJsonFilter},
    {"string", String},
    {"upper", Converted<ToUpper>},
    {"lower", Converted<ToLower>},
    {"capitalize", Converted<Capitalize>},
    {"title", Converted<TitleWords>},
    {"replace", Replace},
    {"safe", Safe},
    {"e", Escape},
    {"escape", Escape},
    {"forceescape", ForceEscape},
    {"center", Center},
    {"indent", Indent},
    {"truncate", Truncate},
    {"wordcount", WordCount},
    {"format", Format},
    {"pprint", PPrint},
    {"wordwrap", WordWrap},
};

}  // namespace

Filter FindTextFilter(std::string_view name) {
  for (const NamedFilter& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace vllm::tokenizer::jinja
