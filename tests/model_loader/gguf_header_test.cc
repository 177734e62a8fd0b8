#include "engine/model_loader/gguf/format/header.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "tests/model_loader/gguf_builder.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using Type = GgufValueType;
constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kHalf = uint64_t{1} << 63;

GgufHeader Parse(const std::string& file) { return ParseGguf(std::as_bytes(std::span(file)), "x.gguf"); }

std::string ErrorOf(const std::string& file) {
  return MessageOf<ModelError>([&] { Parse(file); });
}

std::string Header(uint32_t version, uint64_t num_tensors, uint64_t num_pairs) {
  return "GGUF" + Raw(version) + Raw(num_tensors) + Raw(num_pairs);
}

std::string ArrayHead(Type element, uint64_t count) { return RawType(element) + Raw(count); }

std::string Nested(int depth) {
  std::string bytes;
  for (int i = 1; i < depth; ++i) bytes += ArrayHead(Type::kArray, 1);
  return bytes + ArrayHead(Type::kUint8, 1) + "x";
}

std::string Pair(Type type, const std::string& value) { return GgufBuilder().Pair("k", type, value).Build(); }

std::string Tensor(const std::vector<uint64_t>& dimensions, uint32_t type, uint64_t offset = 0,
                   const std::string& data = std::string(64, 'x')) {
  return GgufBuilder().RawTensor("t", dimensions, type, offset, data).Build();
}

struct MalformedFile {
  const char* name;
  std::string file;
  std::string why;
};

void PrintTo(const MalformedFile& file, std::ostream* out) { *out << file.name; }

std::vector<MalformedFile> MalformedFiles() {
  const std::string four_floats(16, 'x');
  return {
      // Malformed headers.
      {"Empty", "", "magic: extends past the end"},
      {"MagicOnly", "GGUF", "version: extends past the end"},
      {"BadMagic", "GGML" + std::string(20, '\0'), "magic: not a GGUF file"},
      {"LowerCaseMagic", "gguf" + std::string(20, '\0'), "magic: not a GGUF file"},
      {"Version0", Header(0, 0, 0), "version: not 2 or 3 (0)"},
      {"Version1", Header(1, 0, 0), "version: not 2 or 3 (1)"},
      {"Version4", Header(4, 0, 0), "version: not 2 or 3 (4)"},
      {"VersionMax", Header(0xFFFFFFFF, 0, 0), "version: not 2 or 3"},
      {"BigEndian", Header(0x03000000, 0, 0), "big-endian files are not supported"},
      {"TensorsMax", Header(3, kHuge, 0), "number of tensors: too many"},
      {"TensorsHalf", Header(3, kHalf, 0), "number of tensors: too many"},
      {"TensorsMoreThanBytes", Header(3, 1000, 0), "number of tensors: more than the file can contain"},
      {"PairsMax", Header(3, 0, kHuge), "number of keys: too many"},
      {"PairsMoreThanBytes", Header(3, 0, 60000), "number of keys: more than the file can contain"},
      {"PairsWrapTimesSize", Header(3, 0, kHuge / 13 + 1), "number of keys: too many"},
      {"NegativeTensors", Header(3, static_cast<uint64_t>(-1), 0), "number of tensors: too many"},
      {"PairCountOneTooLarge", GgufBuilder().Int("a", 1).Int("longer", 2).Build(0, 3), "key: extends past the end"},
      {"TensorCountOneTooLarge", GgufBuilder().Tensor("t", {4}, 0, four_floats).Build(2, 0),
       "tensor name: extends past the end"},
      // Malformed keys and values.
      {"KeySizeMax", Header(3, 0, 1) + Raw(kHuge) + "k" + std::string(20, '\0'), "key: extends past the end"},
      {"KeySizeHalf", Header(3, 0, 1) + Raw(kHalf) + "k" + std::string(20, '\0'), "key: extends past the end"},
      {"KeyEmpty", GgufBuilder().Int("", 1).Build(), "key number 1: must have 1 to 65535 bytes (0)"},
      {"KeyTooLong", GgufBuilder().Int(std::string(65536, 'k'), 1).Build(),
       "key number 1: must have 1 to 65535 bytes (65536)"},
      {"KeyTwice", GgufBuilder().Int("a", 1).Int("b", 2).Int("a", 1).Build(), "a: duplicate key"},
      {"TypeMax", Header(3, 0, 1) + RawString("k") + Raw<uint32_t>(0xFFFFFFFF) + "12345678", "k: unknown type"},
      {"Type13", Header(3, 0, 1) + RawString("k") + Raw<uint32_t>(13) + "12345678", "k: unknown type (13)"},
      {"NumberCut", Pair(Type::kUint64, "1234567"), "k: extends past the end"},
      {"StringSizeMax", Pair(Type::kString, Raw(kHuge) + "abc"), "k: extends past the end"},
      {"StringSizeOneMore", Pair(Type::kString, Raw<uint64_t>(4) + "abc"), "k: extends past the end"},
      {"StringSizeWraps", Pair(Type::kString, Raw(kHuge - 7) + "abc"), "k: extends past the end"},
      {"ArrayTypeUnknown", Pair(Type::kArray, Raw<uint32_t>(13) + Raw<uint64_t>(0)),
       "unknown type of array elements (13)"},
      {"ArrayCountMax", Pair(Type::kArray, ArrayHead(Type::kUint8, kHuge)), "array extends past the end"},
      {"ArrayCountHalf", Pair(Type::kArray, ArrayHead(Type::kUint8, kHalf)), "array extends past the end"},
      {"ArrayBytesWrap", Pair(Type::kArray, ArrayHead(Type::kUint64, (kHuge >> 3) + 2) + "12345678"),
       "array extends past"},
      {"ArrayOneMore", Pair(Type::kArray, ArrayHead(Type::kUint32, 2) + "1234567"), "array extends past the end"},
      {"ArrayOfStringsCount", Pair(Type::kArray, ArrayHead(Type::kString, uint64_t{1} << 62)),
       "array extends past the end"},
      {"ArrayOfStringsSize", Pair(Type::kArray, ArrayHead(Type::kString, 1) + Raw(kHuge)), "k: extends past the end"},
      {"ArrayOfStringsCut", Pair(Type::kArray, ArrayHead(Type::kString, 2) + Raw<uint64_t>(4) + "abcdefgh"),
       "k: extends past the end"},
      {"ArrayOfArraysCount", Pair(Type::kArray, ArrayHead(Type::kArray, kHalf)), "array extends past the end"},
      {"ArrayOfArraysInner", Pair(Type::kArray, ArrayHead(Type::kArray, 1) + ArrayHead(Type::kUint8, kHuge)),
       "array extends past the end"},
      {"ArraysTooDeep", Pair(Type::kArray, Nested(5)), "arrays are nested too deeply (limit 4)"},
      {"ArraysVeryDeep", Pair(Type::kArray, Nested(100000)), "arrays are nested too deeply (limit 4)"},
      {"Alignment0", GgufBuilder().Int("general.alignment", 0).Build(), "general.alignment: outside 1 to"},
      {"Alignment3", GgufBuilder().Int("general.alignment", 3).Build(), "general.alignment: not a power of two (3)"},
      {"Alignment48", GgufBuilder().Int("general.alignment", 48).Build(), "general.alignment: not a power of two (48)"},
      {"AlignmentString", GgufBuilder().String("general.alignment", "32").Build(), "must be a whole number (string)"},
      {"AlignmentFloat", GgufBuilder().Float("general.alignment", 32.0F).Build(), "must be a whole number (float32)"},
      {"AlignmentArray", GgufBuilder().Array<uint32_t>("general.alignment", Type::kUint32, {32}).Build(),
       "must be a whole number (array of uint32)"},
      {"AlignmentNegative", GgufBuilder().Pair("general.alignment", Type::kInt32, Raw<int32_t>(-32)).Build(),
       "general.alignment: outside 1 to"},
      {"AlignmentBeyondFile",
       GgufBuilder().Int("general.alignment", 1U << 31).RawTensor("t", {4}, 0, 0, four_floats).Build(),
       "data extends past the end"},
      {"AlignmentMax", GgufBuilder().Pair("general.alignment", Type::kUint64, Raw(kHuge)).Build(), "outside 1 to"},
      // Malformed tensors.
      {"NameEmpty", GgufBuilder().Tensor("", {4}, 0, four_floats).Build(), "name must have 1 to 64 bytes (0)"},
      {"NameTooLong", GgufBuilder().Tensor(std::string(65, 'n'), {4}, 0, four_floats).Build(), "64 bytes (65)"},
      {"NameSizeMax", Header(3, 1, 0) + Raw(kHuge) + std::string(40, 'n'), "tensor name: extends past the end"},
      {"NameTwice", GgufBuilder().Tensor("t", {4}, 0, four_floats).Tensor("t", {4}, 0, four_floats).Build(),
       "tensor t: occurs twice"},
      {"Dimensions0", Tensor({}, 0), "number of dimensions is outside 1 to 4 (0)"},
      {"Dimensions5", Tensor({1, 1, 1, 1, 1}, 0), "number of dimensions is outside 1 to 4 (5)"},
      {"DimensionsMax", Header(3, 1, 0) + RawString("t") + Raw<uint32_t>(0xFFFFFFFF) + std::string(64, '\1'),
       "number of dimensions is outside"},
      {"DimensionZero", Tensor({0}, 0), "dimension is outside 1 to 2^63 - 1 (0)"},
      {"DimensionZeroInside", Tensor({4, 0, 2}, 0), "dimension is outside 1 to 2^63 - 1 (0)"},
      {"DimensionNegative", Tensor({static_cast<uint64_t>(-1)}, 0), "dimension is outside 1 to 2^63 - 1"},
      {"ProductWrapsToZero", Tensor({(uint64_t{1} << 42), (uint64_t{1} << 42)}, 0), "shape is too large"},
      {"ProductWrapsToSmall", Tensor({(uint64_t{1} << 42) + 1, (uint64_t{1} << 42) + 1, 4}, 0), "shape is too large"},
      {"ProductIsNegative", Tensor({uint64_t{1} << 62, 2}, 0), "shape is too large"},
      {"BytesWrap", Tensor({uint64_t{1} << 62}, 0), "shape is too large (limit 2^64 - 1 bytes)"},
      {"BytesPaddingWraps", Tensor({(kHuge >> 2)}, 0), "data extends past the end"},
      {"BytesMoreThanFile", Tensor({1000}, 0),
       "data extends past the end of the file (4000 bytes at offset 0 of a data section of 64 bytes)"},
      {"BytesOneMore", Tensor({17}, 0),
       "data extends past the end of the file (68 bytes at offset 0 of a data section of 64 bytes)"},
      {"BlocksMoreThanFile", Tensor({96}, 8),
       "data extends past the end of the file (102 bytes at offset 0 of a data section of 64 bytes)"},
      {"TypeUnknown", Tensor({4}, 99), "tensor t: unknown type (99)"},
      {"TypeRemoved", Tensor({32}, 4), "tensor t: unknown type (4)"},
      {"TypeNegative", Tensor({4}, static_cast<uint32_t>(-1)), "tensor t: unknown type"},
      {"RowIsNotAWholeBlock", Tensor({33}, 8), "row is not a whole number of Q8_0 blocks (33 elements, 32 per block)"},
      {"RowIsNotAWholeSuperBlock", Tensor({128, 2}, 12), "row is not a whole number of Q4_K blocks"},
      {"OffsetUnaligned", Tensor({4}, 0, 4), "data is not at the next aligned offset (4, must be 0)"},
      {"OffsetBeyond", Tensor({4}, 0, 1 << 20), "data is not at the next aligned offset"},
      {"OffsetMax", Tensor({4}, 0, kHuge), "data is not at the next aligned offset"},
      {"Overlap", GgufBuilder().Tensor("a", {8}, 0, std::string(32, 'x')).RawTensor("b", {8}, 0, 0, "").Build(),
       "tensor b: data is not at the next aligned offset (0, must be 32)"},
      {"Gap", GgufBuilder().Tensor("a", {4}, 0, four_floats).RawTensor("b", {4}, 0, 64, four_floats).Build(),
       "tensor b: data is not at the next aligned offset"},
      {"InconsistentAlignment",
       GgufBuilder()
           .Int("general.alignment", 64)
           .Tensor("a", {4}, 0, four_floats)
           .Tensor("b", {4}, 0, four_floats)
           .Build(),
       "tensor b: data is not at the next aligned offset"},
      {"NoData", Tensor({4}, 0, 0, ""), "data extends past the end"},
  };
}

class GgufMalformedFileTest : public ::testing::TestWithParam<MalformedFile> {};

INSTANTIATE_TEST_SUITE_P(Handcrafted, GgufMalformedFileTest, ::testing::ValuesIn(MalformedFiles()),
                         [](const auto& file) { return file.param.name; });

TEST_P(GgufMalformedFileTest, IsRejectedWithoutLargeAllocations) {
  const std::string& file = GetParam().file;
  const uint64_t before = testing_support::AllocatedBytes();
  const std::string message = ErrorOf(file);
  const uint64_t allocated = testing_support::AllocatedBytes() - before;
  EXPECT_EQ(message.rfind("gguf file x.gguf: ", 0), 0U) << message;
  EXPECT_NE(message.find(GetParam().why), std::string::npos) << message;
  EXPECT_LT(allocated, 16384 + 8 * file.size());
}

TEST(GgufHeaderTest, AFileWithoutKeysOrTensorsIsValid) {
  const GgufHeader header = Parse(Header(2, 0, 0));
  EXPECT_EQ(header.version, 2U);
  EXPECT_EQ(header.alignment, 32U);
  EXPECT_TRUE(header.tensors.empty());
}

TEST(GgufHeaderTest, EveryValueTypeIsRead) {
  GgufBuilder file;
  file.Pair("u8", Type::kUint8, Raw<uint8_t>(200)).Pair("i8", Type::kInt8, Raw<int8_t>(-5));
  file.Pair("u16", Type::kUint16, Raw<uint16_t>(60000)).Pair("i16", Type::kInt16, Raw<int16_t>(-300));
  file.Pair("u32", Type::kUint32, Raw<uint32_t>(4000000000U)).Pair("i32", Type::kInt32, Raw<int32_t>(-70000));
  file.Pair("u64", Type::kUint64, Raw<uint64_t>(5000000000U)).Pair("i64", Type::kInt64, Raw<int64_t>(-5000000000));
  file.Float("f32", 1.5F).Pair("f64", Type::kFloat64, Raw(2.25)).Bool("yes", true).String("text", "abc");
  file.Strings("strings", {"a", "", "bc"}).Array<float>("floats", Type::kFloat32, {1.0F, 2.0F});
  file.Array<int32_t>("ints", Type::kInt32, {3, -4}).Array<uint8_t>("bytes", Type::kUint8, {'x', 'y'});
  file.Array<uint8_t>("bools", Type::kBool, {1, 0}).Pair("deep", Type::kArray, Nested(4));
  const std::string bytes = file.Build();
  const GgufHeader header = Parse(bytes);
  const GgufMetadata& keys = header.metadata;
  constexpr int64_t kLow = -6000000000;
  constexpr int64_t kHigh = 6000000000;
  EXPECT_EQ(keys.Int("u8", kLow, kHigh), 200);
  EXPECT_EQ(keys.Int("i8", kLow, kHigh), -5);
  EXPECT_EQ(keys.Int("u16", kLow, kHigh), 60000);
  EXPECT_EQ(keys.Int("i16", kLow, kHigh), -300);
  EXPECT_EQ(keys.Int("u32", kLow, kHigh), 4000000000);
  EXPECT_EQ(keys.Int("i32", kLow, kHigh), -70000);
  EXPECT_EQ(keys.Int("u64", kLow, kHigh), 5000000000);
  EXPECT_EQ(keys.Int("i64", kLow, kHigh), -5000000000);
  EXPECT_EQ(keys.Double("f32", 0.0, 9.0), 1.5);
  EXPECT_EQ(keys.Double("f64", 0.0, 9.0), 2.25);
  EXPECT_EQ(keys.Bool("yes"), true);
  EXPECT_EQ(keys.String("text"), "abc");
  EXPECT_EQ(keys.Strings("strings"), (std::vector<std::string_view>{"a", "", "bc"}));
  EXPECT_EQ(keys.Floats("floats"), (std::vector<float>{1.0F, 2.0F}));
  EXPECT_EQ(keys.Ints("ints"), (std::vector<int32_t>{3, -4}));
  EXPECT_EQ(keys.Bytes("bytes"), "xy");
  EXPECT_EQ(keys.Bools("bools"), (std::vector<bool>{true, false}));
  EXPECT_EQ(keys.Count("deep"), 1U);
  EXPECT_FALSE(keys.Has("none"));
  EXPECT_EQ(keys.Int("none", 0, 1), std::nullopt);
}

TEST(GgufHeaderTest, GettersRejectWrongTypesAndValuesOutOfRange) {
  GgufBuilder file;
  file.Int("int", 5).Float("float", 1.0F).String("text", "x").Bool("flag", true).Strings("list", {"a"});
  file.Float("nan", std::numeric_limits<float>::quiet_NaN()).Pair("odd", Type::kBool, Raw<uint8_t>(2));
  file.Pair("huge", Type::kUint64, Raw(kHuge)).Array<int32_t>("ints", Type::kInt32, {1}).Float("zero", 0.0F);
  const std::string bytes = file.Build();
  const GgufHeader header = Parse(bytes);
  const GgufMetadata& keys = header.metadata;
  const auto rejects = [](auto call) { return !MessageOf<ModelError>(call).empty(); };
  for (const char* key : {"float", "text", "flag", "list"}) {
    EXPECT_TRUE(rejects([&] { keys.Int(key, 0, 10); })) << key;
    EXPECT_TRUE(rejects([&] { keys.Ints(key); })) << key;
    EXPECT_TRUE(rejects([&] { keys.Floats(key); })) << key;
    EXPECT_TRUE(rejects([&] { keys.Bytes(key); })) << key;
  }
  for (const char* key : {"int", "text", "flag", "list"}) EXPECT_TRUE(rejects([&] { keys.Double(key, 0, 10); })) << key;
  for (const char* key : {"int", "float", "flag", "list"}) EXPECT_TRUE(rejects([&] { keys.String(key); })) << key;
  for (const char* key : {"int", "float", "text", "list"}) EXPECT_TRUE(rejects([&] { keys.Bool(key); })) << key;
  for (const char* key : {"int", "float", "text", "flag"}) {
    EXPECT_TRUE(rejects([&] { keys.Strings(key); })) << key;
    EXPECT_TRUE(rejects([&] { keys.Count(key); })) << key;
  }
  EXPECT_TRUE(rejects([&] { keys.Int("int", 6, 10); }));
  EXPECT_TRUE(rejects([&] { keys.Int("huge", 0, std::numeric_limits<int64_t>::max() - 1); }));
  EXPECT_TRUE(rejects([&] { keys.Double("nan", -1e30, 1e30); }));
  EXPECT_TRUE(rejects([&] { keys.PositiveDouble("zero", 1.0); }));
  EXPECT_TRUE(rejects([&] { keys.Bool("odd"); }));
  EXPECT_TRUE(rejects([&] { keys.Strings("ints"); }));
  EXPECT_TRUE(rejects([&] { keys.RequiredInt("none", 0, 1); }));
}

TEST(GgufHeaderTest, TensorsAreViewsOfTheFile) {
  GgufBuilder file;
  file.alignment = 64;
  file.Int("general.alignment", 64);
  file.Floats("b", {3, 2}, {1, 2, 3, 4, 5, 6}).Tensor("a", {32, 1, 2}, 8, std::string(68, 'q'));
  const std::string bytes = file.Build();
  const GgufHeader header = Parse(bytes);
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "b");
  EXPECT_EQ(header.tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[0].num_elements(), 6);
  EXPECT_EQ(header.tensors[1].shape, (std::vector<int64_t>{2, 1, 32}));
  EXPECT_EQ(header.tensors[1].type->name, "Q8_0");
  EXPECT_EQ(header.tensors[1].data.size(), 68U);
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  EXPECT_EQ((header.tensors[0].data.data() - begin) % 64, 0);
  EXPECT_EQ(header.tensors[1].data.data() - header.tensors[0].data.data(), 64);
}

TEST(GgufHeaderTest, TheLastTensorNeedsNoPadding) {
  std::string file = GgufBuilder().Floats("t", {3}, {1, 2, 3}).Build();
  file.resize(file.size() - 20);
  EXPECT_EQ(ErrorOf(file), "");
}

TEST(GgufHeaderTest, AFileTruncatedAtAnyByteIsRejected) {
  GgufBuilder builder = TinyGguf();
  builder.Strings("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e"}).Pair("deep", Type::kArray, Nested(3));
  const std::string file = builder.Build();
  // Every tensor's data ends at a multiple of the alignment, so every truncation loses data.
  ASSERT_EQ(ErrorOf(file), "");
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string truncated = file.substr(0, size);
    EXPECT_EQ(ErrorOf(truncated).rfind("gguf file x.gguf: ", 0), 0U) << size;
  }
}

TEST(GgufHeaderTest, AQuantizedModelTruncatedBeforeTheEndOfItsDataIsRejected) {
  std::ifstream stream(std::string(VLLMCLI_TEST_DATA) + "/gguf/llama_q4_0/model.gguf", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const GgufHeader header = Parse(file);
  const std::span<const std::byte> last = header.tensors.back().data;
  const auto end = static_cast<size_t>(last.data() + last.size() - std::as_bytes(std::span(file)).data());
  const std::span<const std::byte> whole = std::as_bytes(std::span(file));
  for (size_t size = 0; size < end; ++size) {
    EXPECT_NE(MessageOf<ModelError>([&] { ParseGguf(whole.first(size), "x.gguf"); }), "") << size;
  }
}

TEST(GgufHeaderTest, FilesWithChangedBytesLoadOrAreRejected) {
  GgufBuilder builder = TinyGguf();
  builder.Strings("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e"}).Pair("deep", Type::kArray, Nested(3));
  const std::string file = builder.Build();
  std::mt19937 random(7);
  int num_rejected = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string changed = file;
    const size_t num_changes = 1 + random() % 4;
    for (size_t i = 0; i < num_changes; ++i)
      changed[random() % 1500] = static_cast<char>(random() % 4 == 0 ? 255 : random());
    if (random() % 8 == 0) changed.resize(random() % changed.size());
    const uint64_t before = testing_support::AllocatedBytes();
    num_rejected += ErrorOf(changed).empty() ? 0 : 1;
    ASSERT_LT(testing_support::AllocatedBytes() - before, uint64_t{1} << 20);
  }
  EXPECT_GT(num_rejected, 2000);
}

}  // namespace
}  // namespace vllm
