// ChatsProgramTest: runs chats of the real program with the bundled model and reads what they have stored.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {

using Json = nlohmann::json;
using Flags = std::vector<std::string>;

class ChatsProgramTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(model_ = GuideModel(), ""); }

  // Each user has another data directory, which is empty at first.
  ProgramOptions As(const std::string& user, const std::string& input = "") const {
    ProgramOptions options = Input(input);
    options.environment = {{"XDG_DATA_HOME", temp_.path() + "/" + user}};
    return options;
  }
  // Runs a chat with these lines as input.
  ProgramResult Chat(const std::string& user, const std::string& lines, Flags flags = {}) const {
    const Flags base = {"chat", "-m", model_, "-n", "12", "--ignore-eos", "--seed", "5"};
    flags.insert(flags.begin(), base.begin(), base.end());
    ProgramResult result = RunProgram(flags, As(user, lines));
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }
  Json Show(const std::string& user, int64_t chat = 1) const {
    const ProgramResult result = RunProgram({"chats", "show", std::to_string(chat), "--json"}, As(user));
    EXPECT_EQ(result.status, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  }
  // Returns {role, text, token ids up to and including the message} for each message of the current branch.
  static Json Branch(const Json& chat) {
    std::map<int64_t, Json> messages;
    for (const Json& message : chat["messages"]) messages[message["id"]] = message;
    std::vector<Json> path;
    for (int64_t id = chat["current_message"]; id != 0; id = messages.at(id)["parent"]) path.push_back(messages.at(id));
    std::vector<int32_t> ids;
    Json branch = Json::array();
    for (auto message = path.rbegin(); message != path.rend(); ++message) {
      ids.resize((*message)["ids_begin"].get<size_t>());
      for (const int32_t id : (*message)["token_ids"]) ids.push_back(id);
      branch.push_back({(*message)["role"], (*message)["text"], ids});
    }
    return branch;
  }
  std::string Database(const std::string& user) const { return temp_.path() + "/" + user + "/vllmcli/chats.db"; }

  TempDirectory temp_;
  std::string model_;
};

}  // namespace vllm::app
