// Folders of arrays, and texts, as people have them: each is refused with its cause, or read as
// what was written; 200 of each.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/corpus.h"
#include "tests/data/array_fixture.h"
#include "tests/data/file_draw.h"
#include "tests/fuzz/laws.h"

namespace motley {
namespace {

constexpr int kFiles = 200;

// What is wrong with a folder of arrays for a classifier of [4] floats and 10 classes.
enum class Fault {
  kNone,
  kNan,
  kInfinity,
  kLabelAbove,
  kLabelBelow,
  kFewerTargets,
  kOtherShape,
  kDoubles,
  kBigEndian,
  kColumnMajor,
  kCut,
  kLonger,
  kNoTargets,
  kEmpty,
  kFloatLabels,
  kCount
};

class OddArrays : public testing::Test {
 protected:
  // Writes both files; returns the inputs.
  std::vector<float> write(Fault fault, FileDraw& draw) const {
    const std::int64_t samples = fault == Fault::kEmpty ? 0 : 5 + draw.below(40);
    std::vector<float> inputs(static_cast<std::size_t>(samples * 4));
    for (float& value : inputs) value = static_cast<float>(draw.share());
    const auto any = [&] { return draw.below(static_cast<std::uint32_t>(inputs.size())); };
    if (fault == Fault::kNan) inputs[any()] = std::numeric_limits<float>::quiet_NaN();
    if (fault == Fault::kInfinity) inputs[any()] = -std::numeric_limits<float>::infinity();
    std::string bytes = npy_floats({samples, 4}, inputs);
    if (fault == Fault::kOtherShape) bytes = npy_floats({samples, 2, 2}, inputs);
    if (fault == Fault::kDoubles) {
      bytes = npy("<f8", {samples, 4}, std::vector<double>(inputs.begin(), inputs.end()));
    }
    if (fault == Fault::kBigEndian) bytes = npy(">f4", {samples, 4}, inputs);
    if (fault == Fault::kColumnMajor) bytes.replace(bytes.find("False"), 5, "True ");
    if (fault == Fault::kCut) bytes.resize(bytes.size() - 1 - draw.below(30));
    if (fault == Fault::kLonger) bytes += "more";
    folder_.write("inputs.npy", bytes);
    write_targets(fault, samples, draw);
    return inputs;
  }

  [[nodiscard]] Result<std::unique_ptr<const Source>> open() const {
    return open_source(data_config("arrays", folder_.root()), classifier({4}), 1);
  }

  [[nodiscard]] std::string root() const { return folder_.root().string(); }

 private:
  void write_targets(Fault fault, std::int64_t samples, FileDraw& draw) const {
    std::vector<std::int64_t> targets(static_cast<std::size_t>(samples));
    for (std::int64_t& target : targets) target = draw.below(10);
    if (fault == Fault::kLabelAbove) targets[draw.below(5)] = 10 + draw.below(1000);
    if (fault == Fault::kLabelBelow) targets[draw.below(5)] = -1 - static_cast<int>(draw.below(99));
    if (fault == Fault::kFewerTargets) targets.pop_back();
    std::filesystem::remove(folder_.root() / "targets.npy");
    if (fault == Fault::kNoTargets) return;
    folder_.write("targets.npy",
                  fault == Fault::kFloatLabels
                      ? npy_floats({samples}, std::vector<float>(targets.begin(), targets.end()))
                      : npy_longs({static_cast<std::int64_t>(targets.size())}, targets));
  }

  DataFolder folder_;
};

TEST_F(OddArrays, AreReadRightOrRefused) {
  FileDraw draw;
  for (int i = 0; i < kFiles; ++i) {
    const auto fault = static_cast<Fault>(i % static_cast<int>(Fault::kCount));
    const auto inputs = write(fault, draw);
    const auto source = open();
    ASSERT_EQ(source.ok(), fault == Fault::kNone) << i;
    if (!source.ok()) {
      EXPECT_EQ(wrong_error(source.error(), {ErrorCode::kData}, ""), "") << i;
      continue;
    }
    const auto first = floats_of(train_sample(**source, 0, classifier({4})).inputs);
    bool is_found = false;
    for (std::size_t at = 0; at < inputs.size() && !is_found; at += 4) {
      is_found =
          std::equal(first.begin(), first.end(), inputs.begin() + static_cast<std::ptrdiff_t>(at));
    }
    EXPECT_TRUE(is_found) << i;
  }
}

struct OddText {
  std::string bytes;
  std::string read;  // "" = refused
};

std::string wide(const std::string& ascii, int size, bool is_big) {
  std::string bytes;
  for (const char c : ascii) {
    std::string unit(static_cast<std::size_t>(size), '\0');
    unit[is_big ? static_cast<std::size_t>(size) - 1 : 0] = c;
    bytes += unit;
  }
  return bytes;
}

OddText odd_text(int kind, FileDraw& draw) {
  std::string ascii;
  const std::uint32_t count = 40 + draw.below(400);
  for (std::uint32_t i = 0; i < count; ++i) ascii += static_cast<char>(' ' + draw.below(94));
  const std::string mark = std::string("\xFF\xFE");
  switch (kind) {
    case 0:
      return {ascii, ascii};
    case 1:
      return {ascii + "\xe9\xff", ascii + "\xe9\xff"};
    case 2:
      return {mark + wide(ascii, 2, false), ascii};
    case 3:
      return {"\xFE\xFF" + wide(ascii, 2, true), ascii};
    case 4:
      return {wide(ascii, 2, draw.below(2) == 1), ascii};
    case 5:
      return {wide(ascii, 4, draw.below(2) == 1), ascii};
    case 6:
      return {mark + wide(ascii, 2, false) + "x", ""};
    case 7:
      return {ascii + '\0' + ascii, ""};
    case 8: {
      std::string noise;
      for (int i = 0; i < 2000; ++i) noise += static_cast<char>(draw.below(256));
      return {noise, ""};
    }
    default:
      return {"\x1f\x8b\x08" + ascii, ""};
  }
}

TEST(OddTexts, AreReadRightOrRefused) {
  const DataFolder folder;
  FileDraw draw;
  for (int i = 0; i < kFiles; ++i) {
    const OddText text = odd_text(i % 10, draw);
    const auto data = data_config("text", folder.write("a.txt", text.bytes));
    const auto corpus = open_text_corpus(data);
    ASSERT_EQ(corpus.ok(), !text.read.empty()) << i;
    if (!corpus.ok()) {
      EXPECT_EQ(wrong_error(corpus.error(), {ErrorCode::kData}, data.path), "") << i;
      continue;
    }
    const auto bytes = corpus->bytes();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), text.read);
  }
}

}  // namespace
}  // namespace motley
