#include "engine/distributed/coordinator.h"

#include <algorithm>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/distributed/distributed_monitor.h"
#include "engine/distributed/process_placement.h"
#include "engine/distributed/wire_archive.h"

namespace vllm {
namespace {

// A message of a rank is shown with a limit, because it comes from outside.
constexpr size_t kMaxTextBytes = 2000;

[[noreturn]] void ThrowLike(const FailedMessage& failed, const std::string& name) {
  const std::string text = name + ": " + Escape(failed.text, kMaxTextBytes);
  const std::string hint = Escape(failed.hint, kMaxTextBytes);
  switch (failed.kind) {
    case FailureKind::kConfig:
      throw ConfigError(text, hint);
    case FailureKind::kModel:
      throw ModelError(text, hint);
    case FailureKind::kOther:
    case FailureKind::kResource:
      break;
  }
  throw ResourceError(text);
}

}  // namespace

Coordinator::Coordinator(Transport::LinkFactory make_link, const Transport::Options& options)
    : transport_(std::move(make_link), *this, options) {
  MutexLock lock(mutex_);
  ranks_.resize(static_cast<size_t>(transport_.size()));
}

Coordinator::~Coordinator() {
  for (int rank = 1; rank < size(); ++rank)
    transport_.Send(rank, EncodeShutdown({ShutdownMode::kAbort, transport_.IsBroken()}));
}

void Coordinator::OnMessage(int from, std::string_view message) {
  std::shared_ptr<RemoteEngineInbox> inbox;
  {
    MutexLock lock(mutex_);
    const auto index = static_cast<size_t>(from);
    if (ranks_.size() <= index) ranks_.resize(index + 1);
    Rank& rank = ranks_[index];
    inbox = rank.inbox;
    if (inbox == nullptr) {
      const MessageType type = TypeOf(message);
      if (type == MessageType::kHost && !rank.host) {
        rank.host = DecodeHost(message);
      } else if (type == MessageType::kHello && rank.host && !rank.hello) {
        rank.hello = DecodeHello(message);
      } else if (type == MessageType::kFailed) {
        rank.failed = DecodeFailed(message);
      } else {
        throw WireError("its type does not belong here");
      }
      changed_.NotifyAll();
    }
  }
  if (inbox != nullptr) inbox->OnMessage(message);
}

void Coordinator::OnFailure(int rank, const std::string& cause) {
  MutexLock lock(mutex_);
  const auto index = static_cast<size_t>(rank);
  if (ranks_.size() <= index) ranks_.resize(index + 1);
  ranks_[index].lost = cause;
  if (ranks_[index].inbox != nullptr) ranks_[index].inbox->Die(cause);
  changed_.NotifyAll();
}

std::string Coordinator::Name(int rank) const {
  const Rank& entry = ranks_[static_cast<size_t>(rank)];
  return "rank " + std::to_string(rank) + (entry.host ? " (" + Escape(entry.host->name) + ")" : "");
}

std::string Coordinator::NameOf(int rank) const {
  MutexLock lock(mutex_);
  return Name(rank);
}

void Coordinator::ThrowIfFailed() const {
  // What a rank says about its failure explains more than the end of its connection.
  for (int rank = 1; rank < size(); ++rank) {
    if (const auto& failed = ranks_[static_cast<size_t>(rank)].failed) ThrowLike(*failed, Name(rank));
  }
  for (int rank = 1; rank < size(); ++rank) {
    const auto& lost = ranks_[static_cast<size_t>(rank)].lost;
    if (lost) throw ResourceError(Name(rank) + " has failed before it had loaded the model: " + *lost);
  }
}

PlaceMessage Coordinator::PlaceRanks(const HostMessage& own) {
  {
    MutexLock lock(mutex_);
    ranks_[0].host = own;
    const auto are_known = [this]() REQUIRES(mutex_) {
      return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.host.has_value(); });
    };
    while (!are_known()) {
      ThrowIfFailed();
      changed_.Wait(mutex_);
    }
    for (const Rank& rank : ranks_) hosts_.push_back(*rank.host);
  }
  const std::vector<PlaceMessage> places = PlaceProcesses(hosts_);
  for (int rank = 1; rank < size(); ++rank) {
    transport_.Send(rank, EncodePlace(places[static_cast<size_t>(rank)]));
  }
  return places[0];
}

std::vector<std::string> Coordinator::PlacementWarnings() const { return BindingWarnings(hosts_); }

const std::vector<HelloMessage>& Coordinator::WaitForRanks() {
  MutexLock lock(mutex_);
  const auto are_ready = [this]() REQUIRES(mutex_) {
    return std::all_of(ranks_.begin() + 1, ranks_.end(), [](const Rank& rank) { return rank.hello.has_value(); });
  };
  while (!are_ready()) {
    ThrowIfFailed();
    changed_.Wait(mutex_);
  }
  hellos_.emplace_back();
  for (int rank = 1; rank < size(); ++rank) hellos_.push_back(*ranks_[static_cast<size_t>(rank)].hello);
  return hellos_;
}

std::unique_ptr<DataParallelClient> Coordinator::MakeClient(const VllmConfig& config,
                                                            std::unique_ptr<EngineCoreClient> own) {
  DataParallelEngines all;
  EngineMonitor* const own_monitor = own->monitor();
  all.engines.push_back({.client = std::move(own), .name = NameOf(0)});
  for (int rank = 1; rank < size(); ++rank) {
    const HelloMessage& hello = hellos_[static_cast<size_t>(rank)];
    EngineCoreReadyInfo ready;
    ready.num_blocks = hello.num_blocks;
    ready.max_model_len = hello.max_model_len;
    ready.spare_memory_bytes = hello.spare_memory_bytes;
    ready.load_time = Seconds(hello.load_seconds);
    auto inbox = std::make_shared<RemoteEngineInbox>(config.model.vocab_size);
    {
      MutexLock lock(mutex_);
      Rank& entry = ranks_[static_cast<size_t>(rank)];
      entry.inbox = inbox;
      if (entry.lost) inbox->Die(*entry.lost);
    }
    all.engines.push_back({.client = std::make_unique<RemoteEngineClient>(transport_, rank, ready, std::move(inbox)),
                           .name = NameOf(rank),
                           .expendable = true});
  }
  all.monitor = std::make_unique<DistributedMonitor>(*own_monitor, transport_);
  return std::make_unique<DataParallelClient>(config, std::move(all));
}

}  // namespace vllm
