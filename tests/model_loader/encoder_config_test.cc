// Tests the fields of config.json of encoders: positions, and settings that are rejected.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/model_loader/load_hf_config.h"

namespace vllm {
namespace {

using nlohmann::json;
using testing_support::ExpectHfConfigError;
using testing_support::LoadHfConfig;

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

TEST(EncoderConfigTest, PositionsBeginAfterThePaddingToken) {
  for (const auto& [type, offset] : {std::pair("bert", 0), {"roberta", 4}, {"mpnet", 2}, {"electra", 0}}) {
    json config = Config("X", type, {{"pad_token_id", 3}});
    if (std::string(type) == "electra") config["embedding_size"] = 64;
    const ModelConfig model = LoadHfConfig(config);
    EXPECT_EQ(model.position_offset, offset) << type;
    EXPECT_EQ(model.max_model_len, 50 - offset) << type;
    EXPECT_TRUE(model.is_encoder) << type;
  }
}

TEST(EncoderConfigTest, UnsupportedSettingsAreRejectedByName) {
  ExpectHfConfigError(Config("ElectraModel", "electra"), "embedding_size: must be the hidden_size");
  ExpectHfConfigError(Config("MPNetModel", "mpnet", {{"relative_attention_num_buckets", 64}}),
                      "relative_attention_num_buckets: not 32");
  ExpectHfConfigError(Config("MPNetModel", "mpnet", {{"max_position_embeddings", 2}}), "max_position_embeddings");
  ExpectHfConfigError(Config("BertModel", "bert", {{"position_embedding_type", "alibi"}}),
                      "only absolute is supported");
  const json jina = {{"position_embedding_type", "alibi"}, {"feed_forward_type", "geglu"}};
  EXPECT_NO_THROW(LoadHfConfig(Config("JinaBertModel", "bert", jina)));
  ExpectHfConfigError(Config("JinaBertModel", "bert"), "feed_forward_type: not geglu");
  ExpectHfConfigError(Config("JinaBertModel", "bert", {{"feed_forward_type", "geglu"}}), "only alibi is supported");
}

TEST(EncoderConfigTest, RepositoryOfItsCodeTellsTheJinaBertForCodeFromOthers) {
  const std::string code = "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel";
  const std::string other = "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel";
  json fields = {{"position_embedding_type", "alibi"}, {"feed_forward_type", "geglu"}};
  const auto has_qk_norm = [&](const char* name, const json& value) {
    json config = Config("JinaBertModel", "bert", fields);
    config[name] = value;
    return LoadHfConfig(config).use_qk_norm;
  };
  EXPECT_TRUE(has_qk_norm("auto_map", {{"AutoConfig", other}, {"AutoModel", code}}));
  EXPECT_TRUE(has_qk_norm("_name_or_path", "jinaai/jina-bert-v2-qk-post-norm"));
  EXPECT_FALSE(has_qk_norm("auto_map", {{"AutoModel", other}}));
  EXPECT_FALSE(has_qk_norm("auto_map", json::array({code})));
  EXPECT_FALSE(has_qk_norm("auto_map", {{"AutoModel", 3}}));
  EXPECT_FALSE(has_qk_norm("_name_or_path", other));
  EXPECT_FALSE(
      LoadHfConfig(Config("BertModel", "bert", {{"_name_or_path", "x/jina-bert-v2-qk-post-norm"}})).use_qk_norm);
}

}  // namespace
}  // namespace vllm
