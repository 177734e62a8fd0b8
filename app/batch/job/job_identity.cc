#include "app/batch/job/job_identity.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/cli/parse_value.h"
#include "app/installed/find_model.h"
#include "app/model/model_digest.h"
#include "engine/config/errors.h"
#include "engine/config/hash.h"
#include "kernels/isa.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// The flags of batch that change no token and no record. Every other flag must stay the same when a job is resumed.
constexpr auto kFreeFlags = std::to_array<std::string_view>(
    {// the model's identity is its digest
     "model",
     // the engine gives the same tokens with every value of these
     "packed-cache-size", "kv-disk-cache", "data-parallel-size", "tensor-parallel-size", "threads-per-rank",
     "max-num-seqs", "max-loras", "max-lora-rank", "max-cpu-loras", "max-num-batched-tokens",
     "long-prefill-token-threshold", "block-size", "kv-cache-memory", "num-kv-blocks", "enable-prefix-caching",
     "enable-chunked-prefill", "enable-jump-decoding", "speculative-config", "scheduling-policy", "max-output-memory",
     "publish", "trace",
     // compared as what they stand for
     "isa", "preset", "param",
     // what the program shows and stores
     "save", "ephemeral", "stats", "quiet", "progress", "color", "config", "chat", "live", "check",
     // of the chat in front of the batch
     "approve-tools", "chain-limit", "mcp",
     // how and how far the job runs
     "output", "overwrite", "resume", "resume-anyway", "retry-errors", "fsync", "ordered", "limit"});

// The flags that belong to one start of a job and are not recorded.
constexpr auto kUnrecordedFlags = std::to_array<std::string_view>(
    {"overwrite", "resume", "resume-anyway", "retry-errors", "check", "config", "trace"});

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string HexText(uint64_t value) {
  std::array<char, 16> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, 16).ptr;
  std::string digits(buffer.data(), end);
  return std::string(16 - digits.size(), '0') + digits;
}

std::string DigestText(std::string_view text) { return "digest " + HexText(Hash64(text)); }

// Returns the name and the digest of an adapter, of NAME=PATH. A value without a path is returned unchanged.
std::string AdapterText(const std::string& value) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos) return value;
  ModelLocation location;
  location.directory = FindAdapter(value.substr(equals + 1));
  std::error_code error;
  if (std::filesystem::is_regular_file(location.directory, error)) location.gguf_file = location.directory;
  return value.substr(0, equals) + "=" + HexText(ModelContentDigest(location));
}

// Returns the text by which a value is compared: numbers in their shortest form, long texts and files as digests.
std::string ValueText(const Flag& flag, const std::string& value) {
  if (flag.kind == ValueKind::kNumber) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), ParseNumber(value)).ptr;
    return {buffer.data(), end};
  }
  if (flag.kind == ValueKind::kSwitch || flag.kind == ValueKind::kNegatable) return ParseSwitch(value) ? "on" : "off";
  if (flag.name == "lora") return AdapterText(value);
  // These take the name of a file, and some of them also JSON. --errors is an output.
  constexpr std::array<std::string_view, 4> kFiles = {"tools", "json-schema", "grammar", "structural-tag"};
  const bool is_file = std::find(kFiles.begin(), kFiles.end(), flag.name) != kFiles.end();
  if ((flag.kind == ValueKind::kPath && flag.name != "errors") || is_file) {
    constexpr size_t kMaxBytes = 64 << 20;
    std::string text;
    if (tokenizer::ReadRegularFile(value, kMaxBytes, text).ok()) return DigestText(text);
  }
  constexpr size_t kMaxTextBytes = 80;
  return value.size() <= kMaxTextBytes ? value : DigestText(value);
}

std::string PresetText(const PresetPrompt& preset) {
  std::string text = preset.System();
  if (const auto& prompt = preset.preset().prompt) {
    std::vector<std::string> names;
    for (const std::string& name : prompt->names()) names.push_back("{" + name + "}");
    const std::vector<std::string_view> values(names.begin(), names.end());
    text += '\n' + prompt->Fill(values);
  }
  return text;
}

std::string Joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

}  // namespace

Json MakeJobHeader(const Settings& settings, const std::optional<PresetPrompt>& preset, const ModelLocation& location,
                   std::optional<int64_t> input_bytes) {
  Json flags = Json::object();
  Json compared = Json::object();
  for (const Flag& flag : FlagTable()) {
    const std::vector<std::string>* values = settings.Values(flag.name);
    if (!flag.belongs_to(Command::kBatch) || values == nullptr) continue;
    const SettingSource source = settings.SourceOf(flag.name);
    if (source == SettingSource::kDefault) continue;
    // The preset is loaded again from its name.
    const bool from_preset = source == SettingSource::kPreset;
    if (!Contains(kUnrecordedFlags, flag.name) && !from_preset) flags[std::string(flag.name)] = *values;
    if (Contains(kFreeFlags, flag.name)) continue;
    std::vector<std::string> texts;
    for (const std::string& value : *values) texts.push_back(ValueText(flag, value));
    if (!flag.repeats) texts.erase(texts.begin(), texts.end() - 1);
    compared[std::string(flag.name)] = Joined(texts);
  }
  const auto isa = kernels::ParseIsa(settings.Text("isa").value_or("auto"));
  compared["isa"] = kernels::ToString(isa.value_or(kernels::BestIsa()));
  if (preset) {
    compared["preset"] = DigestText(PresetText(*preset));
    if (const std::vector<std::string>* values = settings.Values("param")) compared["param"] = Joined(*values);
  }
  std::error_code error;
  Json header;
  header["job"] = "vllmcli batch";
  header["version"] = 1;
  header["generation"] = 0;
  header["directory"] = std::filesystem::current_path(error).string();
  header["arguments"] = settings.arguments;
  header["flags"] = std::move(flags);
  header["input_bytes"] = input_bytes ? Json(*input_bytes) : Json();
  header["model"] = Json({{"name", location.name}, {"digest", HexText(ModelContentDigest(location))}});
  header["settings"] = std::move(compared);
  return header;
}

std::vector<JobDifference> JobDifferences(const Json& old_header, const Json& new_header) {
  std::vector<JobDifference> differences;
  const auto text_of = [](const Json& header, const char* key, const char* member) -> std::string {
    const auto object = header.find(key);
    if (object == header.end() || !object->is_object()) return "";
    const auto value = object->find(member);
    return value != object->end() && value->is_string() ? value->get<std::string>() : "";
  };
  if (text_of(old_header, "model", "digest") != text_of(new_header, "model", "digest")) {
    differences.push_back({.name = "the model",
                           .old_value = text_of(old_header, "model", "name"),
                           .new_value = text_of(new_header, "model", "name"),
                           .is_model = true});
  }
  const Json empty = Json::object();
  const auto settings_of = [&](const Json& header) -> const Json& {
    const auto settings = header.find("settings");
    return settings != header.end() && settings->is_object() ? *settings : empty;
  };
  const auto value_of = [](const Json& settings, const std::string& name) -> std::string {
    const auto value = settings.find(name);
    if (value == settings.end() || !value->is_string()) return "not set";
    return value->get<std::string>().empty() ? "empty" : value->get<std::string>();
  };
  const Json& old_settings = settings_of(old_header);
  const Json& new_settings = settings_of(new_header);
  std::vector<std::string> names;
  for (const auto& [name, value] : old_settings.items()) names.push_back(name);
  for (const auto& [name, value] : new_settings.items()) {
    if (!old_settings.contains(name)) names.push_back(name);
  }
  for (const std::string& name : names) {
    const std::string old_value = value_of(old_settings, name);
    const std::string new_value = value_of(new_settings, name);
    if (old_value == new_value) continue;
    const bool is_digest = old_value.starts_with("digest ") && new_value.starts_with("digest ");
    differences.push_back(
        {.name = name, .old_value = is_digest ? "" : old_value, .new_value = is_digest ? "" : new_value});
  }
  return differences;
}

std::string ChangeText(const JobDifference& difference) {
  const auto& [name, old_value, new_value, is_model] = difference;
  if (is_model && old_value == new_value) return "the files of the model " + new_value + " have changed";
  return old_value.empty() ? name + " has changed" : name + " was " + old_value + " and is now " + new_value;
}

std::string MismatchText(const JobDifference& difference) {
  const auto& [name, old_value, new_value, is_model] = difference;
  if (is_model && old_value == new_value) return "the files of the model " + new_value + " are not those of rank 0";
  return old_value.empty() ? name + " is not that of rank 0"
                           : name + " is " + old_value + " on rank 0 and " + new_value + " there";
}

void RestoreJobSettings(const Json& header, const std::string& output_path, Settings& settings) {
  const auto fail = [&](const std::string& why) -> ConfigError {
    return ConfigError("batch job file " + output_path + ".job" + ": " + why);
  };
  const Json directory = header.value("directory", Json());
  const Json arguments = header.value("arguments", Json());
  const Json flags = header.value("flags", Json());
  if (!directory.is_string() || !arguments.is_array() || arguments.empty() || !flags.is_object()) {
    throw fail("has no valid header");
  }
  settings.arguments.clear();
  for (const Json& argument : arguments) {
    if (!argument.is_string()) throw fail("has no valid header");
    if (argument == "-") {
      throw fail("the job read standard input; give the rows again with --resume --retry-errors");
    }
    settings.arguments.push_back(argument.get<std::string>());
  }
  for (const auto& [name, values] : flags.items()) {
    const Flag* flag = nullptr;
    for (const Flag& candidate : FlagTable()) {
      if (candidate.name == name && candidate.belongs_to(Command::kBatch)) flag = &candidate;
    }
    if (flag == nullptr || !values.is_array())
      throw fail("has a setting that this program does not know (" + name + ")");
    std::vector<std::string> texts;
    for (const Json& value : values) {
      if (!value.is_string()) throw fail("has no valid header");
      texts.push_back(value.get<std::string>());
    }
    if (settings.SourceOf(name) == SettingSource::kCommandLine) continue;
    settings.Set(*flag, std::move(texts), SettingSource::kCommandLine, name);
  }
  if (chdir(directory.get_ref<const std::string&>().c_str()) != 0) {
    throw fail("its directory " + directory.get<std::string>() + " cannot be used: " + std::strerror(errno));
  }
}

}  // namespace vllm::app
