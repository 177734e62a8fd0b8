#include "engine/structured_output/json_schema/schema_document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "engine/config/escape.h"

namespace vllm {
namespace {

// The keywords whose values are schemas, lists of schemas, or objects of schemas.
constexpr std::array<std::string_view, 13> kOne = {"additionalProperties",
                                                   "items",
                                                   "contains",
                                                   "not",
                                                   "if",
                                                   "then",
                                                   "else",
                                                   "propertyNames",
                                                   "unevaluatedItems",
                                                   "unevaluatedProperties",
                                                   "additionalItems",
                                                   "contentSchema",
                                                   "items"};
constexpr std::array<std::string_view, 5> kLists = {"allOf", "anyOf", "oneOf", "prefixItems", "items"};
constexpr std::array<std::string_view, 6> kMaps = {"properties",  "patternProperties", "$defs",
                                                   "definitions", "dependentSchemas",  "dependencies"};

// What the URIs of $schema contain.
constexpr std::pair<std::string_view, int> kDrafts[] = {
    {"draft-03", 3}, {"draft-04", 4}, {"draft-06", 6}, {"draft-07", 7}, {"draft/2019-09", 2019}};

template <size_t N>
bool Contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool HasScheme(std::string_view uri) {
  const size_t colon = uri.find(':');
  return colon != uri.npos && colon > 0 && uri.find_first_of("/?#") > colon;
}

// Resolves a reference against a base URI (RFC 3986, section 5.2), both without fragments.
std::string ResolveUri(const std::string& base, const std::string& reference) {
  if (reference.empty()) return base;
  if (HasScheme(reference)) return reference;
  const size_t scheme = HasScheme(base) ? base.find(':') + 1 : 0;
  if (reference.starts_with("//")) return base.substr(0, scheme) + reference;
  size_t path = scheme;
  if (base.compare(scheme, 2, "//") == 0) path = std::min(base.size(), base.find('/', scheme + 2));
  if (reference.starts_with('/')) return base.substr(0, path) + reference;
  const size_t slash = base.rfind('/');
  std::string joined = slash == std::string::npos || slash < path ? base.substr(0, path) + (path > scheme ? "/" : "")
                                                                  : base.substr(0, slash + 1);
  std::string_view rest = reference;
  while (rest.starts_with("./") || rest.starts_with("../")) {
    if (rest.starts_with("../") && joined.size() > path + 1) {
      const size_t parent = joined.rfind('/', joined.size() - 2);
      joined.erase(parent == std::string::npos ? path : parent + 1);
    }
    rest.remove_prefix(rest.find('/') + 1);
  }
  return joined + std::string(rest);
}

std::optional<std::string> DecodePercent(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
    if (error != std::errc() || end != text.data() + i + 3) return std::nullopt;
    bytes += static_cast<char>(value);
    i += 2;
  }
  return bytes;
}

std::optional<std::string> DecodeToken(std::string_view token) {
  std::string key;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      key += token[i];
      continue;
    }
    if (++i == token.size() || (token[i] != '0' && token[i] != '1')) return std::nullopt;
    key += token[i] == '0' ? '~' : '/';
  }
  return key;
}

}  // namespace

void FailSchema(const std::string& pointer, const std::string& why) {
  throw RequestError("JSON schema: #" + Escape(pointer) + ": " + why);
}

std::string ChildPointer(const std::string& pointer, std::string_view key) {
  std::string out = pointer + "/";
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

std::string ChildPointer(const std::string& pointer, size_t index) { return pointer + "/" + std::to_string(index); }

SchemaDocument::SchemaDocument(std::string_view text) {
  if (text.size() > kMaxBytes) {
    FailSchema("", "too long (" + std::to_string(text.size()) + " bytes, limit " + std::to_string(kMaxBytes) + ")");
  }
  // SchemaJson compares a key with all others of its object, which takes minutes for the most keys that fit in
  // kMaxBytes.
  constexpr size_t kMaxKeyComparisons = kMaxMembers * (kMaxMembers - 1) / 2;
  size_t num_comparisons = 0;
  std::array<size_t, kMaxDepth + 2> num_members{};  // of the open object at each depth
  const auto check_limits = [&](int depth, SchemaJson::parse_event_t event, SchemaJson&) {
    if (depth > kMaxDepth) FailSchema("", "nested too deeply (limit " + std::to_string(kMaxDepth) + " levels)");
    const auto level = static_cast<size_t>(depth);
    if (event == SchemaJson::parse_event_t::object_start) num_members[level + 1] = 0;
    if (event == SchemaJson::parse_event_t::key) num_comparisons += num_members[level]++;
    if (num_comparisons > kMaxKeyComparisons) {
      FailSchema("", "objects with too many members (limit " + std::to_string(kMaxMembers) + " in one object)");
    }
    return true;
  };
  try {
    root_ = SchemaJson::parse(text, check_limits);
  } catch (const SchemaJson::exception& e) {
    // Messages have the form "[json.exception.parse_error.101] parse error at line 1, column 2: ...".
    const std::string_view what = e.what();
    throw RequestError("JSON schema: not JSON: " + Escape(what.substr(std::min(what.size(), what.find("] ") + 2))));
  }
  if (const auto it = root_.is_object() ? root_.find("$schema") : root_.end(); it != root_.end() && it->is_string()) {
    const auto& uri = it->get_ref<const std::string&>();
    for (const auto& [name, draft] : kDrafts) {
      if (uri.find(name) != uri.npos) draft_ = draft;
    }
  }
  FindSubschemas();
}

void SchemaDocument::FindSubschemas() {
  struct Visit {
    const SchemaJson* schema;
    std::string pointer;
    std::string base;
  };
  resources_[""] = {&root_, ""};
  std::vector<Visit> pending = {{&root_, "", ""}};
  while (!pending.empty()) {
    Visit visit = std::move(pending.back());
    pending.pop_back();
    if (base_uris_.size() == kMaxSubschemas) {
      FailSchema(visit.pointer, "too many subschemas (limit " + std::to_string(kMaxSubschemas) + ")");
    }
    const SchemaJson& schema = *visit.schema;
    if (schema.is_object()) {
      for (const char* key : {"$id", "id"}) {
        const auto it = schema.find(key);
        if (it == schema.end() || !it->is_string()) continue;
        const std::string id = it->get<std::string>();
        const size_t hash = id.find('#');
        if (hash == 0) {
          anchors_.try_emplace(visit.base + id, Place{&schema, visit.pointer});  // an anchor of older drafts
        } else {
          visit.base = ResolveUri(visit.base, id.substr(0, hash));
          resources_.try_emplace(visit.base, Resource{&schema, visit.pointer});
        }
        break;
      }
      for (const char* key : {"$anchor", "$dynamicAnchor"}) {
        const auto it = schema.find(key);
        if (it == schema.end() || !it->is_string()) continue;
        anchors_.try_emplace(visit.base + "#" + it->get<std::string>(), Place{&schema, visit.pointer});
        if (std::string_view(key) != "$dynamicAnchor") continue;
        dynamic_anchors_.try_emplace(visit.base + "#" + it->get<std::string>(), Place{&schema, visit.pointer});
        ++num_dynamic_anchors_[it->get<std::string>()];
      }
      for (const auto& [key, value] : schema.items()) {
        const std::string child = ChildPointer(visit.pointer, key);
        if (Contains(kLists, key) && value.is_array()) {
          for (size_t i = 0; i < value.size(); ++i) pending.push_back({&value[i], ChildPointer(child, i), visit.base});
        } else if (Contains(kOne, key)) {
          pending.push_back({&value, child, visit.base});
        } else if (Contains(kMaps, key) && value.is_object()) {
          for (const auto& [name, sub] : value.items()) {
            pending.push_back({&sub, ChildPointer(child, name), visit.base});
          }
        }
      }
    }
    base_uris_.emplace(visit.schema, std::move(visit.base));
  }
}

SchemaDocument::Place SchemaDocument::Follow(const Resource& resource, std::string_view fragment) const {
  const SchemaJson* value = resource.root;
  std::string pointer = resource.pointer;
  while (!fragment.empty()) {
    fragment.remove_prefix(1);
    const std::string_view token = fragment.substr(0, fragment.find('/'));
    fragment.remove_prefix(token.size());
    const std::optional<std::string> key = DecodeToken(token);
    if (!key) return {};
    if (value->is_object()) {
      const auto it = value->find(*key);
      if (it == value->end()) return {};
      value = &*it;
    } else if (value->is_array()) {
      size_t index = 0;
      const auto [end, error] = std::from_chars(key->data(), key->data() + key->size(), index);
      if (error != std::errc() || end != key->data() + key->size() || index >= value->size()) return {};
      value = &(*value)[index];
    } else {
      return {};
    }
    pointer = ChildPointer(pointer, *key);
  }
  return {value, pointer};
}

const std::string* SchemaDocument::DynamicBaseOf(const SchemaJson& schema) const {
  const auto base = base_uris_.find(&schema);
  if (base == base_uris_.end()) return nullptr;
  for (const auto& [name, count] : num_dynamic_anchors_) {
    if (count > 1 && dynamic_anchors_.contains(base->second + "#" + name)) return &base->second;
  }
  return nullptr;
}

SchemaDocument::Place SchemaDocument::ResolveDynamic(const SchemaJson& schema, const std::string& pointer,
                                                     const std::string& reference,
                                                     const std::vector<std::string>& scope) const {
  const Place place = Resolve(schema, pointer, reference);
  const size_t hash = reference.find('#');
  const auto anchor = place.schema->is_object() ? place.schema->find("$dynamicAnchor") : place.schema->end();
  if (hash == std::string::npos || anchor == place.schema->end() || *anchor != reference.substr(hash + 1)) return place;
  for (const std::string& base : scope) {
    const auto it = dynamic_anchors_.find(base + reference.substr(hash));
    if (it != dynamic_anchors_.end()) return it->second;
  }
  return place;
}

SchemaDocument::Place SchemaDocument::Resolve(const SchemaJson& schema, const std::string& pointer,
                                              const std::string& reference) const {
  const std::string where = ChildPointer(pointer, "$ref");
  const auto base = base_uris_.find(&schema);
  const size_t hash = reference.find('#');
  const std::string uri = ResolveUri(base == base_uris_.end() ? "" : base->second, reference.substr(0, hash));
  const std::optional<std::string> fragment =
      DecodePercent(hash == std::string::npos ? std::string_view() : std::string_view(reference).substr(hash + 1));
  if (!fragment) FailSchema(where, "invalid fragment (" + Escape(reference) + ")");
  const auto resource = resources_.find(uri);
  Place place;
  if (fragment->empty() || fragment->starts_with('/')) {
    if (resource != resources_.end()) place = Follow(resource->second, *fragment);
  } else if (const auto anchor = anchors_.find(uri + "#" + *fragment); anchor != anchors_.end()) {
    place = anchor->second;
  }
  if (place.schema == nullptr) {
    FailSchema(where, "refers to nothing in this schema (" + Escape(reference) + "); other documents are not loaded");
  }
  return place;
}

}  // namespace vllm
