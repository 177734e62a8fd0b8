#include "engine/structured_output/json_schema/schema_compiler.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/structured_output/json_schema/argument_notation.h"
#include "engine/structured_output/json_schema/array_rule.h"
#include "engine/structured_output/json_schema/inexact_error.h"
#include "engine/structured_output/json_schema/json_text.h"
#include "engine/structured_output/json_schema/number_text.h"
#include "engine/structured_output/json_schema/object_rule.h"
#include "engine/structured_output/json_schema/schema_algebra.h"
#include "engine/structured_output/json_schema/unescaped_strings.h"
#include "engine/structured_output/regex/code_point_set.h"

namespace vllm {
namespace {

constexpr uint32_t kMaxIndent = 64;
// The most different elements of an array with uniqueItems.
constexpr size_t kMaxUniqueValues = 64;
constexpr size_t kMaxUniqueBytes = 4096;
constexpr size_t kMaxKeyGroups = 256;

// Returns the texts of an expression if there are at most `limit`, which are not long.
std::optional<std::vector<std::string>> TextsOf(RegexStore& store, RegexId id, size_t limit) {
  std::vector<std::string> texts;
  std::vector<std::pair<RegexId, std::string>> pending = {{id, ""}};
  while (!pending.empty()) {
    auto [regex, text] = std::move(pending.back());
    pending.pop_back();
    if (store.IsNothing(regex)) continue;
    if (store.MatchesEmpty(regex)) texts.push_back(text);
    if (texts.size() + pending.size() > limit || text.size() > kMaxUniqueBytes) return std::nullopt;
    for (int byte = 255; byte >= 0; --byte) {
      const RegexId rest = store.Derivative(regex, static_cast<uint8_t>(byte));
      if (rest != RegexStore::kNothing && !store.IsNothing(rest))
        pending.push_back({rest, text + static_cast<char>(byte)});
    }
  }
  return texts;
}

class SchemaCompiler {
 public:
  SchemaCompiler(GrammarBuilder& builder, const SchemaDocument& document, const JsonSchemaOptions& options)
      : builder_(builder), store_(builder.regexes()), algebra_(document, builder.regexes()), options_(options) {
    space_ = RegexStore::kEmpty;
    if (options.flexible_whitespace) {
      const RegexId indent = store_.Repeat(store_.Or({store_.Literal(" "), store_.Literal("\t")}), 0, kMaxIndent);
      space_ = store_.Optional(store_.Or({store_.Literal(" "), store_.Concat(store_.Literal("\n"), indent)}));
    }
  }

  // `notation`: of the outermost object, which the value is then; null: JSON.
  SymbolId Compile(ArgumentNotation* notation) {
    if (notation != nullptr) ExcludeText(notation->EndText());
    const ValueSetId root = algebra_.Root();
    const SymbolId symbol = notation == nullptr ? SymbolOf(root) : builder_.AddRule();
    if (algebra_.IsEmpty(root)) FailSchema("", "allows no value");
    if (notation != nullptr) {
      for (const ObjectSet& object : algebra_.SetOf(root).objects) {
        builder_.AddAlternative(symbol, {AddObject(object, notation)});
      }
    }
    while (!pending_.empty()) {
      const auto [id, rule] = pending_.back();
      pending_.pop_back();
      AddValues(id, rule);
    }
    return symbol;
  }

  void AppendWarnings(std::vector<std::string>& warnings) const {
    for (const std::string& format : algebra_.unknown_formats()) {
      warnings.push_back("JSON schema: the format " + format + " is not enforced");
    }
    for (const std::string& why : algebra_.ignored_keywords()) warnings.push_back("JSON schema: " + why);
  }

 private:
  SymbolId SymbolOf(ValueSetId id) {
    const auto [it, inserted] = symbols_.try_emplace(id, 0);
    if (inserted) {
      it->second = builder_.AddRule();
      pending_.emplace_back(id, it->second);
    }
    return it->second;
  }

  RegexId Text(std::string_view text) { return store_.Literal(text); }

  void ExcludeText(std::string_view text) {
    if (text.empty()) return;
    excluded_text_ = text;
    const std::array<RegexId, 3> with = {RegexStore::kEverything, Text(text), RegexStore::kEverything};
    allowed_text_ = store_.Not(store_.Concat(with));
  }
  RegexId WithoutExcludedText(RegexId texts) {
    return allowed_text_ == RegexStore::kEverything ? texts : store_.And({texts, allowed_text_});
  }
  // Spells the excluded text inside a JSON string with an escape. Such a text is a closing tag, which has a slash.
  std::string WithoutExcludedText(std::string quoted) const {
    const size_t slash = excluded_text_.find('/');
    if (slash == std::string::npos) return quoted;
    for (size_t at = quoted.find(excluded_text_); at != std::string::npos; at = quoted.find(excluded_text_, at)) {
      quoted.insert(at + slash, "\\");
    }
    return quoted;
  }

  // As the schema writes them.
  RegexId ListedWithFraction(const ValueSet& set) {
    std::vector<std::string> texts;
    for (const std::string& number : algebra_.listed_with_fraction()) {
      if (store_.Matches(set.numbers, number)) texts.push_back(number + ".0");
    }
    return store_.Literals(std::move(texts));
  }

  // The strings of a list that are in the set, each in one spelling.
  RegexId ListedStrings(const ValueSet& set) {
    std::vector<std::string> texts;
    for (const std::string& string : *set.listed_strings) {
      std::string quoted = QuoteJson(string);
      if (store_.Matches(set.strings, std::string_view(quoted).substr(1, quoted.size() - 2))) {
        texts.push_back(WithoutExcludedText(std::move(quoted)));
      }
    }
    return store_.Literals(std::move(texts));
  }

  RegexId Strings(const ValueSet& set, bool once) {
    if (set.is_list && set.listed_strings != nullptr) return ListedStrings(set);
    const bool is_any = set.strings == AnyText(store_, TextSpelling::kJsonString);
    // Canonical strings have no escape that could hide the excluded text.
    const bool is_canonical = set.is_list && !is_any && (once || excluded_text_.empty());
    const RegexId inside = is_canonical ? store_.And({set.strings, CanonicalStrings(store_)}) : set.strings;
    const std::array<RegexId, 3> parts = {Text("\""), WithoutExcludedText(inside), Text("\"")};
    return store_.Concat(parts);
  }

  // `once`: each value in one spelling only. REQUIRES: then, the set is a list.
  RegexId Scalars(const ValueSet& set, bool once) {
    std::vector<RegexId> texts;
    if (set.has_null) texts.push_back(Text("null"));
    if (set.has_false) texts.push_back(Text("false"));
    if (set.has_true) texts.push_back(Text("true"));
    if (!store_.IsNothing(set.numbers)) {
      texts.push_back(
          set.is_list && set.numbers != AnyNumber(store_)
              ? set.numbers
              : AllSpellings(store_, set.numbers, set.has_integer_type && algebra_.integers_have_no_fraction()));
      if (set.is_list && !once) texts.push_back(ListedWithFraction(set));
    }
    if (!store_.IsNothing(set.strings)) texts.push_back(Strings(set, once));
    return store_.Or(std::move(texts));
  }

  void AddValues(ValueSetId id, SymbolId rule) {
    const ValueSet& set = algebra_.SetOf(id);
    try {
      AddAlternatives(set, rule);
    } catch (const InexactError& error) {
      FailSchema(algebra_.PointerOf(id), std::string("needs what is not supported: ") + error.what());
    }
  }

  void AddAlternatives(const ValueSet& set, SymbolId rule) {
    if (const RegexId scalars = Scalars(set, /*once=*/false); scalars != RegexStore::kNothing) {
      builder_.AddAlternative(rule, {builder_.AddTerminal(scalars)});
    }
    for (const ObjectSet& object : set.objects) builder_.AddAlternative(rule, {AddObject(object)});
    for (const ArraySet& array : set.arrays) builder_.AddAlternative(rule, {AddArray(array)});
  }

  SymbolId Terminal(std::initializer_list<RegexId> parts) {
    return builder_.AddTerminal(store_.Concat(std::vector<RegexId>(parts)));
  }

  ObjectRule::Member MemberOf(RegexId key, ValueSetId value, bool is_required, uint64_t needs) {
    const std::array<RegexId, 5> parts = {Text("\""), key, Text("\""), Text(":"), space_};
    const RegexId text = store_.Concat(parts);
    return {Terminal({Text("{"), space_, text}), Terminal({Text(","), space_, text}), SymbolOf(value), is_required,
            needs};
  }

  ObjectRule::Member ArgumentOf(const std::string& name, RegexId key, ValueSetId value, bool is_required,
                                uint64_t needs, ArgumentNotation& notation) {
    const ValueSet& set = algebra_.SetOf(value);
    JsonArgument argument;
    argument.name = name;
    argument.key = key;
    argument.strings = UnescapedStrings(store_, set.strings);
    argument.json_strings = set.strings;
    argument.json = [this, value] { return SymbolOf(value); };
    argument.json_without_strings = [this, &set] {
      ValueSet others = set;
      others.strings = RegexStore::kNothing;
      const SymbolId rule = builder_.AddRule();
      AddAlternatives(others, rule);
      return rule;
    };
    argument.has_true = set.has_true;
    argument.has_false = set.has_false;
    argument.any_null = set.has_null;
    argument.any_boolean = set.has_true && set.has_false;
    argument.any_number = set.numbers == AnyNumber(store_);
    argument.any_integer = argument.any_number || set.numbers == AnyInteger(store_);
    argument.any_string = set.strings == AnyText(store_, TextSpelling::kJsonString);
    constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
    argument.any_array = std::ranges::any_of(set.arrays, [&](const ArraySet& array) {
      return array.prefix.empty() && array.items == SchemaAlgebra::kAny && array.min_items == 0 &&
             array.max_items == kNoLimit && !array.contains && !array.has_unique_items;
    });
    argument.any_object = std::ranges::any_of(set.objects, [&](const ObjectSet& object) {
      return object.properties.empty() && object.others.size() == 1 && object.others[0].value == SchemaAlgebra::kAny &&
             object.others[0].keys == AnyText(store_, TextSpelling::kJsonString) && object.needed_keys.empty() &&
             object.min_properties == 0 && object.max_properties == kNoLimit;
    });
    const ArgumentNotation::Member member = notation.Write(argument);
    return {member.first_key, member.next_key, member.value, is_required, needs};
  }

  // Splits a set of keys by which of the needed sets they are in.
  std::vector<std::pair<RegexId, uint64_t>> SplitByNeeds(RegexId keys, const std::vector<RegexId>& needed_keys) {
    std::vector<std::pair<RegexId, uint64_t>> groups = {{keys, 0}};
    for (size_t i = 0; i < needed_keys.size(); ++i) {
      std::vector<std::pair<RegexId, uint64_t>> split;
      for (const auto& [group, needs] : groups) {
        const RegexId inside = store_.And({group, needed_keys[i]});
        const RegexId outside = store_.And({group, store_.Not(needed_keys[i])});
        if (!store_.IsNothing(inside)) split.emplace_back(inside, needs | uint64_t{1} << i);
        if (!store_.IsNothing(outside)) split.emplace_back(outside, needs);
      }
      groups = std::move(split);
      if (groups.size() > kMaxKeyGroups) throw InexactError("too many conditions that need one of several keys");
    }
    return groups;
  }

  // `notation`: of the members; null: JSON.
  SymbolId AddObject(const ObjectSet& object, ArgumentNotation* notation = nullptr) {
    ObjectRule::Parts parts;
    parts.empty = notation != nullptr ? notation->Empty() : Terminal({Text("{"), space_, Text("}")});
    parts.close = notation != nullptr ? notation->Close() : Terminal({space_, Text("}")});
    if (object.needed_keys.size() > 64 ||
        (object.needed_keys.size() > 1 && object.max_properties < ObjectSet().max_properties)) {
      throw InexactError("too many conditions that need one of several keys");
    }
    uint64_t num_required = 0;
    for (const ObjectSet::Property& property : object.properties) {
      num_required += property.is_required ? 1 : 0;
      if (property.value == SchemaAlgebra::kNone && !property.is_required) continue;
      const std::string quoted = QuoteJson(property.name);
      const std::string_view key = std::string_view(quoted).substr(1, quoted.size() - 2);
      uint64_t needs = 0;
      for (size_t i = 0; i < object.needed_keys.size(); ++i) {
        if (store_.Matches(object.needed_keys[i], key)) needs |= uint64_t{1} << i;
      }
      parts.members.push_back(
          notation == nullptr
              ? MemberOf(Text(WithoutExcludedText(std::string(key))), property.value, property.is_required, needs)
              : ArgumentOf(property.name, Text(property.name), property.value, property.is_required, needs, *notation));
    }
    for (const ObjectSet::OtherKeys& other : object.others) {
      if (other.value == SchemaAlgebra::kNone) continue;
      for (const auto& [keys, needs] : SplitByNeeds(other.keys, object.needed_keys)) {
        parts.others.push_back(
            notation == nullptr ? MemberOf(WithoutExcludedText(keys), other.value, false, needs)
                                : ArgumentOf("", UnescapedStrings(store_, keys), other.value, false, needs, *notation));
      }
    }
    parts.needs = object.needed_keys.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << object.needed_keys.size()) - 1;
    parts.min_properties = object.min_properties;
    parts.max_properties = object.max_properties;
    parts.any_order = options_.any_order;
    if (object.min_properties > std::max<uint64_t>(1, num_required) && !parts.others.empty()) {
      throw InexactError("minProperties above 1 for keys that are not declared, which might be equal");
    }
    const SymbolId rule = builder_.AddRule();
    builder_.SetRule(rule, std::make_unique<ObjectRule>(std::move(parts)));
    return rule;
  }

  SymbolId AddArray(const ArraySet& array) {
    ArrayRule::Parts parts;
    parts.open = Terminal({Text("["), space_});
    parts.close = Terminal({space_, Text("]")});
    parts.comma = Terminal({Text(","), space_});
    parts.empty = Terminal({Text("["), space_, Text("]")});
    parts.min_items = array.min_items;
    parts.max_items = array.max_items;
    const bool counts_outside = array.contains && array.contains->max != ArraySet::Contains().max;
    const auto element = [&](ValueSetId value) {
      ArrayRule::Element symbols;
      symbols.any = SymbolOf(value);
      if (array.contains) symbols.inside = SymbolOf(algebra_.Intersection({value, array.contains->value}));
      if (counts_outside) {
        symbols.outside = SymbolOf(algebra_.Intersection({value, algebra_.Complement(array.contains->value)}));
      }
      return symbols;
    };
    if (array.has_unique_items) {
      AddUniqueValues(array, parts);
    } else {
      for (const ValueSetId value : array.prefix) parts.prefix.push_back(element(value));
      parts.items = element(array.items);
    }
    if (array.contains) {
      parts.has_contains = true;
      parts.min_contains = array.contains->min;
      parts.max_contains = array.contains->max;
    }
    const SymbolId rule = builder_.AddRule();
    builder_.SetRule(rule, std::make_unique<ArrayRule>(std::move(parts)));
    return rule;
  }

  // Returns the texts of a set of a few scalar values.
  std::vector<std::string> FewTexts(ValueSetId id) {
    const ValueSet& set = algebra_.SetOf(id);
    const auto is_empty = [this](const auto& part) { return IsEmptyPart(part); };
    if (!std::ranges::all_of(set.objects, is_empty) || !std::ranges::all_of(set.arrays, is_empty)) {
      throw InexactError("uniqueItems for elements that are not a few scalar values");
    }
    if (set.strings == AnyText(store_, TextSpelling::kJsonString)) {
      throw InexactError("uniqueItems for strings that are not listed");
    }
    ValueSet canonical = set;
    canonical.is_list = true;
    auto texts = TextsOf(store_, Scalars(canonical, /*once=*/true), kMaxUniqueValues);
    if (!texts) throw InexactError("uniqueItems for more than " + std::to_string(kMaxUniqueValues) + " values");
    return *std::move(texts);
  }

  void AddUniqueValues(const ArraySet& array, ArrayRule::Parts& parts) {
    if (array.contains || (!array.prefix.empty() && (array.min_items > 1 || array.items != SchemaAlgebra::kNone))) {
      throw InexactError("uniqueItems for elements that are not a few scalar values");
    }
    std::map<std::string, std::vector<size_t>> indices;  // where a value may be
    if (array.prefix.empty()) {
      for (std::string& text : FewTexts(array.items)) indices[std::move(text)] = {};
    }
    for (size_t i = 0; i < array.prefix.size(); ++i) {
      for (std::string& text : FewTexts(array.prefix[i])) indices[std::move(text)].push_back(i);
    }
    parts.unique_by_index.assign(array.prefix.size(), std::vector<bool>(indices.size()));
    for (const auto& [text, places] : indices) {
      for (const size_t i : places) parts.unique_by_index[i][parts.unique_values.size()] = true;
      parts.unique_values.push_back(builder_.AddTerminal(Text(text)));
    }
    if (!array.prefix.empty()) parts.max_items = std::min<uint64_t>(parts.max_items, array.prefix.size());
    if (indices.empty()) parts.max_items = 0;
  }

  template <typename Part>
  bool IsEmptyPart(const Part& part) {
    return algebra_.IsEmpty(part);
  }

  GrammarBuilder& builder_;
  RegexStore& store_;
  SchemaAlgebra algebra_;
  const JsonSchemaOptions options_;
  RegexId space_;
  std::string excluded_text_;  // see ArgumentNotation::EndText
  RegexId allowed_text_ = RegexStore::kEverything;
  std::unordered_map<ValueSetId, SymbolId> symbols_;
  std::vector<std::pair<ValueSetId, SymbolId>> pending_;
};

SymbolId AddSchema(GrammarBuilder& builder, std::string_view schema, const JsonSchemaOptions& options,
                   ArgumentNotation* notation, std::vector<std::string>* warnings) {
  const SchemaDocument document(schema);
  try {
    SchemaCompiler compiler(builder, document, options);
    const SymbolId symbol = compiler.Compile(notation);
    if (warnings != nullptr) compiler.AppendWarnings(*warnings);
    return symbol;
  } catch (const SelfReferenceError& error) {
    FailSchema(error.pointer(), "refers to itself without an object or array between");
  } catch (const InexactError& error) {
    throw RequestError(std::string("JSON schema: needs what is not supported: ") + error.what());
  }
}

}  // namespace

SymbolId AddJsonSchema(GrammarBuilder& builder, std::string_view schema, const JsonSchemaOptions& options,
                       std::vector<std::string>* warnings) {
  return AddSchema(builder, schema, options, /*notation=*/nullptr, warnings);
}

SymbolId AddJsonArguments(GrammarBuilder& builder, std::string_view schema, const JsonSchemaOptions& options,
                          ArgumentNotation& notation, std::vector<std::string>* warnings) {
  return AddSchema(builder, schema, options, &notation, warnings);
}

Grammar CompileJsonSchema(std::string_view schema, const JsonSchemaOptions& options,
                          std::vector<std::string>* warnings) {
  GrammarBuilder builder;
  const SymbolId symbol = AddJsonSchema(builder, schema, options, warnings);
  Grammar grammar = builder.Finish(symbol);
  if (!grammar.symbol(symbol).productive) FailSchema("", "allows no value");
  return grammar;
}

}  // namespace vllm
