#include "app/mcp/mcp_client.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kStatelessVersion[] = "2026-07-28";
constexpr char kNewestLegacyVersion[] = "2025-11-25";
constexpr std::array<std::string_view, 4> kLegacyVersions = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

constexpr int kMaxWaitMs = 100;
constexpr size_t kMaxErrorBytes = 4 << 10;
constexpr size_t kMaxShownBytes = 300;
// A server that asks us something all the time and reads no answer.
constexpr size_t kMaxOutgoingBytes = size_t{16} << 20;
// A server that never stops writing must not keep ReadOutput busy.
constexpr int kMaxReadsAtOnce = 64;

bool IsLegacyVersion(const std::string& version) {
  return std::find(kLegacyVersions.begin(), kLegacyVersions.end(), version) != kLegacyVersions.end();
}

Json ClientInfo() { return {{"name", "vllmcli"}, {"version", VLLMCLI_VERSION}}; }

// Parses a small part of an answer. Returns null if it is too large or invalid.
Json SmallJson(const std::string& text) {
  constexpr size_t kMaxBytes = 64 << 10;
  Json json;
  if (text.size() > kMaxBytes || !ParseJsonText(text, json).empty()) return nullptr;
  return json;
}

std::vector<std::string> TextsIn(const Json& object, const char* key) {
  std::vector<std::string> texts;
  if (!object.is_object() || !object.contains(key) || !object[key].is_array()) return texts;
  for (const Json& item : object[key]) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

bool Contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  return Escape(joined, kMaxShownBytes);
}

// Returns the last line of what the server wrote to standard error.
std::string LastLine(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return "";
  text = text.substr(0, end + 1);
  const size_t line_break = text.find_last_of('\n');
  return Escape(line_break == std::string_view::npos ? text : text.substr(line_break + 1), kMaxShownBytes);
}

std::string SecondsText(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s" : std::to_string(time.count()) + " ms";
}

}  // namespace

McpReply McpClient::Fail(const std::string& why) const {
  McpReply reply;
  reply.text = "MCP server " + spec_.name + ": " + why;
  return reply;
}

std::string McpClient::Start() {
  reader_ = McpMessageReader();
  outgoing_.clear();
  error_output_.clear();
  version_.clear();
  try {
    child_ = std::make_unique<ChildProcess>(spec_.command);
  } catch (const ToolError& error) {
    return error.what();
  }
  return "";
}

McpReply McpClient::Connect(std::span<const PollHook> hooks) {
  Close();
  if (const std::string why = Start(); !why.empty()) return Fail(why);
  McpReply reply = spec_.protocol == McpServerSpec::Protocol::kLegacy ? Initialize(hooks) : Discover(hooks);
  if (!reply.ok()) Close();
  return reply;
}

McpReply McpClient::Discover(std::span<const PollHook> hooks) {
  const bool is_auto = spec_.protocol == McpServerSpec::Protocol::kAuto;
  version_ = kStatelessVersion;  // so that the request says it
  McpReply reply = Exchange("server/discover", "{}", is_auto ? spec_.discover_timeout : spec_.timeout, hooks);
  version_.clear();
  if (reply.status == McpReply::Status::kInterrupted) return reply;
  if (reply.ok()) {
    const std::vector<std::string> versions = TextsIn(SmallJson(reply.text), "supportedVersions");
    if (Contains(versions, kStatelessVersion)) {
      version_ = kStatelessVersion;
      return reply;
    }
    const bool has_legacy = std::any_of(versions.begin(), versions.end(), IsLegacyVersion);
    if (is_auto && has_legacy) return Initialize(hooks);
    return Fail("supports none of our versions of the protocol (" + Joined(versions) + ")");
  }
  if (!is_auto) return reply;
  if (reply.status == McpReply::Status::kError && reply.error_code == McpMessage::kUnsupportedVersion) {
    const std::vector<std::string> versions = TextsIn(SmallJson(reply.error_data), "supported");
    const bool has_legacy = std::any_of(versions.begin(), versions.end(), IsLegacyVersion);
    if (!versions.empty() && !has_legacy) {
      return Fail("supports none of our versions of the protocol (" + Joined(versions) + ")");
    }
  }
  // Some older servers end when the first request is not `initialize`.
  if (!is_open()) {
    if (const std::string why = Start(); !why.empty()) return Fail(why);
  }
  return Initialize(hooks);
}

McpReply McpClient::Initialize(std::span<const PollHook> hooks) {
  const Json params = {
      {"protocolVersion", kNewestLegacyVersion}, {"capabilities", Json::object()}, {"clientInfo", ClientInfo()}};
  McpReply reply = Exchange("initialize", DumpJson(params), spec_.timeout, hooks);
  if (!reply.ok()) return reply;
  const Json result = SmallJson(reply.text);
  const Json version = result.is_object() ? result.value("protocolVersion", Json()) : Json();
  if (!version.is_string() || !IsLegacyVersion(version.get<std::string>())) {
    return Fail("answers with a version of the protocol that we do not know" +
                (version.is_string() ? " (" + Escape(version.get<std::string>(), kMaxShownBytes) + ")" : ""));
  }
  version_ = version.get<std::string>();
  Send(McpNotificationLine("notifications/initialized", ""));
  return reply;
}

McpReply McpClient::Request(std::string_view method, const std::string& params_json, std::span<const PollHook> hooks) {
  return Exchange(method, params_json, spec_.timeout, hooks);
}

McpReply McpClient::Exchange(std::string_view method, const std::string& params_json, std::chrono::milliseconds limit,
                             std::span<const PollHook> hooks) {
  if (!is_open()) return Fail("has ended");
  const int64_t id = ++num_requests_;
  std::string params = params_json;
  if (version_ == kStatelessVersion) {
    const Json meta = {{"io.modelcontextprotocol/protocolVersion", version_},
                       {"io.modelcontextprotocol/clientCapabilities", Json::object()},
                       {"io.modelcontextprotocol/clientInfo", ClientInfo()}};
    params = "{\"_meta\":" + DumpJson(meta) + (params_json == "{}" ? "" : ",") + params_json.substr(1);
  }
  if (!Send(McpRequestLine(id, method, params))) return Fail("does not read its input");
  waiting_id_ = id;
  reply_.reset();
  const Clock::time_point end = Clock::now() + limit;
  const auto finish = [&](McpReply reply) {
    waiting_id_ = 0;
    reply_.reset();
    return reply;
  };
  std::vector<pollfd> fds;
  while (true) {
    // In this order, so that an answer counts that the server wrote before it ended.
    const bool has_ended = child_->HasEnded();
    const bool has_output = ReadOutput();
    ReadErrorOutput();
    if (reply_ != nullptr) return finish(std::move(*reply_));
    if (has_ended || !has_output) {
      // The end of the output comes just before that of the process.
      const bool ends_itself = has_ended || child_->WaitForEnd(spec_.shutdown_grace);
      if (!ends_itself) child_->Terminate(spec_.shutdown_grace);
      ReadErrorOutput();
      const std::string last = LastLine(error_output_);
      const std::string why = (ends_itself ? child_->EndText() : std::string("closed its standard output")) +
                              " without an answer" + (last.empty() ? "" : "; its last message: " + last);
      child_.reset();
      return finish(Fail(why));
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      Cancel(id, "timeout");
      return finish(Fail("no answer to " + std::string(method) + " within " + SecondsText(limit) +
                         (method == "tools/call" ? "; the call may have run" : "")));
    }
    fds = {{child_->output_fd(), POLLIN, 0},
           {child_->error_fd(), POLLIN, 0},
           {outgoing_.empty() ? -1 : child_->input_fd(), POLLOUT, 0},
           {child_->end_fd(), POLLIN, 0}};
    for (const PollHook& hook : hooks) fds.push_back({hook.fd, POLLIN, 0});
    poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left, kMaxWaitMs)));
    Flush();
    for (size_t i = 0; i < hooks.size(); ++i) {
      if (fds[4 + i].revents == 0 || hooks[i].on_ready()) continue;
      Cancel(id, "interrupted by the user");
      McpReply reply = Fail("interrupted by the user; the call may have run");
      reply.status = McpReply::Status::kInterrupted;
      return finish(std::move(reply));
    }
  }
}

void McpClient::Cancel(int64_t id, std::string_view reason) {
  Send(McpNotificationLine("notifications/cancelled", DumpJson({{"requestId", id}, {"reason", reason}})));
}

bool McpClient::Send(std::string_view line) {
  if (outgoing_.size() + line.size() > kMaxOutgoingBytes) return false;
  outgoing_ += line;
  Flush();
  return true;
}

void McpClient::Flush() {
  if (outgoing_.empty() || child_ == nullptr || child_->input_fd() < 0) return;
  std::string_view rest = outgoing_;
  // A server that has closed its input may still answer.
  const bool is_open = WriteAvailable(child_->input_fd(), rest);
  outgoing_.erase(0, outgoing_.size() - rest.size());
  if (is_open) return;
  outgoing_.clear();
  child_->CloseInput();
}

bool McpClient::ReadOutput() {
  std::string bytes;
  std::vector<McpMessage> messages;
  for (int i = 0; i < kMaxReadsAtOnce && child_->output_fd() >= 0; ++i) {
    bytes.clear();
    if (!ReadAvailable(child_->output_fd(), bytes)) child_->CloseOutput();
    if (bytes.empty()) break;
    reader_.Feed(bytes, messages);
    for (McpMessage& message : messages) Handle(std::move(message));
    messages.clear();
  }
  return child_->output_fd() >= 0;
}

void McpClient::ReadErrorOutput() {
  for (int i = 0; i < kMaxReadsAtOnce && child_->error_fd() >= 0; ++i) {
    const size_t size = error_output_.size();
    if (!ReadAvailable(child_->error_fd(), error_output_)) child_->CloseError();
    if (error_output_.size() == size) return;
    if (error_output_.size() > kMaxErrorBytes) error_output_.erase(0, error_output_.size() - kMaxErrorBytes);
  }
}

void McpClient::Handle(McpMessage message) {
  const bool is_awaited = waiting_id_ != 0 && reply_ == nullptr;
  switch (message.kind) {
    case McpMessage::Kind::kResponse:
    case McpMessage::Kind::kError:
      if (!is_awaited || message.id != waiting_id_) break;
      reply_ = std::make_unique<McpReply>();
      if (message.kind == McpMessage::Kind::kResponse) {
        reply_->status = McpReply::Status::kResult;
        reply_->text = std::move(message.text);
        return;
      }
      *reply_ = Fail("error " + std::to_string(message.error_code) + ": " + Escape(message.text, kMaxShownBytes));
      reply_->status = McpReply::Status::kError;
      reply_->error_code = message.error_code;
      reply_->error_data = std::move(message.data);
      return;
    case McpMessage::Kind::kBroken:
      if (!is_awaited) break;
      reply_ = std::make_unique<McpReply>(Fail("broke the protocol: " + message.text));
      return;
    case McpMessage::Kind::kRequest:
      Send(message.method == "ping" ? McpResultLine(message.id_json, "{}")
                                    : McpErrorLine(message.id_json, McpMessage::kMethodNotFound, "method not found"));
      return;
    case McpMessage::Kind::kNotification:
      if (message.method == "notifications/tools/list_changed") tools_changed_ = true;
      return;
    case McpMessage::Kind::kNoise:
      break;
  }
  ++num_ignored_messages_;
}

void McpClient::ReadPending() {
  if (child_ == nullptr) return;
  ReadOutput();
  ReadErrorOutput();
  Flush();
}

bool McpClient::TakeToolsChanged() { return std::exchange(tools_changed_, false); }

void McpClient::Close() {
  if (child_ == nullptr) return;
  child_->CloseInput();
  // The server may want to write before it ends.
  const Clock::time_point end = Clock::now() + spec_.shutdown_grace;
  while (!child_->HasEnded() && Clock::now() < end) {
    std::array<pollfd, 3> fds = {
        {{child_->output_fd(), POLLIN, 0}, {child_->error_fd(), POLLIN, 0}, {child_->end_fd(), POLLIN, 0}}};
    poll(fds.data(), fds.size(), kMaxWaitMs);
    ReadOutput();
    ReadErrorOutput();
  }
  child_->Terminate(spec_.shutdown_grace);
  child_.reset();
}

}  // namespace vllm::app
