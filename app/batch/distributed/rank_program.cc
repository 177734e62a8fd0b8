#include "app/batch/distributed/rank_program.h"

#include <signal.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "app/batch/batch_prompt.h"
#include "app/batch/distributed/mpi_process.h"
#include "app/batch/distributed/rank_identity.h"
#include "app/batch/job_status.h"
#include "app/model/load_model.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/distributed/engine_server.h"
#include "engine/distributed/process_placement.h"
#include "engine/distributed/rank_connection.h"

namespace vllm::app {
namespace {

FailedMessage FailureOf(const std::exception& error) {
  FailedMessage failed{.kind = FailureKind::kOther, .text = error.what(), .hint = {}};
  if (const auto* hinted = dynamic_cast<const HintedError*>(&error)) failed.hint = hinted->hint();
  if (dynamic_cast<const ConfigError*>(&error) != nullptr) failed.kind = FailureKind::kConfig;
  if (dynamic_cast<const ModelError*>(&error) != nullptr) failed.kind = FailureKind::kModel;
  if (dynamic_cast<const tokenizer::TokenizerError*>(&error) != nullptr) failed.kind = FailureKind::kModel;
  if (dynamic_cast<const tokenizer::ChatTemplateError*>(&error) != nullptr) failed.kind = FailureKind::kModel;
  if (dynamic_cast<const ResourceError*>(&error) != nullptr) failed.kind = FailureKind::kResource;
  return failed;
}

// Joins the job and loads the model. Fills `hello`.
LoadedEngine Load(Settings& settings, const LaunchInfo& launch, RankConnection& connection, HelloMessage& hello) {
  const PlaceMessage place = connection.Join(DescribeHost(launch.binds_cpus));
  TakePlace(place);
  if (settings.arguments.size() == 2 && settings.arguments[0] == "retry") RetrySettings(settings);
  hello.identity = RankIdentity(settings, PromptOf(settings));
  LoadOptions options;
  options.tokenizer_required = false;
  options.num_processes = launch.size;
  options.num_local_processes = place.num_local_processes;
  options.warn = [&hello](const std::string& warning) { hello.warnings.push_back(warning); };
  return LoadEngine(settings, options);
}

}  // namespace

int RunRank(const Settings& given, const LaunchInfo& launch) {
  // Rank 0 does these alone.
  const bool is_status = given.arguments.size() == 2 && given.arguments[0] == "status";
  if (is_status || given.Switch("check")) return 0;
  // Rank 0 decides what a signal to the whole job does, and ends this rank. If rank 0 is gone, so is this rank.
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) signal(signal_number, SIG_IGN);
  SetQuiet(true);
  RankConnection connection(LinkOf(launch), [](int status) { _exit(status); });
  Settings settings = given;
  HelloMessage hello;
  std::optional<LoadedEngine> engine;
  try {
    engine = Load(settings, launch, connection, hello);
  } catch (const std::exception& error) {
    connection.Send(EncodeFailed(FailureOf(error)));
    connection.WaitForEnd();
    return 0;
  }
  try {
    EngineServer server(connection, *engine->client, engine->config, engine->tokenizer.get(), engine->reasoning_format);
    server.Serve(std::move(hello));
  } catch (const std::exception& error) {
    connection.Send(EncodeDied(error.what()));
    connection.WaitForEnd();
  }
  return 0;
}

}  // namespace vllm::app
