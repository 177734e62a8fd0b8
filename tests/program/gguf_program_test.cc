// Tests the program with GGUF files. Commands that need a model must accept a GGUF file, and strings from a file must
// not control the terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/model_loader/gguf_builder.h"
#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string Fixture(const std::string& name) { return std::string(VLLMCLI_TEST_DATA) + "/gguf/" + name; }
std::string Llama() { return Fixture("llama_q8_0") + "/model.gguf"; }

// Returns true if `text` contains no DEL, no C1 control character, and no C0 control character except line break and
// tab.
bool HasNoControlCharacters(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) return false;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) return false;
  }
  return true;
}

std::string AllBytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}

TEST(GgufProgramTest, ShowDescribesTheFile) {
  const ProgramResult result = RunProgram({"show", "--json", Llama()});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(json["format"], "gguf");
  EXPECT_EQ(json["quantization"], "Q8_0");
  EXPECT_EQ(json["dtype"], "float16");
  EXPECT_EQ(json["context"], 128);
  EXPECT_EQ(json["vocab_size"], 64);
  EXPECT_EQ(json["parameters"], 2 * 64 * 32 + 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32 + 2 * 32));
  EXPECT_EQ(json["tokenizer"], "byte-level BPE (gpt-2)");
  EXPECT_EQ(json["chat_template"], "tokenizer.chat_template");
  EXPECT_EQ(json["eos_token_ids"], Json({2}));
  EXPECT_EQ(json["files_bytes"], fs::file_size(Llama()));
}

TEST(GgufProgramTest, ShowReportsExpertsAndSlidingWindows) {
  const Json experts = Json::parse(RunProgram({"show", "--json", Fixture("qwen3moe")}).out);
  EXPECT_EQ(experts["num_experts"], 5);
  EXPECT_EQ(experts["num_experts_per_tok"], 2);
  EXPECT_EQ(Json::parse(RunProgram({"show", "--json", Fixture("gemma3")}).out)["sliding_window"], 9);
}

TEST(GgufProgramTest, ShowReportsRecurrentState) {
  const Json hybrid = Json::parse(RunProgram({"show", "--json", Fixture("qwen35")}).out);
  // Two layers with linear attention keep 3 inputs of the convolution and a 12 x 8 matrix for each of 6 heads.
  EXPECT_EQ(hybrid["recurrent_state_bytes"], 2 * 4 * (3 * (2 * 2 * 12 + 6 * 8) + 6 * 12 * 8));
  // The layer with attention keeps a key and a value of 16 bfloat16 numbers for each of 2 heads.
  EXPECT_EQ(hybrid["kv_cache_bytes_per_token"], 2 * 2 * 16 * 2);
  EXPECT_FALSE(Json::parse(RunProgram({"show", "--json", Llama()}).out).contains("recurrent_state_bytes"));
}

TEST(GgufProgramTest, ShowReportsTheCacheOfLatentAttention) {
  const Json latent = Json::parse(RunProgram({"show", "--json", Fixture("deepseek2")}).out);
  // Each of two layers keeps one vector of 24 bfloat16 numbers, padded to 32.
  EXPECT_EQ(latent["kv_cache_bytes_per_token"], 2 * 32 * 2);
}

TEST(GgufProgramTest, NonInteractiveCommandsAcceptAFile) {
  const Json completion =
      Json::parse(RunProgram({"complete", "-m", Llama(), "-n", "4", "-t", "0", "--ignore-eos", "--json", "AB"}).out);
  EXPECT_EQ(completion["outputs"][0]["token_ids"].size(), 4U);
  const ProgramResult run = RunProgram({"run", "-m", Llama(), "-n", "4", "-t", "0", "--json", "AB"});
  EXPECT_EQ(run.status, 0) << run.err;
  // Ids 3 to 62 are the ASCII characters from "!" to "\" in order, so "#" has id 5.
  EXPECT_EQ(RunProgram({"tokenize", "-m", Llama(), "#$"}).out, "[5,6]\n");
  EXPECT_EQ(RunProgram({"tokenize", "-m", Llama(), "--decode", "5 6"}).out, "#$\n");
  const ProgramResult render =
      RunProgram({"render", "-m", Llama(), "-"}, Input(R"({"messages":[{"role":"user","content":"x"}]})"));
  EXPECT_EQ(render.status, 0) << render.err;
  EXPECT_EQ(render.out.rfind("user:x\n", 0), 0U) << render.out;
  const ProgramResult bench =
      RunProgram({"bench", "throughput", "-m", Llama(), "--input-len", "4", "--output-len", "4", "--num-prompts", "2"});
  EXPECT_EQ(bench.status, 0) << bench.err;
  const TempDirectory directory;
  const std::string rows = directory.Write("rows.jsonl", "{\"prompt\":\"AB\",\"max_tokens\":3,\"temperature\":0}\n");
  const ProgramResult batch = RunProgram({"batch", rows, "-m", Llama(), "-o", directory.path() + "/out.jsonl"});
  EXPECT_EQ(batch.status, 0) << batch.err;
}

TEST(GgufProgramTest, ADirectoryWithOneModelSelectsThatModel) {
  const auto shows = [](const std::string& path, const std::vector<std::string>& extra = {}) {
    std::vector<std::string> arguments = {"show", "--json", path};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return RunProgram(arguments);
  };
  EXPECT_EQ(Json::parse(shows(Fixture("llama")).out)["format"], "gguf");
  // A model in three parts is selected by its directory or by any of its files.
  for (const std::string& name : {std::string(), std::string("/model-00002-of-00003.gguf")}) {
    const ProgramResult split = shows(Fixture("llama_linear") + name);
    ASSERT_EQ(split.status, 0) << split.err;
    const Json json = Json::parse(split.out);
    EXPECT_EQ(json["tensors"], 21);
    EXPECT_GT(json["files_bytes"], json["weight_bytes"]);
  }

  const TempDirectory directory;
  fs::copy_file(Llama(), directory.path() + "/a.gguf");
  fs::copy_file(Llama(), directory.path() + "/mmproj-a.gguf");
  EXPECT_EQ(shows(directory.path()).status, 0);
  fs::copy_file(Llama(), directory.path() + "/b.gguf");
  const ProgramResult several = shows(directory.path());
  EXPECT_EQ(several.status, 3);
  EXPECT_NE(several.err.find("several .gguf files in this directory; name one (a.gguf, b.gguf)"), std::string::npos);
  EXPECT_EQ(shows(directory.path() + "/b.gguf").status, 0);
}

TEST(GgufProgramTest, FilesOfARepositoryAreFoundByName) {
  const TempDirectory directory;
  const std::string snapshot = directory.path() + "/hub/models--me--tiny-GGUF/snapshots/0123";
  const std::string own = directory.path() + "/data/vllmcli/models";
  fs::create_directories(snapshot);
  fs::create_directories(own);
  fs::copy_file(Llama(), snapshot + "/tiny-Q8_0.gguf");
  fs::copy_file(Llama(), snapshot + "/tiny-Q4_0.gguf");
  fs::copy_file(Llama(), own + "/mine.gguf");
  ProgramOptions options;
  options.environment = {{"HF_HUB_CACHE", directory.path() + "/hub"}, {"XDG_DATA_HOME", directory.path() + "/data"}};
  const auto file_of = [&](const std::string& name) {
    const ProgramResult result = RunProgram({"show", "--json", name}, options);
    return result.status == 0 ? Json::parse(result.out)["file"].get<std::string>() : std::to_string(result.status);
  };
  EXPECT_EQ(file_of("me/tiny-GGUF/tiny-Q8_0.gguf"), snapshot + "/tiny-Q8_0.gguf");
  EXPECT_EQ(file_of("mine.gguf"), own + "/mine.gguf");
  EXPECT_EQ(file_of("me/tiny-GGUF:Q4_0"), snapshot + "/tiny-Q4_0.gguf");
  EXPECT_EQ(file_of("me/tiny-GGUF"), snapshot + "/tiny-Q8_0.gguf");
  EXPECT_EQ(file_of("me/tiny-GGUF/other.gguf"), "3");
  EXPECT_EQ(file_of("me/tiny-GGUF/../tiny-GGUF/tiny-Q8_0.gguf"), "3");
  std::vector<std::string> names;
  for (const Json& model : Json::parse(RunProgram({"models", "--json"}, options).out)) names.push_back(model["name"]);
  names.resize(3);
  EXPECT_EQ(names, (std::vector<std::string>{"me/tiny-GGUF:Q4_0", "me/tiny-GGUF:Q8_0", "mine.gguf"}));
}

TEST(GgufProgramTest, AFileNextToATokenizerIsListedByANameThatOpensIt) {
  const TempDirectory directory;
  const std::string own = directory.path() + "/vllmcli/models/pair";
  fs::create_directories(own);
  fs::copy_file(Llama(), own + "/model.gguf");
  fs::copy_file(GuideModel() + "/tokenizer.json", own + "/tokenizer.json");
  ProgramOptions options;
  options.environment = {{"XDG_DATA_HOME", directory.path()}};
  const Json models = Json::parse(RunProgram({"models", "--json"}, options).out);
  EXPECT_EQ(models[0]["name"], "pair/model.gguf");
  const ProgramResult show = RunProgram({"show", "--json", models[0]["name"]}, options);
  ASSERT_EQ(show.status, 0) << show.err;
  EXPECT_EQ(Json::parse(show.out)["file"], own + "/model.gguf");
}

TEST(GgufProgramTest, ShowCountsPackedParameters) {
  const std::string models = std::string(VLLMCLI_TEST_DATA) + "/quant/models";
  const auto quantization = [&](const std::string& name) {
    return Json::parse(RunProgram({"show", "--json", models + "/" + name}).out)["quantization"];
  };
  EXPECT_EQ(quantization("gptq_3bit"), "gptq 3 bit");
  EXPECT_EQ(quantization("modelopt_nvfp4"), "modelopt NVFP4");
  EXPECT_EQ(quantization("mxfp4"), "compressed-tensors MXFP4");
  // The directory contains the same model, quantized in 35 ways.
  for (const auto& entry : fs::directory_iterator(models)) {
    const ProgramResult result = RunProgram({"show", "--json", entry.path().string()});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(Json::parse(result.out)["parameters"], 69952) << entry.path();
    EXPECT_NE(Json::parse(result.out)["quantization"], "none") << entry.path();
  }
}

TEST(GgufProgramTest, LoadFormatSelectsAmongTheFilesOfADirectory) {
  const TempDirectory directory;
  const std::string llama = std::string(VLLMCLI_TEST_DATA) + "/llama/plain";
  fs::copy_file(llama + "/config.json", directory.path() + "/config.json");
  fs::copy_file(llama + "/model.safetensors", directory.path() + "/model.safetensors");
  fs::copy_file(Llama(), directory.path() + "/model.gguf");
  const auto format = [&](const std::string& load_format) {
    return Json::parse(RunProgram({"show", "--json", "--load-format", load_format, directory.path()}).out)["format"];
  };
  EXPECT_EQ(format("auto"), "safetensors");
  EXPECT_EQ(format("safetensors"), "safetensors");
  EXPECT_EQ(format("gguf"), "gguf");
  EXPECT_EQ(RunProgram({"show", "--load-format", "gguf", llama}).status, 3);
  EXPECT_EQ(RunProgram({"show", "--load-format", "safetensors", Llama()}).status, 3);
}

TEST(GgufProgramTest, BadFilesExitWithStatusThree) {
  const TempDirectory directory;
  const std::string vocabulary_only = directory.Write("v.gguf", [] {
    GgufBuilder file;
    file.String("general.architecture", "llama").Int("llama.context_length", 64).Int("llama.embedding_length", 8);
    file.Int("llama.block_count", 1).Int("llama.feed_forward_length", 6).Int("llama.attention.head_count", 2);
    file.Int("llama.vocab_size", 5).Float("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    return file.Build();
  }());
  EXPECT_EQ(RunProgram({"complete", "-m", vocabulary_only, "x"}).status, 3);
  EXPECT_EQ(RunProgram({"show", vocabulary_only}).status, 3);
  for (const std::string& bytes : {std::string(), std::string("GGUF"), TinyGguf().Build().substr(0, 900)}) {
    const ProgramResult result = RunProgram({"complete", "-m", directory.Write("bad.gguf", bytes), "x"});
    EXPECT_EQ(result.status, 3);
    EXPECT_NE(result.err.find("gguf file "), std::string::npos) << result.err;
  }
  const ProgramResult unknown =
      RunProgram({"complete", "-m", directory.Write("u.gguf", TinyGguf("mamba").Build()), "x"});
  EXPECT_EQ(unknown.status, 3);
  EXPECT_NE(unknown.err.find("unknown architecture (mamba)"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find("\nhint: nearest that runs: Mamba2ForCausalLM (Mamba-2), such as "), std::string::npos)
      << unknown.err;
  GgufBuilder type = TinyGguf();
  const ProgramResult unknown_type =
      RunProgram({"show", directory.Write("t.gguf", type.RawTensor("blk.0.x", {1}, 99, 0, "").Build())});
  EXPECT_EQ(unknown_type.status, 3);
  EXPECT_NE(unknown_type.err.find("hint: nearest that runs: a file of the same model with Q4_K_M or Q8_0\n"),
            std::string::npos)
      << unknown_type.err;
}

TEST(GgufProgramTest, StringsOfAFileCannotControlTheTerminal) {
  const TempDirectory directory;
  const std::string hostile = AllBytes() + "\x1b]8;;http://x\x1b\\link\x1b[2J";
  GgufBuilder file = TinyGguf();
  file.String("general.name", hostile).String("tokenizer.ggml.model", hostile).String("tokenizer.ggml.pre", hostile);
  file.Strings("tokenizer.ggml.tokens", {hostile, "b", "c", "d", "e"}).String("tokenizer.chat_template", hostile);
  file.Int("tokenizer.ggml.eos_token_id", 0).String(hostile, hostile);
  const std::string path = directory.Write("hostile.gguf", file.Build());
  for (const char* command : {"show", "tokenize", "run", "complete"}) {
    for (const bool json : {false, true}) {
      std::vector<std::string> arguments = {command, "-m", path};
      if (json) arguments.emplace_back("--json");
      const ProgramResult result = RunProgram(arguments, Input("x"));
      EXPECT_TRUE(HasNoControlCharacters(result.out)) << command;
      EXPECT_TRUE(HasNoControlCharacters(result.err)) << command;
    }
  }
  // These files are invalid, and the messages may quote an architecture, a key, a tensor's name or a scaling type.
  for (const GgufBuilder& bad :
       {GgufBuilder().String("general.architecture", hostile), TinyGguf().Int(hostile, 1).Int(hostile, 2),
        TinyGguf().Floats(hostile.substr(0, 60), {1}, {1.0F}),
        TinyGguf().RawTensor(hostile.substr(0, 60), {1}, 99, 0, ""),
        GgufBuilder().String("general.architecture", "llama").String("llama.rope.scaling.type", hostile)}) {
    const ProgramResult result = RunProgram({"complete", "-m", directory.Write("bad.gguf", bad.Build()), "x"});
    EXPECT_EQ(result.status, 3);
    EXPECT_TRUE(HasNoControlCharacters(result.err)) << result.err;
  }
}

}  // namespace
}  // namespace vllm::app
