#include "app/batch/batch_check.h"

#include <memory>
#include <optional>
#include <utility>

#include "app/batch/batch_record.h"
#include "app/batch/batch_runner.h"
#include "app/batch/pooling/pooling_rows.h"
#include "app/batch/tools/call_constraints.h"
#include "app/cli/engine_options.h"
#include "app/model/load_model.h"
#include "app/model/lora/lora_setting.h"
#include "app/model/model_files.h"
#include "app/model/sampling_defaults.h"
#include "app/model/thinking_mode.h"
#include "app/model/tools_setting.h"
#include "app/output/size_text.h"
#include "app/pooling/pooling_model.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"
#include "engine/frontend/input_processor.h"

namespace vllm::app {

int CheckBatch(const Settings& settings, InputFormat format, bool tokenizer_required, RowDefaults defaults,
               RecordSource& records) {
  const ModelLocation location = LocateModel(settings);
  ModelConfig model_config = ReadModelConfig(location);
  AdjustPooling(settings, /*scores_pairs=*/true, location, model_config);
  VllmConfig config = MakeVllmConfig(settings, model_config);
  config.Finalize();
  config.lora = MakeLoRAConfig(settings, config.model, LocateAdapter);
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  if (tokenizer_required || ModelHasTokenizer(location)) tokenizer = LoadModelTokenizer(location);
  if (const std::string warning = TokenizerWarning(location); !warning.empty()) PrintWarning(warning);
  const std::unique_ptr<PromptRenderer> renderer = LoadPromptRenderer(settings, location);
  // The check assumes that the KV cache holds max_model_len tokens. In a run, a smaller cache lowers that limit.
  InputProcessor processor(config, config.model.max_model_len, tokenizer.get());
  processor.SetReasoningFormat(ChooseReasoningFormat(settings, renderer.get(), tokenizer));
  CallConstraints tool_calls;
  if (renderer != nullptr && tokenizer != nullptr) {
    tool_calls = CallConstraints(ModelToolCallFormat(settings, *renderer, *tokenizer), tokenizer);
    defaults.tools.tools = ToolsOfVariables(renderer->variables());
  }
  defaults.params = MakeSamplingDefaults(settings, ReadGenerationConfig(location)).params;
  CheckSamplingDefaults(defaults.params, config);
  std::optional<PoolingPrompts> pooling;
  if (tokenizer != nullptr) pooling.emplace(settings, config.model, tokenizer);
  PoolingRows pooling_rows(pooling ? &*pooling : nullptr);
  RowParser parser(format, std::move(defaults), renderer.get());
  RowSource source(records, parser);
  int64_t num_rows = 0;
  int64_t num_bad = 0;
  while (true) {
    const RowSource::Status status = source.Next();
    for (const std::string& warning : parser.TakeWarnings()) PrintWarning(warning);
    for (const std::string& warning : tool_calls.TakeWarnings()) PrintWarning(warning);
    if (status == RowSource::Status::kEnd) break;
    if (status == RowSource::Status::kNeedInput) {
      records.Fill();
      continue;
    }
    ++num_rows;
    std::string code = source.code;
    std::string message = source.message;
    bool is_bad = status == RowSource::Status::kBadRow;
    if (!is_bad) {
      try {
        if (IsPooling(source.row.kind)) {
          pooling_rows.Check(processor, source.row);
          continue;
        }
        tool_calls.Apply(source.row.tools, source.row.params);
        if (!config.model.can_generate) {
          throw RequestError("prompt: the model generates no text (" + config.model.architecture + ")");
        }
        ProcessedInput input = processor.Process("check", source.row.prompt, source.row.params);
        processor.SetLoRA(source.row.options.lora, input);
      } catch (const RequestError& error) {
        is_bad = true;
        code = "invalid_request";
        message = error.what();
      }
    }
    if (!is_bad) continue;
    ++num_bad;
    RecordHead head;
    head.id = source.id;
    if (!source.row.carried.is_null() && status == RowSource::Status::kRow) head.carried = source.row.carried;
    StandardOutput().WriteLine(SafeJson(ErrorRecord(head, code, message)));
  }
  PrintStatus(CountedText(num_rows, "row") + ", " + GroupedText(num_bad) + " invalid");
  return num_bad > 0 ? 1 : 0;
}

}  // namespace vllm::app
