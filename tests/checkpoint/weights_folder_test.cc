#include "checkpoint/convert/weights_folder.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <limits>

#include "checkpoint/convert/new_output.h"
#include "tests/checkpoint/convert_fixture.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using testing::Allowance;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names_in;
using testing::new_tensors;
using testing::OwnedTensor;
using testing::TempFolder;
using testing::TestRun;
using testing::views;

// Rounds in double arithmetic instead of on bits: to a multiple of the dtype's step.
double rounded(float value, int fraction_bits, int least_exponent) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), least_exponent);
  const double step = std::ldexp(1.0, exponent - fraction_bits);
  return std::nearbyint(static_cast<double>(value) / step) * step;
}

TEST(FloatFormat, RoundsToNearestEven) {
  EXPECT_TRUE(rc::check([] {
    const auto value = std::bit_cast<float>(*rc::gen::arbitrary<std::uint32_t>());
    if (!std::isfinite(value)) return;
    for (const auto& [format, dtype, fraction, least] :
         {std::tuple(FloatFormat::kFp16, "F16", 10, -14), {FloatFormat::kBf16, "BF16", 7, -126}}) {
      const TempFolder folder;
      Allowance watch;
      const auto path = folder.path() / "f";
      const double wanted = rounded(value, fraction, least);
      const double largest = largest_number(format);
      const bool fits = std::fabs(wanted) <= largest;
      const std::vector<NewTensor> tensors = new_tensors({{"x", {1}, {value}}});
      const auto strict = write_tensors(path, tensors, {.format = format}, watch);
      RC_ASSERT(strict.ok() == fits);
      if (!fits) {
        RC_ASSERT(strict.error().code == ErrorCode::kConfig);
        RC_ASSERT(strict.error().what.find("'x'") != std::string::npos);
      }
      RC_ASSERT(write_tensors(path, tensors, {.format = format, .saturates = true}, watch).ok());
      const auto file = SafetensorsFile::open(path);
      RC_ASSERT(file.ok() && file->entries().at("x").dtype == dtype);
      std::vector<float> read(1);
      RC_ASSERT(file->read("x", {1}, read).ok());
      RC_ASSERT(read[0] == (fits ? wanted : std::copysign(largest, value)));
    }
  }));
}

TEST(WeightsFolder, IsCutWhereAFileWouldGrowTooLarge) {
  const TempFolder folder;
  const std::vector<OwnedTensor> tensors = {
      {"a", {2}, {1, 2}}, {"b", {2}, {3, 4}}, {"c", {5}, {1, 2, 3, 4, 5}}, {"d", {1}, {6}}};
  Allowance watch;
  const auto written = write_weights_folder(
      folder.path() / "w", {.tensors = new_tensors(tensors), .file_bytes_max = 16}, watch);
  ASSERT_OK(written);
  EXPECT_THAT(names_in(folder.path() / "w"),
              ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                          "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  const auto reader = CheckpointReader::open(folder.path() / "w");
  ASSERT_OK(reader);
  for (const OwnedTensor& tensor : tensors) {
    std::vector<float> values(tensor.values.size());
    ASSERT_OK(reader->read(tensor.name, tensor.shape, values));
    EXPECT_EQ(values, tensor.values);
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre("w"));
}

TEST(WeightsFolder, TakesWhatBelongsToItAlong) {
  const TempFolder folder;
  testing::write_bytes(folder.path() / "blob", "words");
  std::filesystem::create_symlink("blob", folder.path() / "tokenizer.json");  // as in a cache
  Allowance watch;
  ASSERT_OK(write_weights_folder(folder.path() / "w",
                                 {.tensors = new_tensors({{"a", {1}, {1}}}),
                                  .config = Json{{"model_type", "gpt2"}},
                                  .beside = {folder.path() / "tokenizer.json"}},
                                 watch));
  EXPECT_THAT(names_in(folder.path() / "w"),
              ElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  EXPECT_EQ(testing::read_bytes(folder.path() / "w" / "tokenizer.json"), "words");
  EXPECT_FALSE(std::filesystem::is_symlink(folder.path() / "w" / "tokenizer.json"));
}

// The disk becomes full in the middle of the write; RLIMIT_FSIZE emulates this.
TEST(WeightsFolderDeathTest, ADiskThatTakesNoMoreLeavesNothing) {
  const TempFolder folder;
  const auto fill = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Allowance watch;
    const std::vector<OwnedTensor> large = {{"a", {50'000}, std::vector<float>(50'000)}};
    const auto one = write_weights_file(folder.path() / "f", new_tensors(large), {}, watch);
    const auto all =
        write_weights_folder(folder.path() / "w", {.tensors = new_tensors(large)}, watch);
    const bool is_right = !one.ok() && one.error().code == ErrorCode::kCorrupt && !all.ok() &&
                          all.error().code == ErrorCode::kCorrupt &&
                          names_in(folder.path()).empty();
    std::_Exit(is_right ? 0 : 1);
  };
  EXPECT_EXIT(fill(), ::testing::ExitedWithCode(0), "");
}

TEST(NewOutput, SaysHowMuchRoomIsMissing) {
  const TempFolder folder;
  const auto output = NewOutput::begin(folder.path() / "f", NewOutput::Kind::kFile,
                                       std::numeric_limits<std::uint64_t>::max() - 1);
  EXPECT_CORRUPT(output, "bytes are missing");
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(NewOutput, TakesOverWhatAKilledProcessLeft) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path() / ".w.partial");
  testing::write_bytes(folder.path() / ".w.partial" / "half", "x");
  Allowance watch;
  ASSERT_OK(write_weights_folder(folder.path() / "w/", {.tensors = new_tensors({{"a", {1}, {1}}})},
                                 watch));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("w"));
  EXPECT_THAT(names_in(folder.path() / "w"), ElementsAre("model.safetensors"));
}

TEST(NewOutput, IsMadeByOneAtATimeAndTakesNoName) {
  const TempFolder folder;
  {
    auto first = NewOutput::begin(folder.path() / "f", NewOutput::Kind::kFile, 1);
    ASSERT_OK(first);
    const auto second = NewOutput::begin(folder.path() / "f", NewOutput::Kind::kFile, 1);
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(describe(second.error()), HasSubstr("another process writes the same output"));
    testing::write_bytes(first->place(), "ours");
    testing::write_bytes(folder.path() / "f", "theirs");
    EXPECT_FALSE(first->commit().ok());
  }
  EXPECT_EQ(testing::read_bytes(folder.path() / "f"), "theirs");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("f"));
}

TEST(NewOutput, FollowsNoLinkInThePlaceOfItsFolder) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path() / "theirs");
  testing::write_bytes(folder.path() / "theirs" / "kept", "x");
  std::filesystem::create_symlink("theirs", folder.path() / ".w.partial");
  EXPECT_FALSE(NewOutput::begin(folder.path() / "w", NewOutput::Kind::kFolder, 1).ok());
  EXPECT_THAT(names_in(folder.path() / "theirs"), ElementsAre("kept"));
}

TEST(NewOutput, IsNotMadeWithinACheckpoint) {
  const TempFolder folder;
  const auto checkpoint = folder.path() / "step-000007";
  std::filesystem::create_directory(checkpoint);
  testing::write_bytes(checkpoint / "manifest.json", "{}");
  const auto output = NewOutput::begin(checkpoint / "hf", NewOutput::Kind::kFolder, 1);
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, ErrorCode::kConfig);
  EXPECT_FALSE(NewOutput::check_free(checkpoint / "hf").ok());
  EXPECT_THAT(names_in(checkpoint), ElementsAre("manifest.json"));
  EXPECT_OK(NewOutput::begin(folder.path() / "hf", NewOutput::Kind::kFolder, 1));
}

TEST(TransposedValues, AreTheTransposeWhateverThePieces) {
  const TempFolder folder;
  EXPECT_TRUE(rc::check([&] {
    const auto rows = *rc::gen::inRange<std::size_t>(1, 30);
    const auto columns = *rc::gen::inRange<std::size_t>(1, 30);
    std::vector<float> values(rows * columns);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const std::vector<OwnedTensor> tensors = {
        {"x", {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}, values}};
    RC_ASSERT(write_safetensors(folder.path() / "f", views(tensors), {}).ok());
    const auto reader = CheckpointReader::open(folder.path() / "f");
    TransposedValues stream(*reader, reader->tensors().at(0));
    std::vector<float> got;
    while (got.size() < values.size()) {
      std::vector<float> piece(*rc::gen::inRange<std::size_t>(1, values.size() - got.size() + 1));
      RC_ASSERT(stream.next(piece).ok());
      got.insert(got.end(), piece.begin(), piece.end());
    }
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        RC_ASSERT(got[c * rows + r] == values[r * columns + c]);
      }
    }
  }));
}

}  // namespace
}  // namespace motley
