// Resident memory of mapped data files.
#include <fstream>

#include "tests/data/fixture.h"

namespace motley {
namespace {

constexpr std::int64_t kMib = 1 << 20;

// The resident bytes of this process that files back.
std::int64_t mapped_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == "RssFile:" && status >> kib) return kib * 1024;
  }
  return -1;
}

// Opening reads every token, whichever part of the file is used later.
TEST(MappedPages, GoBackToTheSystemAndAreReadAgain) {
  if (mapped_bytes() < 0) GTEST_SKIP() << "this system does not report what is mapped";
  const DataFolder folder;
  std::string bytes(64 * kMib, '\1');
  bytes.back() = '\2';
  const auto data = data_config("tokens", folder.write("t.bin", bytes));
  const std::int64_t before = mapped_bytes();
  const auto source = opened(data, model_config(4, 1000));
  ASSERT_NE(source, nullptr);
  const Sample sample = train_sample(*source, 0, 4);
  ASSERT_GT(mapped_bytes(), before + 60 * kMib);
  source->release_pages();
  EXPECT_LT(mapped_bytes(), before + 4 * kMib);
  EXPECT_EQ(train_sample(*source, 0, 4).inputs, sample.inputs);
}

}  // namespace
}  // namespace motley
