#include "app/tools/tool_box.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "app/terminal/safe_text.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxNameBytes = 64;  // OpenAI's limit
constexpr size_t kMaxArgumentBytes = size_t{1} << 20;
constexpr size_t kMaxShownBytes = 2000;

std::string PlainName(std::string name) {
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!is_plain) c = '_';
  }
  return name.substr(0, kMaxNameBytes);
}

// Returns the arguments on one line, or an empty string if they are no JSON object; `error` then says why.
std::string NormalArguments(const std::string& arguments, std::string& error) {
  if (arguments.size() > kMaxArgumentBytes) {
    error = "the arguments are too long (limit 1 MiB)";
    return "";
  }
  Json json;
  error = ParseJsonText(arguments.empty() ? "{}" : arguments, json);
  if (error.empty() && !json.is_object()) error = "must be an object";
  if (error.empty()) return DumpJson(json);
  error = "the arguments are no JSON object: " + error;
  return "";
}

}  // namespace

void ToolBox::Add(std::unique_ptr<ToolSource> source) {
  sources_.push_back(std::move(source));
  Update();
}

void ToolBox::SetLocal(std::unique_ptr<ToolSource> source) {
  local_ = std::move(source);
  Update();
}

bool ToolBox::Refresh(std::span<const PollHook> hooks) {
  bool has_changed = false;
  for (const auto& source : sources_) has_changed = source->Refresh(hooks) || has_changed;
  if (has_changed) Update();
  return has_changed;
}

void ToolBox::Update() {
  std::vector<ToolSource*> all;
  if (local_ != nullptr) all.push_back(local_.get());
  for (const auto& source : sources_) all.push_back(source.get());
  std::map<std::string, int> num_sources;
  const auto plain_name = [](const ToolSource& source, size_t index) {
    const std::string& name = source.definitions()[index].name;
    return source.prefix().empty() ? name : PlainName(name);
  };
  for (const ToolSource* source : all) {
    std::set<std::string> names;
    for (size_t i = 0; i < source->definitions().size(); ++i) names.insert(plain_name(*source, i));
    for (const std::string& name : names) ++num_sources[name];
  }
  entries_.clear();
  omitted_.clear();
  std::set<std::string> used;
  std::vector<ToolDefinition> definitions;
  for (ToolSource* source : all) {
    for (size_t i = 0; i < source->definitions().size(); ++i) {
      std::string name = plain_name(*source, i);
      if (num_sources[name] > 1 && !source->prefix().empty()) name = PlainName(source->prefix() + "__" + name);
      if (!used.insert(name).second || !IsToolName(name)) {
        omitted_.push_back(name);
        continue;
      }
      ToolDefinition definition = source->definitions()[i];
      definition.name = name;
      definitions.push_back(std::move(definition));
      entries_.push_back({source, i, name});
    }
  }
  tools_ = std::make_shared<const ToolSet>(std::move(definitions));
}

std::vector<std::string> ToolBox::TakeOmittedNames() { return std::exchange(omitted_, {}); }

const ToolBox::Entry* ToolBox::Find(const std::string& name) const {
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& known) { return known.name == name; });
  return entry == entries_.end() ? nullptr : &*entry;
}

std::string ToolBox::OriginOf(const std::string& name) const {
  const Entry* entry = Find(name);
  return entry == nullptr ? "" : entry->source->OriginOf(entry->index);
}

ToolResult ToolBox::Run(const std::string& name, const std::string& arguments, std::span<const PollHook> hooks) {
  const Entry* entry = Find(name);
  if (entry == nullptr) return FailedResult("there is no tool called " + name);
  std::string error;
  const std::string normal = NormalArguments(arguments, error);
  if (!error.empty()) return FailedResult(error);
  return entry->source->Run(entry->index, normal, hooks);
}

std::string CallText(const std::string& name, const std::string& arguments) {
  Json json;
  // Written again, so that white space cannot hide the end.
  std::string shown = ParseJsonText(arguments, json).empty() ? DumpJson(json) : arguments;
  if (shown.size() > kMaxShownBytes) {
    size_t end = kMaxShownBytes;
    while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0U) == 0x80) --end;
    const size_t num_cut = shown.size() - end;
    shown = shown.substr(0, end) + "... (" + std::to_string(num_cut) + " more bytes)";
  }
  return std::string(SafeLine(name + "(" + shown + ")").view());
}

}  // namespace vllm::app
