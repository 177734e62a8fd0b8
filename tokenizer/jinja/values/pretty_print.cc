#include "tokenizer/jinja/values/pretty_print.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/text.h"

namespace vllm::tokenizer::jinja {
namespace {

constexpr int64_t kWidth = 80;

using Items = std::vector<std::pair<Value, Value>>;

int64_t Width(std::string_view text) { return static_cast<int64_t>(NumCodePoints(text)); }

// Keys that cannot be compared are sorted by the names of their types.
Items SortedItems(Budget& budget, const DictObject& dict) {
  Items items = dict.items;
  const auto less = [&](const auto& a, const auto& b) {
    try {
      return Less(budget, a.first, b.first);
    } catch (const EvalError&) {
      return std::string_view(TypeName(a.first.kind())) < TypeName(b.first.kind());
    }
  };
  std::stable_sort(items.begin(), items.end(), less);
  return items;
}

// Returns false for groupby's named tuples, because pprint writes instances of a tuple subclass on one line.
bool IsPlainSequence(const Value& value) { return value.is_sequence() && value.as<SequenceObject>().label[0] == '\0'; }

// Splits a line into words, each with the whitespace after it, like re.findall(r"\S+\s*|\s+", line).
std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  size_t start = 0;
  bool in_space = false;
  for (size_t i = 0; i < line.size();) {
    const size_t position = i;
    const bool is_space = IsSpace(NextCodePoint(line, i));
    if (in_space && !is_space) {
      words.push_back(line.substr(start, position - start));
      start = position;
    }
    in_space = is_space;
  }
  if (start < line.size()) words.push_back(line.substr(start));
  return words;
}

// Follows pprint.PrettyPrinter method by method. The recursion is bounded by the depth of the value.
class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  void Format(const Value& value, int64_t indent, int64_t allowance, int level) {
    const std::string repr = Sorted(value);
    if (Width(repr) > kWidth - indent - allowance) {
      if (value.is(Kind::kDict)) return FormatDict(value, indent, allowance, level + 1);
      if (IsPlainSequence(value)) return FormatItems(value, indent, allowance, level + 1);
      if (value.is_string() && !value.is_markup()) return FormatText(value.text(), indent, allowance, level + 1);
      if (value.is(Kind::kBytes)) return FormatBytes(value.text(), indent, allowance, level + 1);
    }
    Write(repr);
  }

  std::string Take() { return std::move(out_); }

 private:
  void Write(std::string_view text) {
    budget_.SpendBytes(text.size());
    Budget::CheckText(out_.size() + text.size());
    out_ += text;
  }
  void NewLine(int64_t indent) {
    Write("\n");
    Write(std::string(static_cast<size_t>(indent), ' '));
  }

  // Returns the repr() of a value with the keys of its dicts sorted, except inside views, named tuples and namespaces.
  std::string Sorted(const Value& value) {
    std::string out;
    AppendSorted(value, out);
    return out;
  }

  void AppendSorted(const Value& value, std::string& out) {
    budget_.Spend(1);
    Budget::CheckText(out.size());
    if (value.is(Kind::kDict)) {
      out += '{';
      const char* separator = "";
      for (const auto& [key, item] : SortedItems(budget_, value.dict())) {
        out += std::exchange(separator, ", ");
        AppendSorted(key, out);
        out += ": ";
        AppendSorted(item, out);
      }
      out += '}';
    } else if (IsPlainSequence(value)) {
      const bool is_list = value.is(Kind::kList);
      out += is_list ? '[' : '(';
      const char* separator = "";
      for (const Value& item : value.items()) {
        out += std::exchange(separator, ", ");
        AppendSorted(item, out);
      }
      out += is_list ? "]" : value.items().size() == 1 ? ",)" : ")";
    } else {
      out += Repr(budget_, value);
    }
  }

  void FormatDict(const Value& value, int64_t indent, int64_t allowance, int level) {
    const Items items = SortedItems(budget_, value.dict());
    ++indent;
    Write("{");
    for (size_t i = 0; i < items.size(); ++i) {
      const bool is_last = i + 1 == items.size();
      const std::string key = Sorted(items[i].first);
      Write(key);
      Write(": ");
      Format(items[i].second, indent + Width(key) + 2, is_last ? allowance + 1 : 1, level);
      if (is_last) break;
      Write(",");
      NewLine(indent);
    }
    Write("}");
  }

  void FormatItems(const Value& value, int64_t indent, int64_t allowance, int level) {
    const bool is_list = value.is(Kind::kList);
    const std::string_view end = is_list ? "]" : value.items().size() == 1 ? ",)" : ")";
    ++indent;
    Write(is_list ? "[" : "(");
    for (size_t i = 0; i < value.items().size(); ++i) {
      const bool is_last = i + 1 == value.items().size();
      Format(value.items()[i], indent, is_last ? allowance + static_cast<int64_t>(end.size()) : 1, level);
      if (is_last) break;
      Write(",");
      NewLine(indent);
    }
    Write(end);
  }

  void WriteChunks(const std::vector<std::string>& chunks, int64_t indent) {
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) NewLine(indent);
      Write(chunks[i]);
    }
  }

  std::string ReprText(std::string_view text) { return Repr(budget_, MakeString(nullptr, std::string(text))); }

  void FormatText(std::string_view text, int64_t indent, int64_t allowance, int level) {
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    const int64_t width = kWidth - indent;
    std::vector<std::string> chunks;
    const std::vector<std::string_view> lines = SplitLines(text, true);
    for (const std::string_view& line : lines) {
      const bool is_last_line = &line == &lines.back();
      std::string repr = ReprText(line);
      if (Width(repr) <= (is_last_line ? width - allowance : width)) {
        chunks.push_back(std::move(repr));
        continue;
      }
      const std::vector<std::string_view> words = Words(line);
      std::string current;
      for (const std::string_view& word : words) {
        const bool is_last = is_last_line && &word == &words.back();
        const std::string candidate = current + std::string(word);
        if (Width(ReprText(candidate)) <= (is_last ? width - allowance : width)) {
          current = candidate;
          continue;
        }
        if (!current.empty()) chunks.push_back(ReprText(current));
        current = word;
      }
      if (!current.empty()) chunks.push_back(ReprText(current));
    }
    if (level == 1 && chunks.size() > 1) Write("(");
    WriteChunks(chunks, indent);
    if (level == 1 && chunks.size() > 1) Write(")");
  }

  void FormatBytes(const std::string& bytes, int64_t indent, int64_t allowance, int level) {
    constexpr size_t kStep = 4;
    const auto repr = [&](const std::string& part) { return Repr(budget_, MakeBytes(nullptr, part)); };
    if (bytes.size() <= kStep) return Write(repr(bytes));
    const bool in_parentheses = level == 1;
    if (in_parentheses) {
      ++indent;
      ++allowance;
      Write("(");
    }
    int64_t width = kWidth - indent;
    std::vector<std::string> chunks;
    std::string current;
    for (size_t i = 0; i < bytes.size(); i += kStep) {
      const std::string part = bytes.substr(i, kStep);
      // As in Python, the allowance is reserved only if the last part has fewer than four bytes.
      if (i == bytes.size() / kStep * kStep) width -= allowance;
      if (Width(repr(current + part)) <= width) {
        current += part;
        continue;
      }
      if (!current.empty()) chunks.push_back(repr(current));
      current = part;
    }
    if (!current.empty()) chunks.push_back(repr(current));
    WriteChunks(chunks, indent);
    if (in_parentheses) Write(")");
  }

  Budget& budget_;
  std::string out_;
};

}  // namespace

std::string PrettyPrint(Budget& budget, const Value& value) {
  Printer printer(budget);
  printer.Format(value, 0, 0, 0);
  return printer.Take();
}

}  // namespace vllm::tokenizer::jinja
