#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/batch/tools/answer_parts.h"
#include "app/batch/tools/call_constraints.h"
#include "app/chat/tool_use.h"
#include "app/commands/commands.h"
#include "app/commands/prompt_input.h"
#include "app/markdown/answer_display.h"
#include "app/model/load_model.h"
#include "app/model/tools_setting.h"
#include "app/output/json_text.h"
#include "app/output/prompt_status.h"
#include "app/output/reasoning_display.h"
#include "app/output/reasoning_output.h"
#include "app/output/request_stats.h"
#include "app/output/result_json.h"
#include "app/output/run_until_done.h"
#include "app/presets/preset_prompt.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

enum class OutputForm { kText, kJson, kStreamJson };

// Writes the outputs of one request as they arrive. Keeps the request's statistics and error for the end.
class AnswerWriter {
 public:
  AnswerWriter(const LoadedModel& model, const SamplingParams& params, OutputForm form, AnswerFormat format,
               ShowThinking show_thinking, std::unique_ptr<AnswerDisplay> display)
      : model_(model),
        params_(params),
        form_(form),
        format_(std::move(format)),
        reasoning_(format_.reasoning, params.skip_special_tokens),
        thinking_(format_.reasoning, params.skip_special_tokens, show_thinking, ""),
        out_(StandardOutput()),
        display_(std::move(display)) {}

  void Take(const RequestOutput& output) {
    if (!output.prompt_token_ids.empty()) {
      stats_.num_prompt_tokens = static_cast<int64_t>(output.prompt_token_ids.size());
    }
    stats_.num_cached_tokens = output.num_cached_tokens;
    stats_.metrics = output.metrics;
    stats_.load_time = model_.load_time;
    for (const CompletionOutput& completion : output.outputs) {
      if (completion.finish_reason == FinishReason::kError) failed_ = true;
    }
    if (failed_) {
      error_ = output.error;
    } else if (form_ == OutputForm::kText) {
      WriteText(output);
    } else if (form_ == OutputForm::kStreamJson) {
      WriteDeltas(output);
    } else if (output.finished) {
      WriteObject(output);
    }
  }

  // Redraws what is due. Call after each step.
  void Update() {
    thinking_.Update();
    display_->Tick();
  }

  const RequestStats& stats() const { return stats_; }
  bool failed() const { return failed_; }
  const std::string& error() const { return error_; }
  // An answer that must match a constraint ended before it was complete.
  bool is_incomplete() const { return is_incomplete_; }

 private:
  void WriteText(const RequestOutput& output) {
    for (const CompletionOutput& completion : output.outputs) {
      // Beam search returns as many answers as there are beams, the best first.
      if (completion.index >= params_.n) continue;
      if (completion.valid == false) is_incomplete_ = true;
      display_->Feed(AnswerText(output, completion), completion.finish_reason != FinishReason::kNone);
    }
  }

  // Returns the new text of the answer. Shows the thinking if there is only one sequence.
  std::string AnswerText(const RequestOutput& output, const CompletionOutput& completion) {
    if (params_.n > 1) {
      const std::optional<ReasoningParts> parts = reasoning_.Take(output, completion);
      return parts ? parts->text : completion.text;
    }
    if (!output.prompt_token_ids.empty()) thinking_.Begin(output.prompt_token_ids, {}, "");
    return thinking_.Take(completion);
  }

  void AddLogprobs(const RequestOutput& output, Json& json) const {
    if (params_.prompt_logprobs) json["prompt_logprobs"] = PromptLogprobsJson(output, model_.tokenizer.get());
  }

  void WriteDeltas(const RequestOutput& output) {
    for (const CompletionOutput& completion : output.outputs) {
      Json json;
      json["id"] = output.request_id;
      const std::optional<ReasoningParts> parts = reasoning_.Take(output, completion);
      json.update(
          CompletionJson(completion, params_.logprobs.has_value(), model_.tokenizer.get(), parts ? &*parts : nullptr));
      if (&completion == &output.outputs.front() && !output.prompt_logprobs.empty()) AddLogprobs(output, json);
      if (output.finished && &completion == &output.outputs.back()) {
        AddTokenCounts(stats_, json);
        json["timings"] = TimingsJson(stats_);
      }
      out_.WriteLine(SafeJson(DumpJson(json)));
    }
  }

  void WriteObject(const RequestOutput& output) {
    Json outputs = Json::array();
    for (const CompletionOutput& completion : output.outputs) {
      const AnswerParts parts = SplitAnswer(format_, output.request_id, output.prompt_token_ids, completion);
      Json json = CompletionJson(completion, params_.logprobs.has_value(), model_.tokenizer.get(),
                                 parts.reasoning ? &*parts.reasoning : nullptr);
      json["text"] = parts.text;
      if (format_.tool_calls != nullptr && format_.tools.may_call()) json["tool_calls"] = ToolCallsJson(parts.calls);
      outputs.push_back(std::move(json));
    }
    Json json = RunJson(output.request_id, model_.location.name, stats_, std::move(outputs),
                        SamplingJson(model_.sampling_values));
    AddLogprobs(output, json);
    out_.WriteLine(SafeJson(DumpJson(json)));
  }

  const LoadedModel& model_;
  const SamplingParams& params_;
  OutputForm form_;
  AnswerFormat format_;
  ReasoningOutput reasoning_;
  ReasoningDisplay thinking_;
  OutputStream& out_;
  std::unique_ptr<AnswerDisplay> display_;
  RequestStats stats_;
  bool failed_ = false;
  bool is_incomplete_ = false;
  std::string error_;
};

Prompt MakePrompt(const Settings& settings, const LoadedModel& model, const std::string& text) {
  if (settings.Has("prompt-ids")) return settings.Ids("prompt-ids");
  if (settings.command == Command::kComplete) return TextPrompt{text, true};
  if (model.renderer == nullptr) {
    throw ModelError("model " + model.location.name + ": has no chat template",
                     "vllmcli complete continues text without one; --chat-template FILE sets one");
  }
  std::vector<tokenizer::ChatMessage> messages;
  if (const auto system = settings.Text("system")) messages.push_back({"system", *system});
  messages.push_back({"user", text});
  return TextPrompt{model.renderer->Render(messages, true), false};
}

}  // namespace

int GenerateCommand(const Settings& given) {
  // In the configuration file, save is about chats.
  const bool saves = given.SourceOf("save") == SettingSource::kCommandLine && given.Switch("save");
  if (given.command == Command::kRun && (given.Switch("continue") || given.Has("resume") || saves)) {
    return FollowUpCommand(given);
  }
  Settings settings = given;
  const std::optional<PresetPrompt> preset = PresetOf(settings);
  if (settings.command == Command::kRun && HasRunnableTools(settings)) return FollowUpCommand(given);
  if (preset) preset->CheckVariables();
  std::string text = settings.Has("prompt-ids") ? "" : ReadRequiredPrompt(settings, preset);
  if (preset) text = preset->Fill(text);
  LoadedModel model = LoadModel(settings, {.tokenizer_required = !settings.Has("prompt-ids")});
  SamplingParams params = model.sampling_params;
  OutputForm form = settings.Switch("json") ? OutputForm::kJson : OutputForm::kText;
  if (settings.Switch("stream-json")) form = OutputForm::kStreamJson;
  const bool streams = form == OutputForm::kStreamJson || (form == OutputForm::kText && params.n == 1);
  params.output_kind = streams ? RequestOutputKind::kDelta : RequestOutputKind::kFinalOnly;

  // As in vLLM, only the answers of a chat are split.
  const bool is_chat = settings.command == Command::kRun;
  AnswerFormat format;
  if (is_chat) format.reasoning = model.reasoning_format;
  if (is_chat && model.renderer != nullptr && model.tokenizer != nullptr) {
    format.tools.tools = ToolsOfVariables(model.renderer->variables());
    SetToolChoice(settings.Text("tool-choice").value_or("auto"), format.tools);
    if (const std::string problem = ToolChoiceProblem(format.tools); !problem.empty()) {
      throw ConfigError("--tool-choice: " + problem, "--tools and --mcp name tools");
    }
  }
  if (format.tools.may_call()) {
    format.tool_calls = ModelToolCallFormat(settings, *model.renderer, *model.tokenizer);
    CallConstraints constraints(format.tool_calls, model.tokenizer);
    constraints.Apply(format.tools, params);
    for (const std::string& warning : constraints.TakeWarnings()) PrintWarning(warning);
  }
  format.skip_special_tokens = params.skip_special_tokens;

  LLMEngine& engine = *model.engine;
  engine.AddRequest(std::string(CommandInfoOf(settings.command).name) + "-0", MakePrompt(settings, model, text),
                    params);
  const bool renders = settings.command == Command::kRun && settings.Switch("markdown");
  const auto wrap = settings.command == Command::kRun ? settings.Integer("wrap").value_or(0) : 0;
  const bool hides = settings.Text("think").value_or("") == "off";
  AnswerWriter writer(
      model, params, form, std::move(format),
      !is_chat || hides ? ShowThinking::kHidden : ParseShowThinking(settings.Text("show-thinking").value_or("summary")),
      MakeAnswerDisplay(StandardOutput(), renders, static_cast<int>(std::clamp<int64_t>(wrap, 0, 10000))));
  PromptStatus status(engine);
  RunCallbacks callbacks;
  callbacks.on_outputs = [&](const std::vector<RequestOutput>& outputs) {
    if (!outputs.empty()) status.End();
    for (const RequestOutput& output : outputs) {
      if (output.rejected) throw RequestError(output.error);
      writer.Take(output);
    }
    if (params.n == 1) status.Update();
    writer.Update();
  };
  RunUntilDone(engine, callbacks);
  status.End();
  PrintEngineWarning(engine);
  if (settings.Switch("stats")) {
    PrintNote(RequestStatsText(writer.stats()));
    for (const std::string& line : StatsLines(engine)) PrintNote(line);
  }
  if (writer.failed()) {
    PrintError(writer.error());
    return 1;
  }
  if (writer.is_incomplete()) PrintWarning("the answer ended before it was complete; --max-tokens sets its length");
  return 0;
}

}  // namespace vllm::app
