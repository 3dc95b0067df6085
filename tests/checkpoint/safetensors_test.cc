#include "checkpoint/safetensors.h"

#include <sys/stat.h>

#include <array>
#include <bit>
#include <cmath>

#include <rapidcheck.h>

#include "base/hash.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using testing::OwnedTensor;
using testing::read_bytes;
using testing::TempFolder;
using testing::views;
using testing::write_bytes;

std::string little_endian(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A file with one tensor "x" of 16-bit values.
std::string file_of_16bit(const std::string& dtype, const std::vector<std::uint16_t>& values) {
  const std::string header =
      fmt::format(R"({{"x":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", dtype,
                  values.size(), values.size() * 2);
  return little_endian(header.size()) + header +
         std::string(reinterpret_cast<const char*>(values.data()), values.size() * 2);
}

std::vector<std::uint16_t> all_16bit_values() {
  std::vector<std::uint16_t> values(1 << 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  return values;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST(Safetensors, WritesTheDocumentedBytes) {
  const TempFolder folder;
  const std::vector<OwnedTensor> tensors = {{"b", {1, 2}, {1.0F, -2.0F}}, {"a", {}, {0.5F}}};
  ASSERT_OK(write_safetensors(folder.path() / "f", views(tensors), {{"format", "pt"}}));
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                             R"("a":{"dtype":"F32","shape":[],"data_offsets":[8,12]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string data("\0\0\x80\x3F\0\0\0\xC0\0\0\0\x3F", 12);
  EXPECT_EQ(read_bytes(folder.path() / "f"), little_endian(padded.size()) + padded + data);
}

TEST(Safetensors, ReportsSizeAndHashesOfWhatItWrote) {
  const TempFolder folder;
  const std::vector<OwnedTensor> tensors = {{"a", {3}, {1, 2, 3}}};
  const auto written = write_safetensors(folder.path() / "f", views(tensors), {});
  ASSERT_OK(written);
  const std::string bytes = read_bytes(folder.path() / "f");
  EXPECT_EQ(written->name, "f");
  EXPECT_EQ(written->bytes, bytes.size());
  EXPECT_EQ(written->hash, hash128_hex(std::as_bytes(std::span(bytes))));
  EXPECT_EQ(written->tensor_hashes.at("a"),
            hash128_hex(std::as_bytes(std::span(tensors[0].values))));
}

// Any bit pattern, so NaN payloads, infinities and subnormals too.
TEST(Safetensors, RandomTensorsComeBackBitForBit) {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "f";
  EXPECT_TRUE(rc::check([&] {
    std::vector<OwnedTensor> tensors;
    const int count = *rc::gen::inRange(0, 5);
    for (int i = 0; i < count; ++i) {
      const auto bits = *rc::gen::arbitrary<std::vector<std::uint32_t>>();
      OwnedTensor tensor{fmt::format("t\"{}", i), {1, static_cast<std::int64_t>(bits.size())}, {}};
      for (const auto b : bits) tensor.values.push_back(std::bit_cast<float>(b));
      tensors.push_back(std::move(tensor));
    }
    RC_ASSERT(write_safetensors(path, views(tensors), {}).ok());
    const auto file = SafetensorsFile::open(path);
    RC_ASSERT(file.ok());
    RC_ASSERT(file->entries().size() == tensors.size());
    for (const OwnedTensor& tensor : tensors) {
      std::vector<float> values(tensor.values.size());
      RC_ASSERT(file->read(tensor.name, tensor.shape, values).ok());
      RC_ASSERT(bits_of(values) == bits_of(tensor.values));
    }
  }));
}

// The file and its hashes do not depend on the sizes of the pieces in which the values are
// written.
TEST(Safetensors, TheSizeOfPiecesDoesNotShow) {
  const TempFolder folder;
  EXPECT_TRUE(rc::check([&] {
    std::vector<OwnedTensor> tensors;
    std::string data;
    for (int i = 0; i < *rc::gen::inRange(0, 5); ++i) {
      const auto values = *rc::gen::container<std::vector<float>>(rc::gen::map(
          rc::gen::inRange(-99, 99), [](int value) { return static_cast<float>(value); }));
      tensors.push_back(
          {fmt::format("t{}", i), {static_cast<std::int64_t>(values.size())}, values});
      data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
    const auto complete = write_safetensors(folder.path() / "a", views(tensors), {});
    RC_ASSERT(complete.ok());
    auto writer = SafetensorsWriter::create(folder.path() / "b", outlines_of(views(tensors)), {});
    RC_ASSERT(writer.ok());
    for (auto rest = std::as_bytes(std::span(data)); !rest.empty();) {
      const auto piece = rest.first(*rc::gen::inRange<std::size_t>(1, rest.size() + 1));
      RC_ASSERT(writer->append(piece).ok());
      rest = rest.subspan(piece.size());
    }
    const auto pieces = writer->close();
    RC_ASSERT(pieces.ok());
    RC_ASSERT(read_bytes(folder.path() / "a") == read_bytes(folder.path() / "b"));
    RC_ASSERT(pieces->hash == complete->hash && pieces->bytes == complete->bytes);
    RC_ASSERT(pieces->tensor_hashes == complete->tensor_hashes);
  }));
}

TEST(Safetensors, ReadsAnyPartOfATensor) {
  const TempFolder folder;
  for (const char* dtype : {"F16", "BF16"}) {
    const auto values = all_16bit_values();
    write_bytes(folder.path() / "f", file_of_16bit(dtype, values));
    const auto file = SafetensorsFile::open(folder.path() / "f");
    ASSERT_OK(file);
    std::vector<float> complete(values.size());
    ASSERT_OK(file->read("x", {1 << 16}, complete));
    EXPECT_TRUE(rc::check([&] {
      const auto first = *rc::gen::inRange<std::size_t>(0, complete.size());
      std::vector<float> part(*rc::gen::inRange<std::size_t>(0, complete.size() - first + 1));
      RC_ASSERT(file->read_part("x", first, part).ok());
      RC_ASSERT(bits_of(part) ==
                bits_of({complete.begin() + static_cast<std::ptrdiff_t>(first),
                         complete.begin() + static_cast<std::ptrdiff_t>(first + part.size())}));
    }));
  }
}

TEST(SafetensorsDeathTest, AFileThatLacksValuesIsNotClosed) {
  const TempFolder folder;
  auto writer = SafetensorsWriter::create(folder.path() / "f", {{"a", "F32", {2}}}, {});
  ASSERT_OK(writer);
  const float value = 1;
  ASSERT_OK(writer->append(std::as_bytes(std::span(&value, 1))));
  EXPECT_DEATH((void)writer->close(), "'a' lacks 4 bytes");
}

TEST(Safetensors, WidensEveryHalfExactly) {
  const TempFolder folder;
  const auto halves = all_16bit_values();
  write_bytes(folder.path() / "f", file_of_16bit("F16", halves));
  const auto file = SafetensorsFile::open(folder.path() / "f");
  ASSERT_OK(file);
  std::vector<float> values(halves.size());
  ASSERT_OK(file->read("x", {1 << 16}, values));
  for (std::uint32_t half = 0; half < values.size(); ++half) {
    const std::uint32_t exponent = (half >> 10) & 31;
    const std::uint32_t fraction = half & 1023;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[half]);
    ASSERT_EQ(bits >> 31, half >> 15) << half;
    if (exponent == 31) {
      ASSERT_EQ(bits & 0x7FFFFFFF, 0x7F800000 | (fraction << 13)) << half;
    } else {
      const double magnitude = exponent == 0 ? std::ldexp(fraction, -24)
                                             : std::ldexp(1024 + fraction, int(exponent) - 25);
      ASSERT_EQ(std::fabs(static_cast<double>(values[half])), magnitude) << half;
    }
  }
}

TEST(Safetensors, WidensEveryBfloat16Exactly) {
  const TempFolder folder;
  const auto shorts = all_16bit_values();
  write_bytes(folder.path() / "f", file_of_16bit("BF16", shorts));
  const auto file = SafetensorsFile::open(folder.path() / "f");
  ASSERT_OK(file);
  std::vector<float> values(shorts.size());
  ASSERT_OK(file->read("x", {1 << 16}, values));
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), i << 16);
  }
}

TEST(Safetensors, ReadsBytesOfExactlyTheDtype) {
  const TempFolder folder;
  write_bytes(folder.path() / "f", file_of_16bit("I16", {1, 2, 0xFFFE}));
  const auto file = SafetensorsFile::open(folder.path() / "f");
  ASSERT_OK(file);
  std::vector<std::int16_t> values(3);
  const auto target = std::as_writable_bytes(std::span(values));
  ASSERT_OK(file->read_bytes("x", "I16", {3}, target));
  EXPECT_EQ(values, (std::vector<std::int16_t>{1, 2, -2}));
  for (const char* dtype : {"U16", "F16", "I64"}) {
    const auto read = file->read_bytes("x", dtype, {3}, target);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(read.error().cause, std::string("its dtype is I16; ") + dtype + " is needed");
  }
  std::array<std::byte, 2> middle{};
  ASSERT_OK(file->read_bytes_part("x", 3, middle));
  EXPECT_EQ(middle, (std::array{target[3], target[4]}));
  EXPECT_FALSE(file->read_bytes("x", "I16", {2}, target.first(4)).ok());
  EXPECT_FALSE(file->read_bytes("y", "I16", {3}, target).ok());
}

TEST(Safetensors, NamesWhatItCannotRead) {
  const TempFolder folder;
  write_bytes(folder.path() / "f", file_of_16bit("I16", {1, 2}));
  const auto file = SafetensorsFile::open(folder.path() / "f");
  ASSERT_OK(file);
  std::vector<float> values(2);
  EXPECT_CORRUPT(file->read("x", {2}, values), "its dtype is I16");
  EXPECT_CORRUPT(file->read("x", {2, 1}, values), "its shape is [2]; [2, 1] is needed");
  EXPECT_CORRUPT(file->read("y", {2}, values), "does not contain it");
}

TEST(Safetensors, RefusesFilesShorterThanTheirHeader) {
  const TempFolder folder;
  const std::string good = file_of_16bit("F16", {1, 2, 3});
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    write_bytes(folder.path() / "f", good.substr(0, bytes));
    EXPECT_CORRUPT(SafetensorsFile::open(folder.path() / "f"), "damaged safetensors file");
  }
}

TEST(Safetensors, RefusesAHugeHeaderWithoutReadingIt) {
  const TempFolder folder;
  for (const std::uint64_t length : {std::uint64_t{17} << 20, ~std::uint64_t{0}}) {
    write_bytes(folder.path() / "f", little_endian(length) + "{}");
    std::filesystem::resize_file(folder.path() / "f", 32 << 20);  // sparse
    EXPECT_CORRUPT(SafetensorsFile::open(folder.path() / "f"), "does not fit");
  }
}

TEST(Safetensors, OpensOnlyRegularFiles) {
  const TempFolder folder;
  write_bytes(folder.path() / "real", file_of_16bit("F16", {1}));
  std::filesystem::create_symlink("real", folder.path() / "link");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_CORRUPT(SafetensorsFile::open(folder.path() / "link"), "symbolic link");
  EXPECT_CORRUPT(SafetensorsFile::open(folder.path() / "pipe"), "not a regular file");
  EXPECT_CORRUPT(SafetensorsFile::open(folder.path()), "not a regular file");
  EXPECT_CORRUPT(SafetensorsFile::open(folder.path() / "absent"), "No such file");
}

TEST(Safetensors, SaysThatTheDiskIsFull) {
  const std::vector<OwnedTensor> tensors = {{"a", {1}, {1}}};
  const auto written = write_safetensors("/dev/full", views(tensors), {});
  EXPECT_CORRUPT(written, "No space left on device");
  EXPECT_CORRUPT(written, "free space");
}

TEST(SafetensorsDeathTest, ValuesThatDoNotFitTheShapeAreABug) {
  const TempFolder folder;
  const std::vector<OwnedTensor> tensors = {{"a", {3}, {1}}};
  EXPECT_DEATH((void)write_safetensors(folder.path() / "f", views(tensors), {}),
               "'a' has 1 values, shape \\[3\\]");
}

}  // namespace
}  // namespace motley
