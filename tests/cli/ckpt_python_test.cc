// A reader in plain Python, written from docs/formats/checkpoint.md, reads the saved values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstdio>

#include "tests/cli/ckpt_fixture.h"

namespace motley {
namespace {

struct Read {
  int status = -1;
  std::string out;
};

Read read_in_python(const std::filesystem::path& folder) {
  const std::string command =
      fmt::format("/usr/bin/python3 {}/tests/checkpoint/read_checkpoint.py '{}' 2>&1",
                  MOTLEY_SOURCE_DIR, folder.string());
  std::FILE* pipe = ::popen(command.c_str(), "r");
  Read read;
  char block[4096];
  for (std::size_t count = 0; (count = std::fread(block, 1, sizeof block, pipe)) > 0;) {
    read.out.append(block, count);
  }
  read.status = ::pclose(pipe);
  return read;
}

TEST(CkptInPython, IsReadByThePublishedFormatAlone) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "needs python3";
  const testing::TempFolder folder;
  const Config config = testing::small_config();
  const auto saved = testing::save_run(folder.path() / "run", config, 10, 3);
  std::map<std::string, std::string> lines;
  for (const ParameterSpec& parameter : testing::parameters_of(*describe_model(config.model))) {
    std::uint64_t sum = 0;
    const auto values =
        testing::values_of(parameter.name, static_cast<std::size_t>(parameter.count()), 1);
    for (const float value : values) sum += std::bit_cast<std::uint32_t>(value);
    lines[parameter.name] =
        fmt::format("{} [{}] {} {} {}\n", parameter.name, fmt::join(parameter.shape, ", "),
                    std::bit_cast<std::uint32_t>(values.front()),
                    std::bit_cast<std::uint32_t>(values.back()), sum);
  }
  std::string wanted;
  for (const auto& [name, line] : lines) wanted += line;
  EXPECT_EQ(read_in_python(saved).out, wanted);
  const std::string cut = folder.path() / "cut";
  ASSERT_EQ(testing::ckpt({"reshard", saved.string(), "--files", "2", "-o", cut}).status, 0);
  EXPECT_EQ(read_in_python(cut).out, wanted);
  testing::write_bytes(folder.path() / "cut" / "stray", "x");
  EXPECT_NE(read_in_python(cut).status, 0);
}

TEST(CkptInPython, IsReadInEveryVersion) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "needs python3";
  const std::string golden = std::string(MOTLEY_SOURCE_DIR) + "/tests/checkpoint/golden/";
  const Read first = read_in_python(golden + "version-1/step-000002");
  EXPECT_EQ(first.status, 0) << first.out;
  EXPECT_NE(first.out.find("head.weight"), std::string::npos);
  EXPECT_EQ(read_in_python(golden + "version-2/step-000002").out, first.out);
}

}  // namespace
}  // namespace motley
