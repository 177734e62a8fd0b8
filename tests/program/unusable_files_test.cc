// Tests files that the program cannot use (FIFOs, sockets, directories and devices in place of a model's files, missing
// and broken files), and limits on file descriptors and on the size of the output file. A run that cannot continue must
// exit at once and print the cause.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class UnusableFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(model_);
    for (const auto& file : fs::directory_iterator(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model")) {
      fs::copy(file, model_);
    }
  }

  std::string In(const std::string& name) const { return model_ + "/" + name; }
  void MakeFifo(const std::string& path) const {
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  }
  static void MakeSocket(const std::string& path) {
    fs::remove(path);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    close(fd);
  }
  ProgramResult Complete(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"complete", "-m", model_, "-n", "2", "-t", "0"};
    words.insert(words.end(), more.begin(), more.end());
    if (more.empty()) words.emplace_back("Once");
    return RunProgram(words, Input(""));
  }
  ProgramResult Show() const { return RunProgram({"show", model_}); }
  // Runs the program under a limit that the shell sets with ulimit.
  static ProgramResult RunLimited(const std::string& limit, const std::vector<std::string>& words) {
    std::vector<std::string> all = {"-c", "ulimit " + limit + "; exec \"$0\" \"$@\"", VLLMCLI_BINARY};
    all.insert(all.end(), words.begin(), words.end());
    ProgramOptions options = Input("");
    options.program = "/bin/sh";
    return RunProgram(all, options);
  }

  TempDirectory temp_;
  std::string model_ = temp_.path() + "/model";
};

TEST_F(UnusableFilesTest, FifoInPlaceOfAModelFileIsAnErrorThatNamesTheFile) {
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
                           "chat_template.jinja", "model.safetensors"}) {
    const std::string saved = temp_.path() + "/saved";
    const bool was_there = fs::exists(In(name));
    if (was_there) fs::rename(In(name), saved);
    MakeFifo(In(name));
    const ProgramResult result = Complete();
    EXPECT_EQ(result.status, 3) << name << result.err;
    EXPECT_NE(result.err.find(name), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("not a regular file (a FIFO)"), std::string::npos) << name << result.err;
    EXPECT_EQ(result.out, "") << name;
    EXPECT_EQ(Show().status, 3) << name;
    fs::remove(In(name));
    if (was_there) fs::rename(saved, In(name));
  }
  EXPECT_EQ(Complete().status, 0);
}

TEST_F(UnusableFilesTest, DirectoriesSocketsAndDevicesAreRejectedWithTheirType) {
  fs::rename(In("model.safetensors"), temp_.path() + "/weights");
  fs::create_directory(In("model.safetensors"));
  EXPECT_NE(Complete().err.find("model.safetensors: not a regular file (a directory)"), std::string::npos);
  fs::remove(In("model.safetensors"));
  fs::create_symlink("/dev/zero", In("model.safetensors"));
  EXPECT_NE(Complete().err.find("model.safetensors: not a regular file (a device)"), std::string::npos);
  fs::remove(In("model.safetensors"));
  MakeSocket(In("model.safetensors"));
  EXPECT_NE(Complete().err.find("model.safetensors: not a regular file (a socket)"), std::string::npos);
}

TEST_F(UnusableFilesTest, ShardOrIndexThatIsAFifoIsRejected) {
  fs::remove(In("model.safetensors"));
  std::ofstream(In("model.safetensors.index.json")) << R"({"weight_map": {"lm_head.weight": "shard.safetensors"}})";
  MakeFifo(In("shard.safetensors"));
  const ProgramResult result = Complete();
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find("shard.safetensors: not a regular file (a FIFO)"), std::string::npos) << result.err;
  fs::remove(In("model.safetensors.index.json"));
  MakeFifo(In("model.safetensors.index.json"));
  EXPECT_NE(Complete().err.find("index.json: not a regular file (a FIFO)"), std::string::npos);
}

TEST_F(UnusableFilesTest, FifoIsRejectedAsTemplateOrConfigurationOrRenderInputOrModel) {
  const std::string fifo = temp_.path() + "/fifo";
  MakeFifo(fifo);
  const std::string why = fifo + ": not a regular file (a FIFO)";
  const ProgramResult chat_template = RunProgram({"run", "-m", model_, "--chat-template", fifo, "hi"}, Input(""));
  EXPECT_EQ(chat_template.status, 2);
  EXPECT_NE(chat_template.err.find(why), std::string::npos) << chat_template.err;
  const ProgramResult config = RunProgram({"config", "--config", fifo});
  EXPECT_EQ(config.status, 2);
  EXPECT_NE(config.err.find(why), std::string::npos) << config.err;
  const ProgramResult render = RunProgram({"render", "-m", model_, fifo});
  EXPECT_EQ(render.status, 2);
  EXPECT_NE(render.err.find(why), std::string::npos) << render.err;
  const ProgramResult lines = RunProgram({"render", "-m", model_, "--jsonl", fifo});
  EXPECT_EQ(lines.status, 3);
  EXPECT_NE(lines.err.find(why), std::string::npos) << lines.err;
  const std::string gguf = temp_.path() + "/m.gguf";
  MakeFifo(gguf);
  const ProgramResult model = RunProgram({"complete", "-m", gguf, "hi"}, Input(""));
  EXPECT_EQ(model.status, 3);
  EXPECT_NE(model.err.find(gguf + ": not a regular file or a directory (a FIFO)"), std::string::npos) << model.err;
}

TEST_F(UnusableFilesTest, BatchReadsItsInputFromAFifo) {
  const std::string fifo = temp_.path() + "/rows.jsonl";
  MakeFifo(fifo);
  std::thread writer([&fifo] {
    std::ofstream out(fifo);
    out << R"({"prompt": "a"})"
        << "\n";
    out.flush();
    out << R"({"prompt": "b"})"
        << "\n";
  });
  const ProgramResult result = RunProgram({"batch", fifo, "-m", model_, "-n", "1", "-t", "0"});
  writer.join();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2);
}

TEST_F(UnusableFilesTest, LineBreaksInAFileNameAreEscapedInMessages) {
  const ProgramResult result = RunProgram({"complete", "-m", "no\nsuch\n\x1b[31mmodel", "hi"}, Input(""));
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 2) << result.err;
  EXPECT_NE(result.err.find("\nhint: "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("no\\nsuch\\n<1b>[31mmodel"), std::string::npos) << result.err;
}

TEST_F(UnusableFilesTest, ModelWithoutATokenizerRunsWithTokenIds) {
  const std::vector<std::string> with_ids = {"--prompt-ids", "1,2,3", "--json"};
  const ProgramResult expected = Complete(with_ids);
  ASSERT_EQ(expected.status, 0) << expected.err;
  fs::remove(In("tokenizer.json"));
  const ProgramResult result = Complete(with_ids);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["outputs"][0]["token_ids"], Json::parse(expected.out)["outputs"][0]["token_ids"]);
  EXPECT_NE(result.err.find("warning: model " + model_ + ": has no tokenizer"), std::string::npos) << result.err;
  const ProgramResult text = Complete();
  EXPECT_EQ(text.status, 3);
  EXPECT_NE(text.err.find("found no tokenizer.json, tokenizer.model"), std::string::npos) << text.err;
}

TEST_F(UnusableFilesTest, BatchWithoutATokenizerRunsTheRowsOfTokenIds) {
  const std::string rows = R"({"prompt_token_ids": [1, 2, 3]})"
                           "\n"
                           R"({"prompt": "hi"})"
                           "\n"
                           R"({"prompt_token_ids": [4, 5]})"
                           "\n";
  const auto batch = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"batch", "-m", model_, "-n", "3", "-t", "0", "--ordered", "-"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words, Input(rows));
  };
  const auto lines = [](const std::string& text) {
    std::vector<Json> json;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) json.push_back(Json::parse(line));
    return json;
  };
  const std::vector<Json> expected = lines(batch({}).out);
  fs::remove(In("tokenizer.json"));
  const ProgramResult result = batch({});
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_NE(result.err.find("has no tokenizer"), std::string::npos) << result.err;
  const std::vector<Json> records = lines(result.out);
  ASSERT_EQ(records.size(), 3u);
  ASSERT_EQ(expected.size(), 3u);
  for (const size_t row : {0u, 2u}) {
    EXPECT_EQ(records[row]["outputs"][0]["token_ids"], expected[row]["outputs"][0]["token_ids"]);
    EXPECT_EQ(records[row]["outputs"][0]["text"], "");
  }
  EXPECT_EQ(records[1]["error"]["message"], "prompt: text needs a tokenizer (none is loaded)");
  const ProgramResult check = batch({"--check"});
  EXPECT_EQ(check.status, 1);
  EXPECT_EQ(lines(check.out).at(0)["error"], records[1]["error"]);
  EXPECT_EQ(batch({"--format", "text"}).status, 3);
  EXPECT_EQ(batch({"--input-format", "txt"}).status, 3);
}

TEST_F(UnusableFilesTest, TokenizerInAnotherFormatIsUsedWithAWarning) {
  const Json tokenizer = Json::parse(std::ifstream(In("tokenizer.json")));
  fs::remove(In("tokenizer.json"));
  std::ofstream(In("vocab.json")) << tokenizer["model"]["vocab"].dump();
  std::ofstream merges(In("merges.txt"));
  for (const Json& merge : tokenizer["model"]["merges"]) {
    if (merge.is_string()) {
      merges << merge.get<std::string>() << "\n";
    } else {
      merges << merge[0].get<std::string>() << " " << merge[1].get<std::string>() << "\n";
    }
  }
  merges.close();
  const ProgramResult result = RunProgram({"tokenize", "-m", model_, "a"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "vllmcli: warning: tokenizer of " + model_ +
                            ": tokenizer.json is missing; using vocab.json with merges.txt instead\n");
}

// The last line of stderr suggests a model of the same or another family, or another form of the same model.
TEST_F(UnusableFilesTest, ShowNamesTheNearestModelThatRuns) {
  const auto hint_for = [this](const Json& changes) {
    std::ifstream file(In("config.json"));
    Json config = Json::parse(file);
    config.merge_patch(changes);
    const std::string other = temp_.path() + "/other";
    fs::remove_all(other);
    fs::copy(model_, other);
    std::ofstream(other + "/config.json") << config;
    const ProgramResult result = RunProgram({"show", other});
    EXPECT_EQ(result.status, 3) << changes;
    const size_t hint = result.err.find("hint: nearest that runs: ");
    return hint == std::string::npos ? result.err : result.err.substr(hint + 25);
  };
  EXPECT_EQ(hint_for({{"architectures", {"MambaForCausalLM"}}}),
            "Mamba2ForCausalLM (Mamba-2), such as mistralai/Mamba-Codestral-7B-v0.1\n");
  EXPECT_EQ(hint_for({{"architectures", {"WhisperForConditionalGeneration"}}}),
            "a model of another family; vllmcli pull --list names some\n");
  EXPECT_EQ(hint_for({{"rope_scaling", {{"type", "new"}}}, {"rope_parameters", nullptr}}),
            "LlamaForCausalLM (Llama 2 and 3, SmolLM2), such as meta-llama/Llama-3.2-1B-Instruct\n");
  EXPECT_EQ(hint_for({{"quantization_config", {{"quant_method", "aqlm"}}}}),
            "the unquantized checkpoint with -q int4 or -q int8, or a GGUF file of it (Q4_K_M, Q8_0)\n");

  // The weights and the tokenizer are read after the description begins.
  fs::rename(In("model.safetensors"), In("pytorch_model.bin"));
  EXPECT_EQ(hint_for(Json::object()), "a checkpoint of the model in safetensors, or a GGUF file of it\n");
  fs::rename(In("pytorch_model.bin"), In("model.safetensors"));
  std::ofstream(In("tokenizer.json")) << R"({"model": {"type": "Other"}})";
  const ProgramResult tokenizer = RunProgram({"show", "--json", model_});
  EXPECT_EQ(tokenizer.status, 3);
  EXPECT_EQ(Json::parse(tokenizer.out)["nearest_that_runs"],
            "LlamaForCausalLM (Llama 2 and 3, SmolLM2), such as meta-llama/Llama-3.2-1B-Instruct");
}

// `show` must find the same errors as `run` and print the same messages.
TEST_F(UnusableFilesTest, ShowFailsLikeRunWithTheSameMessage) {
  const auto expect_same = [this](const std::string& what, const std::string& part) {
    const ProgramResult run = RunProgram({"run", "-m", model_, "hi"}, Input(""));
    const ProgramResult show = Show();
    EXPECT_EQ(run.status, 3) << what << run.err;
    EXPECT_EQ(show.status, 3) << what << show.out;
    EXPECT_EQ(show.err, run.err) << what;
    EXPECT_NE(show.err.find(part), std::string::npos) << what << show.err;
  };
  const auto replace = [this](const std::string& name, const std::string& text) {
    fs::copy_file(In(name), temp_.path() + "/saved", fs::copy_options::overwrite_existing);
    std::ofstream(In(name)) << text;
  };
  const auto restore = [this](const std::string& name) {
    fs::copy_file(temp_.path() + "/saved", In(name), fs::copy_options::overwrite_existing);
  };
  const auto read = [this](const std::string& name) {
    std::ifstream file(In(name));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  ASSERT_EQ(Show().status, 0) << Show().err;

  Json config = Json::parse(read("config.json"));
  config["architectures"] = {"NoSuchForCausalLM"};
  replace("config.json", config.dump());
  expect_same("architecture", "NoSuchForCausalLM");
  restore("config.json");

  config = Json::parse(read("config.json"));
  config["quantization_config"] = {{"quant_method", "no_such_method"}};
  replace("config.json", config.dump());
  expect_same("quantization", "no_such_method");
  restore("config.json");

  const std::string weights = read("model.safetensors");
  replace("model.safetensors", weights.substr(0, weights.size() / 2));
  expect_same("weights", "model.safetensors");
  restore("model.safetensors");

  // The new names are as long as the old ones, so that the header keeps its size.
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"model.norm.weight", "model.nurm.weight"},
                                                        {"layers.1.self_attn.o_proj", "layers.1.self_attn.q_prog"},
                                                        {"layers.2.mlp.down_proj", "layers.2.mlp.dawn_proj"}}) {
    std::string renamed = weights;
    ASSERT_NE(renamed.find(from), std::string::npos) << from;
    renamed.replace(renamed.find(from), from.size(), to);
    replace("model.safetensors", renamed);
    expect_same("missing tensor", from);
    restore("model.safetensors");
  }

  const std::string tokenizer = read("tokenizer.json");
  replace("tokenizer.json", tokenizer.substr(0, tokenizer.size() - 100));
  expect_same("tokenizer", "tokenizer.json");
  restore("tokenizer.json");

  std::ofstream(In("chat_template.jinja")) << "{% for %}";
  expect_same("template", "chat template");
  fs::remove(In("chat_template.jinja"));

  fs::rename(In("model.safetensors"), temp_.path() + "/weights");
  expect_same("no weights", "neither model.safetensors nor model.safetensors.index.json");
  fs::rename(temp_.path() + "/weights", In("model.safetensors"));
  EXPECT_EQ(Show().status, 0);
}

// The higher the limit, the later the first open() that fails. With a limit of 4, the shell that sets the limit fails.
// The sanitizers need more descriptors: if UBSan cannot open a pipe, it reports every object as invalid.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kFirstLimit = 8;
#else
constexpr int kFirstLimit = 5;
#endif

TEST_F(UnusableFilesTest, RunWithTooFewDescriptorsExitsWithTheCause) {
  bool has_succeeded = false;
  for (int limit = kFirstLimit; limit < 40 && !has_succeeded; ++limit) {
    const ProgramResult result =
        RunLimited("-n " + std::to_string(limit), {"complete", "-m", model_, "-n", "1", "-t", "0", "Once"});
#if defined(__SANITIZE_ADDRESS__)
    // The program opened other files before UBSan needed a pipe.
    if (result.err.find("object has invalid vptr") != std::string::npos) continue;
#endif
    has_succeeded = result.status == 0;
    EXPECT_TRUE(has_succeeded || result.status == 3 || result.status == 4) << limit << ": " << result.status;
    EXPECT_EQ(has_succeeded, result.err.empty()) << limit << result.err;
    if (result.err.find(model_) != std::string::npos) {
      EXPECT_NE(result.err.find("Too many open files"), std::string::npos) << result.err;
    }
  }
  EXPECT_TRUE(has_succeeded);
}

// Packing copies the weights, so a chat no longer needs the weight file after the model is loaded.
TEST_F(UnusableFilesTest, ChatContinuesWhenItsModelIsTruncatedOrMoved) {
  const auto chat = [this](const std::function<void()>& change) {
    // Without --quiet, status lines would make the output depend on the speed of the machine.
    PtyProgram program({"chat", "-m", model_, "-t", "0", "-n", "12", "--ignore-eos", "--quiet"},
                       {{"XDG_STATE_HOME", temp_.path()}});
    EXPECT_TRUE(program.WaitFor(">>> ")) << program.output();
    program.Send("Once upon\r");
    EXPECT_TRUE(program.WaitFor(">>> ")) << program.output();
    change();
    program.Send("What is the prefix cache?\r");
    EXPECT_TRUE(program.WaitFor(">>> ")) << program.output();
    program.Send("\x04");
    EXPECT_EQ(program.WaitForExit(), 0);
    return program.output();
  };
  const std::string expected = chat([] {});
  const std::string weights = In("model.safetensors");
  const std::string saved = temp_.path() + "/saved";
  fs::copy_file(weights, saved);
  EXPECT_EQ(chat([&] { std::ofstream(weights, std::ios::binary) << "x"; }), expected);
  fs::copy_file(saved, weights, fs::copy_options::overwrite_existing);
  EXPECT_EQ(chat([&] { fs::rename(weights, temp_.path() + "/gone"); }), expected);
}

// /proc/self/mem is a regular file whose first bytes cannot be read.
TEST_F(UnusableFilesTest, ReadErrorNamesTheFileAndTheReason) {
  const std::string broken = "/proc/self/mem";
  const auto expect_error = [&](const std::vector<std::string>& words, int status) {
    const ProgramResult result = RunProgram(words, Input(""));
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_NE(result.err.find(broken + ": Input/output error"), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  };
  expect_error({"config", "--config", broken}, 2);
  expect_error({"run", "-m", model_, "--chat-template", broken, "hi"}, 2);
  expect_error({"batch", broken, "--input-format", "txt", "-m", model_}, 4);
  expect_error({"render", "-m", model_, "--jsonl", broken}, 4);
  fs::remove(In("tokenizer.json"));
  fs::create_symlink(broken, In("tokenizer.json"));
  const ProgramResult tokenizer = Complete();
  EXPECT_EQ(tokenizer.status, 3);
  EXPECT_NE(tokenizer.err.find(In("tokenizer.json")), std::string::npos) << tokenizer.err;
}

TEST_F(UnusableFilesTest, BatchThatCannotWriteItsOutputNamesTheFile) {
  const std::string rows = temp_.path() + "/rows.txt";
  std::ofstream out(rows);
  for (int i = 0; i < 60; ++i) out << "Once\n";
  out.close();
  const std::string output = temp_.path() + "/out.jsonl";
  const ProgramResult result = RunLimited("-f 2", {"batch", rows, "-m", model_, "-n", "4", "-o", output});
  EXPECT_EQ(result.status, 4) << result.err;
  EXPECT_NE(result.err.find("writing " + output + ": File too large"), std::string::npos) << result.err;
  // The file must contain only whole lines.
  std::ifstream written(output);
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  EXPECT_TRUE(text.empty() || text.back() == '\n');
}

}  // namespace
}  // namespace vllm::app
