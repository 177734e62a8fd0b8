// Reads the fields of one protocol buffer message front to back. The bytes are borrowed. Every length is checked
// against the remaining bytes. One thread. Every error is a TokenizerError with the byte offset.
//
//   message := field*      field := key:varint value      key = number << 3 | wire type
//   value   := varint (type 0) | 8 bytes (1) | length:varint bytes (2) | 4 bytes (5)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vllm::tokenizer {

class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, std::string name_for_errors) : bytes_(bytes), name_(std::move(name_for_errors)) {}

  // Advances to the next field. Returns false at the end.
  bool Next();
  uint64_t number() const { return number_; }

  // Return the value of the current field. Throw TokenizerError if the field has another wire type.
  uint64_t Varint() const;
  bool Bool() const { return Varint() != 0; }
  float Float() const;
  std::string_view Bytes() const;

 private:
  uint64_t ReadVarint();
  void Expect(unsigned wire_type) const;
  [[noreturn]] void Fail(const std::string& why) const;

  std::string_view bytes_;
  std::string name_;
  size_t position_ = 0;
  uint64_t number_ = 0;
  unsigned wire_type_ = 0;
  uint64_t varint_ = 0;
  std::string_view value_;
};

}  // namespace vllm::tokenizer
