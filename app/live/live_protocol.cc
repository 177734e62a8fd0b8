#include "app/live/live_protocol.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "VLLV";

void AppendInteger(std::string& out, uint32_t value, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

uint32_t ReadInteger(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

std::string EncodeLiveMessage(LiveMessageType type, std::string_view payload) {
  std::string message(kMagic);
  AppendInteger(message, kLiveVersion, 2);
  AppendInteger(message, static_cast<uint32_t>(type), 2);
  AppendInteger(message, static_cast<uint32_t>(payload.size()), 4);
  message += payload;
  return message;
}

bool LiveMessageReader::CheckHeader() {
  const std::string_view header = std::string_view(buffer_).substr(0, kLiveHeaderBytes);
  if (header.substr(0, kMagic.size()) != kMagic.substr(0, header.size())) return false;
  if (header.size() < kLiveHeaderBytes) return true;
  has_other_version_ = ReadInteger(header.substr(4, 2)) != kLiveVersion;
  return !has_other_version_ && ReadInteger(header.substr(6, 2)) == static_cast<uint32_t>(type_) &&
         ReadInteger(header.substr(8, 4)) <= max_bytes_;
}

bool LiveMessageReader::Feed(std::string_view bytes) {
  if (!is_valid_) return false;
  buffer_ += bytes;
  is_valid_ = CheckHeader();
  if (!is_valid_) buffer_.clear();
  return is_valid_;
}

std::optional<std::string> LiveMessageReader::Next() {
  if (!is_valid_ || buffer_.size() < kLiveHeaderBytes) return std::nullopt;
  const size_t length = ReadInteger(std::string_view(buffer_).substr(8, 4));
  if (buffer_.size() - kLiveHeaderBytes < length) return std::nullopt;
  std::string payload = buffer_.substr(kLiveHeaderBytes, length);
  buffer_.erase(0, kLiveHeaderBytes + length);
  is_valid_ = CheckHeader();
  return payload;
}

std::string LiveCommandText(const LiveCommand& command) {
  Json json;
  switch (command.action) {
    case LiveAction::kWatch:
      json = {{"command", "watch"}, {"interval_ms", command.interval_ms}, {"detail", command.request_id}};
      break;
    case LiveAction::kPause:
      json = {{"command", "pause"}};
      break;
    case LiveAction::kResume:
      json = {{"command", "resume"}};
      break;
    case LiveAction::kAbort:
      json = {{"command", "abort"}, {"id", command.request_id}};
      break;
  }
  return DumpJson(json);
}

std::optional<LiveCommand> ParseLiveCommand(std::string_view text) {
  Json json;
  if (!ParseJsonText(text, json).empty() || !json.is_object()) return std::nullopt;
  const auto name = json.find("command");
  if (name == json.end() || !name->is_string()) return std::nullopt;
  const auto number = [&json](const char* field) -> std::optional<uint64_t> {
    const auto found = json.find(field);
    if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
    return found->get<uint64_t>();
  };
  if (*name == "pause") return LiveCommand{LiveAction::kPause};
  if (*name == "resume") return LiveCommand{LiveAction::kResume};
  if (*name == "abort") {
    const std::optional<uint64_t> id = number("id");
    if (!id) return std::nullopt;
    return LiveCommand{LiveAction::kAbort, 0, static_cast<RequestId>(*id)};
  }
  if (*name != "watch") return std::nullopt;
  const std::optional<uint64_t> interval = number("interval_ms");
  const std::optional<uint64_t> detail = number("detail");
  if (!interval || !detail) return std::nullopt;
  constexpr uint64_t kMaxInterval = 3'600'000;
  return LiveCommand{LiveAction::kWatch, static_cast<int64_t>(std::min(*interval, kMaxInterval)),
                     static_cast<RequestId>(*detail)};
}

}  // namespace vllm::app
