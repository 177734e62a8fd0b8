#include "engine/model_loader/gguf/format/cursor.h"

#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {

std::string_view GgufCursor::ReadString(std::string_view object) {
  const auto length = Read<uint64_t>(object);
  const std::span<const std::byte> bytes = ReadBytes(length, object);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> GgufCursor::ReadBytes(uint64_t count, std::string_view object) {
  Require(count, object);
  const std::span<const std::byte> bytes = bytes_.subspan(position_, count);
  position_ += count;
  return bytes;
}

void GgufCursor::Fail(std::string_view object, const std::string& why, std::string hint) const {
  throw ModelError(what_ + ": " + Escape(object) + ": " + why, std::move(hint));
}

void GgufCursor::Require(uint64_t count, std::string_view object) const {
  if (count <= remaining()) return;
  Fail(object, "extends past the end of the file (" + std::to_string(count) + " bytes, " + std::to_string(remaining()) +
                   " remain)");
}

}  // namespace vllm
