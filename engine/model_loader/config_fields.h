// ConfigFields: typed, range-checked access to the fields of a JSON object; every refusal names the field and its
// value. Borrows the object; lives for one read of a config file.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vllm {

class ConfigFields {
 public:
  // `what` opens every message: "config.json /models/x". `prefix` stands before field names: "rope_scaling.".
  // Throws ModelError when `object` is no JSON object.
  ConfigFields(const nlohmann::json& object, std::string what, std::string prefix = "");

  // null counts as absent in all of these.
  bool Has(const char* name) const;
  std::optional<int64_t> Int(const char* name, int64_t low, int64_t high) const;
  std::optional<double> Double(const char* name, double low, double high) const;
  std::optional<double> PositiveDouble(const char* name, double high) const;
  std::optional<bool> Bool(const char* name) const;
  std::optional<std::string> String(const char* name) const;
  int64_t RequiredInt(const char* name, int64_t low, int64_t high) const;
  double RequiredPositiveDouble(const char* name, double high) const;
  // One id, a list of ids, or nothing; each in [0, high].
  std::vector<int32_t> TokenIds(const char* name, int64_t high) const;
  // Lists; empty when absent. Each value in its range.
  std::vector<int64_t> Ints(const char* name, int64_t low, int64_t high) const;
  std::vector<double> PositiveDoubles(const char* name, double high) const;
  std::vector<std::string> Strings(const char* name) const;
  const nlohmann::json& At(const char* name) const;  // REQUIRES: Has(name)
  ConfigFields Child(const char* name) const;        // REQUIRES: Has(name); throws when it is no object

  [[noreturn]] void Fail(const char* name, const std::string& why) const;    // without a value
  [[noreturn]] void Refuse(const char* name, const std::string& why) const;  // with the field's own value

 private:
  const nlohmann::json& List(const char* name) const;

  const nlohmann::json& object_;
  std::string what_;
  std::string prefix_;
};

}  // namespace vllm
