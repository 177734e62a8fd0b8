#include "engine/core/thread_client.h"

#include <pthread.h>

#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "engine/config/errors.h"
#include "engine/threading/block_signals.h"
#include "engine/trace/trace_recorder.h"
#include "kernels/threading/available_memory.h"

namespace vllm {

ThreadClient::ThreadClient(const VllmConfig& config, ExecutorFactory factory, std::shared_ptr<TraceRecorder> trace)
    : trace_(std::move(trace)) {
  {
    BlockSignals block_signals;
    try {
      thread_ = std::thread([this, config, factory = std::move(factory)] { ThreadMain(config, factory); });
    } catch (const std::system_error& error) {
      throw ResourceError(std::string("cannot start the engine's thread: ") + error.what() +
                          " (tightest memory limit: " + kernels::ReadAvailableMemory().bound + ")");
    }
  }
  std::exception_ptr failure;
  {
    MutexLock lock(handshake_.mutex);
    while (!handshake_.done) handshake_.changed.Wait(handshake_.mutex);
    // Move instead of copying, so that nothing can throw while the thread is joinable.
    ready_ = std::move(handshake_.ready);
    failure = std::exchange(handshake_.failure, nullptr);
  }
  if (failure) {
    thread_.join();
    std::rethrow_exception(failure);
  }
}

ThreadClient::~ThreadClient() { Shutdown(ShutdownMode::kAbort); }

void ThreadClient::ThreadMain(const VllmConfig& config, const ExecutorFactory& factory) noexcept {
  const int64_t rank = config.parallel.data_parallel_rank;
  const std::string name = "engine-core" + (rank == 0 ? std::string() : "-" + std::to_string(rank));
  pthread_setname_np(pthread_self(), name.c_str());
  std::unique_ptr<EngineCore> engine_core;
  EngineCoreReadyInfo engine_ready;
  std::exception_ptr failure;
  try {
    engine_core = std::make_unique<EngineCore>(config, factory, &step_interrupt_, trace_.get());
    engine_ready = engine_core->ready();
  } catch (...) {
    failure = std::current_exception();
  }
  const bool ready = failure == nullptr;
  {
    MutexLock lock(handshake_.mutex);
    handshake_.ready = std::move(engine_ready);
    handshake_.failure = std::move(failure);
    handshake_.done = true;
    handshake_.changed.NotifyAll();
  }
  if (!ready) return;
  try {
    BusyLoop(*engine_core);
    output_queue_.Close();
  } catch (const std::bad_alloc&) {
    output_queue_.Die(kOutOfMemory);
  } catch (const std::exception& error) {
    output_queue_.Die(error.what());
  } catch (...) {
    output_queue_.Die("unknown exception in the engine");
  }
  // Close the input queue after Die, so that a caller that finds it closed also finds the cause of death.
  input_queue_.Close();
  utility_result_.Abandon();
}

void ThreadClient::BusyLoop(EngineCore& engine_core) {
  std::vector<EngineCoreMessage> messages;
  EngineCoreOutputs outputs;
  bool draining = false;
  while (true) {
    const bool idle = !engine_core.HasRequests();
    if (idle && draining) return;
    input_queue_.TakeAll(messages, /*wait=*/idle);
    for (EngineCoreMessage& message : messages) {
      if (!Handle(message, engine_core, draining)) return;
    }
    if (!engine_core.HasRequests()) continue;
    engine_core.Step(outputs);
    CollectWarning(engine_core);
    output_queue_.Publish(outputs);
  }
}

void ThreadClient::CollectWarning(EngineCore& engine_core) {
  std::string warning = engine_core.TakeWarning();
  if (warning.empty()) return;
  const MutexLock lock(warnings_mutex_);
  warnings_.push_back(std::move(warning));
}

bool ThreadClient::Handle(EngineCoreMessage& message, EngineCore& engine_core, bool& draining) {
  switch (message.type) {
    case EngineCoreRequestType::kAdd:
      if (message.request->interactive) step_interrupt_.TakenInInteractive(message.request->request_id);
      engine_core.AddRequest(std::move(message.request));
      return true;
    case EngineCoreRequestType::kAbort:
      engine_core.AbortRequests(message.ids);
      step_interrupt_.TakenIn(message.ids);
      return true;
    case EngineCoreRequestType::kAbortWithOutput: {
      EngineCoreOutputs outputs;
      engine_core.AbortWithOutput(message.ids, outputs);
      step_interrupt_.TakenIn(message.ids);
      PublishStats(engine_core, outputs);
      return true;
    }
    case EngineCoreRequestType::kTakeSnapshot:
      try {
        monitor_.Publish(std::make_shared<const EngineSnapshot>(engine_core.MakeSnapshot()));
      } catch (const std::bad_alloc&) {
        monitor_.Publish(nullptr);  // a viewer must not end the engine
      }
      return true;
    case EngineCoreRequestType::kSetAdmissionPaused: {
      engine_core.SetAdmissionPaused(monitor_.TakeAdmissionPaused() && !draining);
      EngineCoreOutputs outputs;
      PublishStats(engine_core, outputs);
      return true;
    }
    case EngineCoreRequestType::kResetPrefixCache: {
      UtilityResult::Result result;
      result.ok = engine_core.ResetPrefixCache();
      message.result->Set(result);
      return true;
    }
    case EngineCoreRequestType::kGetStats: {
      UtilityResult::Result result;
      result.ok = true;
      result.stats = engine_core.GetStats();
      message.result->Set(result);
      return true;
    }
    case EngineCoreRequestType::kAddLoRA: {
      UtilityResult::Result result;
      try {
        engine_core.AddLoRA(message.lora_slot, message.adapter);
        result.ok = true;
      } catch (const ModelError&) {
        result.failure = std::current_exception();
      } catch (const ResourceError&) {
        result.failure = std::current_exception();
      }
      message.result->Set(result);
      return true;
    }
    case EngineCoreRequestType::kShutdown:
      draining = message.shutdown_mode == ShutdownMode::kDrain;
      engine_core.SetAdmissionPaused(false);
      return draining;
  }
  return true;
}

void ThreadClient::PublishStats(const EngineCore& engine_core, EngineCoreOutputs& outputs) {
  outputs.stats = engine_core.GetStats();
  output_queue_.Publish(outputs);
}

void ThreadClient::ThrowDead() {
  throw EngineDeadError(output_queue_.death_cause().value_or("the engine was shut down"));
}

void ThreadClient::AddRequest(EngineCoreRequestPtr request) {
  if (request->interactive) step_interrupt_.ArriveInteractive(request->request_id);
  EngineCoreMessage message;
  message.type = EngineCoreRequestType::kAdd;
  message.request = std::move(request);
  // Check for a cause of death as well: the output queue has it shortly before the input queue is closed.
  if (output_queue_.death_cause() || !input_queue_.Push(std::move(message))) ThrowDead();
}

void ThreadClient::AbortRequests(std::span<const RequestId> request_ids, AbortUrgency urgency) {
  step_interrupt_.Abort(request_ids, urgency);
  EngineCoreMessage message;
  message.type = EngineCoreRequestType::kAbort;
  message.ids.assign(request_ids.begin(), request_ids.end());
  input_queue_.Push(std::move(message));
}

bool ThreadClient::GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) {
  return output_queue_.Take(outputs, std::chrono::steady_clock::now() + timeout);
}

UtilityResult::Result ThreadClient::CallUtility(EngineCoreMessage message) {
  utility_result_.Reset();
  message.result = &utility_result_;
  UtilityResult::Result result;
  if (!input_queue_.Push(std::move(message)) || !utility_result_.Wait(result)) ThrowDead();
  return result;
}

bool ThreadClient::ResetPrefixCache() { return CallUtility({.type = EngineCoreRequestType::kResetPrefixCache}).ok; }

SchedulerStats ThreadClient::GetStats() { return CallUtility({.type = EngineCoreRequestType::kGetStats}).stats; }

void ThreadClient::AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) {
  const UtilityResult::Result result =
      CallUtility({.type = EngineCoreRequestType::kAddLoRA, .lora_slot = slot, .adapter = adapter});
  if (result.failure != nullptr) std::rethrow_exception(result.failure);
}

std::string ThreadClient::TakeWarning() {
  {
    const MutexLock lock(warnings_mutex_);
    if (!warnings_.empty()) {
      std::string warning = std::move(warnings_.front());
      warnings_.pop_front();
      return warning;
    }
  }
  std::string reason;
  if (has_warned_ || trace_ == nullptr || !trace_->Failed(&reason)) return {};
  has_warned_ = true;
  return "the trace " + trace_->path() + " ends early, because writing it failed: " + reason;
}

void ThreadClient::Shutdown(ShutdownMode mode) {
  if (!thread_.joinable()) return;
  EngineCoreMessage message;
  message.type = EngineCoreRequestType::kShutdown;
  message.shutdown_mode = mode;
  if (mode == ShutdownMode::kAbort) step_interrupt_.Shutdown();
  input_queue_.Push(std::move(message));
  thread_.join();
}

std::unique_ptr<EngineCoreClient> MakeThreadClient(const VllmConfig& config, ExecutorFactory factory,
                                                   std::shared_ptr<TraceRecorder> trace) {
  return std::make_unique<ThreadClient>(config, std::move(factory), std::move(trace));
}

}  // namespace vllm
