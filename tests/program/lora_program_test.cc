// Runs chats and batches of the real program with LoRA adapters of the bundled model, named by path and by repository.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/program/chats_test.h"
#include "tests/support/safetensors_bytes.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

class LoRAProgramTest : public ChatsProgramTest {
 protected:
  // Writes a PEFT adapter with random weights and returns its directory.
  std::string MakeAdapter(const std::string& directory, unsigned seed) const {
    const std::string path = temp_.path() + "/" + directory;
    fs::create_directories(path);
    const Json config = {{"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 8}, {"target_modules", {"o_proj"}}};
    testing_support::Shapes shapes;
    for (int layer = 0; layer < 4; ++layer) {
      const std::string module = "base_model.model.model.layers." + std::to_string(layer) + ".self_attn.o_proj.";
      shapes[module + "lora_A.weight"] = {4, 256};
      shapes[module + "lora_B.weight"] = {256, 4};
    }
    std::mt19937 random(seed);
    const std::string weights =
        testing_support::SafetensorsBytes(shapes, [&] { return static_cast<float>(random() % 2001) / 1000.0f - 1.0f; });
    temp_.Write(directory + "/adapter_config.json", config.dump());
    temp_.Write(directory + "/adapter_model.safetensors", weights);
    return path;
  }
  // Writes an adapter into the cache of the hub's clients, as me/NAME.
  void InstallAdapter(const std::string& name, unsigned seed) const {
    const std::string repository = "hub/models--me--" + name;
    MakeAdapter(repository + "/snapshots/0123456789abcdef0123456789abcdef01234567", seed);
    fs::create_directories(temp_.path() + "/" + repository + "/refs");
    temp_.Write(repository + "/refs/main", "0123456789abcdef0123456789abcdef01234567");
  }
  ProgramOptions WithCache(ProgramOptions options) const {
    options.environment["HF_HUB_CACHE"] = temp_.path() + "/hub";
    return options;
  }
  // Returns the answers of a conversation.
  std::vector<std::string> Answers(const std::string& user) const {
    std::vector<std::string> answers;
    const Json chat = Show(user);
    for (const Json& message : chat["messages"]) {
      if (message["role"] == "assistant") answers.push_back(message["token_ids"].dump());
    }
    return answers;
  }
};

TEST_F(LoRAProgramTest, AnAdapterThatTheChatLoadsAnswersAsOneOfTheCommandLine) {
  const std::string first = MakeAdapter("adapter1", 1), second = MakeAdapter("adapter2", 2);
  Chat("base", "one\n");
  Chat("first", "one\n", {"--lora", "mine=" + first});
  Chat("second", "one\n", {"--lora", "mine=" + second});
  const std::string base = Answers("base")[0], of_first = Answers("first")[0], of_second = Answers("second")[0];
  EXPECT_NE(base, of_first);
  EXPECT_NE(of_first, of_second);

  const ProgramResult result = Chat("loads",
                                    "one\n/lora mine=" + first + "\n/regen\n/lora mine=" + second +
                                        "\n/regen\n/lora off\n/set seed 5\n/regen\n/lora\n",
                                    {"-t", "0"});
  Chat("base0", "one\n", {"-t", "0"});
  Chat("first0", "one\n", {"-t", "0", "--lora", "mine=" + first});
  Chat("second0", "one\n", {"-t", "0", "--lora", "mine=" + second});
  EXPECT_EQ(Answers("loads"), (std::vector<std::string>{Answers("base0")[0], Answers("first0")[0],
                                                        Answers("second0")[0], Answers("base0")[0]}));
  EXPECT_NE(result.err.find("[answers with the adapter mine]"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("mine  " + second), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("mine  " + first), std::string::npos) << result.err;
}

TEST_F(LoRAProgramTest, AnAdapterThatCannotBeLoadedLeavesTheChatAsItWas) {
  fs::create_directories(temp_.path() + "/broken");
  temp_.Write("broken/adapter_config.json", "{}");
  const ProgramResult result = Chat(
      "chat", "/lora a=" + temp_.path() + "/missing\n/lora a=" + temp_.path() + "/broken\n/lora a\n/lora =x\none\n",
      {"-t", "0"});
  EXPECT_NE(result.err.find("missing: no such file or directory"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("there is no adapter_model.safetensors"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("/lora: no adapter has this name (a; loaded: none)"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("/lora: must be NAME=PATH or NAME (=x)"), std::string::npos) << result.err;
  Chat("base", "one\n", {"-t", "0"});
  EXPECT_EQ(Answers("chat"), Answers("base"));
}

TEST_F(LoRAProgramTest, ARepositoryInTheCacheIsAnAdapter) {
  InstallAdapter("poems", 1);
  const Flags flags = {"run", "-m", model_, "-n", "12", "--ignore-eos", "-t", "0", "one", "--ephemeral", "--lora"};
  const auto run = [&](const std::string& value) {
    Flags all = flags;
    all.push_back(value);
    return RunProgram(all, WithCache(As("user")));
  };
  const ProgramResult by_path = run("x=" + MakeAdapter("poems", 1));
  const ProgramResult by_name = run("x=me/poems");
  EXPECT_EQ(by_name.status, 0) << by_name.err;
  EXPECT_EQ(by_name.out, by_path.out);
  const ProgramResult missing = run("x=me/stories");
  EXPECT_EQ(missing.status, 3);
  EXPECT_NE(missing.err.find("adapter me/stories: not installed"), std::string::npos) << missing.err;
  EXPECT_NE(missing.err.find("vllmcli pull me/stories"), std::string::npos) << missing.err;

  const ProgramResult list = RunProgram({"models", "--json"}, WithCache(As("user")));
  EXPECT_EQ(list.status, 0) << list.err;
  bool is_listed = false;
  const Json models = Json::parse(list.out);
  for (const Json& model : models) {
    is_listed = is_listed ||
                (model["name"] == "me/poems" && model["type"] == "LoRA adapter" && model["problem"] == "needs a model");
  }
  EXPECT_TRUE(is_listed) << list.out;
}

TEST_F(LoRAProgramTest, ARepositoryWithAnAdapterIsNoModel) {
  InstallAdapter("poems", 1);
  const ProgramResult result = RunProgram({"show", "me/poems"}, WithCache(As("user")));
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find("model me/poems: is a LoRA adapter"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("add --lora NAME=me/poems"), std::string::npos) << result.err;
}

TEST_F(LoRAProgramTest, AnotherModelAndAFailedSwitchToOneForgetTheAdaptersThatTheChatLoaded) {
  const std::string adapter = MakeAdapter("adapter", 1);
  const std::string other = CopyGuideModel(temp_.path() + "/other", {});
  const std::string broken = CopyGuideModel(temp_.path() + "/broken", {});
  fs::remove(broken + "/model.safetensors");
  temp_.Write("broken/model.safetensors", "");
  Chat("plain", "one\n", {"-t", "0"});
  for (const std::string& model : {other, broken}) {
    const std::string user = fs::path(model).filename();
    const ProgramResult result =
        Chat(user + " user", "/lora mine=" + adapter + "\n/model " + model + "\n/lora\none\n", {"-t", "0"});
    EXPECT_NE(result.err.find("[no adapters; load one with /lora NAME=PATH]"), std::string::npos) << result.err;
    EXPECT_EQ(Answers(user + " user"), Answers("plain"));
  }
}

TEST_F(LoRAProgramTest, TabCompletesAdaptersAndTheirFiles) {
  MakeAdapter("poems", 1);
  PtyProgram program({"chat", "-m", model_, "--lora", "poems=" + temp_.path() + "/poems", "--ephemeral"});
  ASSERT_TRUE(program.WaitFor(">>> "));
  program.Send("/lora po\t\r");
  EXPECT_TRUE(program.WaitFor("[answers with the adapter poems]"));
  program.Send("/lora of\t\r");
  EXPECT_TRUE(program.WaitFor("[answers of the base model]"));
  program.Send("/lora other=" + temp_.path() + "/poe\t\r");
  EXPECT_TRUE(program.WaitFor("[answers with the adapter other]"));
  program.Send("\x04");
  EXPECT_EQ(program.WaitForExit(), 0);
}

TEST_F(LoRAProgramTest, ABatchWithOneAdapterInMemoryEqualsOneWithAll) {
  Flags flags = {"batch", "-m", model_, "-n", "8", "-t", "0", "--ephemeral", "--ignore-eos"};
  std::string rows;
  const Json names = {"a", "b", "c", nullptr};
  for (unsigned i = 0; i < 4; ++i) {
    if (i < 3) {
      const std::string name = names[i];
      flags.insert(flags.end(), {"--lora", name + "=" + MakeAdapter(name, i + 1)});
    }
  }
  for (int i = 0; i < 24; ++i) {
    rows +=
        Json{{"custom_id", std::to_string(i)}, {"prompt", "number " + std::to_string(i % 6)}, {"lora", names[i % 4]}}
            .dump() +
        "\n";
  }
  const std::string input = temp_.Write("rows.jsonl", rows);
  const auto run = [&](const std::string& output, const Flags& more) {
    Flags all = flags;
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), {input, "-o", temp_.path() + "/" + output});
    const ProgramResult result = RunProgram(all, As("user"));
    EXPECT_EQ(result.status, 0) << result.err;
    std::map<std::string, std::string> texts;
    for (const auto& [id, record] : ReadBatchRecords(temp_.path() + "/" + output))
      texts[id] = record["outputs"][0]["text"];
    EXPECT_EQ(texts.size(), 24u);
    return texts;
  };
  const auto all = run("all.jsonl", {"--max-loras", "3"});
  EXPECT_EQ(run("one.jsonl", {"--max-cpu-loras", "1"}), all);
  EXPECT_NE(all.at("0"), all.at("3"));

  flags.insert(flags.end(), {"--max-loras", "3", "--max-cpu-loras", "2", input});
  const ProgramResult invalid = RunProgram(flags, As("user"));
  EXPECT_EQ(invalid.status, 2);
  EXPECT_NE(invalid.err.find("--max-cpu-loras: must be at least --max-loras (2 < 3)"), std::string::npos)
      << invalid.err;
}

}  // namespace
}  // namespace vllm::app
