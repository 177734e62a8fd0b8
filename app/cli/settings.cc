#include "app/cli/settings.h"

#include <algorithm>
#include <iterator>

#include "app/cli/parse_value.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

void Check(const Flag& flag, const std::string& value) {
  switch (flag.kind) {
    case ValueKind::kSwitch:
    case ValueKind::kNegatable:
      ParseSwitch(value);
      break;
    case ValueKind::kInteger:
      ParseInteger(value);
      break;
    case ValueKind::kUnsigned:
      ParseUnsigned(value);
      break;
    case ValueKind::kNumber:
      ParseNumber(value);
      break;
    case ValueKind::kSize:
      ParseSize(value);
      break;
    case ValueKind::kChoice:
      ParseChoice(value, flag.choices);
      break;
    case ValueKind::kIds: {
      std::vector<int32_t> ids;
      ParseIds(value, ids);
      break;
    }
    case ValueKind::kBias:
      ParseBias(value);
      break;
    case ValueKind::kText:
    case ValueKind::kOptionalText:
    case ValueKind::kPath:
      break;
  }
}

}  // namespace

std::string_view SettingSourceName(SettingSource source) {
  switch (source) {
    case SettingSource::kDefault:
      return "default";
    case SettingSource::kConfigFile:
      return "configuration file";
    case SettingSource::kEnvironment:
      return "environment";
    case SettingSource::kPreset:
      return "preset";
    case SettingSource::kCommandLine:
      return "command line";
    case SettingSource::kChat:
      return "/set";
  }
  return "";
}

void Settings::Set(const Flag& flag, std::vector<std::string> values, SettingSource source, const std::string& where) {
  for (const std::string& value : values) {
    try {
      Check(flag, value);
    } catch (const ConfigError& error) {
      throw ConfigError(where + ": " + error.what());
    }
  }
  if (values.empty()) return;
  // The last value of a flag that does not repeat wins, as in other programs.
  if (!flag.repeats && values.size() > 1) values = {values.back()};
  std::vector<Entry>& entries = entries_[std::string(flag.name)];
  const auto at =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.source >= source; });
  if (at != entries.end() && at->source == source) {
    at->values = std::move(values);
  } else {
    entries.insert(at, Entry{std::move(values), source});
  }
}

void Settings::Remove(SettingSource source) {
  for (auto flag = entries_.begin(); flag != entries_.end();) {
    std::erase_if(flag->second, [&](const Entry& entry) { return entry.source == source; });
    flag = flag->second.empty() ? entries_.erase(flag) : std::next(flag);
  }
}

const Settings::Entry* Settings::Find(std::string_view name) const {
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : &entry->second.back();
}

bool Settings::Has(std::string_view name) const { return Find(name) != nullptr; }

bool Settings::Switch(std::string_view name) const {
  const Entry* entry = Find(name);
  if (entry != nullptr) return ParseSwitch(entry->values.back());
  const Flag* flag = FindFlag(name);
  return flag != nullptr && flag->default_value == "true";
}

std::optional<int64_t> Settings::Integer(std::string_view name) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return std::nullopt;
  return ParseInteger(entry->values.back());
}

std::optional<uint64_t> Settings::Unsigned(std::string_view name) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return std::nullopt;
  return ParseUnsigned(entry->values.back());
}

std::optional<double> Settings::Number(std::string_view name) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return std::nullopt;
  return ParseNumber(entry->values.back());
}

std::optional<int64_t> Settings::Size(std::string_view name) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return std::nullopt;
  return ParseSize(entry->values.back());
}

std::optional<std::string> Settings::Text(std::string_view name) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return std::nullopt;
  return entry->values.back();
}

std::vector<std::string> Settings::Texts(std::string_view name) const {
  const Entry* entry = Find(name);
  return entry == nullptr ? std::vector<std::string>() : entry->values;
}

std::vector<int32_t> Settings::Ids(std::string_view name) const {
  std::vector<int32_t> ids;
  for (const std::string& value : Texts(name)) ParseIds(value, ids);
  return ids;
}

std::vector<std::pair<int32_t, float>> Settings::Biases(std::string_view name) const {
  std::vector<std::pair<int32_t, float>> biases;
  for (const std::string& value : Texts(name)) biases.push_back(ParseBias(value));
  return biases;
}

SettingSource Settings::SourceOf(std::string_view name) const {
  const Entry* entry = Find(name);
  return entry == nullptr ? SettingSource::kDefault : entry->source;
}

const std::vector<std::string>* Settings::Values(std::string_view name) const {
  const Entry* entry = Find(name);
  return entry == nullptr ? nullptr : &entry->values;
}

}  // namespace vllm::app
