// ConfigFields: typed, range-checked access to the fields of a JSON object. Error messages name the field and show an
// invalid value. Created while one config file is read; borrows the object. Immutable; any thread may read.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vllm {

class ConfigFields {
 public:
  // `what`, such as "config.json /models/x", starts every error message. `prefix`, such as "rope_scaling.", is put in
  // front of field names. Throws ModelError if `object` is not a JSON object.
  ConfigFields(const nlohmann::json& object, std::string what, std::string prefix = "");

  // All getters treat null as absent. They throw ModelError if the value has the wrong type or is outside [low, high],
  // or (0, high] for positive doubles. RequiredInt and RequiredPositiveDouble also throw if the field is absent.
  bool Has(const char* name) const;
  std::optional<int64_t> Int(const char* name, int64_t low, int64_t high) const;
  std::optional<double> Double(const char* name, double low, double high) const;
  std::optional<double> PositiveDouble(const char* name, double high) const;
  std::optional<bool> Bool(const char* name) const;
  std::optional<std::string> String(const char* name) const;
  int64_t RequiredInt(const char* name, int64_t low, int64_t high) const;
  double RequiredPositiveDouble(const char* name, double high) const;
  // Accepts one id or a list of at most 128 ids, each in [0, high]. Returns an empty vector if the field is absent.
  std::vector<int32_t> TokenIds(const char* name, int64_t high) const;
  // Read a list of at most 65536 elements and check each of them. Return an empty vector if the field is absent.
  std::vector<int64_t> Ints(const char* name, int64_t low, int64_t high) const;
  std::vector<double> PositiveDoubles(const char* name, double high) const;
  std::vector<std::string> Strings(const char* name) const;
  const nlohmann::json& At(const char* name) const;  // REQUIRES: Has(name)
  ConfigFields Child(const char* name) const;        // REQUIRES: Has(name). Throws if it is not an object.

  // Both throw ModelError. Reject appends the field's value, or "missing", to the message.
  [[noreturn]] void Fail(const char* name, const std::string& why) const;
  [[noreturn]] void Reject(const char* name, const std::string& why) const;

 private:
  const nlohmann::json& List(const char* name) const;

  const nlohmann::json& object_;
  std::string what_;
  std::string prefix_;
};

}  // namespace vllm
