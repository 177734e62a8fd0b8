#include "app/chat/commands/tool_commands.h"

#include <algorithm>

#include "app/chat/tool_use.h"
#include "app/output/list_text.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxCharacters = 100;  // of a description and of an origin

std::string_view PolicyText(ApprovePolicy policy) {
  switch (policy) {
    case ApprovePolicy::kNever:
      return "never runs";
    case ApprovePolicy::kAsk:
      return "asks first";
    case ApprovePolicy::kAlways:
      return "runs without asking";
  }
  return "";
}

void PrintTools(const ChatSession& session) {
  const ToolUse* use = session.tools();
  const std::shared_ptr<const ToolSet> tools = use != nullptr ? use->box().tools() : session.offered_tools();
  if (tools == nullptr || tools->empty()) {
    PrintNote(session.offers_tools() ? "[no tools; --tools and --mcp name some]" : "[the tools are off]");
    return;
  }
  for (const ToolDefinition& tool : tools->tools()) {
    PrintNote("  " + tool.name + "  " + FirstLine(tool.description, kMaxCharacters));
    const std::string origin = use == nullptr ? "cannot be run" : use->box().OriginOf(tool.name);
    const std::string policy =
        use == nullptr ? "" : std::string(PolicyText(use->approval().PolicyFor(tool.name))) + "; ";
    PrintNote("      " + policy + FirstLine(origin, kMaxCharacters));
  }
  PrintNote(session.offers_tools() ? "/tools off hides them from the model."
                                   : "[the tools are off: the model does not see them; /tools on shows them again]");
}

}  // namespace

SlashResult ToolsCommand(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    PrintTools(session);
  } else if (arguments == "on" || arguments == "off") {
    session.OfferTools(arguments == "on");
    PrintNote(arguments == "on" ? "[the model sees the tools again]" : "[the model no longer sees the tools]");
  } else if (arguments != "ask") {
    PrintError("/tools " + arguments + ": expects on, off or ask; --tools names tools when the chat starts");
  } else if (session.tools() == nullptr) {
    PrintError("/tools ask: there are no tools to run");
  } else {
    session.tools()->approval().AskAgain();
    PrintNote("[each call is asked about again]");
  }
  return {};
}

}  // namespace vllm::app
