// The keywords of JSON Schema: each narrows the set of values of its schema. The members of SchemaAlgebra that
// schema_algebra.cc does not define.
#include <algorithm>
#include <array>

#include "engine/config/escape.h"
#include "engine/structured_output/json_schema/inexact_error.h"
#include "engine/structured_output/json_schema/json_text.h"
#include "engine/structured_output/json_schema/number_text.h"
#include "engine/structured_output/json_schema/schema_algebra.h"
#include "engine/structured_output/json_schema/string_format.h"
#include "engine/structured_output/patterns/pattern.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

// The drafts that keywords are of, except those that all drafts have or that older schemas are known to use.
constexpr std::pair<std::string_view, int> kFirstDrafts[] = {
    {"const", 6},          {"contains", 6},       {"propertyNames", 6},        {"if", 7},
    {"then", 7},           {"else", 7},           {"dependentRequired", 2019}, {"dependentSchemas", 2019},
    {"minContains", 2019}, {"maxContains", 2019}, {"unevaluatedItems", 2019},  {"unevaluatedProperties", 2019},
    {"prefixItems", 2020},
};

bool HasAny(const SchemaJson& schema, std::initializer_list<const char*> keys) {
  return std::ranges::any_of(keys, [&](const char* key) { return schema.contains(key); });
}

Decimal DecimalOf(const SchemaJson& value, const std::string& pointer) {
  if (!value.is_number()) FailSchema(pointer, "must be a number");
  const std::optional<Decimal> decimal = ParseDecimal(value.dump());
  if (!decimal) FailSchema(pointer, "has too many digits (limit " + std::to_string(kMaxDigits) + ")");
  return *decimal;
}

}  // namespace

const SchemaJson* SchemaAlgebra::Find(const SchemaJson& schema, const char* key) {
  const auto it = schema.find(key);
  if (it == schema.end()) return nullptr;
  const std::string_view name = key;
  for (const auto& [keyword, draft] : kFirstDrafts) {
    if (name != keyword || document_.draft() >= draft) continue;
    ignored_keywords_.insert(std::string(name) + " is not a keyword of draft " + std::to_string(document_.draft()));
    return nullptr;
  }
  if (document_.draft() > 7 || name == "$ref" || name == "$schema") return &*it;
  const auto reference = schema.find("$ref");
  if (reference == schema.end() || !reference->is_string()) return &*it;
  ignored_keywords_.insert("draft " + std::to_string(document_.draft()) + " ignores " + std::string(name) +
                           " next to $ref");
  return nullptr;
}

void SchemaAlgebra::CheckUnsupported(const SchemaJson& schema, const std::string& pointer) {
  if (schema.contains("$recursiveRef")) FailSchema(ChildPointer(pointer, "$recursiveRef"), "not supported");
  if (const SchemaJson* dialect = Find(schema, "$schema"); dialect != nullptr && dialect->is_string()) {
    const auto& uri = dialect->get_ref<const std::string&>();
    // Another dialect may have other keywords, or give them another meaning.
    if (uri.find("json-schema.org/") == uri.npos) FailSchema(ChildPointer(pointer, "$schema"), "not a known dialect");
  }
}

ValueSet SchemaAlgebra::ComputeSchema(const SchemaDocument::Place& place) {
  const SchemaJson& schema = *place.schema;
  CheckUnsupported(schema, place.pointer);
  ValueSet set = Everything();
  ApplyTypes(schema, place.pointer, set);
  ApplyValues(schema, place.pointer, set);
  ApplyNumbers(schema, place.pointer, set);
  ApplyStrings(schema, place.pointer, set);
  ApplyObjects(schema, place.pointer, set);
  ApplyArrays(schema, place.pointer, set);
  ApplyApplicators(schema, place.pointer, set);
  ApplyDependencies(schema, place.pointer, set);
  ApplyUnevaluated(schema, place.pointer, set);
  return set;
}

uint64_t SchemaAlgebra::Count(const SchemaJson& value, const std::string& pointer) const {
  const bool is_count = value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 9e15 &&
                        value.get<double>() == static_cast<double>(value.get<int64_t>());
  if (!is_count) FailSchema(pointer, "must be a whole number of at least 0");
  const auto count = value.get<uint64_t>();
  if (count > kMaxCount) {
    FailSchema(pointer, "too large (" + std::to_string(count) + ", limit " + std::to_string(kMaxCount) + ")");
  }
  return count;
}

void SchemaAlgebra::ApplyTypes(const SchemaJson& schema, const std::string& pointer, ValueSet& set) {
  const SchemaJson* types = Find(schema, "type");
  if (types == nullptr) return;
  ValueSet allowed;
  const auto add = [&](const SchemaJson& type, const std::string& where) {
    if (type == "null") {
      allowed.has_null = true;
    } else if (type == "boolean") {
      allowed.has_false = allowed.has_true = true;
    } else if (type == "number") {
      allowed.numbers = any_number_;
    } else if (type == "integer") {
      allowed.numbers = store_.Or({allowed.numbers, any_integer_});
    } else if (type == "string") {
      allowed.strings = any_string_;
    } else if (type == "object") {
      allowed.objects = {AnyObject()};
    } else if (type == "array") {
      allowed.arrays = {AnyArray()};
    } else {
      FailSchema(where, "must be null, boolean, object, array, number, integer or string");
    }
  };
  const std::string where = ChildPointer(pointer, "type");
  if (types->is_array()) {
    for (size_t i = 0; i < types->size(); ++i) add((*types)[i], ChildPointer(where, i));
    // "integer" next to "number" adds nothing.
    if (std::ranges::find(*types, "number") != types->end()) allowed.numbers = any_number_;
  } else {
    add(*types, where);
  }
  allowed.has_integer_type = allowed.numbers == any_integer_;
  set = Intersect(set, allowed);
}

ValueSet SchemaAlgebra::SetOfValue(const SchemaJson& value, const std::string& pointer) {
  ValueSet set;
  set.is_list = true;
  if (value.is_null()) {
    set.has_null = true;
  } else if (value.is_boolean()) {
    (value.get<bool>() ? set.has_true : set.has_false) = true;
  } else if (value.is_number()) {
    set.numbers = store_.Literal(ListedNumber(value, pointer));
  } else if (value.is_string()) {
    ListStrings({value.get<std::string>()}, set);
  } else if (value.is_object()) {
    ObjectSet object;
    for (const auto& [name, member] : value.items()) {
      object.properties.push_back({name, FixedId(SetOfValue(member, ChildPointer(pointer, name))), true});
    }
    set.objects.push_back(std::move(object));
  } else {
    ArraySet array;
    for (size_t i = 0; i < value.size(); ++i) {
      array.prefix.push_back(FixedId(SetOfValue(value[i], ChildPointer(pointer, i))));
    }
    array.items = kNone;
    array.min_items = array.max_items = value.size();
    set.arrays.push_back(std::move(array));
  }
  return set;
}

std::string SchemaAlgebra::ListedNumber(const SchemaJson& value, const std::string& pointer) {
  const Decimal number = DecimalOf(value, pointer);
  std::string text = number.Text();
  if (value.is_number_float() && number.fraction.empty()) listed_with_fraction_.insert(text);
  return text;
}

void SchemaAlgebra::ListStrings(std::vector<std::string> strings, ValueSet& set) {
  set.strings = SpellingsOf(store_, strings);
  set.listed_strings = std::make_shared<const std::vector<std::string>>(std::move(strings));
}

void SchemaAlgebra::ApplyValues(const SchemaJson& schema, const std::string& pointer, ValueSet& set) {
  if (const SchemaJson* value = Find(schema, "const")) {
    set = Intersect(set, SetOfValue(*value, ChildPointer(pointer, "const")));
  }
  const SchemaJson* values = Find(schema, "enum");
  if (values == nullptr) return;
  const std::string where = ChildPointer(pointer, "enum");
  if (!values->is_array()) FailSchema(where, "must be a list");
  ValueSet listed;
  listed.is_list = true;
  std::vector<std::string> strings, numbers;
  for (size_t i = 0; i < values->size(); ++i) {
    const SchemaJson& value = (*values)[i];
    if (value.is_string()) {
      strings.push_back(value.get<std::string>());
    } else if (value.is_number()) {
      numbers.push_back(ListedNumber(value, ChildPointer(where, i)));
    } else {
      Unite(listed, SetOfValue(value, ChildPointer(where, i)));
    }
  }
  ListStrings(std::move(strings), listed);
  listed.numbers = store_.Literals(std::move(numbers));
  set = Intersect(set, listed);
}

void SchemaAlgebra::ApplyNumbers(const SchemaJson& schema, const std::string& pointer, ValueSet& set) {
  const auto is_true = [&](const char* key) {
    const SchemaJson* value = Find(schema, key);
    return value != nullptr && *value == true;  // draft 4: the bound of minimum is exclusive
  };
  for (const char* key : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
    const SchemaJson* value = Find(schema, key);
    if (value == nullptr || (value->is_boolean() && std::string_view(key).starts_with("exclusive"))) continue;
    const Decimal bound = DecimalOf(*value, ChildPointer(pointer, key));
    const bool is_minimum = std::string_view(key).ends_with("inimum");
    const bool exclusive =
        std::string_view(key).starts_with("exclusive") || is_true(is_minimum ? "exclusiveMinimum" : "exclusiveMaximum");
    const RegexId range = is_minimum ? NumbersFrom(store_, bound, exclusive) : NumbersUpTo(store_, bound, exclusive);
    NarrowNumbers(set, range);
  }
  if (const SchemaJson* value = Find(schema, "multipleOf")) {
    const std::string where = ChildPointer(pointer, "multipleOf");
    const Decimal divisor = DecimalOf(*value, where);
    if (divisor.negative || divisor.is_zero()) FailSchema(where, "must be greater than 0");
    const std::optional<RegexId> multiples = MultiplesOf(store_, divisor);
    if (!multiples) FailSchema(where, "has too many digits");
    NarrowNumbers(set, *multiples);
  }
}

void SchemaAlgebra::ApplyStrings(const SchemaJson& schema, const std::string& pointer, ValueSet& set) {
  const SchemaJson* min = Find(schema, "minLength");
  const SchemaJson* max = Find(schema, "maxLength");
  if (min != nullptr || max != nullptr) {
    const uint64_t low = min == nullptr ? 0 : Count(*min, ChildPointer(pointer, "minLength"));
    const uint64_t high = max == nullptr ? RegexStore::kUnbounded : Count(*max, ChildPointer(pointer, "maxLength"));
    const RegexId length = low > high
                               ? RegexStore::kNothing
                               : store_.Repeat(any_character_, static_cast<uint32_t>(low), static_cast<uint32_t>(high));
    NarrowStrings(set, length);
  }
  if (const SchemaJson* pattern = Find(schema, "pattern")) {
    const std::string where = ChildPointer(pointer, "pattern");
    if (!pattern->is_string()) FailSchema(where, "must be a string");
    NarrowStrings(set, Pattern(*pattern, where));
  }
  if (const SchemaJson* format = Find(schema, "format"); format != nullptr && format->is_string()) {
    const auto& name = format->get_ref<const std::string&>();
    switch (KindOfFormat(name)) {
      case FormatKind::kEnforced:
        NarrowStrings(set, StringsOfFormat(store_, name));
        break;
      case FormatKind::kNotSupported:
        FailSchema(ChildPointer(pointer, "format"), "not supported (" + Escape(name) + ")");
      case FormatKind::kUnknown:
        unknown_formats_.push_back(name);
        break;
    }
  }
}

void SchemaAlgebra::NarrowStrings(ValueSet& set, RegexId strings) {
  set.strings = IntersectStrings(set.strings, strings);
}

void SchemaAlgebra::NarrowNumbers(ValueSet& set, RegexId numbers) {
  set.numbers = set.numbers == any_number_ ? numbers : store_.And({set.numbers, numbers});
}

RegexId SchemaAlgebra::Pattern(const std::string& pattern, const std::string& pointer) {
  try {
    return ParsePattern(store_, pattern, PatternSyntax::kEcma, PatternMatch::kSearch, TextSpelling::kJsonString);
  } catch (const RequestError& error) {
    FailSchema(pointer, error.what());
  }
}

void SchemaAlgebra::ApplyObjects(const SchemaJson& schema, const std::string& pointer, ValueSet& set) {
  if (!HasAny(schema, {"properties", "patternProperties", "additionalProperties", "propertyNames", "required",
                       "minProperties", "maxProperties"})) {
    return;
  }
  ObjectSet object;
  std::map<std::string, size_t, std::less<>> indices;
  // Sets of keys, each with the values that patternProperties wants for them.
  std::vector<ObjectSet::OtherKeys> patterns;
  if (const SchemaJson* map = Find(schema, "patternProperties")) {
    const std::string where = ChildPointer(pointer, "patternProperties");
    if (!map->is_object()) FailSchema(where, "must be an object");
    for (const auto& [pattern, value] : map->items()) {
      const std::string at = ChildPointer(where, pattern);
      patterns.push_back({Pattern(pattern, at), SchemaId(value, at)});
    }
  }
  const auto pattern_values = [&](const std::string& name) {
    std::vector<ValueSetId> values;
    for (const ObjectSet::OtherKeys& pattern : patterns) {
      if (ContainsKey(pattern.keys, name)) values.push_back(pattern.value);
    }
    return values;
  };
  if (const SchemaJson* map = Find(schema, "properties")) {
    const std::string where = ChildPointer(pointer, "properties");
    if (!map->is_object()) FailSchema(where, "must be an object");
    for (const auto& [name, value] : map->items()) {
      std::vector<ValueSetId> values = pattern_values(name);
      values.push_back(SchemaId(value, ChildPointer(where, name)));
      indices.emplace(name, object.properties.size());
      object.properties.push_back({name, Intersection(std::move(values)), false});
    }
  }
  const SchemaJson* rest = Find(schema, "additionalProperties");
  const ValueSetId additional = rest == nullptr ? kAny : SchemaId(*rest, ChildPointer(pointer, "additionalProperties"));
  if (const SchemaJson* list = Find(schema, "required"); list != nullptr && !list->is_boolean()) {
    const std::string where = ChildPointer(pointer, "required");
    if (!list->is_array()) FailSchema(where, "must be a list of names");
    for (size_t i = 0; i < list->size(); ++i) {
      if (!(*list)[i].is_string()) FailSchema(ChildPointer(where, i), "must be a string");
      const auto& name = (*list)[i].get_ref<const std::string&>();
      const auto [it, inserted] = indices.emplace(name, object.properties.size());
      if (inserted) {
        std::vector<ValueSetId> values = pattern_values(name);
        object.properties.push_back({name, values.empty() ? additional : Intersection(std::move(values)), false});
      }
      object.properties[it->second].is_required = true;
    }
  }
  // Split the other keys by the patterns that they match.
  std::vector<std::string> names;
  for (const ObjectSet::Property& property : object.properties) names.push_back(property.name);
  const RegexId others = store_.And({any_string_, store_.Not(SpellingsOf(store_, std::move(names)))});
  struct Class {
    RegexId keys;
    std::vector<ValueSetId> values;
  };
  std::vector<Class> classes = {{others, {}}};
  for (const ObjectSet::OtherKeys& pattern : patterns) {
    std::vector<Class> split;
    for (const Class& old : classes) {
      Class inside = {IntersectStrings(old.keys, pattern.keys), old.values};
      Class outside = {SubtractStrings(old.keys, pattern.keys), old.values};
      inside.values.push_back(pattern.value);
      if (!store_.IsNothing(inside.keys)) split.push_back(std::move(inside));
      if (!store_.IsNothing(outside.keys)) split.push_back(std::move(outside));
    }
    classes = std::move(split);
    if (classes.size() > 256) FailSchema(ChildPointer(pointer, "patternProperties"), "the patterns overlap too much");
  }
  for (Class& group : classes) {
    const ValueSetId value = group.values.empty() ? additional : Intersection(std::move(group.values));
    if (value != kNone) object.others.push_back({group.keys, value});
  }
  if (const SchemaJson* value = Find(schema, "minProperties")) {
    object.min_properties = Count(*value, ChildPointer(pointer, "minProperties"));
  }
  if (const SchemaJson* value = Find(schema, "maxProperties")) {
    object.max_properties = Count(*value, ChildPointer(pointer, "maxProperties"));
  }
  ValueSet objects = Everything();
  objects.objects = {std::move(object)};
  set = Intersect(set, objects);
  if (const SchemaJson* value = Find(schema, "propertyNames")) {
    const ValueSetId keys = SchemaId(*value, ChildPointer(pointer, "propertyNames"));
    const RegexId allowed = SetOf(keys).strings;
    for (ObjectSet& limited : set.objects) {
      for (ObjectSet::Property& property : limited.properties) {
        if (!ContainsKey(allowed, property.name)) property.value = kNone;
      }
      for (ObjectSet::OtherKeys& other : limited.others) other.keys = IntersectStrings(other.keys, allowed);
      std::erase_if(limited.others, [this](const auto& other) { return store_.IsNothing(other.keys); });
    }
    std::erase_if(set.objects, [this](const ObjectSet& limited) { return IsEmpty(limited); });
  }
}

void SchemaAlgebra::ApplyArrays(const SchemaJson& schema, const std::string& pointer, ValueSet& set) {
  if (!HasAny(schema, {"items", "prefixItems", "additionalItems", "contains", "minItems", "maxItems", "uniqueItems"})) {
    return;
  }
  ArraySet array;
  const SchemaJson* items = Find(schema, "items");
  const bool is_tuple = items != nullptr && items->is_array();  // older drafts
  const char* prefix_key = is_tuple ? "items" : "prefixItems";
  if (const SchemaJson* prefix = Find(schema, prefix_key)) {
    const std::string where = ChildPointer(pointer, prefix_key);
    if (!prefix->is_array()) FailSchema(where, "must be a list of schemas");
    for (size_t i = 0; i < prefix->size(); ++i) array.prefix.push_back(SchemaId((*prefix)[i], ChildPointer(where, i)));
  }
  const char* rest_key = is_tuple ? "additionalItems" : "items";
  const SchemaJson* rest = Find(schema, rest_key);
  array.items = rest == nullptr ? kAny : SchemaId(*rest, ChildPointer(pointer, rest_key));
  if (const SchemaJson* value = Find(schema, "minItems")) {
    array.min_items = Count(*value, ChildPointer(pointer, "minItems"));
  }
  if (const SchemaJson* value = Find(schema, "maxItems")) {
    array.max_items = Count(*value, ChildPointer(pointer, "maxItems"));
  }
  if (const SchemaJson* value = Find(schema, "contains")) {
    ArraySet::Contains contains;
    contains.value = SchemaId(*value, ChildPointer(pointer, "contains"));
    if (const SchemaJson* min = Find(schema, "minContains")) {
      contains.min = Count(*min, ChildPointer(pointer, "minContains"));
    }
    if (const SchemaJson* max = Find(schema, "maxContains")) {
      contains.max = Count(*max, ChildPointer(pointer, "maxContains"));
    }
    if (contains.min > 0 || contains.max < ArraySet::Contains().max) array.contains = contains;
  }
  if (const SchemaJson* value = Find(schema, "uniqueItems")) {
    array.has_unique_items = *value == true && array.max_items > 1;
  }
  ValueSet arrays = Everything();
  arrays.arrays = {std::move(array)};
  set = Intersect(set, arrays);
}

std::optional<SchemaDocument::Place> SchemaAlgebra::Target(const SchemaJson& schema, const std::string& pointer,
                                                           const char* key) {
  const SchemaJson* reference = Find(schema, key);
  if (reference == nullptr) return std::nullopt;
  if (!reference->is_string()) FailSchema(ChildPointer(pointer, key), "must be a string");
  const std::string text = reference->get<std::string>();
  if (std::string_view(key) == "$ref") return document_.Resolve(schema, pointer, text);
  return document_.ResolveDynamic(schema, pointer, text, scopes_[scope_]);
}

void SchemaAlgebra::ApplyApplicators(const SchemaJson& schema, const std::string& pointer, ValueSet& set) {
  const auto list = [&](const char* key) {
    std::vector<ValueSetId> ids;
    const SchemaJson* schemas = Find(schema, key);
    if (schemas == nullptr) return ids;
    const std::string where = ChildPointer(pointer, key);
    if (!schemas->is_array() || schemas->empty()) FailSchema(where, "must be a list of at least one schema");
    for (size_t i = 0; i < schemas->size(); ++i) ids.push_back(SchemaId((*schemas)[i], ChildPointer(where, i)));
    return ids;
  };
  for (const char* key : {"$ref", "$dynamicRef"}) {
    const std::optional<SchemaDocument::Place> place = Target(schema, pointer, key);
    if (place) set = Intersect(set, SetOf(SchemaId(*place->schema, place->pointer)));
  }
  for (const ValueSetId id : list("allOf")) set = Intersect(set, SetOf(id));
  if (const std::vector<ValueSetId> options = list("anyOf"); !options.empty()) {
    ValueSet any;
    for (const ValueSetId id : options) Unite(any, SetOf(id));
    set = Intersect(set, any);
  }
  const char* key = "oneOf";
  try {
    if (const std::vector<ValueSetId> options = list(key); !options.empty()) {
      // Look at the values that the other keywords allow only, of which the options may share none.
      const ValueSetId outer = FixedId(set);
      std::vector<ValueSetId> inner;
      for (const ValueSetId id : options) inner.push_back(Intersection({outer, id}));
      set = ExactlyOne(inner);
    }
    key = "not";
    if (const SchemaJson* value = Find(schema, key)) {
      set = Difference(set, SetOf(SchemaId(*value, ChildPointer(pointer, key))));
    }
    key = "if";
    if (const SchemaJson* value = Find(schema, key); value != nullptr && HasAny(schema, {"then", "else"})) {
      const ValueSet condition = SetOf(SchemaId(*value, ChildPointer(pointer, key)));
      ValueSet met = Intersect(set, condition);
      ValueSet rest = Difference(set, condition);
      if (const SchemaJson* then = Find(schema, "then")) {
        met = Intersect(met, SetOf(SchemaId(*then, ChildPointer(pointer, "then"))));
      }
      if (const SchemaJson* otherwise = Find(schema, "else")) {
        rest = Intersect(rest, SetOf(SchemaId(*otherwise, ChildPointer(pointer, "else"))));
      }
      Unite(met, rest);
      set = std::move(met);
    }
  } catch (const InexactError& error) {
    FailSchema(ChildPointer(pointer, key), std::string("needs what is not supported: ") + error.what());
  }
}

void SchemaAlgebra::ApplyDependencies(const SchemaJson& schema, const std::string& pointer, ValueSet& set) {
  // Either the key is absent, or it is there and the others or the schema hold.
  for (const char* key : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    const SchemaJson* map = Find(schema, key);
    if (map == nullptr) continue;
    const std::string where = ChildPointer(pointer, key);
    if (!map->is_object()) FailSchema(where, "must be an object");
    for (const auto& [name, dependency] : map->items()) {
      const std::string at = ChildPointer(where, name);
      const auto with = [&](const std::vector<std::string>& required, bool is_absent) {
        ObjectSet object;
        for (const std::string& other : required) {
          const bool repeated = std::ranges::any_of(object.properties, [&](const auto& p) { return p.name == other; });
          if (!repeated) object.properties.push_back({other, is_absent ? kNone : kAny, !is_absent});
        }
        object.others.push_back({store_.And({any_string_, store_.Not(SpellingsOf(store_, required))}), kAny});
        return object;
      };
      ValueSet absent = Everything();
      absent.objects = {with({name}, true)};
      std::vector<std::string> required = {name};
      if (dependency.is_array()) {
        for (const SchemaJson& other : dependency) {
          if (!other.is_string()) FailSchema(at, "must be a list of names");
          required.push_back(other.get<std::string>());
        }
      } else if (std::string_view(key) == "dependentRequired") {
        FailSchema(at, "must be a list of names");
      }
      ValueSet present;
      present.objects = {with(required, false)};
      if (!dependency.is_array()) present = Intersect(present, SetOf(SchemaId(dependency, at)));
      Unite(absent, present);
      set = Intersect(set, absent);
    }
  }
}

}  // namespace vllm
