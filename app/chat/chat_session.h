// ChatSession: a model, a conversation with it and the settings of its answers. Owned by the chat command; main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/chat/conversation.h"
#include "app/cli/settings.h"
#include "app/model/load_model.h"
#include "app/output/request_stats.h"

namespace vllm {

// Names that /set takes.
std::vector<std::string> SettableNames();
// The message for a name that is not among them.
std::string UnknownSettingText(const std::string& name);

class ChatSession {
 public:
  // REQUIRES: model has a renderer.
  ChatSession(LoadedModel model, Settings settings);

  // Asks and streams the answer to standard output. Ctrl-C ends the answer and keeps what was said. Problems of the
  // message are printed. Throws Interrupted for SIGTERM and SIGHUP, OutputClosed, EngineDeadError.
  void SendUserMessage(const std::string& message);

  void Clear();
  void SetSystem(const std::string& text);
  // Throws ConfigError when there is no such sampling setting or its value is not allowed.
  void Set(const std::string& name, const std::string& value);

  const Conversation& conversation() const { return conversation_; }
  const Settings& settings() const { return settings_; }
  const LoadedModel& model() const { return model_; }
  const RequestStats& last_stats() const { return last_stats_; }

 private:
  bool Stream(const std::string& request_id);  // false: the request failed

  LoadedModel model_;
  Settings settings_;
  SamplingParams params_;
  Conversation conversation_;
  RequestStats last_stats_;
  int64_t num_requests_ = 0;
  bool told_of_rewriting_ = false;
  std::vector<int32_t> answer_ids_;
  std::string answer_text_;
};

}  // namespace vllm
