#include "app/batch/batch_check.h"

#include <memory>
#include <utility>
#include <variant>

#include "app/batch/batch_record.h"
#include "app/batch/batch_runner.h"
#include "app/config/engine_options.h"
#include "app/generation/model_files.h"
#include "app/generation/sampling_defaults.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm {
namespace {

// What the engine would refuse, without an engine.
void CheckRow(BatchRow& row, const VllmConfig& config, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  if (const auto* text = std::get_if<TextPrompt>(&row.prompt)) {
    ids = tokenizer.Encode(text->text, text->add_special_tokens);
  } else {
    ids = std::get<std::vector<int32_t>>(row.prompt);
  }
  if (ids.empty()) throw RequestError("prompt: is empty");
  for (const int32_t id : ids) {
    if (id >= config.model.vocab_size) {
      throw RequestError("prompt_token_ids: outside the vocabulary (" + std::to_string(id) + ")");
    }
  }
  if (static_cast<int64_t>(ids.size()) >= config.model.max_model_len) {
    throw RequestError("prompt is " + std::to_string(ids.size()) + " tokens, limit " +
                       std::to_string(config.model.max_model_len - 1));
  }
  row.params.Normalize(config.model.vocab_size, config.model.max_model_len, config.max_logprobs);
}

}  // namespace

int CheckBatch(const Settings& settings, InputFormat format, RowDefaults defaults, RecordReader& reader) {
  const ModelLocation location = LocateModel(settings);
  VllmConfig config = MakeVllmConfig(settings, LoadModelConfig(location));
  config.Finalize();
  const std::shared_ptr<const Tokenizer> tokenizer = LoadTokenizer(location);
  const std::unique_ptr<PromptRenderer> renderer = LoadPromptRenderer(settings, location);
  defaults.params = MakeSamplingDefaults(settings, LoadGenerationConfig(location)).params;
  RowParser parser(format, std::move(defaults), renderer.get());
  RowSource source(reader, parser, settings.Text("template"));
  int64_t num_rows = 0;
  int64_t num_bad = 0;
  while (true) {
    const RowSource::Status status = source.Next();
    if (status == RowSource::Status::kEnd) break;
    if (status == RowSource::Status::kNeedInput) {
      reader.Fill();
      continue;
    }
    ++num_rows;
    std::string code = source.code;
    std::string message = source.message;
    bool is_bad = status == RowSource::Status::kBadRow;
    if (!is_bad) {
      try {
        CheckRow(source.row, config, *tokenizer);
      } catch (const RequestError& error) {
        is_bad = true;
        code = "invalid_request";
        message = error.what();
      }
    }
    if (!is_bad) continue;
    ++num_bad;
    StandardOutput().WriteLine(SafeJson(ErrorRecord(source.id, code, message)));
  }
  PrintNote(std::to_string(num_rows) + " rows, " + std::to_string(num_bad) + " of them bad");
  return num_bad > 0 ? 1 : 0;
}

}  // namespace vllm
