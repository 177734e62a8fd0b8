#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/model/kv_disk_cache.h"
#include "app/output/json_text.h"
#include "app/output/list_text.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/kv_store/kv_store_maintenance.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// The segments of one model in one configuration.
struct CacheEntry {
  std::string label;
  int64_t num_blocks = 0;
  int64_t num_tokens = 0;
  int64_t bytes = 0;
  std::chrono::system_clock::time_point last_used;
};

int64_t ToUnixSeconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

int List(const std::string& directory, bool as_json) {
  std::map<std::string, CacheEntry> entries;  // by identity
  std::vector<std::pair<std::string, std::string>> problems;
  for (const KVSegmentInfo& segment : ListKVSegments(directory)) {
    if (!segment.problem.empty()) {
      problems.emplace_back(segment.name, segment.problem);
      continue;
    }
    CacheEntry& entry = entries[segment.identity];
    entry.label = segment.label;
    entry.num_blocks += segment.num_blocks;
    entry.num_tokens += segment.num_blocks * segment.block_size;
    entry.bytes += segment.file_bytes;
    entry.last_used = std::max(entry.last_used, segment.last_used);
  }
  if (as_json) {
    Json list = Json::array();
    for (const auto& [identity, entry] : entries) {
      list.push_back({{"model", entry.label},
                      {"identity", identity},
                      {"blocks", entry.num_blocks},
                      {"tokens", entry.num_tokens},
                      {"bytes", entry.bytes},
                      {"last_used", ToUnixSeconds(entry.last_used)}});
    }
    StandardOutput().WriteLine(SafeJson(DumpJson(list)));
    return 0;
  }
  for (const auto& [identity, entry] : entries) {
    StandardOutput().WriteLine(SafeLine(entry.label + "  " + CountedText(entry.num_tokens, "token") + ", " +
                                        SizeText(entry.bytes) + " (" + identity.substr(0, 8) + ")"));
  }
  for (const auto& [name, problem] : problems) PrintWarning(Escape(directory + "/" + name) + ": " + problem);
  return 0;
}

int Clear(const std::string& directory) {
  const KVClearing result = ClearKVSegments(directory);
  for (const std::string& problem : result.problems) PrintWarning(problem);
  PrintStatus("deleted " + CountedText(result.num_segments, "file") + ", " + SizeText(result.bytes));
  return result.problems.empty() ? 0 : 1;
}

int Verify(const std::string& directory) {
  const KVVerification result = VerifyKVSegments(directory, /*remove_damaged=*/true);
  for (const std::string& problem : result.problems) PrintWarning(problem);
  PrintStatus("verified " + CountedText(result.num_blocks, "block") + " in " +
              CountedText(result.num_segments, "file") + "; removed " + std::to_string(result.num_removed) +
              " that were damaged");
  return result.problems.empty() ? 0 : 1;
}

}  // namespace

int CacheCommand(const Settings& settings) {
  const std::vector<std::string>& words = settings.arguments;
  const std::string action = words.empty() ? "list" : words[0];
  if (words.size() > 1) throw ConfigError("cache: usage: vllmcli cache list|clear|verify");
  const std::string directory = KVDiskCacheDirectory();
  if (directory.empty())
    throw ConfigError("cache: there is no cache directory: neither XDG_CACHE_HOME nor HOME is set");
  if (action == "list") return List(directory, settings.Switch("json"));
  if (action == "clear") return Clear(directory);
  if (action == "verify") return Verify(directory);
  throw ConfigError("cache: unknown action " + Escape(action, 60) + " (known: list, clear, verify)");
}

}  // namespace vllm::app
