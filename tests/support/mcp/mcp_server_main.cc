// An MCP server for tests, with a switch for each fault that servers have in practice. Usage: mcp_test_server [FAULT].
// It speaks the stateless protocol 2026-07-28 unless the fault says otherwise. Tools: upper (text), fail, and slow,
// which answers never.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::ordered_json;

std::string g_fault;

bool Is(const char* fault) { return g_fault == fault; }

void WriteLine(const std::string& line) {
  std::string bytes = line + "\n";
  size_t begin = 0;
  while (begin < bytes.size()) {
    const ssize_t count = write(STDOUT_FILENO, bytes.data() + begin, bytes.size() - begin);
    if (count <= 0) _exit(1);
    begin += static_cast<size_t>(count);
  }
}

void Answer(const Json& id, const Json& result) {
  WriteLine(Json({{"jsonrpc", "2.0"}, {"id", id}, {"result", result}}).dump());
}

void Fail(const Json& id, int code, const std::string& message, const Json& data = nullptr) {
  Json error = {{"code", code}, {"message", message}};
  if (!data.is_null()) error["data"] = data;
  WriteLine(Json({{"jsonrpc", "2.0"}, {"id", id}, {"error", error}}).dump());
}

Json Tool(const std::string& name) {
  return {{"name", name},
          {"description", "Tool " + name},
          {"inputSchema", {{"type", "object"}, {"properties", {{"text", {{"type", "string"}}}}}}}};
}

Json Text(const std::string& text) { return {{"content", {{{"type", "text"}, {"text", text}}}}}; }

int g_num_lists = 0;

void ListTools(const Json& id, const Json& params) {
  ++g_num_lists;
  if (Is("pages")) {
    const std::string cursor = params.value("cursor", "0");
    if (cursor == "0") return Answer(id, {{"tools", {Tool("upper")}}, {"nextCursor", "1"}});
    return Answer(id, {{"tools", {Tool("second")}}});
  }
  if (Is("endless-pages")) return Answer(id, {{"tools", {Tool("upper")}}, {"nextCursor", "again"}});
  if (Is("bad-tools")) {
    return Answer(id, {{"tools", {Tool("upper"), {{"name", "no spaces allowed"}}, {{"name", 1}}}}});
  }
  if (Is("list-changed") && g_num_lists > 1) return Answer(id, {{"tools", {Tool("upper"), Tool("added")}}});
  Answer(id, {{"tools", {Tool("upper"), Tool("fail"), Tool("slow")}}});
}

void CallTool(const Json& id, const Json& params) {
  const std::string name = params.value("name", "");
  if (name == "slow" || Is("no-answer")) return;
  if (Is("dies-in-call")) {
    std::cerr << "out of cheese\n";
    _exit(3);
  }
  if (Is("large-stderr")) {
    for (int i = 0; i < 256; ++i) std::cerr << std::string(1023, 'e') << "\n";
  }
  if (Is("log-on-stdout")) WriteLine("INFO: a line of a log");
  if (Is("json-log-on-stdout")) WriteLine(R"({"level":"info","message":"a line of a log"})");
  if (Is("out-of-order")) Answer(id.get<int>() + 1000, Text("for nobody"));
  if (Is("asks-us")) WriteLine(R"({"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{}})");
  if (Is("long-line")) return WriteLine(std::string(100 << 20, 'x'));
  if (Is("broken-json")) return WriteLine(R"({"jsonrpc":"2.0","id":)" + id.dump() + ",");
  if (Is("input-required")) return Answer(id, {{"resultType", "input_required"}});
  if (Is("list-changed")) WriteLine(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  if (Is("closes-stdout")) {
    close(STDOUT_FILENO);
    pause();
  }
  if (Is("invalid-utf8")) {
    return WriteLine(R"({"jsonrpc":"2.0","id":)" + id.dump() +
                     ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xFF\\u001b[2J\"}]}}");
  }
  if (name == "fail") {
    Json result = Text("it failed");
    result["isError"] = true;
    return Answer(id, result);
  }
  std::string text = params["arguments"].value("text", "");
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  Answer(id, Text(text));
  if (Is("answers-twice")) Answer(id, Text("a second answer"));
}

void Handle(const Json& message) {
  const std::string method = message.value("method", "");
  const Json params = message.value("params", Json::object());
  const bool is_legacy = Is("legacy") || Is("dies-on-discover") || Is("silent-discover") || Is("unknown-version");
  if (!message.contains("id")) {
    if (method == "notifications/cancelled") std::cerr << "cancelled " << params["requestId"] << "\n";
    return;
  }
  const Json& id = message["id"];
  if (method.empty()) {
    std::cerr << "answer " << message["error"]["code"] << "\n";
    return;
  }
  if (method == "server/discover") {
    if (Is("dies-on-discover")) _exit(2);
    if (Is("silent-discover")) return;
    if (Is("only-future")) return Fail(id, -32022, "unsupported version", {{"supported", {"2030-01-01"}}});
    if (is_legacy) return Fail(id, -32601, "method not found");
    return Answer(id, {{"supportedVersions", {"2026-07-28"}}, {"capabilities", Json::object()}});
  }
  if (method == "initialize" && is_legacy) {
    return Answer(id, {{"protocolVersion", Is("unknown-version") ? "1999-01-01" : "2025-06-18"},
                       {"capabilities", Json::object()}});
  }
  if (!is_legacy && params["_meta"].value("io.modelcontextprotocol/protocolVersion", "") != "2026-07-28") {
    return Fail(id, -32600, "no protocol version");
  }
  if (method == "tools/list") return ListTools(id, params);
  if (method == "tools/call") return CallTool(id, params);
  Fail(id, -32601, "method not found");
}

}  // namespace

int main(int argc, char** argv) {
  g_fault = argc > 1 ? argv[1] : "";
  if (Is("ends-at-once")) return 7;
  if (Is("ignores-signals")) signal(SIGTERM, SIG_IGN);
  for (std::string line; std::getline(std::cin, line);) {
    const Json message = Json::parse(line, nullptr, false);
    if (message.is_object()) Handle(message);
  }
  if (Is("ignores-signals")) {
    while (true) pause();
  }
  return 0;
}
