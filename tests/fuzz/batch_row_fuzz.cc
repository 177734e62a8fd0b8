// Fuzzes the parser of batch rows. The first byte chooses the format; a table's first line is its header.
#include <string>

#include "app/batch/input/row_parser.h"
#include "app/batch/table/csv.h"
#include "engine/config/errors.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {

void FuzzOne(std::string_view input) {
  using app::InputFormat;
  if (input.empty()) return;
  const auto format = static_cast<InputFormat>(static_cast<unsigned char>(input.front()) % 5);
  input.remove_prefix(1);
  app::RowParser parser(format, {}, nullptr);
  try {
    if (parser.needs_columns()) {
      const std::string_view header = input.substr(0, input.find('\n'));
      input.remove_prefix(std::min(input.size(), header.size() + 1));
      parser.SetColumns(header);
      const char delimiter = format == InputFormat::kTsv ? '\t' : ',';
      const std::vector<std::string> fields = app::SplitCsvRecord(input, delimiter);
      Require(app::SplitCsvRecord(app::CsvRecord(fields, delimiter), delimiter) == fields, "fields survive quoting");
    }
    app::RowId id;
    app::RowId only_id;
    const app::BatchRow row = parser.Parse(input, id);
    parser.ParseId(input, only_id);
    Require(id.custom_id == only_id.custom_id && id.is_openai == only_id.is_openai, "both parsers find the same id");
    Require(row.carried.is_null() || row.carried.is_object(), "carried fields are an object");
  } catch (const ConfigError&) {
  } catch (const RequestError&) {
  } catch (const app::RowError&) {
  }
  Require(parser.TakeWarnings().size() <= 100, "the number of warnings is bounded");
}

}  // namespace vllm
