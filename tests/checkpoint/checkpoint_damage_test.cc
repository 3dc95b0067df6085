// Any damage to any file of a checkpoint is detected, and the error names the file.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include <rapidcheck.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using testing::read_bytes;
using testing::TestRun;
using testing::write_bytes;

class CheckpointDamage : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = run_.save(10, 2);
    ASSERT_OK(folder);
    folder_ = *folder;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      files_.push_back(entry.path());
    }
    std::sort(files_.begin(), files_.end());
    ASSERT_EQ(files_.size(), 7U);
    ASSERT_OK(verify_checkpoint(folder_));
  }

  // The result of verify_checkpoint while the file contains these bytes.
  [[nodiscard]] Result<void> verify_with(const std::filesystem::path& file,
                                         const std::string& bytes) const {
    const std::string good = read_bytes(file);
    write_bytes(file, bytes);
    auto verified = verify_checkpoint(folder_);
    write_bytes(file, good);
    return verified;
  }

  TestRun run_;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> files_;
};

// Every byte once; which bit is flipped depends on the position.
TEST_F(CheckpointDamage, AFlippedBitInAnyByteIsFoundAndTheFileNamed) {
  for (const auto& file : files_) {
    const std::string good = read_bytes(file);
    for (std::size_t position = 0; position < good.size(); ++position) {
      std::string bad = good;
      bad[position] = static_cast<char>(bad[position] ^ (1 << (position * 5 % 8)));
      const auto verified = verify_with(file, bad);
      ASSERT_FALSE(verified.ok()) << file << " byte " << position;
      ASSERT_THAT(describe(verified.error()), ::testing::HasSubstr(file.filename().string()));
    }
  }
  EXPECT_OK(verify_checkpoint(folder_));
}

TEST_F(CheckpointDamage, RandomDamageIsFound) {
  EXPECT_TRUE(rc::check([this] {
    const auto file = *rc::gen::elementOf(files_);
    const std::string good = read_bytes(file);
    const auto position = *rc::gen::inRange<std::size_t>(0, good.size());
    std::string bad = good;
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        bad[position] = static_cast<char>(bad[position] ^ (1 << *rc::gen::inRange(0, 8)));
        break;
      case 1:
        bad.resize(position);
        break;
      case 2:
        bad.insert(position, 1, *rc::gen::arbitrary<char>());
        break;
      default:
        bad.erase(position, *rc::gen::inRange<std::size_t>(1, 9));
        break;
    }
    RC_ASSERT(!verify_with(file, bad).ok());
  }));
}

TEST_F(CheckpointDamage, AMissingFileIsNamed) {
  for (const auto& file : files_) {
    const std::string good = read_bytes(file);
    std::filesystem::remove(file);
    EXPECT_CORRUPT(verify_checkpoint(folder_), file.filename().string());
    write_bytes(file, good);
  }
}

TEST_F(CheckpointDamage, AnExtraFileIsNamed) {
  write_bytes(folder_ / "model-00003-of-00003.safetensors", "");
  EXPECT_CORRUPT(verify_checkpoint(folder_), "model-00003-of-00003.safetensors");
}

TEST_F(CheckpointDamage, SwappedFilesAreNamed) {
  const auto first = folder_ / "model-00001-of-00002.safetensors";
  const auto second = folder_ / "model-00002-of-00002.safetensors";
  std::filesystem::rename(first, folder_ / "t");
  std::filesystem::rename(second, first);
  std::filesystem::rename(folder_ / "t", second);
  EXPECT_CORRUPT(verify_checkpoint(folder_), "model-00001-of-00002.safetensors");
}

TEST_F(CheckpointDamage, AFileOfAnotherStepIsNamed) {
  const auto other = run_.save(20, 2, 5);
  ASSERT_OK(other);
  const char* name = "optimizer-00002-of-00002.safetensors";
  std::filesystem::copy_file(*other / name, folder_ / name,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_CORRUPT(verify_checkpoint(folder_), name);
}

TEST_F(CheckpointDamage, ALinkInPlaceOfAFileIsNotFollowed) {
  const auto file = folder_ / "config.json";
  std::filesystem::rename(file, run_.dir() / "config.json");
  std::filesystem::create_symlink(run_.dir() / "config.json", file);
  EXPECT_CORRUPT(verify_checkpoint(folder_), "symbolic link");
}

TEST_F(CheckpointDamage, AFolderUnderTheNameOfAnotherStepIsRefused) {
  const auto renamed = folder_.parent_path() / "step-000011";
  std::filesystem::rename(folder_, renamed);
  EXPECT_CORRUPT(verify_checkpoint(renamed), "manifest is of step 10");
  EXPECT_CORRUPT(verify_checkpoint(renamed / ""), "manifest is of step 10");
}

TEST_F(CheckpointDamage, ADamagedTensorIsNotRead) {
  const auto file = folder_ / "model-00001-of-00002.safetensors";
  std::string bytes = read_bytes(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);  // the last value of h.0.ln_1.weight
  write_bytes(file, bytes);
  const auto reader = CheckpointReader::open(folder_);
  ASSERT_OK(reader);
  std::vector<float> values(2);
  EXPECT_CORRUPT(reader->read("h.0.ln_1.weight", {2}, values), "damaged tensor 'h.0.ln_1.weight'");
  EXPECT_OK(reader->read("h.0.ln_1.bias", {2}, values));
}

TEST_F(CheckpointDamage, ATruncatedFileIsNamedOnOpen) {
  const auto file = folder_ / "optimizer-00001-of-00002.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_CORRUPT(CheckpointReader::open(folder_), "optimizer-00001-of-00002.safetensors");
}

TEST(Manifest, OfAnotherVersionSaysSo) {
  for (const char* version : {"0", "3"}) {
    const auto parsed =
        parse_manifest(fmt::format(R"({{"format": "motley.checkpoint", "version": {}}})", version),
                       "manifest.json");
    EXPECT_CORRUPT(parsed, fmt::format("version is {}", version));
    EXPECT_CORRUPT(parsed, "reads versions 1 to 2");
  }
  EXPECT_CORRUPT(parse_manifest(R"({"format": "other", "version": 1})", "manifest.json"),
                 "not motley.checkpoint");
}

TEST(Manifest, GarbageIsRefused) {
  EXPECT_TRUE(rc::check(
      [](const std::string& text) { RC_ASSERT(!parse_manifest(text, "manifest.json").ok()); }));
}

// Its own hash is correct, so the content is refused.
TEST(Manifest, WithAFileThatLeavesItsFolderOrStandsTwiceIsRefused) {
  Manifest manifest;
  manifest.parameter_hash = parameter_hash({});
  const auto with_files = [&](const std::vector<std::string>& names) {
    manifest.files.clear();
    for (const std::string& name : names) {
      manifest.files.push_back({.name = name, .hash = manifest.parameter_hash});
    }
    return parse_manifest(format_manifest(manifest), "manifest.json");
  };
  EXPECT_OK(with_files({"a", "b"}));
  EXPECT_CORRUPT(with_files({"a", "a"}), "duplicate file 'a'");
  EXPECT_CORRUPT(with_files({"manifest.json"}), "duplicate file");
  for (const char* name : {"", "..", "../a", "/etc/passwd", "a/b", ".a", "a\nb"}) {
    EXPECT_CORRUPT(with_files({name}), "leaves its folder");
  }
}

TEST(Manifest, KeepsTheMachineOfAFile) {
  Manifest manifest;
  manifest.parameter_hash = parameter_hash({});
  const auto with_machine = [&](const std::string& machine) {
    manifest.files = {{.name = "a", .hash = manifest.parameter_hash, .machine = machine}};
    return parse_manifest(format_manifest(manifest), "manifest.json");
  };
  for (const std::string& machine :
       {std::string("box"), std::string(256, 'm'), std::string("bö x")}) {
    const auto parsed = with_machine(machine);
    ASSERT_OK(parsed);
    EXPECT_EQ(parsed->files.at(0).machine, machine);
  }
  ASSERT_OK(with_machine(""));
  EXPECT_EQ(format_manifest(manifest).find("machine"), std::string::npos);
  for (const std::string& machine :
       {std::string(257, 'm'), std::string("a\nb"), std::string("\x7f")}) {
    EXPECT_CORRUPT(with_machine(machine), "too long or has control characters");
  }
}

// Every text in it is printed somewhere.
TEST(Manifest, SaysNothingToATerminal) {
  Manifest plain;
  plain.parameter_hash = parameter_hash({});
  plain.files = {{.name = "a", .hash = plain.parameter_hash}};
  plain.state.plan.emplace();
  ASSERT_OK(parse_manifest(format_manifest(plain), "manifest.json"));
  const std::vector<std::function<std::string&(Manifest&)>> step_metadata = {
      [](Manifest& m) -> std::string& { return m.state.model_hash; },
      [](Manifest& m) -> std::string& { return m.state.model_family; },
      [](Manifest& m) -> std::string& { return m.state.plan_hash; },
      [](Manifest& m) -> std::string& { return m.state.optimizer; },
      [](Manifest& m) -> std::string& { return m.state.plan->gradient_codec; },
      [](Manifest& m) -> std::string& { return m.state.plan->codecs.emplace_back(); }};
  for (const auto& text_of : step_metadata) {
    for (const char* words : {"\x1b[2J",
                              "\xc2\x9b"
                              "2J",
                              "\xe2\x80\xae"}) {
      Manifest hostile = plain;
      text_of(hostile) = words;
      EXPECT_CORRUPT(parse_manifest(format_manifest(hostile), "manifest.json"),
                     "too long or has control characters");
    }
  }
  plain.files[0].tensor_hashes["w\x1b"] = plain.parameter_hash;
  EXPECT_CORRUPT(parse_manifest(format_manifest(plain), "manifest.json"),
                 "the name of a tensor has control characters");
}

}  // namespace
}  // namespace motley
