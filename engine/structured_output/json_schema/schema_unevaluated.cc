// unevaluatedProperties and unevaluatedItems. The members of SchemaAlgebra that schema_algebra.cc does not define.
//
// Evaluating more only allows more values. So a branch that may or may not match, such as one of anyOf, gives two
// evaluations: one for every value, which leaves out the branch, and one for the values that match it.
#include <algorithm>

#include "engine/structured_output/json_schema/schema_algebra.h"

namespace vllm {
namespace {

constexpr size_t kMaxEvaluations = 256;  // of one schema
constexpr uint64_t kAllItems = UINT64_MAX;

}  // namespace

std::vector<SchemaAlgebra::Evaluation> SchemaAlgebra::Product(const std::vector<Evaluation>& a,
                                                              const std::vector<Evaluation>& b,
                                                              const std::string& pointer) {
  std::vector<Evaluation> product;
  for (const Evaluation& x : a) {
    for (const Evaluation& y : b) {
      Evaluation both;
      both.values = Intersection({x.values, y.values});
      if (both.values == kNone) continue;
      both.keys = x.keys == any_string_ || y.keys == any_string_ ? any_string_ : store_.Or({x.keys, y.keys});
      both.num_items = std::max(x.num_items, y.num_items);
      both.other_items = x.other_items;
      both.other_items.insert(both.other_items.end(), y.other_items.begin(), y.other_items.end());
      if (std::ranges::find(product, both) == product.end()) product.push_back(std::move(both));
    }
    if (product.size() > kMaxEvaluations) {
      FailSchema(pointer, "unevaluated items or properties depend on too many conditions (limit " +
                              std::to_string(kMaxEvaluations) + ")");
    }
  }
  return product;
}

std::vector<SchemaAlgebra::Evaluation> SchemaAlgebra::EvaluationsOf(const SchemaJson& schema,
                                                                    const std::string& pointer, bool is_outermost) {
  Evaluation own;
  if (!schema.is_object()) return {own};
  const size_t outer_scope = scope_;
  scope_ = ScopeInside(schema);
  std::vector<RegexId> keys;
  if (const SchemaJson* map = Find(schema, "properties"); map != nullptr && map->is_object()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : map->items()) names.push_back(name);
    keys.push_back(KeyTexts(std::move(names)));
  }
  if (const SchemaJson* map = Find(schema, "patternProperties"); map != nullptr && map->is_object()) {
    const std::string where = ChildPointer(pointer, "patternProperties");
    for (const auto& [pattern, value] : map->items()) keys.push_back(Pattern(pattern, ChildPointer(where, pattern)));
  }
  const bool has_all_keys =
      schema.contains("additionalProperties") || (!is_outermost && schema.contains("unevaluatedProperties"));
  own.keys = has_all_keys ? any_string_ : store_.Or(std::move(keys));
  const SchemaJson* items = Find(schema, "items");
  const bool is_tuple = items != nullptr && items->is_array();
  const SchemaJson* prefix = is_tuple ? items : Find(schema, "prefixItems");
  if (prefix != nullptr && prefix->is_array()) own.num_items = prefix->size();
  if ((items != nullptr && !is_tuple) || (is_tuple && schema.contains("additionalItems")) ||
      (!is_outermost && schema.contains("unevaluatedItems"))) {
    own.num_items = kAllItems;
  }
  if (const SchemaJson* value = Find(schema, "contains")) {
    own.other_items.push_back(SchemaId(*value, ChildPointer(pointer, "contains")));
  }
  std::vector<Evaluation> evaluations = {own};
  for (const char* key : {"$ref", "$dynamicRef"}) {
    if (const std::optional<SchemaDocument::Place> place = Target(schema, pointer, key)) {
      evaluations = Product(evaluations, EvaluationsOf(*place->schema, place->pointer, false), pointer);
    }
  }
  evaluations = AddConditional(schema, pointer, std::move(evaluations));
  scope_ = outer_scope;
  return evaluations;
}

std::vector<SchemaAlgebra::Evaluation> SchemaAlgebra::AddConditional(const SchemaJson& schema,
                                                                     const std::string& pointer,
                                                                     std::vector<Evaluation> evaluations) {
  // What the subschema evaluates if the value matches it.
  const auto matching = [&](const SchemaJson& part, const std::string& where) {
    return Product({{.values = SchemaId(part, where)}}, EvaluationsOf(part, where, false), where);
  };
  const auto multiply = [&](const std::vector<Evaluation>& other) {
    evaluations = Product(evaluations, other, pointer);
  };
  // Evaluates nothing, for any value.
  const auto is_nothing = [&](const std::vector<Evaluation>& list) {
    return std::ranges::all_of(list, [](const Evaluation& one) {
      return one.keys == RegexStore::kNothing && one.num_items == 0 && one.other_items.empty();
    });
  };
  for (const char* key : {"allOf", "anyOf", "oneOf"}) {
    const SchemaJson* list = Find(schema, key);
    if (list == nullptr) continue;
    const std::string where = ChildPointer(pointer, key);
    std::vector<Evaluation> one_of;
    for (size_t i = 0; i < list->size(); ++i) {
      const bool is_certain = std::string_view(key) == "allOf";
      std::vector<Evaluation> option = is_certain ? EvaluationsOf((*list)[i], ChildPointer(where, i), false)
                                                  : matching((*list)[i], ChildPointer(where, i));
      if (std::string_view(key) == "oneOf") {
        one_of.insert(one_of.end(), option.begin(), option.end());
      } else if (!is_nothing(option)) {
        if (std::string_view(key) == "anyOf") option.emplace_back();
        multiply(option);
      }
    }
    if (!is_nothing(one_of)) multiply(one_of);
  }
  if (const SchemaJson* condition = Find(schema, "if")) {
    const std::string where = ChildPointer(pointer, "if");
    std::vector<Evaluation> met = matching(*condition, where);
    std::vector<Evaluation> rest = {{}};
    if (const SchemaJson* then = Find(schema, "then")) {
      met = Product(met, EvaluationsOf(*then, ChildPointer(pointer, "then"), false), pointer);
    }
    if (const SchemaJson* otherwise = Find(schema, "else")) {
      rest = EvaluationsOf(*otherwise, ChildPointer(pointer, "else"), false);
      if (!is_nothing(rest)) {
        rest = Product({{.values = Complement(SchemaId(*condition, where))}}, rest, pointer);
      }
    }
    met.insert(met.end(), rest.begin(), rest.end());
    if (!is_nothing(met)) multiply(met);
  }
  for (const char* key : {"dependentSchemas", "dependencies"}) {
    const SchemaJson* map = Find(schema, key);
    if (map == nullptr) continue;
    for (const auto& [name, part] : map->items()) {
      if (part.is_array()) continue;
      std::vector<Evaluation> present = matching(part, ChildPointer(ChildPointer(pointer, key), name));
      if (is_nothing(present)) continue;
      ValueSet with_name;
      with_name.objects = {AnyObject()};
      with_name.objects[0].needed_keys.push_back(KeyTexts({name}));
      present = Product(present, {{.values = FixedId(std::move(with_name))}}, pointer);
      present.emplace_back();
      multiply(present);
    }
  }
  return evaluations;
}

void SchemaAlgebra::ApplyUnevaluated(const SchemaJson& schema, const std::string& pointer, ValueSet& set) {
  const auto value_of = [&](const char* key) {
    const SchemaJson* value = Find(schema, key);
    return value == nullptr ? kAny : SchemaId(*value, ChildPointer(pointer, key));
  };
  const ValueSetId other_values = value_of("unevaluatedProperties");
  const ValueSetId other_items = value_of("unevaluatedItems");
  if (other_values == kAny && other_items == kAny) return;
  std::vector<ObjectSet> objects;
  std::vector<ArraySet> arrays;
  for (const Evaluation& evaluation : EvaluationsOf(schema, pointer, true)) {
    ValueSet limit = Everything();
    limit.objects[0].others = {{evaluation.keys, kAny},
                               {store_.And({any_string_, store_.Not(evaluation.keys)}), other_values}};
    std::erase_if(limit.objects[0].others, [&](const auto& other) { return store_.IsNothing(other.keys); });
    if (evaluation.num_items != kAllItems) {
      limit.arrays[0].prefix.assign(evaluation.num_items, kAny);
      std::vector<ValueSetId> items = evaluation.other_items;
      items.push_back(other_items);
      limit.arrays[0].items = Union(std::move(items));
    }
    ValueSet part = Intersect(set, limit);
    if (evaluation.values != kAny) part = Intersect(part, SetOf(evaluation.values));
    objects.insert(objects.end(), part.objects.begin(), part.objects.end());
    arrays.insert(arrays.end(), part.arrays.begin(), part.arrays.end());
  }
  set.objects = std::move(objects);
  set.arrays = std::move(arrays);
  CheckAlternatives(set);
}

}  // namespace vllm
