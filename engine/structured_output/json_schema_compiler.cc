#include "engine/structured_output/json_schema_compiler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/structured_output/json_grammar.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

using Json = nlohmann::ordered_json;

// clang-format off
constexpr std::string_view kEnforced[] = {
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems",
    "minLength", "maxLength", "anyOf", "$ref"};
// Keywords that restrict values, from draft 2020-12 and those that earlier drafts had in their place.
constexpr std::string_view kRejected[] = {
    "allOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies", "patternProperties",
    "propertyNames", "minProperties", "maxProperties", "contains", "minContains", "maxContains", "uniqueItems", "minimum",
    "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format", "unevaluatedProperties",
    "unevaluatedItems", "additionalItems", "$dynamicRef", "$recursiveRef", "$id", "id", "contentEncoding", "contentMediaType",
    "contentSchema"};
// clang-format on

enum class Type : uint8_t { kNull, kBoolean, kObject, kArray, kNumber, kInteger, kString };
constexpr std::array<std::string_view, 7> kTypeNames = {"null",   "boolean", "object", "array",
                                                        "number", "integer", "string"};
using TypeSet = uint32_t;
constexpr TypeSet Bit(Type type) { return TypeSet{1} << static_cast<unsigned>(type); }
constexpr TypeSet kAllTypes = Bit(Type::kNull) | Bit(Type::kBoolean) | Bit(Type::kObject) | Bit(Type::kArray) |
                              Bit(Type::kNumber) | Bit(Type::kString);

template <size_t N>
bool Contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Appends `key` to a JSON Pointer (RFC 6901).
std::string Child(const std::string& pointer, std::string_view key) {
  std::string out = pointer + "/";
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

std::string Child(const std::string& pointer, size_t index) { return pointer + "/" + std::to_string(index); }

[[noreturn]] void Fail(const std::string& pointer, const std::string& why) {
  throw RequestError("JSON schema: #" + Escape(pointer) + ": " + why);
}

Json Parse(std::string_view text) {
  if (text.size() > kMaxJsonSchemaBytes) {
    Fail("", "too long (" + std::to_string(text.size()) + " bytes, limit " + std::to_string(kMaxJsonSchemaBytes) + ")");
  }
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxJsonSchemaDepth) {
      Fail("", "nested too deeply (limit " + std::to_string(kMaxJsonSchemaDepth) + " levels)");
    }
    return true;
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const Json::exception& e) {
    // Messages have the form "[json.exception.parse_error.101] parse error at line 1, column 2: ...".
    const std::string_view what = e.what();
    throw RequestError("JSON schema: not JSON: " + Escape(what.substr(std::min(what.size(), what.find("] ") + 2))));
  }
}

class Compiler {
 public:
  explicit Compiler(const Json& root) : root_(root), json_(builder_) {}

  ByteGrammar Compile() {
    RuleOf(root_, "");
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      AddSchema(*next.schema, next.pointer, builder_.StartOf(next.rule), builder_.EndOf(next.rule));
    }
    ByteGrammar grammar = builder_.Finish();
    if (grammar.HeightOf(grammar.start()) > ByteGrammar::kMaxDepth) Fail("", "allows no value");
    return grammar;
  }

 private:
  struct Pending {
    const Json* schema;
    std::string pointer;
    ByteGrammarRule rule;
  };

  // Returns the rule of a subschema, whose edges are added later.
  ByteGrammarRule RuleOf(const Json& schema, const std::string& pointer) {
    const auto [it, inserted] = rules_.try_emplace(&schema, 0);
    if (inserted) {
      if (rules_.size() > kMaxSubschemas) {
        Fail(pointer, "too many subschemas (limit " + std::to_string(kMaxSubschemas) + ")");
      }
      it->second = builder_.AddRule();
      pending_.push_back({&schema, pointer, it->second});
    }
    return it->second;
  }

  void AddSchema(const Json& schema, const std::string& pointer, ByteGrammarState start, ByteGrammarState end) {
    if (schema.is_boolean()) {
      if (schema.get<bool>()) builder_.AddCall(start, json_.Value(), end);
      return;
    }
    if (!schema.is_object()) Fail(pointer, "must be an object, true or false");
    for (const auto& [key, value] : schema.items()) {
      if (!Contains(kRejected, key)) continue;
      if (key == "uniqueItems" && value == false) continue;
      if ((key == "$id" || key == "id") && pointer.empty()) continue;
      // "id" is a keyword only in draft 4, where its value is text.
      if (key == "id" && !value.is_string()) continue;
      Fail(Child(pointer, key), "this keyword is not supported");
    }
    if (schema.contains("$ref")) return AddRef(schema, pointer, start, end);
    if (schema.contains("anyOf")) return AddAnyOf(schema, pointer, start, end);
    if (schema.contains("enum") || schema.contains("const")) return AddValues(schema, pointer, start, end);
    const TypeSet types = TypesOf(schema, pointer);
    const auto has = [types](Type type) { return (types & Bit(type)) != 0; };
    if (has(Type::kNull)) builder_.AddEmpty(builder_.AddLiteral(start, "null"), end);
    if (has(Type::kBoolean)) {
      for (const char* word : {"true", "false"}) builder_.AddEmpty(builder_.AddLiteral(start, word), end);
    }
    if (has(Type::kNumber)) {
      builder_.AddCall(start, json_.Number(), end);
    } else if (has(Type::kInteger)) {
      builder_.AddCall(start, json_.Integer(), end);
    }
    if (has(Type::kString)) AddString(schema, pointer, start, end);
    if (has(Type::kArray)) AddArray(schema, pointer, start, end);
    if (has(Type::kObject)) AddObject(schema, pointer, start, end);
  }

  // Fails if `schema` has an enforced keyword other than `allowed`: the two would have to hold together.
  void CheckAlone(const Json& schema, const std::string& pointer, std::span<const std::string_view> allowed) {
    for (const auto& [key, value] : schema.items()) {
      if (!Contains(kEnforced, key) || std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
      Fail(Child(pointer, key), "not supported next to " + std::string(allowed.front()));
    }
  }

  void AddRef(const Json& schema, const std::string& pointer, ByteGrammarState start, ByteGrammarState end) {
    static constexpr std::string_view kAllowed[] = {"$ref"};
    CheckAlone(schema, pointer, kAllowed);
    const Json& value = schema["$ref"];
    const std::string where = Child(pointer, "$ref");
    if (!value.is_string()) Fail(where, "must be a string");
    const auto& text = value.get_ref<const std::string&>();
    if (!text.starts_with('#') || (text.size() > 1 && text[1] != '/')) {
      Fail(where, "only # and #/... are supported (" + Escape(text) + ")");
    }
    const Json* target = Resolve(std::string_view(text).substr(1));
    if (target == nullptr) Fail(where, "refers to nothing (" + Escape(text) + ")");
    builder_.AddCall(start, RuleOf(*target, text.substr(1)), end);
  }

  // Returns the value at a JSON Pointer in URI form, or null.
  const Json* Resolve(std::string_view pointer) const {
    const Json* value = &root_;
    while (!pointer.empty()) {
      pointer.remove_prefix(1);
      const std::string_view token = pointer.substr(0, pointer.find('/'));
      pointer.remove_prefix(token.size());
      const std::optional<std::string> key = DecodeToken(token);
      if (!key) return nullptr;
      if (value->is_object()) {
        const auto it = value->find(*key);
        if (it == value->end()) return nullptr;
        value = &*it;
      } else if (value->is_array()) {
        size_t index = 0;
        const auto [end, error] = std::from_chars(key->data(), key->data() + key->size(), index);
        if (error != std::errc() || end != key->data() + key->size() || index >= value->size()) return nullptr;
        value = &(*value)[index];
      } else {
        return nullptr;
      }
    }
    return value;
  }

  // Decodes %XX, ~0 and ~1.
  static std::optional<std::string> DecodeToken(std::string_view token) {
    std::string bytes;
    for (size_t i = 0; i < token.size(); ++i) {
      if (token[i] != '%') {
        bytes += token[i];
        continue;
      }
      unsigned value = 0;
      if (i + 2 >= token.size()) return std::nullopt;
      const auto [end, error] = std::from_chars(token.data() + i + 1, token.data() + i + 3, value, 16);
      if (error != std::errc() || end != token.data() + i + 3) return std::nullopt;
      bytes += static_cast<char>(value);
      i += 2;
    }
    std::string key;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != '~') {
        key += bytes[i];
        continue;
      }
      if (++i == bytes.size() || (bytes[i] != '0' && bytes[i] != '1')) return std::nullopt;
      key += bytes[i] == '0' ? '~' : '/';
    }
    return key;
  }

  void AddAnyOf(const Json& schema, const std::string& pointer, ByteGrammarState start, ByteGrammarState end) {
    static constexpr std::string_view kAllowed[] = {"anyOf"};
    CheckAlone(schema, pointer, kAllowed);
    const Json& options = schema["anyOf"];
    const std::string where = Child(pointer, "anyOf");
    if (!options.is_array() || options.empty()) Fail(where, "must be a list of at least one schema");
    for (size_t i = 0; i < options.size(); ++i) builder_.AddCall(start, RuleOf(options[i], Child(where, i)), end);
  }

  void AddValues(const Json& schema, const std::string& pointer, ByteGrammarState start, ByteGrammarState end) {
    const bool is_enum = schema.contains("enum");
    const std::string_view allowed[] = {is_enum ? "enum" : "const", "type"};
    CheckAlone(schema, pointer, allowed);
    const TypeSet types = TypesOf(schema, pointer);
    const Json& value = schema[std::string(allowed[0])];
    const std::string where = Child(pointer, allowed[0]);
    if (!is_enum) return AddValue(value, where, types, start, end);
    if (!value.is_array()) Fail(where, "must be a list");
    for (size_t i = 0; i < value.size(); ++i) AddValue(value[i], Child(where, i), types, start, end);
  }

  // Adds one value of enum or const, unless its type is not in `types`.
  void AddValue(const Json& value, const std::string& pointer, TypeSet types, ByteGrammarState start,
                ByteGrammarState end) {
    TypeSet type = 0;
    std::optional<std::string> integer;  // the spelling of a whole number
    if (value.is_number()) {
      if (value.is_number_float()) {
        const double number = value.get<double>();
        constexpr double kLargestExact = 9007199254740992.0;
        if (std::abs(number) <= kLargestExact && number == static_cast<double>(static_cast<int64_t>(number))) {
          integer = std::to_string(static_cast<int64_t>(number));
        } else if (std::abs(number) > kLargestExact) {
          Fail(pointer, "numbers beyond 2^53 are not supported");
        }
      } else {
        integer = value.dump();
      }
      type = Bit(Type::kNumber) | (integer ? Bit(Type::kInteger) : 0);
    } else {
      type = value.is_null()      ? Bit(Type::kNull)
             : value.is_boolean() ? Bit(Type::kBoolean)
             : value.is_string()  ? Bit(Type::kString)
             : value.is_array()   ? Bit(Type::kArray)
                                  : Bit(Type::kObject);
    }
    if ((types & type) == 0) return;
    builder_.AddEmpty(builder_.AddLiteral(start, integer ? *integer : value.dump()), end);
  }

  TypeSet TypesOf(const Json& schema, const std::string& pointer) const {
    const auto it = schema.find("type");
    if (it == schema.end()) return kAllTypes;
    const std::string where = Child(pointer, "type");
    const auto one = [&](const Json& name, const std::string& at) -> TypeSet {
      for (size_t i = 0; i < kTypeNames.size(); ++i) {
        if (name.is_string() && name.get_ref<const std::string&>() == kTypeNames[i]) return TypeSet{1} << i;
      }
      Fail(at, "must be null, boolean, object, array, number, integer or string");
    };
    if (!it->is_array()) return one(*it, where);
    TypeSet types = 0;
    for (size_t i = 0; i < it->size(); ++i) types |= one((*it)[i], Child(where, i));
    return types;
  }

  std::optional<int64_t> Count(const Json& schema, const char* key, const std::string& pointer) const {
    const auto it = schema.find(key);
    if (it == schema.end()) return std::nullopt;
    const bool is_count = it->is_number() && it->get<double>() >= 0 && it->get<double>() <= 9e15 &&
                          it->get<double>() == static_cast<double>(it->get<int64_t>());
    if (!is_count) Fail(Child(pointer, key), "must be a whole number of at least 0");
    const auto count = it->get<int64_t>();
    if (count > kMaxJsonSchemaCount) {
      Fail(Child(pointer, key),
           "too large (" + std::to_string(count) + ", limit " + std::to_string(kMaxJsonSchemaCount) + ")");
    }
    return count;
  }

  void AddString(const Json& schema, const std::string& pointer, ByteGrammarState start, ByteGrammarState end) {
    const int64_t min_length = Count(schema, "minLength", pointer).value_or(0);
    const std::optional<int64_t> max_length = Count(schema, "maxLength", pointer);
    if (max_length && *max_length < min_length) return;
    if (min_length == 0 && !max_length) return builder_.AddCall(start, json_.String(), end);
    json_.AddString(start, min_length, max_length, end);
  }

  void AddArray(const Json& schema, const std::string& pointer, ByteGrammarState start, ByteGrammarState end) {
    const int64_t min_items = Count(schema, "minItems", pointer).value_or(0);
    const std::optional<int64_t> max_items = Count(schema, "maxItems", pointer);
    if (max_items && *max_items < min_items) return;
    static const Json kNoItems = Json::array();
    const auto prefix_it = schema.find("prefixItems");
    const Json& prefix = prefix_it == schema.end() ? kNoItems : *prefix_it;
    if (!prefix.is_array()) Fail(Child(pointer, "prefixItems"), "must be a list of schemas");
    const auto num_prefix = static_cast<int64_t>(prefix.size());
    const auto items = schema.find("items");
    const ByteGrammarRule rest = items == schema.end() ? json_.Value() : RuleOf(*items, Child(pointer, "items"));
    const int64_t chain = max_items ? *max_items : std::max(num_prefix, min_items);
    ByteGrammarState at = builder_.AddLiteral(start, "[");
    for (int64_t count = 0; count <= chain; ++count) {
      if (count >= min_items) builder_.AddBytes(at, ']', ']', end);
      if (count == chain) break;
      const auto index = static_cast<size_t>(count);
      const ByteGrammarRule rule =
          count < num_prefix ? RuleOf(prefix[index], Child(Child(pointer, "prefixItems"), index)) : rest;
      const ByteGrammarState next = builder_.AddState();
      builder_.AddCall(count == 0 ? at : builder_.AddLiteral(at, ","), rule, next);
      at = next;
    }
    if (max_items) return;
    // `at` follows `chain` elements. Any number of further ones may follow.
    const ByteGrammarState loop = builder_.AddState();
    builder_.AddCall(chain == 0 ? at : builder_.AddLiteral(at, ","), rest, loop);
    builder_.AddCall(builder_.AddLiteral(loop, ","), rest, loop);
    builder_.AddBytes(loop, ']', ']', end);
  }

  struct Property {
    std::string name;
    ByteGrammarRule rule;
    bool is_required;
  };

  std::vector<Property> PropertiesOf(const Json& schema, const std::string& pointer, ByteGrammarRule additional) {
    std::vector<Property> properties;
    std::unordered_map<std::string, size_t> indices;
    if (const auto it = schema.find("properties"); it != schema.end()) {
      const std::string where = Child(pointer, "properties");
      if (!it->is_object()) Fail(where, "must be an object");
      for (const auto& [name, subschema] : it->items()) {
        indices.emplace(name, properties.size());
        properties.push_back({name, RuleOf(subschema, Child(where, name)), false});
      }
    }
    if (const auto it = schema.find("required"); it != schema.end()) {
      const std::string where = Child(pointer, "required");
      if (!it->is_array()) Fail(where, "must be a list of names");
      for (size_t i = 0; i < it->size(); ++i) {
        if (!(*it)[i].is_string()) Fail(Child(where, i), "must be a string");
        const auto& name = (*it)[i].get_ref<const std::string&>();
        const auto [entry, inserted] = indices.emplace(name, properties.size());
        if (inserted) properties.push_back({name, additional, true});
        properties[entry->second].is_required = true;
      }
    }
    return properties;
  }

  void AddObject(const Json& schema, const std::string& pointer, ByteGrammarState start, ByteGrammarState end) {
    const auto it = schema.find("additionalProperties");
    const ByteGrammarRule additional =
        it == schema.end() ? json_.Value() : RuleOf(*it, Child(pointer, "additionalProperties"));
    const std::vector<Property> properties = PropertiesOf(schema, pointer, additional);
    // Positions between properties, before and after the first member that is written.
    ByteGrammarState none = builder_.AddLiteral(start, "{");
    ByteGrammarState some = builder_.AddState();
    std::vector<std::string> names;
    for (const Property& property : properties) {
      names.push_back(property.name);
      const std::string key = QuoteJson(property.name) + ":";
      const ByteGrammarState next_none = builder_.AddState();
      const ByteGrammarState next_some = builder_.AddState();
      builder_.AddCall(builder_.AddLiteral(none, key), property.rule, next_some);
      builder_.AddCall(builder_.AddLiteral(some, "," + key), property.rule, next_some);
      if (!property.is_required) {
        builder_.AddEmpty(none, next_none);
        builder_.AddEmpty(some, next_some);
      }
      none = next_none;
      some = next_some;
    }
    for (const ByteGrammarState from : {none, some}) builder_.AddBytes(from, '}', '}', end);
    if (it != schema.end() && *it == false) return;
    const ByteGrammarState member = builder_.AddState();  // before a further member
    builder_.AddEmpty(none, member);
    builder_.AddBytes(some, ',', ',', member);
    json_.AddMember(member, names, additional, some);
  }

  const Json& root_;
  ByteGrammarBuilder builder_;
  JsonGrammar json_;
  std::unordered_map<const Json*, ByteGrammarRule> rules_;
  std::vector<Pending> pending_;
};

}  // namespace

ByteGrammar CompileJsonSchema(std::string_view schema) { return Compiler(Parse(schema)).Compile(); }

}  // namespace vllm
