#include "app/bench/bench_compare.h"

#include <array>
#include <cstdio>

#include "app/model/model_files.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFileBytes = 64 << 20;

void AddFigure(Json& comparison, const std::string& name, const Json& now, const Json& before) {
  if (!now.is_number() || !before.is_number()) return;
  const double a = now.get<double>(), b = before.get<double>();
  Json figure;
  figure["now"] = a;
  figure["before"] = b;
  if (b != 0.0) figure["ratio"] = a / b;
  comparison[name] = std::move(figure);
}

}  // namespace

Json ReadBenchResults(const std::string& path) {
  const std::string text = ReadFileOrStdin(path, kMaxFileBytes);
  // Results have only two levels of values, so drop everything below the third while parsing.
  const auto shallow = [](int depth, Json::parse_event_t /*event*/, const Json& /*parsed*/) { return depth < 4; };
  Json results = Json::parse(text, shallow, false);
  if (!results.is_object() || (!results.contains("avg_latency") && !results.contains("tokens_per_second"))) {
    throw ConfigError("--compare " + path + ": not written by vllmcli bench --output-json");
  }
  return results;
}

Json CompareBenchResults(const Json& now, const Json& before) {
  Json comparison = Json::object();
  for (const auto& [name, value] : now.items()) {
    if (!before.contains(name)) continue;
    const Json& other = before[name];
    AddFigure(comparison, name, value, other);
    if (!value.is_object() || !other.is_object()) continue;
    for (const auto& [key, inner] : value.items()) {
      if (other.contains(key)) AddFigure(comparison, name + "." + key, inner, other[key]);
    }
  }
  return comparison;
}

std::string DescribeComparison(const Json& comparison, const std::string& path) {
  std::string text = "Compared with " + path + ":\n";
  for (const auto& [name, figure] : comparison.items()) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "  %-26.60s %12.6g, before %12.6g", name.c_str(),
                  figure["now"].get<double>(), figure["before"].get<double>());
    text += line.data();
    if (figure.contains("ratio")) {
      std::snprintf(line.data(), line.size(), ", ratio %.3f", figure["ratio"].get<double>());
      text += line.data();
    }
    text += '\n';
  }
  return text;
}

}  // namespace vllm::app
