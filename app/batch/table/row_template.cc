#include "app/batch/table/row_template.h"

#include <algorithm>

#include "app/cli/parse_value.h"
#include "engine/config/errors.h"

namespace vllm::app {

RowTemplate::RowTemplate(std::string_view text, const std::vector<std::string>& columns, const std::string& flag)
    : template_(text, flag) {
  for (const std::string& name : template_.names()) {
    const auto column = std::find(columns.begin(), columns.end(), name);
    if (column == columns.end()) {
      const std::string near = NearestName(name, columns);
      throw ConfigError(flag + ": unknown column (" + name + ")" +
                        (near.empty() ? "" : "; did you mean " + near + "?"));
    }
    columns_.push_back(static_cast<size_t>(column - columns.begin()));
  }
}

bool RowTemplate::Uses(size_t column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

std::string RowTemplate::Fill(const std::vector<std::string>& fields) const {
  std::vector<std::string_view> values;
  for (const size_t column : columns_) values.emplace_back(fields[column]);
  return template_.Fill(values);
}

}  // namespace vllm::app
