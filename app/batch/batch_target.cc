#include "app/batch/batch_target.h"

#include <sys/stat.h>

#include <array>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "app/batch/input/record_reader.h"
#include "app/batch/input/row_source.h"
#include "app/batch/input_scan.h"
#include "app/batch/job/job_identity.h"
#include "app/model/model_files.h"
#include "app/output/size_text.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

JobOptions JobOptionsOf(const Settings& settings) {
  JobOptions options;
  options.overwrites = settings.Switch("overwrite");
  options.resumes_anyway = settings.Switch("resume-anyway");
  options.retries_errors = settings.Switch("retry-errors");
  options.resumes = settings.Switch("resume") || options.resumes_anyway || options.retries_errors;
  if (options.overwrites && options.resumes) {
    throw ConfigError("batch: --overwrite cannot be used with --resume, --resume-anyway or --retry-errors");
  }
  const std::string fsync = settings.Text("fsync").value_or("second");
  options.fsync = fsync == "row"   ? JobOptions::Fsync::kRow
                  : fsync == "end" ? JobOptions::Fsync::kEnd
                                   : JobOptions::Fsync::kSecond;
  return options;
}

// Checks, before a job is resumed, that the rows it has finished are still those of the input. Throws ConfigError if
// one has changed, or if the input has changed at all and the options do not allow new rows.
void CheckInput(const std::string& path, const InputFile& input, InputFormat format, const JobState& state,
                const RowDefaults& defaults, const JobOptions& options) {
  if (state.finished.empty() || input.size() == 0 || path == "-") return;
  const std::optional<JobInput> now = ScanInput(input.fd(), {DelimiterOf(format)}, InterruptWaits());
  if (!now) throw ResourceError("batch input " + path + ": cannot be read");
  const auto old_bytes = state.header.find("input_bytes");
  const bool has_changed = state.input ? state.input->digest != now->digest
                                       : old_bytes != state.header.end() && *old_bytes != now->num_bytes;
  if (!has_changed) return;
  const InputFile again(path);
  RecordReader reader(again.fd(), path, DelimiterOf(format));
  RowParser parser(format, defaults, nullptr);
  RowSource source(reader, parser);
  source.SetOnlyIds();
  source.SkipFinished(state.finished);
  while (true) {
    const RowSource::Status status = source.Next();
    if (status == RowSource::Status::kEnd) break;
    if (status == RowSource::Status::kNeedInput) reader.Fill();
  }
  if (options.resumes_anyway) return;
  throw ConfigError("batch input " + path + ": has changed since the job began, but none of its finished rows has",
                    "--resume-anyway runs the other rows");
}

// The prompts of chats may contain the time. A resumed job uses the time at which it began.
void FixTime(Settings& settings, const nlohmann::ordered_json* old_header) {
  if (settings.Has("now")) return;
  std::string now;
  if (old_header != nullptr && old_header->contains("now") && (*old_header)["now"].is_string()) {
    now = (*old_header)["now"].get<std::string>();
  } else {
    const std::time_t time = std::time(nullptr);
    std::tm parts{};
    localtime_r(&time, &parts);
    std::array<char, 32> buffer{};
    std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    now = buffer.data();
  }
  settings.Set(*FindFlag("now"), {now}, SettingSource::kDefault, "the job file");
}

}  // namespace

BatchTarget CheckTarget(Settings& settings, const BatchInput& input, const RowDefaults& defaults) {
  BatchTarget target;
  target.path = settings.Text("output").value_or("");
  if (target.path == "-") target.path.clear();
  target.errors_path = settings.Text("errors").value_or("");
  target.options = JobOptionsOf(settings);
  target.is_job = IsJobOutput(target.path, input.fd());
  if (!target.errors_path.empty()) {
    if (input.format == InputFormat::kTextFiles) {
      throw ConfigError("--errors: cannot be used with text files, whose paths are in the output");
    }
    IsJobOutput(target.errors_path, input.fd());
    if (target.errors_path == target.path) throw ConfigError("--errors: is the output file");
  }
  if (!target.is_job) {
    if (target.options.resumes) throw ConfigError("--resume: needs -o FILE with a regular file, which keeps the rows");
    return target;
  }
  const JobState state = ReadJobState(target.path, target.options.retries_errors);
  const bool continues = target.options.resumes && state.has_job_file;
  FixTime(settings, continues ? &state.header : nullptr);
  std::optional<int64_t> input_bytes;
  if (input.is_regular_file()) input_bytes = input.size();
  target.header = MakeJobHeader(settings, defaults.preset, LocateModel(settings), input_bytes);
  target.header["now"] = *settings.Text("now");
  CheckJob(target.path, state, target.header, target.options);
  if (continues && !state.has_no_rows) {
    if (const auto length = state.header.find("max_model_len");
        length != state.header.end() && length->is_number_unsigned() && *length > 0) {
      target.max_model_len = length->get<int64_t>();
    }
  }
  if (continues && input.file != nullptr) {
    CheckInput(input.name, *input.file, input.format, state, defaults, target.options);
  }
  if (continues && input.files && state.input && state.input->digest != input.files->digest &&
      !target.options.resumes_anyway) {
    throw ConfigError("batch input " + input.name + ": other files than when the job began",
                      "--resume-anyway runs the new ones");
  }
  return target;
}

void KeepContext(BatchTarget& target, LLMEngine& engine) {
  target.header["max_model_len"] = engine.max_model_len();
  if (target.max_model_len) engine.SetMaxModelLen(*target.max_model_len);
}

BatchOutput OpenOutput(const BatchTarget& target, bool ordered) {
  if (target.is_job) {
    auto job = std::make_unique<BatchJob>(target.path, target.errors_path, target.header, target.options);
    if (job->num_cut_bytes() > 0) {
      PrintStatus("[removed " + SizeText(job->num_cut_bytes()) + " of an incomplete row from the end of " +
                  target.path + "]");
    }
    return BatchOutput(std::move(job), ordered);
  }
  std::unique_ptr<OutputFile> errors;
  if (!target.errors_path.empty()) {
    struct stat status {};
    if (stat(target.errors_path.c_str(), &status) == 0 && status.st_size > 0 && !target.options.overwrites) {
      throw ConfigError("--errors: " + target.errors_path + " exists; --overwrite replaces it");
    }
    errors = std::make_unique<OutputFile>(target.errors_path);
    errors->Cut(0);
  }
  return BatchOutput(target.path, std::move(errors), ordered);
}

}  // namespace vllm::app
