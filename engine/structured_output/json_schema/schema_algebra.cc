#include "engine/structured_output/json_schema/schema_algebra.h"

#include <algorithm>
#include <set>

#include "engine/structured_output/json_schema/inexact_error.h"
#include "engine/structured_output/json_schema/json_text.h"
#include "engine/structured_output/json_schema/number_text.h"
#include "engine/structured_output/regex/code_point_set.h"

namespace vllm {
namespace {

// Returns null if one of the lists is null.
std::shared_ptr<const std::vector<std::string>> UnionOfLists(const std::vector<std::string>* a,
                                                             const std::vector<std::string>* b) {
  if (a == nullptr || b == nullptr) return nullptr;
  std::vector<std::string> both = *a;
  both.insert(both.end(), b->begin(), b->end());
  return std::make_shared<const std::vector<std::string>>(std::move(both));
}

}  // namespace

SchemaAlgebra::SchemaAlgebra(const SchemaDocument& document, RegexStore& store) : document_(document), store_(store) {
  any_character_ = CodePointsAsRegex(store, CodePointSet::All(), TextSpelling::kJsonString);
  any_string_ = store.Star(any_character_);
  any_number_ = AnyNumber(store);
  any_integer_ = AnyInteger(store);
  Add(Kind::kNone, {});
  Add(Kind::kAny, {});
}

ValueSetId SchemaAlgebra::Add(Kind kind, std::vector<ValueSetId> operands) {
  if (nodes_.size() == kMaxSets) {
    throw RequestError("JSON schema: needs too many combinations of subschemas (limit " + std::to_string(kMaxSets) +
                       ")");
  }
  Node& node = nodes_.emplace_back();
  node.kind = kind;
  node.operands = std::move(operands);
  return static_cast<ValueSetId>(nodes_.size() - 1);
}

ValueSetId SchemaAlgebra::Root() { return SchemaId(document_.root(), ""); }

ValueSetId SchemaAlgebra::SchemaId(const SchemaJson& schema, const std::string& pointer) {
  if (schema.is_boolean()) return schema.get<bool>() ? kAny : kNone;
  if (!schema.is_object()) FailSchema(pointer, "must be an object or a boolean");
  if (schema.empty()) return kAny;
  const size_t scope = ScopeInside(schema);
  const auto [it, inserted] = schema_ids_.try_emplace({&schema, scope}, 0);
  if (inserted) {
    it->second = Add(Kind::kSchema, {});
    nodes_[it->second].place = {&schema, pointer};
    nodes_[it->second].scope = scope;
  }
  return it->second;
}

size_t SchemaAlgebra::ScopeInside(const SchemaJson& schema) {
  const std::string* base = document_.DynamicBaseOf(schema);
  // Only the first resource that has an anchor matters.
  if (base == nullptr || std::ranges::find(scopes_[scope_], *base) != scopes_[scope_].end()) return scope_;
  std::vector<std::string> inside = scopes_[scope_];
  inside.push_back(*base);
  const auto [it, inserted] = scope_ids_.try_emplace(inside, scopes_.size());
  if (inserted) scopes_.push_back(std::move(inside));
  return it->second;
}

ValueSetId SchemaAlgebra::FixedId(ValueSet set) {
  const ValueSetId id = Add(Kind::kFixed, {});
  nodes_[id].set = std::make_unique<ValueSet>(std::move(set));
  return id;
}

ValueSetId SchemaAlgebra::Intersection(std::vector<ValueSetId> ids) {
  std::vector<ValueSetId> flat;
  for (const ValueSetId id : ids) {
    if (id == kNone) return kNone;
    if (nodes_[id].kind == Kind::kIntersection) {
      flat.insert(flat.end(), nodes_[id].operands.begin(), nodes_[id].operands.end());
    } else if (id != kAny) {
      flat.push_back(id);
    }
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.empty()) return kAny;
  if (flat.size() == 1) return flat[0];
  const auto [it, inserted] = combined_ids_.try_emplace({Kind::kIntersection, flat}, 0);
  if (inserted) it->second = Add(Kind::kIntersection, std::move(flat));
  return it->second;
}

ValueSetId SchemaAlgebra::Union(std::vector<ValueSetId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::erase(ids, kNone);
  if (ids.empty()) return kNone;
  if (ids[0] == kAny || ids.size() == 1) return ids[0];
  const auto [it, inserted] = combined_ids_.try_emplace({Kind::kUnion, ids}, 0);
  if (inserted) it->second = Add(Kind::kUnion, std::move(ids));
  return it->second;
}

ValueSetId SchemaAlgebra::Complement(ValueSetId id) {
  if (id == kNone) return kAny;
  if (id == kAny) return kNone;
  if (nodes_[id].kind == Kind::kComplement) return nodes_[id].operands[0];
  const auto [it, inserted] = combined_ids_.try_emplace({Kind::kComplement, {id}}, 0);
  if (inserted) it->second = Add(Kind::kComplement, {id});
  return it->second;
}

const ValueSet& SchemaAlgebra::SetOf(ValueSetId id) {
  if (nodes_[id].set != nullptr) return *nodes_[id].set;
  const std::string pointer = nodes_[id].place.pointer;
  if (nodes_[id].is_open) throw SelfReferenceError(pointer);
  if (nesting_ == kMaxNesting) {
    FailSchema(pointer, "too many schemas apply to one value (limit " + std::to_string(kMaxNesting) + ")");
  }
  nodes_[id].is_open = true;
  ++nesting_;
  const size_t outer_scope = scope_;
  const auto close = [&] {
    --nesting_;
    scope_ = outer_scope;
    nodes_[id].is_open = false;
  };
  ValueSet set;
  try {
    set = Compute(id);
  } catch (const InexactError& error) {
    close();
    if (nodes_[id].kind != Kind::kSchema) throw;
    FailSchema(pointer, std::string("needs what is not supported: ") + error.what());
  } catch (...) {
    close();
    throw;
  }
  close();
  nodes_[id].set = std::make_unique<ValueSet>(std::move(set));
  return *nodes_[id].set;
}

ValueSet SchemaAlgebra::Compute(ValueSetId id) {
  const Kind kind = nodes_[id].kind;
  const std::vector<ValueSetId> operands = nodes_[id].operands;
  switch (kind) {
    case Kind::kNone:
    case Kind::kFixed:
      return {};
    case Kind::kAny:
      return Everything();
    case Kind::kSchema:
      scope_ = nodes_[id].scope;
      return ComputeSchema(SchemaDocument::Place(nodes_[id].place));
    case Kind::kIntersection: {
      ValueSet set = SetOf(operands[0]);
      for (size_t i = 1; i < operands.size(); ++i) set = Intersect(set, SetOf(operands[i]));
      return set;
    }
    case Kind::kUnion: {
      ValueSet set;
      for (const ValueSetId operand : operands) Unite(set, SetOf(operand));
      return set;
    }
    case Kind::kComplement:
      return Difference(Everything(), SetOf(operands[0]));
  }
  return {};
}

ObjectSet SchemaAlgebra::AnyObject() {
  ObjectSet object;
  object.others.push_back({any_string_, kAny});
  return object;
}

ArraySet SchemaAlgebra::AnyArray() {
  ArraySet array;
  array.items = kAny;
  return array;
}

ValueSet SchemaAlgebra::Everything() {
  ValueSet set;
  set.has_null = set.has_false = set.has_true = true;
  set.numbers = any_number_;
  set.strings = any_string_;
  set.objects.push_back(AnyObject());
  set.arrays.push_back(AnyArray());
  return set;
}

RegexId SchemaAlgebra::KeyTexts(std::vector<std::string> names) { return SpellingsOf(store_, std::move(names)); }

bool SchemaAlgebra::ContainsKey(RegexId keys, const std::string& name) {
  const std::string quoted = QuoteJson(name);
  return store_.Matches(keys, std::string_view(quoted).substr(1, quoted.size() - 2));
}

std::string SchemaAlgebra::PointerOf(ValueSetId id) const {
  while (!nodes_[id].operands.empty()) id = nodes_[id].operands.back();
  return nodes_[id].place.pointer;
}

ValueSetId SchemaAlgebra::ValueOfKey(const ObjectSet& set, const std::string& name) {
  for (const ObjectSet::Property& property : set.properties) {
    if (property.name == name) return property.value;
  }
  for (const ObjectSet::OtherKeys& other : set.others) {
    if (ContainsKey(other.keys, name)) return other.value;
  }
  return kNone;
}

void SchemaAlgebra::Unite(ValueSet& set, const ValueSet& other) {
  set.has_null = set.has_null || other.has_null;
  set.has_false = set.has_false || other.has_false;
  set.has_true = set.has_true || other.has_true;
  set.is_list = set.is_list || other.is_list;
  if (set.numbers == RegexStore::kNothing) {
    set.has_integer_type = other.has_integer_type;
  } else if (other.numbers != RegexStore::kNothing) {
    set.has_integer_type = set.has_integer_type && other.has_integer_type;
  }
  if (set.strings == RegexStore::kNothing) {
    set.listed_strings = other.listed_strings;
  } else if (other.strings != RegexStore::kNothing && set.listed_strings != other.listed_strings) {
    set.listed_strings = UnionOfLists(set.listed_strings.get(), other.listed_strings.get());
  }
  const bool has_all_numbers = set.numbers == any_number_ || other.numbers == any_number_;
  const bool has_all_strings = set.strings == any_string_ || other.strings == any_string_;
  set.numbers = has_all_numbers ? any_number_ : store_.Or({set.numbers, other.numbers});
  set.strings = has_all_strings ? any_string_ : store_.Or({set.strings, other.strings});
  set.objects.insert(set.objects.end(), other.objects.begin(), other.objects.end());
  set.arrays.insert(set.arrays.end(), other.arrays.begin(), other.arrays.end());
  CheckAlternatives(set);
}

void SchemaAlgebra::CheckAlternatives(const ValueSet& set) {
  if (std::max(set.objects.size(), set.arrays.size()) <= kMaxAlternatives) return;
  throw RequestError("JSON schema: too many alternatives for one value (limit " + std::to_string(kMaxAlternatives) +
                     ")");
}

ValueSet SchemaAlgebra::Intersect(const ValueSet& a, const ValueSet& b) {
  ValueSet set;
  set.has_null = a.has_null && b.has_null;
  set.has_false = a.has_false && b.has_false;
  set.has_true = a.has_true && b.has_true;
  set.is_list = a.is_list || b.is_list;
  set.has_integer_type = a.has_integer_type || b.has_integer_type;
  set.listed_strings = a.listed_strings != nullptr ? a.listed_strings : b.listed_strings;
  // All sets of numbers and strings are parts of the sets of all.
  set.numbers = a.numbers == any_number_   ? b.numbers
                : b.numbers == any_number_ ? a.numbers
                                           : store_.And({a.numbers, b.numbers});
  set.strings = IntersectStrings(a.strings, b.strings);
  for (const ObjectSet& x : a.objects) {
    for (const ObjectSet& y : b.objects) {
      ObjectSet object = Intersect(x, y);
      if (!IsEmpty(object)) set.objects.push_back(std::move(object));
    }
    CheckAlternatives(set);
  }
  for (const ArraySet& x : a.arrays) {
    for (const ArraySet& y : b.arrays) {
      ArraySet array = Intersect(x, y);
      if (!IsEmpty(array)) set.arrays.push_back(std::move(array));
    }
    CheckAlternatives(set);
  }
  return set;
}

ObjectSet SchemaAlgebra::Intersect(const ObjectSet& a, const ObjectSet& b) {
  ObjectSet object;
  std::map<std::string, size_t, std::less<>> in_b;
  std::set<std::string, std::less<>> in_a;
  for (size_t i = 0; i < b.properties.size(); ++i) in_b.emplace(b.properties[i].name, i);
  for (const ObjectSet::Property& property : a.properties) {
    in_a.insert(property.name);
    const auto it = in_b.find(property.name);
    const ValueSetId other = it == in_b.end() ? ValueOfKey(b, property.name) : b.properties[it->second].value;
    const bool is_required = property.is_required || (it != in_b.end() && b.properties[it->second].is_required);
    object.properties.push_back({property.name, Intersection({property.value, other}), is_required});
  }
  for (const ObjectSet::Property& property : b.properties) {
    if (in_a.contains(property.name)) continue;
    object.properties.push_back(
        {property.name, Intersection({property.value, ValueOfKey(a, property.name)}), property.is_required});
  }
  for (const ObjectSet::OtherKeys& x : a.others) {
    for (const ObjectSet::OtherKeys& y : b.others) {
      const RegexId keys = store_.And({x.keys, y.keys});
      const ValueSetId value = Intersection({x.value, y.value});
      if (!store_.IsNothing(keys)) object.others.push_back({keys, value});
    }
  }
  object.needed_keys = a.needed_keys;
  for (const RegexId keys : b.needed_keys) {
    if (std::ranges::find(a.needed_keys, keys) == a.needed_keys.end()) object.needed_keys.push_back(keys);
  }
  object.min_properties = std::max(a.min_properties, b.min_properties);
  object.max_properties = std::min(a.max_properties, b.max_properties);
  return object;
}

ArraySet SchemaAlgebra::Intersect(const ArraySet& a, const ArraySet& b) {
  ArraySet array;
  for (size_t i = 0; i < std::max(a.prefix.size(), b.prefix.size()); ++i) {
    const ValueSetId x = i < a.prefix.size() ? a.prefix[i] : a.items;
    const ValueSetId y = i < b.prefix.size() ? b.prefix[i] : b.items;
    array.prefix.push_back(Intersection({x, y}));
  }
  array.items = Intersection({a.items, b.items});
  array.min_items = std::max(a.min_items, b.min_items);
  array.max_items = std::min(a.max_items, b.max_items);
  array.has_unique_items = a.has_unique_items || b.has_unique_items;
  array.contains = a.contains ? a.contains : b.contains;
  if (a.contains && b.contains) {
    if (a.contains->value != b.contains->value) throw InexactError("more than one contains for an array");
    array.contains->min = std::max(a.contains->min, b.contains->min);
    array.contains->max = std::min(a.contains->max, b.contains->max);
  }
  return array;
}

bool SchemaAlgebra::IsEmpty(ValueSetId id) {
  if (id == kNone) return true;
  if (id == kAny || nodes_[id].is_open || nodes_[id].emptiness >= 2 || nesting_ == kMaxNesting) return false;
  if (nodes_[id].emptiness == 1) return true;
  bool is_empty = false;
  try {
    const ValueSet& set = SetOf(id);
    nodes_[id].emptiness = 3;
    ++nesting_;
    is_empty = IsEmpty(set);
    --nesting_;
  } catch (const SelfReferenceError&) {
    return false;  // depends on what is being computed
  }
  nodes_[id].emptiness = is_empty ? 1 : 2;
  return is_empty;
}

bool SchemaAlgebra::IsEmpty(const ValueSet& set) {
  return !set.has_null && !set.has_false && !set.has_true && store_.IsNothing(set.numbers) &&
         store_.IsNothing(set.strings) &&
         std::ranges::all_of(set.objects, [this](const ObjectSet& object) { return IsEmpty(object); }) &&
         std::ranges::all_of(set.arrays, [this](const ArraySet& array) { return IsEmpty(array); });
}

bool SchemaAlgebra::IsEmpty(const ObjectSet& object) {
  uint64_t num_required = 0;
  uint64_t num_possible = object.others.empty() ? 0 : ObjectSet().max_properties / 2;
  for (const ObjectSet::Property& property : object.properties) {
    num_required += property.is_required ? 1 : 0;
    num_possible += property.value == kNone ? 0 : 1;
    if (property.is_required && IsEmpty(property.value)) return true;
  }
  const auto can_have = [&](RegexId keys) {
    const auto is_possible = [&](const ObjectSet::Property& property) {
      return property.value != kNone && ContainsKey(keys, property.name);
    };
    const auto may_contain = [&](const ObjectSet::OtherKeys& other) {
      return other.value != kNone && !store_.IsNothing(store_.And({keys, other.keys}));
    };
    return std::ranges::any_of(object.properties, is_possible) || std::ranges::any_of(object.others, may_contain);
  };
  if (!std::ranges::all_of(object.needed_keys, can_have)) return true;
  if (!object.needed_keys.empty() && object.max_properties == 0) return true;
  return num_required > object.max_properties || object.min_properties > object.max_properties ||
         num_possible < object.min_properties;
}

bool SchemaAlgebra::IsEmpty(const ArraySet& array) {
  const uint64_t min = std::max(array.min_items, array.contains ? array.contains->min : 0);
  if (min > array.max_items) return true;
  if (array.contains &&
      (array.contains->min > array.contains->max || (array.contains->min > 0 && IsEmpty(array.contains->value)))) {
    return true;
  }
  for (size_t i = 0; i < array.prefix.size() && i < min; ++i) {
    if (IsEmpty(array.prefix[i])) return true;
  }
  return min > array.prefix.size() && IsEmpty(array.items);
}

}  // namespace vllm
