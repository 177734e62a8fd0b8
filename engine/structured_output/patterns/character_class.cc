#include "engine/structured_output/patterns/character_class.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <utf8proc.h>

namespace vllm {
namespace {

constexpr std::pair<std::string_view, std::string_view> kCategoryNames[] = {
    {"L", "Letter"},
    {"Lu", "Uppercase_Letter"},
    {"Ll", "Lowercase_Letter"},
    {"Lt", "Titlecase_Letter"},
    {"Lm", "Modifier_Letter"},
    {"Lo", "Other_Letter"},
    {"M", "Mark"},
    {"Mn", "Nonspacing_Mark"},
    {"Mc", "Spacing_Mark"},
    {"Me", "Enclosing_Mark"},
    {"N", "Number"},
    {"Nd", "Decimal_Number"},
    {"Nl", "Letter_Number"},
    {"No", "Other_Number"},
    {"P", "Punctuation"},
    {"Pc", "Connector_Punctuation"},
    {"Pd", "Dash_Punctuation"},
    {"Ps", "Open_Punctuation"},
    {"Pe", "Close_Punctuation"},
    {"Pi", "Initial_Punctuation"},
    {"Pf", "Final_Punctuation"},
    {"Po", "Other_Punctuation"},
    {"S", "Symbol"},
    {"Sm", "Math_Symbol"},
    {"Sc", "Currency_Symbol"},
    {"Sk", "Modifier_Symbol"},
    {"So", "Other_Symbol"},
    {"Z", "Separator"},
    {"Zs", "Space_Separator"},
    {"Zl", "Line_Separator"},
    {"Zp", "Paragraph_Separator"},
    {"C", "Other"},
    {"Cc", "Control"},
    {"Cf", "Format"},
    {"Co", "Private_Use"},
    {"Cn", "Unassigned"},
};

// The code points of each general category. Made once, because the tables are slow to scan.
const std::map<std::string_view, CodePointSet>& Categories() {
  static const std::map<std::string_view, CodePointSet> categories = [] {
    std::map<std::string_view, std::vector<CodePointRange>> ranges;
    for (char32_t c = 0; c <= CodePointSet::kMax; ++c) {
      std::vector<CodePointRange>& list = ranges[utf8proc_category_string(static_cast<utf8proc_int32_t>(c))];
      if (!list.empty() && list.back().last + 1 == c) {
        list.back().last = c;
      } else {
        list.push_back({c, c});
      }
    }
    std::map<std::string_view, CodePointSet> sets;
    for (auto& [name, list] : ranges) sets.emplace(name, CodePointSet(std::move(list)));
    return sets;
  }();
  return categories;
}

char32_t Lower(char32_t c) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }
char32_t Upper(char32_t c) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))); }

struct CaseTable {
  struct Member {
    char32_t code_point = 0;
    size_t group = 0;
  };
  std::vector<std::vector<char32_t>> groups;  // letters that differ only in their case, two or more in each
  std::vector<Member> members;                // in ascending order
};

const CaseTable& Cases() {
  static const CaseTable cases = [] {
    std::map<char32_t, std::vector<char32_t>> by_lower;
    for (char32_t c = 0; c <= CodePointSet::kMax; ++c) {
      const char32_t lower = Lower(Upper(Lower(c)));
      if (lower != c) by_lower[lower].push_back(c);
    }
    CaseTable table;
    for (auto& [lower, others] : by_lower) {
      others.push_back(lower);
      for (const char32_t c : others) table.members.push_back({c, table.groups.size()});
      table.groups.push_back(std::move(others));
    }
    std::ranges::sort(table.members, {}, &CaseTable::Member::code_point);
    return table;
  }();
  return cases;
}

// Unicode Technical Standard #18, annex C.
CodePointSet RustClass(char letter) {
  const auto& categories = Categories();
  if (letter == 'd') return categories.at("Nd");
  if (letter == 's') {
    return {{'\t', '\r'},     {' ', ' '},       {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
            {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
  }
  // Join_Control, and the symbols that are alphabetic.
  CodePointSet set = {{0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  for (const char* name : {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"}) {
    set = set.Union(categories.at(name));
  }
  return set;
}

}  // namespace

CodePointSet EscapeClass(char letter, PatternSyntax syntax) {
  if (syntax == PatternSyntax::kRust) return RustClass(letter);
  if (letter == 'd') return {{'0', '9'}};
  if (letter == 'w') return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  if (syntax == PatternSyntax::kRe2) return {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
  // ECMA-262: WhiteSpace and LineTerminator.
  return {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

std::optional<CodePointSet> PosixClass(std::string_view name) {
  if (name == "alnum") return CodePointSet{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
  if (name == "alpha") return CodePointSet{{'A', 'Z'}, {'a', 'z'}};
  if (name == "ascii") return CodePointSet{{0, 0x7F}};
  if (name == "blank") return CodePointSet{{'\t', '\t'}, {' ', ' '}};
  if (name == "cntrl") return CodePointSet{{0, 0x1F}, {0x7F, 0x7F}};
  if (name == "digit") return CodePointSet{{'0', '9'}};
  if (name == "graph") return CodePointSet{{'!', '~'}};
  if (name == "lower") return CodePointSet{{'a', 'z'}};
  if (name == "print") return CodePointSet{{' ', '~'}};
  if (name == "punct") return CodePointSet{{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}};
  if (name == "space") return CodePointSet{{'\t', '\r'}, {' ', ' '}};
  if (name == "upper") return CodePointSet{{'A', 'Z'}};
  if (name == "word") return EscapeClass('w', PatternSyntax::kRe2);
  if (name == "xdigit") return CodePointSet{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  return std::nullopt;
}

std::optional<CodePointSet> UnicodeClass(std::string_view name) {
  for (const std::string_view prefix : {"General_Category=", "gc="}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  if (name == "Any") return CodePointSet::All();
  if (name == "ASCII") return CodePointSet{{0, 0x7F}};
  // The unions take time, and a pattern may have many.
  static const std::map<std::string_view, CodePointSet> classes = [] {
    std::map<std::string_view, CodePointSet> by_name;
    for (const auto& [abbreviation, long_name] : kCategoryNames) {
      CodePointSet set;
      for (const auto& [category, code_points] : Categories()) {
        if (category.substr(0, abbreviation.size()) == abbreviation) set = set.Union(code_points);
      }
      by_name[abbreviation] = set;
      by_name[long_name] = std::move(set);
    }
    return by_name;
  }();
  const auto it = classes.find(name);
  return it == classes.end() ? std::nullopt : std::optional(it->second);
}

CodePointSet FoldCase(const CodePointSet& set) {
  const CaseTable& table = Cases();
  std::vector<CodePointRange> ranges(set.ranges().begin(), set.ranges().end());
  for (const CodePointRange range : set.ranges()) {
    auto it = std::ranges::lower_bound(table.members, range.first, {}, &CaseTable::Member::code_point);
    for (; it != table.members.end() && it->code_point <= range.last; ++it) {
      for (const char32_t c : table.groups[it->group]) ranges.push_back({c, c});
    }
  }
  return CodePointSet(std::move(ranges));
}

}  // namespace vllm
