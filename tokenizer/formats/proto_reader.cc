#include "tokenizer/formats/proto_reader.h"

#include <bit>

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::tokenizer {

void ProtoReader::Fail(const std::string& why) const {
  throw TokenizerError("reading " + name_ + ": " + why + " (byte " + std::to_string(position_) + ")");
}

uint64_t ProtoReader::ReadVarint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (position_ == bytes_.size()) Fail("the message ends inside a varint");
    const auto byte = static_cast<unsigned char>(bytes_[position_++]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  Fail("varint is longer than 10 bytes");
}

bool ProtoReader::Next() {
  if (position_ == bytes_.size()) return false;
  const uint64_t key = ReadVarint();
  number_ = key >> 3;
  wire_type_ = static_cast<unsigned>(key & 7);
  if (number_ == 0) Fail("invalid field number 0");
  uint64_t length = 0;
  switch (wire_type_) {
    case 0:
      varint_ = ReadVarint();
      return true;
    case 1:
      length = 8;
      break;
    case 2:
      length = ReadVarint();
      break;
    case 5:
      length = 4;
      break;
    default:
      Fail("wire type " + std::to_string(wire_type_) + " is not supported");
  }
  if (length > bytes_.size() - position_) {
    Fail("field of " + std::to_string(length) + " bytes, but only " + std::to_string(bytes_.size() - position_) +
         " remain");
  }
  value_ = bytes_.substr(position_, length);
  position_ += length;
  return true;
}

void ProtoReader::Expect(unsigned wire_type) const {
  if (wire_type_ != wire_type) {
    Fail("field " + std::to_string(number_) + " has wire type " + std::to_string(wire_type_) + ", not " +
         std::to_string(wire_type));
  }
}

uint64_t ProtoReader::Varint() const {
  Expect(0);
  return varint_;
}

float ProtoReader::Float() const {
  Expect(5);
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; ++i) bits |= static_cast<uint32_t>(static_cast<unsigned char>(value_[i])) << (8 * i);
  return std::bit_cast<float>(bits);
}

std::string_view ProtoReader::Bytes() const {
  Expect(2);
  return value_;
}

}  // namespace vllm::tokenizer
