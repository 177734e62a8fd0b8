#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/trace_timeline.h"
#include "app/output/json_text.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/trace/trace_replay.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// Returns a source that reads the file, or standard input if `path` is "-".
TraceSource OpenSource(const std::string& path) {
  auto file = std::make_shared<tokenizer::RegularFile>();
  if (path != "-") {
    *file = tokenizer::OpenRegularFile(path);
    if (!file->ok() && file->is_out_of_resources()) throw ResourceError(file->error);
    if (!file->ok()) throw ModelError(file->error);
  }
  return [file, fd = path == "-" ? STDIN_FILENO : file->fd.get()](char* data, size_t size) {
    while (true) {
      const ssize_t count = read(fd, data, size);
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) throw ModelError(std::string("reading failed: ") + std::strerror(errno));
    }
  };
}

// Says how the trace ends, unless the engine shut down normally.
void PrintEnd(const std::string& name, const TraceReader& reader, bool has_end) {
  if (reader.num_torn_bytes() > 0) {
    PrintNote(name + ": the last " + std::to_string(reader.num_torn_bytes()) + " bytes are an incomplete record");
  } else if (!has_end) {
    PrintNote(name + ": the end of the engine is not recorded: it failed, was killed, or still runs");
  }
}

int Show(const std::string& name, TraceReader& reader, bool as_json) {
  TraceTimeline timeline(reader.begin(), as_json);
  const auto write = [as_json](const std::string& line) {
    StandardOutput().WriteLine(as_json ? SafeJson(line) : SafeLine(line));
  };
  write(timeline.Heading());
  TraceRecord record;
  while (reader.Next(record)) {
    if (const auto line = timeline.Take(record)) write(*line);
  }
  if (const auto line = timeline.Finish()) write(*line);
  PrintEnd(name, reader, timeline.has_end());
  return 0;
}

int Replay(const std::string& name, TraceReader& reader, bool as_json) {
  const ReplayResult result = ReplayTrace(reader);
  const bool equal = result.difference.empty();
  if (as_json) {
    Json json = {{"equal", equal},
                 {"steps", result.num_steps},
                 {"requests", result.num_requests},
                 {"preemptions", result.num_preemptions},
                 {"cached_tokens", result.num_cached_tokens}};
    if (!equal) json["difference"] = result.difference;
    StandardOutput().WriteLine(SafeJson(DumpJson(json)));
  } else if (equal) {
    StandardOutput().WriteLine(SafeLine(
        name + ": " + CountedText(result.num_steps, "step") + ", " + CountedText(result.num_requests, "request") +
        ", " + CountedText(result.num_preemptions, "preemption") + ", " +
        CountedText(result.num_cached_tokens, "cached token") + ": the replay reaches the same decisions"));
  }
  if (!equal) {
    PrintError(name + ": the replay differs " + result.difference);
    return 1;
  }
  PrintEnd(name, reader, result.has_end);
  return 0;
}

}  // namespace

int TraceCommand(const Settings& settings) {
  if (settings.arguments.size() != 2 || (settings.arguments[0] != "show" && settings.arguments[0] != "replay")) {
    throw ConfigError("trace: usage: vllmcli trace show|replay FILE (- for standard input)");
  }
  const std::string& path = settings.arguments[1];
  const std::string name = "trace " + (path == "-" ? std::string("of standard input") : path);
  const bool as_json = settings.Switch("json");
  try {
    TraceReader reader(OpenSource(path));
    return settings.arguments[0] == "show" ? Show(name, reader, as_json) : Replay(name, reader, as_json);
  } catch (const ModelError& error) {
    throw ModelError(name + ": " + error.what());
  } catch (const ResourceError& error) {
    throw ResourceError(name + ": " + error.what());
  }
}

}  // namespace vllm::app
