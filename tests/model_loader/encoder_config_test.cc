// Tests the fields of config.json of encoders: positions, and settings that are rejected.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/config/errors.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using nlohmann::json;

json Config(const std::string& architecture, const std::string& model_type, const json& fields = json::object()) {
  json config = {{"architectures", {architecture}},
                 {"model_type", model_type},
                 {"vocab_size", 100},
                 {"hidden_size", 64},
                 {"num_hidden_layers", 3},
                 {"num_attention_heads", 8},
                 {"intermediate_size", 48},
                 {"max_position_embeddings", 50}};
  config.update(fields);
  return config;
}

ModelConfig Load(const json& config) {
  TempDirectory directory;
  directory.Write("config.json", config.dump());
  return LoadModelConfig(directory.path());
}

void ExpectError(const json& config, const std::string& part) {
  const std::string error = MessageOf<ModelError>([&] { Load(config); });
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(EncoderConfigTest, PositionsBeginAfterThePaddingToken) {
  for (const auto& [type, offset] : {std::pair("bert", 0), {"roberta", 4}, {"mpnet", 2}, {"electra", 0}}) {
    json config = Config("X", type, {{"pad_token_id", 3}});
    if (std::string(type) == "electra") config["embedding_size"] = 64;
    const ModelConfig model = Load(config);
    EXPECT_EQ(model.position_offset, offset) << type;
    EXPECT_EQ(model.max_model_len, 50 - offset) << type;
    EXPECT_TRUE(model.is_encoder) << type;
  }
}

TEST(EncoderConfigTest, UnsupportedSettingsAreRejectedByName) {
  ExpectError(Config("ElectraModel", "electra"), "embedding_size: must be the hidden_size");
  ExpectError(Config("MPNetModel", "mpnet", {{"relative_attention_num_buckets", 64}}),
              "relative_attention_num_buckets: not 32");
  ExpectError(Config("MPNetModel", "mpnet", {{"max_position_embeddings", 2}}), "max_position_embeddings");
  ExpectError(Config("BertModel", "bert", {{"position_embedding_type", "alibi"}}), "only absolute is supported");
  const json jina = {{"position_embedding_type", "alibi"}, {"feed_forward_type", "geglu"}};
  EXPECT_NO_THROW(Load(Config("JinaBertModel", "bert", jina)));
  ExpectError(Config("JinaBertModel", "bert"), "feed_forward_type: not geglu");
  ExpectError(Config("JinaBertModel", "bert", {{"feed_forward_type", "geglu"}}), "only alibi is supported");
}

}  // namespace
}  // namespace vllm
