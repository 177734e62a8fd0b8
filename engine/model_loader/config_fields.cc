#include "engine/model_loader/config_fields.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {
namespace {

using nlohmann::json;

std::string Number(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// Formats a value for an error message. Objects and lists are described, not printed.
std::string ValueText(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list of length " + std::to_string(value.size());
  // dump() writes NaN and infinity as null.
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return Number(value.get<double>());
  if (value.is_string()) return '"' + Escape(value.get_ref<const std::string&>(), 60) + '"';
  return value.dump();
}

int64_t CheckedInt(const ConfigFields& fields, const char* name, const json& value, int64_t low, int64_t high) {
  if (!value.is_number_integer()) fields.Reject(name, "not a whole number");
  // get<int64_t>() would wrap an unsigned value above the int64 maximum to a negative one.
  bool huge =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  int64_t number = huge ? 0 : value.get<int64_t>();
  if (huge || number < low || number > high) {
    fields.Reject(name, "outside " + std::to_string(low) + " to " + std::to_string(high));
  }
  return number;
}

}  // namespace

ConfigFields::ConfigFields(const json& object, std::string what, std::string prefix)
    : object_(object), what_(std::move(what)), prefix_(std::move(prefix)) {
  if (object_.is_object()) return;
  std::string field = prefix_.empty() ? "" : prefix_.substr(0, prefix_.size() - 1) + ": ";
  throw ModelError(what_ + ": " + field + "not an object (" + ValueText(object_) + ")");
}

bool ConfigFields::Has(const char* name) const {
  auto it = object_.find(name);
  return it != object_.end() && !it->is_null();
}

const json& ConfigFields::At(const char* name) const { return *object_.find(name); }

ConfigFields ConfigFields::Child(const char* name) const { return ConfigFields(At(name), what_, prefix_ + name + "."); }

std::optional<int64_t> ConfigFields::Int(const char* name, int64_t low, int64_t high) const {
  if (!Has(name)) return std::nullopt;
  return CheckedInt(*this, name, At(name), low, high);
}

std::optional<double> ConfigFields::Double(const char* name, double low, double high) const {
  if (!Has(name)) return std::nullopt;
  const json& value = At(name);
  if (!value.is_number()) Reject(name, "not a number");
  double number = value.get<double>();
  if (!(number >= low && number <= high)) Reject(name, "outside " + Number(low) + " to " + Number(high));
  return number;
}

std::optional<double> ConfigFields::PositiveDouble(const char* name, double high) const {
  std::optional<double> number = Double(name, 0.0, high);
  if (number == 0.0) Reject(name, "not above 0");
  return number;
}

std::optional<bool> ConfigFields::Bool(const char* name) const {
  if (!Has(name)) return std::nullopt;
  if (!At(name).is_boolean()) Reject(name, "not true or false");
  return At(name).get<bool>();
}

std::optional<std::string> ConfigFields::String(const char* name) const {
  if (!Has(name)) return std::nullopt;
  if (!At(name).is_string()) Reject(name, "not a string");
  return At(name).get<std::string>();
}

int64_t ConfigFields::RequiredInt(const char* name, int64_t low, int64_t high) const {
  if (!Has(name)) Fail(name, "missing");
  return *Int(name, low, high);
}

double ConfigFields::RequiredPositiveDouble(const char* name, double high) const {
  if (!Has(name)) Fail(name, "missing");
  return *PositiveDouble(name, high);
}

std::vector<int32_t> ConfigFields::TokenIds(const char* name, int64_t high) const {
  constexpr size_t kMaxIds = 128;
  std::vector<int32_t> ids;
  if (!Has(name)) return ids;
  const json& value = At(name);
  if (value.is_array() && value.size() > kMaxIds) Reject(name, "too many ids, limit " + std::to_string(kMaxIds));
  if (value.is_array()) {
    for (const json& id : value) {
      if (!id.is_number_integer()) Fail(name, "not a whole number (" + ValueText(id) + ")");
      bool bad = id.is_number_unsigned() ? id.get<uint64_t>() > static_cast<uint64_t>(high) : true;
      if (bad) Fail(name, "outside 0 to " + std::to_string(high) + " (" + ValueText(id) + ")");
      ids.push_back(id.get<int32_t>());
    }
  } else {
    ids.push_back(static_cast<int32_t>(CheckedInt(*this, name, value, 0, high)));
  }
  return ids;
}

const json& ConfigFields::List(const char* name) const {
  constexpr size_t kMaxValues = 65536;
  const json& list = At(name);
  if (!list.is_array()) Reject(name, "not a list");
  if (list.size() > kMaxValues) Reject(name, "too many values, limit " + std::to_string(kMaxValues));
  return list;
}

std::vector<int64_t> ConfigFields::Ints(const char* name, int64_t low, int64_t high) const {
  std::vector<int64_t> values;
  if (!Has(name)) return values;
  for (const json& value : List(name)) {
    const bool whole = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() < 1ull << 62);
    if (!whole || value.get<int64_t>() < low || value.get<int64_t>() > high) {
      Fail(name, "not a whole number from " + std::to_string(low) + " to " + std::to_string(high) + " (" +
                     ValueText(value) + ")");
    }
    values.push_back(value.get<int64_t>());
  }
  return values;
}

std::vector<double> ConfigFields::PositiveDoubles(const char* name, double high) const {
  std::vector<double> values;
  if (!Has(name)) return values;
  for (const json& value : List(name)) {
    const double number = value.is_number() ? value.get<double>() : -1.0;
    if (!(number > 0.0 && number <= high)) {
      Fail(name, "not a number above 0 and at most " + Number(high) + " (" + ValueText(value) + ")");
    }
    values.push_back(number);
  }
  return values;
}

std::vector<std::string> ConfigFields::Strings(const char* name) const {
  std::vector<std::string> values;
  if (!Has(name)) return values;
  for (const json& value : List(name)) {
    if (!value.is_string()) Fail(name, "not a string (" + ValueText(value) + ")");
    values.push_back(value.get<std::string>());
  }
  return values;
}

void ConfigFields::Fail(const char* name, const std::string& why) const {
  throw ModelError(what_ + ": " + prefix_ + name + ": " + why);
}

void ConfigFields::Reject(const char* name, const std::string& why) const {
  const auto it = object_.find(name);
  Fail(name, why + (it == object_.end() ? " (missing)" : " (" + ValueText(*it) + ")"));
}

}  // namespace vllm
