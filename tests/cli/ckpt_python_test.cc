// A reader in plain Python, written from docs/formats/checkpoint.md, reads the saved values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "tests/cli/ckpt_fixture.h"
#include "tests/support/command_output.h"

namespace motley {
namespace {

CommandOutput read_in_python(const std::filesystem::path& folder) {
  return output_of(fmt::format("/usr/bin/python3 {}/tests/checkpoint/read_checkpoint.py '{}' 2>&1",
                               MOTLEY_SOURCE_DIR, folder.string()));
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
  EXPECT_EQ(read_in_python(saved).text, wanted);
  const std::string cut = folder.path() / "cut";
  ASSERT_EQ(testing::ckpt({"reshard", saved.string(), "--files", "2", "-o", cut}).status, 0);
  EXPECT_EQ(read_in_python(cut).text, wanted);
  testing::write_bytes(folder.path() / "cut" / "stray", "x");
  EXPECT_NE(read_in_python(cut).status, 0);
}

TEST(CkptInPython, IsReadInEveryVersion) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "needs python3";
  const std::string golden = std::string(MOTLEY_SOURCE_DIR) + "/tests/checkpoint/golden/";
  const CommandOutput first = read_in_python(golden + "version-1/step-000002");
  EXPECT_EQ(first.status, 0) << first.text;
  EXPECT_NE(first.text.find("head.weight"), std::string::npos);
  EXPECT_EQ(read_in_python(golden + "version-2/step-000002").text, first.text);
}

}  // namespace
}  // namespace motley
