// Tests the socket through which a process publishes its engine: who may use it, what viewers may send, and that no
// viewer holds up the engine.
#include "app/live/live_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/live/live_connection.h"
#include "app/live/live_directory.h"
#include "app/live/live_protocol.h"
#include "app/live/live_publisher.h"
#include "engine/config/errors.h"
#include "tests/engine/fake_executor.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
}

// An engine with a fake model, and a directory for its sockets.
class LiveServerTest : public ::testing::Test {
 protected:
  LiveServerTest() : engine_(config_, nullptr, MakeThreadClient(config_, vllm::testing::FakeExecutorFactory())) {
    setenv("XDG_RUNTIME_DIR", directory_.path().c_str(), 1);
  }
  ~LiveServerTest() override { unsetenv("XDG_RUNTIME_DIR"); }

  static VllmConfig Config() {
    VllmConfig config = vllm::testing::FakeConfig();
    config.Finalize();
    return config;
  }
  std::unique_ptr<LivePublisher> Publish() {
    return std::make_unique<LivePublisher>("batch", "fake", engine_, nullptr, true);
  }
  static std::string SocketPath() {
    const std::vector<LiveSocket> sockets = ListLiveSockets();
    return sockets.empty() ? "" : sockets[0].path;
  }
  static LiveFrame AwaitFrame(LiveConnection& connection) {
    while (true) {
      if (std::optional<LiveFrame> frame = connection.Receive()) return *std::move(frame);
      pollfd fd = {connection.fd(), POLLIN, 0};
      poll(&fd, 1, connection.fd() < 0 ? 1 : -1);
    }
  }
  static void PauseAdmission(LiveConnection& connection) {
    connection.SetAdmissionPaused(true);
    while (!AwaitFrame(connection).engine.scheduler.admission_paused) {
    }
  }
  // Adds the request "a" and returns its state in the first frame that has it. REQUIRES: admission is paused.
  RequestSnapshot AddWaitingRequest(LiveConnection& connection) {
    engine_.AddRequest("a", Prompt(std::vector<int32_t>{1, 2, 3}), {});
    while (true) {
      const LiveFrame frame = AwaitFrame(connection);
      if (!frame.engine.requests.empty()) return frame.engine.requests[0];
    }
  }
  RequestOutput AwaitOutput() {
    while (true) {
      const std::vector<RequestOutput> outputs = engine_.Step();
      if (!outputs.empty()) return outputs[0];
    }
  }
  // Waits until the other side closes the connection.
  static void AwaitClose(int fd) {
    std::array<char, 4096> buffer{};
    while (true) {
      pollfd entry = {fd, POLLIN, 0};
      poll(&entry, 1, -1);
      const ssize_t num_read = recv(fd, buffer.data(), buffer.size(), 0);
      if (num_read == 0 || (num_read < 0 && errno == ECONNRESET)) return;
    }
  }

  TempDirectory directory_;
  VllmConfig config_ = Config();
  LLMEngine engine_;
};

TEST_F(LiveServerTest, SocketIsPrivateAndGoesWithThePublisher) {
  const std::string parent = directory_.path() + "/vllmcli";
  {
    const auto publisher = Publish();
    const std::string path = parent + "/" + std::to_string(getpid()) + ".sock";
    EXPECT_EQ(SocketPath(), path);
    EXPECT_EQ(ModeOf(path), 0600u);
    EXPECT_EQ(ModeOf(parent), 0700u);
    EXPECT_EQ(std::distance(fs::directory_iterator(parent), {}), 1);
  }
  EXPECT_TRUE(fs::is_empty(parent));
}

TEST_F(LiveServerTest, ViewerGetsFrames) {
  const auto publisher = Publish();
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(100));
  const LiveFrame first = AwaitFrame(connection);
  EXPECT_EQ(first.process.pid, getpid());
  EXPECT_EQ(first.process.command, "batch");
  EXPECT_EQ(first.engine.num_kv_blocks, 128);
  EXPECT_GT(AwaitFrame(connection).engine.time, first.engine.time);
}

TEST_F(LiveServerTest, ViewerMayPauseAndResume) {
  const auto publisher = Publish();
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(100));
  PauseAdmission(connection);
  engine_.AddRequest("a", Prompt(std::vector<int32_t>{1, 2, 3}), {});
  while (AwaitFrame(connection).engine.scheduler.num_waiting_reqs != 1) {
  }
  connection.SetAdmissionPaused(false);
  bool finished = false;
  while (!finished) {
    for (const RequestOutput& output : engine_.Step()) finished = finished || output.finished;
  }
}

TEST_F(LiveServerTest, RequestsThatTheFrontEndHoldsAreWaiting) {
  const auto publisher = Publish();
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(100));
  EXPECT_EQ(AwaitFrame(connection).engine.scheduler.num_waiting_reqs, 0);
  engine_.client().monitor()->SetNumHeldReqs(2);
  while (AwaitFrame(connection).engine.scheduler.num_waiting_reqs != 2) {
  }
}

TEST_F(LiveServerTest, ViewerMayAbortARequest) {
  const auto publisher = Publish();
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(100));
  PauseAdmission(connection);
  const RequestSnapshot request = AddWaitingRequest(connection);
  EXPECT_EQ(request.external_req_id, "a");
  connection.AbortRequest(request.request_id);
  const RequestOutput output = AwaitOutput();
  EXPECT_TRUE(output.finished);
  EXPECT_EQ(output.outputs.at(0).finish_reason, FinishReason::kAbort);
}

TEST_F(LiveServerTest, BatchProgressIsPublished) {
  const auto publisher = Publish();
  LiveBatch batch;
  batch.num_done = 7;
  batch.errors = {{3, std::string(10000, 'x')}};
  publisher->source().SetBatch(batch);
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(0));
  const LiveFrame frame = AwaitFrame(connection);
  ASSERT_TRUE(frame.batch);
  EXPECT_EQ(frame.batch->num_done, 7);
  EXPECT_LE(frame.batch->errors.at(0).message.size(), 400u);
}

TEST_F(LiveServerTest, GarbageEndsTheConnectionOnly) {
  const auto publisher = Publish();
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(4096, '\0'),
        EncodeLiveMessage(LiveMessageType::kFrame, "{}"), EncodeLiveMessage(LiveMessageType::kCommand, "{}"),
        EncodeLiveMessage(LiveMessageType::kCommand, std::string(kMaxCommandBytes + 1, ' ')),
        EncodeLiveMessage(LiveMessageType::kCommand, std::string(500, '['))}) {
    const tokenizer::UniqueFd fd(ConnectLiveSocket(SocketPath()));
    ASSERT_TRUE(fd.valid());
    EXPECT_GT(send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL), 0);
    AwaitClose(fd.get());
  }
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(0));
  AwaitFrame(connection);
}

TEST_F(LiveServerTest, ViewerThatStopsReadingDoesNotHoldUpTheOthers) {
  const auto publisher = Publish();
  // This one never reads.
  SocketConnection stopped(ListLiveSockets().at(0), milliseconds(100));
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(100));
  for (int i = 0; i < 5; ++i) AwaitFrame(connection);
}

TEST_F(LiveServerTest, LastCommandOfAFloodIsObeyed) {
  const auto publisher = Publish();
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(100));
  PauseAdmission(connection);
  const RequestSnapshot request = AddWaitingRequest(connection);
  std::string commands;
  for (int i = 0; i < 500; ++i) {
    commands += EncodeLiveMessage(LiveMessageType::kCommand, LiveCommandText({LiveAction::kPause, 0, 0}));
  }
  const LiveCommand abort = {LiveAction::kAbort, 0, request.request_id};
  commands += EncodeLiveMessage(LiveMessageType::kCommand, LiveCommandText(abort));
  const tokenizer::UniqueFd fd(ConnectLiveSocket(SocketPath()));
  ASSERT_TRUE(fd.valid());
  ASSERT_EQ(send(fd.get(), commands.data(), commands.size(), MSG_NOSIGNAL), static_cast<ssize_t>(commands.size()));
  EXPECT_EQ(AwaitOutput().outputs.at(0).finish_reason, FinishReason::kAbort);
}

TEST_F(LiveServerTest, NumberOfViewersIsLimited) {
  const auto publisher = Publish();
  std::vector<std::unique_ptr<SocketConnection>> connections;
  for (size_t i = 0; i < LiveServer::kMaxViewers; ++i) {
    connections.push_back(std::make_unique<SocketConnection>(ListLiveSockets().at(0), milliseconds(100)));
    AwaitFrame(*connections.back());
  }
  // The next one waits in the queue of the socket until another one leaves.
  SocketConnection waiting(ListLiveSockets().at(0), milliseconds(100));
  AwaitFrame(*connections[0]);
  AwaitFrame(*connections[0]);
  EXPECT_EQ(waiting.Receive().has_value(), false);
  connections[1].reset();
  AwaitFrame(waiting);
}

TEST_F(LiveServerTest, ViewerSeesThatTheProcessHasEnded) {
  auto publisher = Publish();
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(100));
  AwaitFrame(connection);
  publisher.reset();
  EXPECT_EQ(MessageOf<ResourceError>([&connection] {
              while (true) connection.Receive();
            }),
            "process " + std::to_string(getpid()) + ": has ended");
}

TEST_F(LiveServerTest, TwoEnginesOfAProcessHaveTwoSockets) {
  const auto first = Publish();
  auto second = Publish();
  EXPECT_EQ(ListLiveSockets().size(), 2u);
  second.reset();
  EXPECT_EQ(ListLiveSockets().size(), 1u);
  SocketConnection connection(ListLiveSockets().at(0), milliseconds(0));
  AwaitFrame(connection);
}

TEST_F(LiveServerTest, ViewInTheSameProcessNeedsNoSocket) {
  LivePublisher publisher("chat", "fake", engine_, nullptr, false);
  EXPECT_TRUE(ListLiveSockets().empty());
  LocalConnection connection(publisher.source());
  EXPECT_EQ(AwaitFrame(connection).process.command, "chat");
}

TEST_F(LiveServerTest, StaleSocketsAreRemovedAndOthersAreKept) {
  const std::string directory = MakeLiveDirectory();
  ASSERT_EQ(directory, directory_.path() + "/vllmcli");
  close(ListenLiveSocket(directory + "/111.sock"));  // nobody listens any more
  const tokenizer::UniqueFd listening(ListenLiveSocket(directory + "/222.sock"));
  std::ofstream(directory + "/333.sock") << "a file";
  std::ofstream(directory + "/notes.txt") << "a file";
  ASSERT_EQ(ListLiveSockets().size(), 2u);
  RemoveStaleSockets(directory);
  ASSERT_EQ(ListLiveSockets().size(), 1u);
  EXPECT_EQ(ListLiveSockets().at(0).pid, 222);
  EXPECT_TRUE(fs::exists(directory + "/333.sock"));
  EXPECT_TRUE(fs::exists(directory + "/notes.txt"));
}

TEST_F(LiveServerTest, DirectoryThatOthersMayEnterIsNotUsed) {
  const std::string directory = directory_.path() + "/vllmcli";
  fs::create_directory(directory);
  ASSERT_EQ(chmod(directory.c_str(), 0755), 0);
  const tokenizer::UniqueFd listening(ListenLiveSocket(directory + "/222.sock"));
  EXPECT_NE(MakeLiveDirectory(), directory);
  for (const LiveSocket& socket : ListLiveSockets()) EXPECT_NE(socket.path, directory + "/222.sock");
}

TEST_F(LiveServerTest, SymbolicLinkIsNotUsedAsTheDirectory) {
  const std::string target = directory_.path() + "/target";
  fs::create_directory(target);
  fs::permissions(target, fs::perms::owner_all);
  fs::create_directory_symlink(target, directory_.path() + "/vllmcli");
  EXPECT_NE(MakeLiveDirectory(), directory_.path() + "/vllmcli");
}

TEST_F(LiveServerTest, ProcessThatSendsGarbageIsLeft) {
  const std::string path = MakeLiveDirectory() + "/111.sock";
  const tokenizer::UniqueFd listening(ListenLiveSocket(path));
  const std::string long_frame = EncodeLiveMessage(LiveMessageType::kFrame, std::string(kMaxFrameBytes + 1, ' '));
  for (const auto& [bytes, message] : std::vector<std::pair<std::string, std::string>>{
           {"garbage", "process 111: does not speak the protocol of vllmcli"},
           {long_frame.substr(0, 100), "process 111: does not speak the protocol of vllmcli"},
           {std::string("VLLV\x09\x00\x01\x00\x02\x00\x00\x00{}", 14), "process 111: is another version of vllmcli"},
           {EncodeLiveMessage(LiveMessageType::kFrame, "{}"), "process 111: sent an invalid frame"},
           {EncodeLiveMessage(LiveMessageType::kFrame, std::string(1000, '[')), "process 111: sent an invalid frame"},
           {"", "process 111: has ended"}}) {
    SocketConnection connection({111, path}, milliseconds(100));
    {
      const tokenizer::UniqueFd peer(accept(listening.get(), nullptr, nullptr));
      ASSERT_TRUE(peer.valid());
      ASSERT_EQ(send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
      // Without the unread command, closing sends what was written instead of a reset.
      std::array<char, 4096> command{};
      ASSERT_GT(recv(peer.get(), command.data(), command.size(), 0), 0);
    }
    EXPECT_EQ(MessageOf<ResourceError>([&connection] {
                while (true) connection.Receive();
              }),
              message);
  }
}

}  // namespace
}  // namespace vllm::app
