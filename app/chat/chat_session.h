// ChatSession: a loaded model, the conversation with it and the sampling settings. Owned by the chat command; main
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/chat/conversation.h"
#include "app/cli/settings.h"
#include "app/model/load_model.h"
#include "app/output/request_stats.h"

namespace vllm::app {

// Returns the names of the settings that /set can change.
std::vector<std::string> SettableNames();
// Returns the error message for a name that /set does not accept.
std::string UnknownSettingText(const std::string& name);

class ChatSession {
 public:
  // REQUIRES: `model` has a renderer and a tokenizer.
  ChatSession(LoadedModel model, Settings settings);

  // Sends the message and streams the answer to standard output. Ctrl-C ends the answer and keeps the part that was
  // generated; while the message is tokenized, Ctrl-C discards the message. Prints an error if the message is invalid
  // or does not fit in the context, or if the request fails. Throws Interrupted on SIGTERM and SIGHUP, OutputClosed,
  // ResourceError, EngineDeadError.
  void SendUserMessage(const std::string& message);

  // Restarts the conversation and keeps the system message.
  void Clear();
  // Restarts the conversation with another system message, which may be empty.
  void SetSystem(const std::string& text);
  // Changes a sampling setting for the following messages. Throws ConfigError if no setting is called `name` or if
  // `value` is invalid.
  void Set(const std::string& name, const std::string& value);

  const Conversation& conversation() const { return conversation_; }
  const Settings& settings() const { return settings_; }
  const LoadedModel& model() const { return model_; }
  const RequestStats& last_stats() const { return last_stats_; }

 private:
  // Prints the answer while the engine generates it. Returns false if the request failed.
  bool Stream(const std::string& request_id);

  LoadedModel model_;
  Settings settings_;
  SamplingParams params_;
  Conversation conversation_;
  RequestStats last_stats_;
  int64_t num_requests_ = 0;
  bool warned_about_rewriting_ = false;
  std::vector<int32_t> answer_ids_;
  std::string answer_text_;
};

}  // namespace vllm::app
