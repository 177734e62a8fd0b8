#include "engine/structured_output/dialects/free_text.h"

#include <array>

#include "engine/structured_output/regex/code_point_set.h"

namespace vllm {

RegexId TextWithout(RegexStore& store, const std::vector<std::string>& strings) {
  const RegexId any = AnyText(store, TextSpelling::kUtf8);
  if (strings.empty()) return any;
  const std::array<RegexId, 3> with = {RegexStore::kEverything, store.Literals(strings), RegexStore::kEverything};
  return store.And({any, store.Not(store.Concat(with))});
}

RegexId ShortestTexts(RegexStore& store, RegexId regex) {
  const RegexId byte = store.Bytes(ByteSet::All());
  const std::array<RegexId, 3> longer = {regex, byte, RegexStore::kEverything};
  return store.And({regex, store.Not(store.Concat(longer))});
}

}  // namespace vllm
