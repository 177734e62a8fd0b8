// SchemaDocument: a JSON Schema text, parsed, with its references resolved. Immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"

namespace vllm {

using SchemaJson = nlohmann::ordered_json;

// Throws RequestError `JSON schema: #<JSON Pointer>: <why>`.
[[noreturn]] void FailSchema(const std::string& pointer, const std::string& why);
// Appends a key to a JSON Pointer (RFC 6901).
std::string ChildPointer(const std::string& pointer, std::string_view key);
std::string ChildPointer(const std::string& pointer, size_t index);

class SchemaDocument {
 public:
  static constexpr size_t kMaxBytes = size_t{4} << 20;
  static constexpr int kMaxDepth = 128;
  static constexpr size_t kMaxSubschemas = 200'000;
  static constexpr size_t kMaxMembers = 20'000;  // of one object; fewer if there are several large objects

  struct Place {
    const SchemaJson* schema = nullptr;
    std::string pointer;
  };

  // Throws RequestError.
  explicit SchemaDocument(std::string_view text);

  const SchemaJson& root() const { return root_; }
  // The draft that $schema names: 3, 4, 6, 7, 2019 or, also if it names none or another one, 2020.
  int draft() const { return draft_; }
  // Returns what a $ref in the schema at `pointer` refers to. Throws RequestError that names the $ref.
  Place Resolve(const SchemaJson& schema, const std::string& pointer, const std::string& reference) const;
  // Returns what a $dynamicRef refers to in a dynamic scope: a list of base URIs, the outermost first.
  Place ResolveDynamic(const SchemaJson& schema, const std::string& pointer, const std::string& reference,
                       const std::vector<std::string>& scope) const;
  // Returns the base URI of a subschema if the dynamic scope matters for what it contains, else null: the schema
  // resource has a $dynamicAnchor, and another resource has the same one.
  const std::string* DynamicBaseOf(const SchemaJson& schema) const;

 private:
  struct Resource {
    const SchemaJson* root;
    std::string pointer;
  };
  void FindSubschemas();
  Place Follow(const Resource& resource, std::string_view fragment) const;

  SchemaJson root_;
  int draft_ = 2020;
  std::unordered_map<std::string, int> num_dynamic_anchors_;      // by name
  std::unordered_map<std::string, Place> dynamic_anchors_;        // by absolute URI with fragment
  std::unordered_map<std::string, Resource> resources_;           // by absolute URI without fragment
  std::unordered_map<std::string, Place> anchors_;                // by absolute URI with fragment
  std::unordered_map<const SchemaJson*, std::string> base_uris_;  // of the subschemas
};

}  // namespace vllm
