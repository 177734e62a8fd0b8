// Differences of sets of values, for `not`, `oneOf` and `if`. The members of SchemaAlgebra that schema_algebra.cc does
// not define.
#include <algorithm>

#include "engine/structured_output/json_schema/inexact_error.h"
#include "engine/structured_output/json_schema/schema_algebra.h"

namespace vllm {

ValueSet SchemaAlgebra::Difference(const ValueSet& a, const ValueSet& b) {
  ValueSet set;
  set.has_null = a.has_null && !b.has_null;
  set.has_false = a.has_false && !b.has_false;
  set.has_true = a.has_true && !b.has_true;
  set.is_list = a.is_list;
  set.has_integer_type = a.has_integer_type;
  set.listed_strings = a.listed_strings;
  set.numbers = b.numbers == any_number_ ? RegexStore::kNothing : store_.And({a.numbers, store_.Not(b.numbers)});
  set.strings = SubtractStrings(a.strings, b.strings);
  set.objects = a.objects;
  for (const ObjectSet& excluded : b.objects) {
    std::vector<ObjectSet> rest;
    for (ObjectSet& object : set.objects) {
      if (IsEmpty(Intersect(object, excluded))) {
        rest.push_back(std::move(object));
        continue;
      }
      for (ObjectSet& part : Difference(object, excluded)) rest.push_back(std::move(part));
    }
    set.objects = std::move(rest);
    CheckAlternatives(set);
  }
  set.arrays = a.arrays;
  for (const ArraySet& excluded : b.arrays) {
    std::vector<ArraySet> rest;
    for (ArraySet& array : set.arrays) {
      if (IsEmpty(Intersect(array, excluded))) {
        rest.push_back(std::move(array));
        continue;
      }
      for (const ArraySet& outside : ComplementOf(excluded)) {
        ArraySet part = Intersect(array, outside);
        if (!IsEmpty(part)) rest.push_back(std::move(part));
      }
    }
    set.arrays = std::move(rest);
    CheckAlternatives(set);
  }
  return set;
}

// No text of a character is the beginning of another one, so the number of characters of a text is certain.
RegexId SchemaAlgebra::IntersectStrings(RegexId a, RegexId b) {
  if (a == any_string_) return b;
  if (b == any_string_) return a;
  const auto x = store_.CountsOf(a, any_character_);
  const auto y = store_.CountsOf(b, any_character_);
  if (!x || !y) return store_.And({a, store_.WithEverythingAtEnd(b, any_string_)});
  const uint32_t min = std::max(x->first, y->first);
  const uint32_t max = std::min(x->second, y->second);
  return min > max ? RegexStore::kNothing : store_.Repeat(any_character_, min, max);
}

RegexId SchemaAlgebra::SubtractStrings(RegexId a, RegexId b) {
  if (b == any_string_) return RegexStore::kNothing;
  const auto x = store_.CountsOf(a, any_character_);
  const auto y = store_.CountsOf(b, any_character_);
  if (!x || !y) return store_.And({a, store_.Not(store_.WithEverythingAtEnd(b, any_string_))});
  const auto between = [this](uint32_t min, uint32_t max) {
    return min > max ? RegexStore::kNothing : store_.Repeat(any_character_, min, max);
  };
  const RegexId shorter = y->first == 0 ? RegexStore::kNothing : between(x->first, std::min(x->second, y->first - 1));
  const RegexId longer = y->second == RegexStore::kUnbounded ? RegexStore::kNothing
                                                             : between(std::max(x->first, y->second + 1), x->second);
  return store_.Or({shorter, longer});
}

std::vector<ObjectSet> SchemaAlgebra::Difference(const ObjectSet& a, const ObjectSet& b) {
  std::vector<ObjectSet> parts;
  const auto add = [&](const ObjectSet& outside) {
    ObjectSet part = Intersect(a, outside);
    if (!IsEmpty(part)) parts.push_back(std::move(part));
  };
  // Objects in which a key has such a value, or is absent.
  const auto add_key = [&](const std::string& name, ValueSetId value, bool is_required) {
    ObjectSet object;
    object.properties.push_back({name, value, is_required});
    object.others.push_back({store_.And({any_string_, store_.Not(KeyTexts({name}))}), kAny});
    add(object);
  };
  // Objects that have one of these keys. Only whether it is there can be required, because a repeated key may change
  // its value.
  const auto add_other_key = [&](RegexId keys) {
    if (store_.IsNothing(keys)) return;
    ObjectSet object = AnyObject();
    object.needed_keys.push_back(keys);
    add(object);
  };
  std::vector<std::string> names;
  for (const ObjectSet::Property& property : b.properties) {
    names.push_back(property.name);
    const ValueSetId value = ValueOfKey(a, property.name);
    if (Intersection({value, property.value}) != value) add_key(property.name, Complement(property.value), true);
    if (property.is_required) add_key(property.name, kNone, false);
  }
  for (const ObjectSet::Property& property : a.properties) {
    if (std::ranges::find(names, property.name) != names.end()) continue;
    const ValueSetId value = ValueOfKey(b, property.name);
    if (Intersection({value, property.value}) != property.value) add_key(property.name, Complement(value), true);
  }
  std::vector<RegexId> covered = {KeyTexts(names)};
  for (const ObjectSet::OtherKeys& other : b.others) covered.push_back(other.keys);
  const RegexId forbidden = store_.Not(store_.Or(std::move(covered)));
  for (const ObjectSet::OtherKeys& x : a.others) {
    if (x.value == kNone) continue;
    for (const ObjectSet::OtherKeys& y : b.others) {
      const ValueSetId both = Intersection({x.value, y.value});
      if (both == x.value) continue;
      const RegexId keys = store_.And({x.keys, y.keys});
      if (!store_.IsNothing(keys) && !IsEmpty(both)) {
        throw InexactError("the opposite of a rule for keys that are not declared");
      }
      add_other_key(keys);
    }
    add_other_key(store_.And({x.keys, forbidden}));
  }
  for (const RegexId keys : b.needed_keys) {
    ObjectSet object;
    object.others.push_back({store_.And({any_string_, store_.Not(keys)}), kAny});
    add(object);
  }
  if (b.min_properties > 0) {
    ObjectSet object = AnyObject();
    object.max_properties = b.min_properties - 1;
    add(object);
  }
  if (b.max_properties < ObjectSet().max_properties) {
    ObjectSet object = AnyObject();
    object.min_properties = b.max_properties + 1;
    add(object);
  }
  return parts;
}

std::vector<ArraySet> SchemaAlgebra::ComplementOf(const ArraySet& set) {
  if (set.has_unique_items) throw InexactError("the opposite of uniqueItems");
  std::vector<ArraySet> parts;
  for (size_t i = 0; i < set.prefix.size(); ++i) {
    if (set.prefix[i] == kAny) continue;
    ArraySet array = AnyArray();
    array.prefix.assign(i, kAny);
    array.prefix.push_back(Complement(set.prefix[i]));
    array.min_items = i + 1;
    parts.push_back(std::move(array));
  }
  if (set.items == kNone) {
    parts.push_back(AnyArray());
    parts.back().min_items = set.prefix.size() + 1;
  } else if (set.items != kAny) {
    if (!set.prefix.empty()) throw InexactError("the opposite of items after prefixItems");
    parts.push_back(AnyArray());
    parts.back().contains = ArraySet::Contains{.value = Complement(set.items)};
  }
  if (set.min_items > 0) {
    parts.push_back(AnyArray());
    parts.back().max_items = set.min_items - 1;
  }
  if (set.max_items < ArraySet().max_items) {
    parts.push_back(AnyArray());
    parts.back().min_items = set.max_items + 1;
  }
  if (set.contains && set.contains->min > 0) {
    parts.push_back(AnyArray());
    if (set.contains->min == 1) {
      parts.back().items = Complement(set.contains->value);
    } else {
      parts.back().contains = ArraySet::Contains{.value = set.contains->value, .min = 0, .max = set.contains->min - 1};
    }
  }
  if (set.contains && set.contains->max < ArraySet::Contains().max) {
    parts.push_back(AnyArray());
    parts.back().contains = ArraySet::Contains{.value = set.contains->value, .min = set.contains->max + 1};
  }
  return parts;
}

ValueSet SchemaAlgebra::ExactlyOne(const std::vector<ValueSetId>& ids) {
  ValueSet set;
  for (size_t i = 0; i < ids.size(); ++i) {
    ValueSet one = SetOf(ids[i]);
    for (size_t j = 0; j < ids.size(); ++j) {
      if (j != i) one = Difference(one, SetOf(ids[j]));
    }
    Unite(set, one);
  }
  return set;
}

}  // namespace vllm
