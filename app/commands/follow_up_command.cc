#include <signal.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/batch/tools/answer_parts.h"
#include "app/chat/chat_session.h"
#include "app/chat/commands/conversation_commands.h"
#include "app/chat/tool_use.h"
#include "app/commands/commands.h"
#include "app/commands/conversation_store.h"
#include "app/commands/prompt_input.h"
#include "app/model/sampling_defaults.h"
#include "app/output/json_text.h"
#include "app/output/request_stats.h"
#include "app/output/result_json.h"
#include "app/presets/preset_prompt.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// Throws ConfigError for flags whose results a conversation cannot store or show.
void CheckFlags(const Settings& settings) {
  for (const char* name :
       {"stream-json", "logprobs", "prompt-logprobs", "best-of", "use-beam-search", "beam-width", "length-penalty"}) {
    if (settings.Has(name)) {
      throw ConfigError(std::string("run: --") + name + " cannot be used with -c, --resume, --save or tools that run");
    }
  }
  if (settings.Integer("n").value_or(1) != 1) {
    throw ConfigError("run: --n cannot be used with -c, --resume, --save or tools that run",
                      "in a chat, /answers N generates several answers");
  }
}

// `calls`: of the answer; null if it cannot have any.
Json AnswerJson(const Answer& answer, const std::vector<ToolCall>* calls, const LoadedModel& model) {
  CompletionOutput output;
  output.text = answer.text;
  output.token_ids = answer.token_ids;
  output.finish_reason = answer.finish_reason;
  output.stop_reason = answer.stop_reason;
  const ReasoningParts* parts = answer.parts ? &*answer.parts : nullptr;
  Json completion = CompletionJson(output, /*with_logprobs=*/false, model.tokenizer.get(), parts);
  if (calls != nullptr) completion["tool_calls"] = ToolCallsJson(*calls);
  return RunJson(answer.request_id, model.location.name, answer.stats, Json::array({completion}),
                 SamplingJson(model.sampling_values));
}

}  // namespace

int FollowUpCommand(const Settings& given) {
  Settings settings = given;
  CheckFlags(settings);
  const std::optional<PresetPrompt> preset = PresetOf(settings);
  if (preset) preset->CheckVariables();
  std::string text = ReadRequiredPrompt(settings, preset);
  // ChatSession uses only a prompt that contains {input}.
  if (preset && !preset->takes_input()) text = preset->Fill(text);
  const bool continues = settings.Switch("continue");
  if (!continues && settings.Has("resume") && settings.Text("resume")->empty()) {
    throw ConfigError("run: --resume needs the number or the title of a conversation",
                      "vllmcli chats list shows the stored conversations");
  }
  std::unique_ptr<ToolUse> tools = HasRunnableTools(settings) ? std::make_unique<ToolUse>(settings) : nullptr;
  const bool saves = settings.SourceOf("save") == SettingSource::kCommandLine && settings.Switch("save");
  const bool stores = continues || settings.Has("resume") || saves;
  const std::unique_ptr<ChatStore> store = stores ? OpenStore(settings) : nullptr;
  if (continues || settings.Has("resume")) CheckCanContinue(settings, store.get());
  LoadedModel model = LoadModel(settings);
  if (model.renderer == nullptr) {
    throw ModelError("model " + model.location.name + ": has no chat template",
                     "vllmcli complete continues text without one; --chat-template FILE sets one");
  }
  ChatSession session(model, settings, store.get(), preset);
  session.UseTools(std::move(tools));
  session.CheckToolChoice();
  if (continues || settings.Has("resume")) {
    if (!OpenChat(continues ? "" : *settings.Text("resume"), session)) {
      throw ConfigError("run: no conversation was continued", "vllmcli chats list shows the stored conversations");
    }
    NoteUnusedSystem(settings, session);
  }
  session.display().answers = !settings.Switch("json");
  session.SendUserMessage(text);
  if (settings.Switch("stats")) {
    PrintNote(RequestStatsText(session.last_stats()));
    for (const std::string& line : StatsLines(*model.engine)) PrintNote(line);
  }
  // A message that could not be sent leaves the conversation where it was; one that failed has no answer.
  if (!session.last_message_was_answered()) return 1;
  const Answer& answer = session.last_answer();
  if (answer.finish_reason == FinishReason::kAbort) throw Interrupted(SIGINT);
  if (answer.finish_reason == FinishReason::kError) return 1;
  if (settings.Switch("json")) {
    StandardOutput().WriteLine(SafeJson(DumpJson(AnswerJson(answer, session.last_calls(), model))));
  }
  return session.reached_chain_limit() ? 1 : 0;
}

}  // namespace vllm::app
