// Measures rank 0 of a distributed batch with 64 ranks: build/release/bench/distributed_batch [ROWS [RANKS]].
// Everything on rank 0 is real: it parses and tokenizes the rows, routes and encodes the requests, decodes the answers,
// and writes the records and the job file. The other ranks are a PacketLink that answers each request at once with one
// token, on the thread of rank 0's transport, so that its cost counts too. Prints rows per second, and the time per row
// that the main thread spends on the distribution of rows.
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>

#include "app/batch/batch_input.h"
#include "app/batch/batch_runner.h"
#include "app/batch/input/record_reader.h"
#include "app/installed/find_model.h"
#include "app/live/live_source.h"
#include "app/model/model_files.h"
#include "engine/distributed/coordinator.h"
#include "tests/engine/fake_executor.h"

namespace vllm::app {
namespace {

using Clock = std::chrono::steady_clock;

// All other ranks of the job. Answers are ready at the next Poll.
class FakeRanks final : public PacketLink {
 public:
  FakeRanks(int num_ranks, const VllmConfig& config) : ranks_(static_cast<size_t>(num_ranks)) {
    HelloMessage hello;
    hello.identity = "{}";
    hello.num_blocks = 1000;
    hello.max_model_len = config.model.max_model_len;
    hello.spare_memory_bytes = int64_t{1} << 40;
    for (size_t rank = 1; rank < ranks_.size(); ++rank) {
      Reply(rank, EncodeHost({"node" + std::to_string(rank), {0}, 0}));
      Reply(rank, EncodeHello(hello));
    }
  }

  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(ranks_.size()); }

  void Send(int to, std::string_view packet) override {
    sent_.push_back(to);
    const auto index = static_cast<size_t>(to);
    EngineCoreOutputs outputs;
    const auto now = Clock::now();
    for (; !packet.empty(); packet = packet.substr(4 + HeadOf(packet))) {
      const std::string_view message = packet.substr(4, HeadOf(packet));
      if (message.empty() || TypeOf(message) != MessageType::kAdd) continue;
      EngineCoreOutput& output = outputs.Add(DecodeAdd(message, now).request->request_id);
      output.new_token_ids = {5};
      output.finish_reason = FinishReason::kLength;
      output.scheduled_time = output.first_token_time = output.last_token_time = now;
    }
    if (!outputs.empty()) Reply(index, EncodeOutputs(outputs, now));
  }

  void Poll(std::vector<Event>& events) override {
    events.clear();
    for (const int to : std::exchange(sent_, {})) events.push_back({EventKind::kSent, to, {}, {}});
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::deque<std::string>& replies = ranks_[rank].replies;
      if (replies.empty()) continue;
      ranks_[rank].current = std::move(replies.front());
      replies.pop_front();
      events.push_back({EventKind::kReceived, static_cast<int>(rank), ranks_[rank].current, {}});
    }
  }

 private:
  struct Rank {
    std::deque<std::string> replies;
    std::string current;
  };

  static size_t HeadOf(std::string_view packet) {
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= size_t{static_cast<uint8_t>(packet[i])} << 8 * i;
    return size;
  }
  void Reply(size_t rank, const std::string& message) {
    std::string packet;
    for (int shift = 0; shift < 32; shift += 8) packet.push_back(static_cast<char>(message.size() >> shift & 0xff));
    ranks_[rank].replies.push_back(packet + message);
  }

  std::vector<Rank> ranks_;
  std::vector<int> sent_;
};

double ThreadCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double ProcessCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Adds up the CPU time of the calls of another client.
class TimedClient final : public EngineCoreClient {
 public:
  explicit TimedClient(std::unique_ptr<EngineCoreClient> client) : client_(std::move(client)) {}
  const EngineCoreReadyInfo& ready() const override { return client_->ready(); }
  void AddRequest(EngineCoreRequestPtr request) override {
    const double start = ThreadCpuSeconds();
    client_->AddRequest(std::move(request));
    seconds += ThreadCpuSeconds() - start;
  }
  void AbortRequests(std::span<const RequestId> ids, AbortUrgency urgency) override {
    client_->AbortRequests(ids, urgency);
  }
  bool GetOutputs(EngineCoreOutputs& outputs, std::chrono::milliseconds timeout) override {
    const double start = ThreadCpuSeconds();
    const bool has_outputs = client_->GetOutputs(outputs, timeout);
    seconds += ThreadCpuSeconds() - start;
    return has_outputs;
  }
  void Interrupt() override { client_->Interrupt(); }
  int OutputFd() const override { return client_->OutputFd(); }
  bool ResetPrefixCache() override { return client_->ResetPrefixCache(); }
  SchedulerStats GetStats() override { return client_->GetStats(); }
  void AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) override {
    client_->AddLoRA(slot, adapter);
  }
  EngineMonitor* monitor() override { return client_->monitor(); }
  void Shutdown(ShutdownMode mode) override { client_->Shutdown(mode); }

  double seconds = 0;

 private:
  std::unique_ptr<EngineCoreClient> client_;
};

void WriteRows(const std::string& path, int64_t num_rows) {
  std::ofstream file(path);
  for (int64_t i = 0; i < num_rows; ++i) {
    file << R"({"custom_id":"request-)" << i << R"(","prompt":"Summarize the review number )" << i
         << R"( of the product in one short sentence.","max_tokens":16,"label":)" << i << "}\n";
  }
}

void Run(int64_t num_rows, int num_ranks) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("distributed_batch_" + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  const std::string input_path = directory / "in.jsonl";
  WriteRows(input_path, num_rows);
  {
    const ModelLocation location = FindModel("guide");
    VllmConfig config;
    config.model = ReadModelConfig(location);
    config.parallel.num_processes = num_ranks;
    config.Finalize();
    const std::shared_ptr<const tokenizer::Tokenizer> tokenizer = LoadModelTokenizer(location);
    testing::FakeModel model;
    model.check_kv = false;
    model.memory_bytes = int64_t{1} << 30;
    model.block_bytes = 1 << 14;

    Coordinator coordinator([&] { return std::make_unique<FakeRanks>(num_ranks, config); });
    coordinator.PlaceRanks({"node0", {0}, 0});
    coordinator.WaitForRanks();
    auto client = std::make_unique<TimedClient>(
        coordinator.MakeClient(config, std::make_unique<ThreadClient>(config, testing::FakeExecutorFactory(model))));
    const TimedClient& timed = *client;
    LLMEngine engine(config, tokenizer, std::move(client));
    LiveSource live_source("batch", "guide", engine, tokenizer);
    const InputFile input(input_path);
    RecordReader reader(input.fd(), input_path, '\0');
    RowParser parser(InputFormat::kJsonLines, {}, nullptr);
    RowSource source(reader, parser);
    BatchOutput output(
        std::make_unique<BatchJob>(directory / "out.jsonl", "", nlohmann::ordered_json::object(), JobOptions()),
        /*ordered=*/false);
    BatchLive live(live_source, input_path, "out.jsonl", /*shows_view=*/false);
    BatchProgressDisplay progress(ProgressMode::kNone);
    BatchRunner runner(engine, source, output, live, progress, {}, input.size());
    const auto start = Clock::now();
    const double main_start = ThreadCpuSeconds();
    const double process_start = ProcessCpuSeconds();
    runner.Run();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double main_seconds = ThreadCpuSeconds() - main_start;
    const double process_seconds = ProcessCpuSeconds() - process_start;
    const auto rows = static_cast<double>(num_rows);
    std::printf("%lld rows (%lld failed) on %d ranks: %.0f rows/s\n", static_cast<long long>(runner.counts().num_rows),
                static_cast<long long>(runner.counts().num_failed), num_ranks, rows / seconds);
    std::printf("per row: main thread %.1f us, of which distribution %.1f us; all threads %.1f us (CPU time)\n",
                main_seconds / rows * 1e6, timed.seconds / rows * 1e6, process_seconds / rows * 1e6);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace vllm::app

int main(int argc, char** argv) {
  const int64_t num_rows = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const int num_ranks = argc > 2 ? std::atoi(argv[2]) : 64;
  vllm::app::Run(num_rows, num_ranks);
  return 0;
}
