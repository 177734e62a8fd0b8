// SchemaAlgebra: the sets of values that the schemas of a document allow, and their intersections, unions and
// complements. A set is computed when it is needed, so recursive schemas have finitely many. What cannot be described
// exactly is rejected by the JSON Pointer of the keyword. Used by the schema compiler; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/structured_output/json_schema/schema_document.h"
#include "engine/structured_output/json_schema/value_set.h"

namespace vllm {

class SchemaAlgebra {
 public:
  // Limits. A schema that needs more is rejected.
  static constexpr size_t kMaxSets = 200'000;
  static constexpr size_t kMaxAlternatives = 2'000;  // objects, or arrays, in one set
  static constexpr int kMaxNesting = 400;            // schemas that apply to the same value
  static constexpr uint64_t kMaxCount = 1'000'000;   // of minItems, maxLength and the others

  static constexpr ValueSetId kNone = 0;  // no value
  static constexpr ValueSetId kAny = 1;   // every value

  // Both must outlive this object.
  SchemaAlgebra(const SchemaDocument& document, RegexStore& store);

  // The values that the root schema allows.
  ValueSetId Root();
  // Throws RequestError; GrammarLimitError; InexactError.
  const ValueSet& SetOf(ValueSetId id);
  // Returns true if the set is known to have no value. False may also mean that this is hard to find out.
  bool IsEmpty(ValueSetId id);
  bool IsEmpty(const ValueSet& set);
  bool IsEmpty(const ObjectSet& object);
  bool IsEmpty(const ArraySet& array);

  ValueSetId Intersection(std::vector<ValueSetId> ids);
  ValueSetId Union(std::vector<ValueSetId> ids);
  ValueSetId Complement(ValueSetId id);

  RegexStore& store() { return store_; }
  // Whether 2.0 is no integer, as in draft 4.
  bool integers_have_no_fraction() const { return document_.draft() <= 4; }
  // The JSON Pointer of a schema that the set comes from, or of one of them.
  std::string PointerOf(ValueSetId id) const;
  // Formats that are unknown and not enforced.
  const std::vector<std::string>& unknown_formats() const { return unknown_formats_; }
  // The numbers of enum and const that are written with a fraction of zeros, without it.
  const std::set<std::string>& listed_with_fraction() const { return listed_with_fraction_; }
  // Why the draft of the document ignores keywords.
  const std::set<std::string>& ignored_keywords() const { return ignored_keywords_; }

 private:
  enum class Kind : uint8_t { kNone, kAny, kSchema, kIntersection, kUnion, kComplement, kFixed };
  struct Node {
    Kind kind = Kind::kNone;
    SchemaDocument::Place place = {};         // kSchema
    size_t scope = 0;                         // kSchema: of scopes_
    std::vector<ValueSetId> operands = {};    // kIntersection, kUnion, kComplement
    std::unique_ptr<ValueSet> set = nullptr;  // null: not computed
    bool is_open = false;                     // is being computed
    int8_t emptiness = 0;                     // 0 unknown, 1 empty, 2 not known to be empty, 3 being found out
  };

  ValueSetId Add(Kind kind, std::vector<ValueSetId> operands);
  ValueSetId SchemaId(const SchemaJson& schema, const std::string& pointer);
  ValueSetId FixedId(ValueSet set);
  // Returns the dynamic scope inside a schema that is applied in the current one.
  size_t ScopeInside(const SchemaJson& schema);
  // Returns what the $ref or $dynamicRef of a schema refers to, or nothing if it has none.
  std::optional<SchemaDocument::Place> Target(const SchemaJson& schema, const std::string& pointer, const char* key);

  ValueSet Compute(ValueSetId id);
  ValueSet ComputeSchema(const SchemaDocument::Place& place);
  void ApplyTypes(const SchemaJson& schema, const std::string& pointer, ValueSet& set);
  void ApplyValues(const SchemaJson& schema, const std::string& pointer, ValueSet& set);
  void ApplyNumbers(const SchemaJson& schema, const std::string& pointer, ValueSet& set);
  void ApplyStrings(const SchemaJson& schema, const std::string& pointer, ValueSet& set);
  void ApplyObjects(const SchemaJson& schema, const std::string& pointer, ValueSet& set);
  void ApplyArrays(const SchemaJson& schema, const std::string& pointer, ValueSet& set);
  void ApplyApplicators(const SchemaJson& schema, const std::string& pointer, ValueSet& set);
  void ApplyDependencies(const SchemaJson& schema, const std::string& pointer, ValueSet& set);
  void ApplyUnevaluated(const SchemaJson& schema, const std::string& pointer, ValueSet& set);
  // Which keys and items of a value the keywords of a schema evaluate, if the value is in `values`.
  struct Evaluation {
    ValueSetId values = kAny;
    RegexId keys = RegexStore::kNothing;
    uint64_t num_items = 0;                    // at the start
    std::vector<ValueSetId> other_items = {};  // and those that `contains` matches
    bool operator==(const Evaluation&) const = default;
  };
  // Returns what a schema evaluates in the values that it allows: everything that one of these says, if the value is in
  // its set.
  std::vector<Evaluation> EvaluationsOf(const SchemaJson& schema, const std::string& pointer, bool is_outermost);
  // Adds those of the keywords that apply other schemas to the same value, except references.
  std::vector<Evaluation> AddConditional(const SchemaJson& schema, const std::string& pointer,
                                         std::vector<Evaluation> evaluations);
  std::vector<Evaluation> Product(const std::vector<Evaluation>& a, const std::vector<Evaluation>& b,
                                  const std::string& pointer);
  void CheckUnsupported(const SchemaJson& schema, const std::string& pointer);
  // Returns the value of a keyword, or null if the schema does not have it or its draft ignores it.
  const SchemaJson* Find(const SchemaJson& schema, const char* key);

  ValueSet Everything();
  ValueSet SetOfValue(const SchemaJson& value, const std::string& pointer);
  // Returns the canonical text of a number of enum or const.
  std::string ListedNumber(const SchemaJson& value, const std::string& pointer);
  void ListStrings(std::vector<std::string> strings, ValueSet& set);
  ValueSet Intersect(const ValueSet& a, const ValueSet& b);
  ObjectSet Intersect(const ObjectSet& a, const ObjectSet& b);
  ArraySet Intersect(const ArraySet& a, const ArraySet& b);
  // Throw InexactError, as ComplementOf does.
  ValueSet Difference(const ValueSet& a, const ValueSet& b);
  std::vector<ObjectSet> Difference(const ObjectSet& a, const ObjectSet& b);
  ValueSet ExactlyOne(const std::vector<ValueSetId>& ids);
  void Unite(ValueSet& set, const ValueSet& other);
  static void CheckAlternatives(const ValueSet& set);
  std::vector<ArraySet> ComplementOf(const ArraySet& set);
  RegexId IntersectStrings(RegexId a, RegexId b);
  RegexId SubtractStrings(RegexId a, RegexId b);
  // The texts inside the quotation marks that spell one of these names.
  RegexId KeyTexts(std::vector<std::string> names);
  // Whether a set of keys contains this name.
  bool ContainsKey(RegexId keys, const std::string& name);
  // The values that a key may have in the objects of `set`.
  ValueSetId ValueOfKey(const ObjectSet& set, const std::string& name);
  ObjectSet AnyObject();
  ArraySet AnyArray();
  uint64_t Count(const SchemaJson& value, const std::string& pointer) const;
  void NarrowStrings(ValueSet& set, RegexId strings);
  void NarrowNumbers(ValueSet& set, RegexId numbers);
  RegexId Pattern(const std::string& pattern, const std::string& pointer);

  const SchemaDocument& document_;
  RegexStore& store_;
  std::vector<Node> nodes_;
  std::map<std::pair<const SchemaJson*, size_t>, ValueSetId> schema_ids_;  // by schema and dynamic scope
  // Dynamic scopes: base URIs of the schema resources that matter, the outermost first.
  std::vector<std::vector<std::string>> scopes_ = {{}};
  std::map<std::vector<std::string>, size_t> scope_ids_ = {{{}, 0}};
  size_t scope_ = 0;  // of the schema that is being computed
  std::map<std::pair<Kind, std::vector<ValueSetId>>, ValueSetId> combined_ids_;
  RegexId any_character_, any_string_, any_number_, any_integer_;
  std::vector<std::string> unknown_formats_;
  std::set<std::string> ignored_keywords_;
  std::set<std::string> listed_with_fraction_;
  int nesting_ = 0;
};

}  // namespace vllm
