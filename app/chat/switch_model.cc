// ChatSession::SwitchModel.
#include <exception>
#include <new>
#include <utility>

#include "app/chat/chat_session.h"
#include "app/cli/engine_options.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// Reads the files of the model other than its weights. Throws what LoadModel would throw because of them.
ModelLocation CheckModelFiles(const Settings& settings) {
  ModelLocation location = LocateModel(settings);
  ModelConfig model = ReadModelConfig(location);
  model.model = location.name;
  VllmConfig config = MakeVllmConfig(settings, model);
  config.Finalize();
  CheckSamplingDefaults(MakeSamplingDefaults(settings, ReadGenerationConfig(location)).params, config);
  if (LoadPromptRenderer(settings, location) == nullptr) {
    throw ModelError("model " + location.name + ": has no chat template");
  }
  LoadModelTokenizer(location);
  return location;
}

}  // namespace

void ChatSession::SwitchModel(const std::string& name) {
  if (model_.background != nullptr) throw ConfigError("/model: the batch uses this model until it ends");
  if (settings_.Has("lora")) throw ConfigError("/model: the LoRA adapters of --lora belong to this model");
  Settings changed = settings_;
  changed.Set(*FindFlag("model"), {name}, SettingSource::kChat, "/model");
  if (CheckModelFiles(changed).path() == model_.location.path()) {
    PrintNote("[" + model_.location.short_name() + " is the current model]");
    return;
  }
  // The KV cache of an engine takes most of the free memory, so two engines would not fit or would have small caches.
  model_.engine.reset();
  lora_.reset();  // an adapter that /lora has loaded is gone, even if the switch fails
  std::exception_ptr failure;
  try {
    model_ = LoadModel(changed);
    settings_ = std::move(changed);
  } catch (const std::bad_alloc&) {
    failure = std::make_exception_ptr(ResourceError("model " + name + ": " + kOutOfMemory));
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  if (failure != nullptr) {
    PrintStatus("[" + name + " cannot be loaded; loading " + model_.location.short_name() + " again]");
    try {
      model_ = LoadModel(settings_);
    } catch (const std::exception& error) {
      throw EngineDeadError("the previous model cannot be loaded again: " + std::string(error.what()));
    }
  }
  UseModel();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace vllm::app
