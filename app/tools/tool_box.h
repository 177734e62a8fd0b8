// ToolBox: the tools that the model may call in a chat or a run, from all sources. Owned by the command; main thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/tools/tool_source.h"
#include "engine/tool_calls/syntax/tool_set.h"

namespace vllm::app {

class ToolBox {
 public:
  // A source whose tools have the name of a tool of another source gets its prefix in front: "server__tool". Characters
  // that chat templates may not expect in a name become "_". A tool whose name is still not unique is left out.
  void Add(std::unique_ptr<ToolSource> source);
  // Replaces the source that was set last, for example after the user has chosen a preset; null: removes it.
  void SetLocal(std::unique_ptr<ToolSource> source);

  // Asks the sources for changes. Returns true if the tools have changed.
  bool Refresh(std::span<const PollHook> hooks);
  // Runs a tool. Every failure is a result, also a name that is unknown or arguments that are no JSON object. Throws
  // only what the hooks throw.
  ToolResult Run(const std::string& name, const std::string& arguments, std::span<const PollHook> hooks);

  // Describes where a tool comes from; "" if there is none with this name.
  std::string OriginOf(const std::string& name) const;

  bool empty() const { return entries_.empty(); }
  const std::shared_ptr<const ToolSet>& tools() const { return tools_; }
  // Returns the names of tools that were left out, for a warning, once.
  std::vector<std::string> TakeOmittedNames();

 private:
  struct Entry {
    ToolSource* source;
    size_t index;
    std::string name;  // as the model sees it
  };
  void Update();
  const Entry* Find(const std::string& name) const;  // null: there is none

  std::unique_ptr<ToolSource> local_;
  std::vector<std::unique_ptr<ToolSource>> sources_;
  std::vector<Entry> entries_;
  std::shared_ptr<const ToolSet> tools_ = std::make_shared<const ToolSet>();
  std::vector<std::string> omitted_;
};

// Returns the call as one line that cannot control a terminal: "weather({"city":"Oslo"})". Long arguments are cut.
std::string CallText(const std::string& name, const std::string& arguments);

}  // namespace vllm::app
