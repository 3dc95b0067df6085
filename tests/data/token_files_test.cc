// Several token files: shards of a folder, by a pattern, and what of them is not trained on.
#include "data/tokens/token_files.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/data/array_fixture.h"
#include "tests/fuzz/token_laws.h"
#include "tests/support/npy_text.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Tokens from `first` on, as uint16.
std::vector<std::uint16_t> tokens_from(std::uint16_t first, std::size_t count) {
  std::vector<std::uint16_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::uint16_t>(first + 7 * i);
  return tokens;
}

std::string llmc(const std::vector<std::uint16_t>& tokens) {
  return token_file(20240520, 1, static_cast<std::int32_t>(tokens.size()), bytes_of(tokens));
}

class TokenFolder : public testing::Test {
 protected:
  [[nodiscard]] DataConfig data(const std::string& below = "") const {
    DataConfig config = data_config("tokens", below.empty() ? root() : root() + "/" + below);
    config.dtype = "auto";
    return config;
  }

  [[nodiscard]] std::string root() const { return folder_.root().string(); }

  void write(const std::string& name, const std::string& bytes) const {
    folder_.write(name, bytes);
  }

  // All tokens but the last.
  [[nodiscard]] std::vector<std::int32_t> tokens(const DataConfig& config, int count) const {
    const auto source = opened(config, model_config(count - 1, 65536));
    return source == nullptr ? std::vector<std::int32_t>()
                             : train_sample(*source, 0, static_cast<std::size_t>(count - 1)).inputs;
  }

  [[nodiscard]] std::vector<std::string> remarks(const DataConfig& config) const {
    const auto source = opened(config, model_config(4, 65536));
    return source == nullptr ? std::vector<std::string>{"(not opened)"} : source->remarks();
  }

  [[nodiscard]] Error error(const DataConfig& config, int vocab = 65536) const {
    return open_error(config, model_config(4, vocab));
  }

 private:
  DataFolder folder_;
};

TEST_F(TokenFolder, IsReadAsItsShardsOneAfterAnother) {
  write("b_train_000002.bin", llmc(tokens_from(500, 9)));
  write("b_train_000001.bin", llmc(tokens_from(3, 6)));
  write("b_train_000003.bin", llmc(tokens_from(900, 2)));
  DataFolder other;
  auto all = tokens_from(3, 6);
  for (const auto& part : {tokens_from(500, 9), tokens_from(900, 2)}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  const auto joined = data_config("tokens", other.write("all.bin", llmc(all)));
  EXPECT_EQ(tokens(data(), 17), tokens(joined, 17));
  EXPECT_EQ(tokens(data("b_train_*.bin"), 17), tokens(joined, 17));
  // Windows across every border.
  const auto shards = opened(data(), model_config(3, 65536));
  const auto whole = opened(joined, model_config(3, 65536));
  ASSERT_TRUE(shards != nullptr && whole != nullptr);
  for (std::uint64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(train_sample(*shards, i, 3), train_sample(*whole, i, 3)) << i;
  }
  EXPECT_NE(shards->identity(), whole->identity());
  EXPECT_EQ(shards->identity().bytes, whole->identity().bytes);
}

TEST_F(TokenFolder, OfNumPyArraysIsRead) {
  write("shard_000.npy", npy("<i4", {3}, std::vector<std::int32_t>{1, 2, 3}));
  write("shard_001.npy", npy("<i4", {3}, std::vector<std::int32_t>{4, 5, 6}));
  EXPECT_THAT(tokens(data(), 6), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(TokenFolder, DoesNotTrainOnHeldOutShards) {
  write("edu_train_000001.bin", llmc(tokens_from(0, 20)));
  write("edu_val_000000.bin", llmc(tokens_from(30000, 20)));
  EXPECT_EQ(tokens(data(), 20).size(), 19U);
  EXPECT_THAT(remarks(data()),
              ElementsAre(HasSubstr("data.holdout_path = \"" + root() + "/edu_val_000000.bin\"")));
  DataConfig with_path = data();
  with_path.holdout_path = root() + "/edu_val_000000.bin";
  EXPECT_THAT(remarks(with_path), IsEmpty());
  // Named itself it is read.
  EXPECT_EQ(tokens(data("edu_val_000000.bin"), 20).at(1), 30007);
  EXPECT_EQ(tokens(data("edu_val_*"), 20).at(1), 30007);
}

TEST_F(TokenFolder, OfNanoGptLeavesOutItsOtherFiles) {
  write("train.bin", bytes_of(tokens_from(0, 3000)));
  write("val.bin", bytes_of(tokens_from(1, 300)));
  write("prepare.py", "import os");
  write("._train.bin", "junk");
  const auto lines = remarks(data());
  EXPECT_THAT(lines, ElementsAre(HasSubstr("val.bin"),
                                 HasSubstr("1 as leftovers of an operating system (._train.bin)")));
  EXPECT_EQ(tokens(data(), 3000).size(), 2999U);
}

TEST_F(TokenFolder, TellsWhichFilesAreCompressed) {
  write("part_0.bin", llmc(tokens_from(0, 20)));
  write("part_1.bin.gz", "packed");
  EXPECT_THAT(remarks(data()), ElementsAre(HasSubstr("1 as compressed (part_1.bin.gz)")));
  std::filesystem::remove(root() + "/part_0.bin");
  EXPECT_THAT(error(data()).cause, HasSubstr("its files are compressed (part_1.bin.gz)"));
  EXPECT_THAT(error(data()).remedy, HasSubstr("unpack them first"));
}

TEST_F(TokenFolder, TakesFilesNamedTrainAlone) {
  write("train.bin", llmc(tokens_from(0, 20)));
  write("tokenizer.bin", std::string(2000, 'x'));
  EXPECT_THAT(remarks(data()), ElementsAre(HasSubstr("tokenizer.bin")));
}

TEST_F(TokenFolder, MayHaveSubFoldersForItsParts) {
  write("train/a.bin", llmc(tokens_from(0, 20)));
  write("val/a.bin", llmc(tokens_from(5, 20)));
  EXPECT_THAT(remarks(data()), ElementsAre(HasSubstr("val/a.bin")));
}

TEST_F(TokenFolder, OfSeveralDtypesOrFormatsIsRefused) {
  write("a.bin", llmc(tokens_from(0, 20)));
  write("b.bin", token_file(20240801, 7, 2, std::string("\1\0\0\0\2\0\1\0", 8)));
  EXPECT_THAT(error(data()).what, HasSubstr("do not have the same dtype"));
  EXPECT_THAT(error(data()).cause, HasSubstr("uint32"));
  write("b.npy", npy("<u2", {3}, std::vector<std::uint16_t>{1, 2, 3}));
  EXPECT_THAT(error(data()).what, HasSubstr("two formats"));
}

TEST_F(TokenFolder, WithAnEmptyOrDamagedShardNamesIt) {
  write("a.bin", llmc(tokens_from(0, 20)));
  write("b.bin", llmc({}));
  EXPECT_THAT(error(data()).what, HasSubstr("no tokens in " + root() + "/b.bin"));
  write("b.bin", llmc(tokens_from(0, 9)).substr(0, 1040));
  EXPECT_THAT(error(data()).what, HasSubstr("b.bin"));
  write("b.bin", llmc(tokens_from(50000, 9)));
  EXPECT_THAT(error(data(), 50000).what, HasSubstr("at position 0"));
  EXPECT_THAT(error(data(), 50000).what, HasSubstr("b.bin"));
}

TEST_F(TokenFolder, WithoutTokenFilesIsRefused) {
  write("a.txt", "text");
  EXPECT_THAT(error(data()).what, HasSubstr("no token files"));
  EXPECT_THAT(error(data("*.bin")).cause, HasSubstr("no file in"));
}

TEST(PatternOfFiles, MatchesOnlyHeldOutNames) {
  const auto pattern = [](const std::vector<std::filesystem::path>& files) {
    return pattern_of(files).string();
  };
  EXPECT_EQ(pattern({"d/val.bin"}), "d/val.bin");
  EXPECT_EQ(pattern({"d/x_val_01.bin", "d/x_val_02.bin"}), "d/x_val_0*.bin");
  EXPECT_EQ(pattern({"d/test.bin", "d/val.bin"}), "d/test.bin");
}

TEST_F(TokenFolder, SaysWhatItsMetaSays) {
  write("train.bin", bytes_of(tokens_from(0, 3000)));
  // pickle.dumps({'vocab_size': 65, 'itos': {0: 'a'}}, 4)
  write("meta.pkl",
        std::string("\x80\x04\x95$\0\0\0\0\0\0\0}\x94(\x8c\nvocab_size\x94KA\x8c\x04itos"
                    "\x94}\x94K\0\x8c\x01"
                    "a\x94su.",
                    47));
  EXPECT_THAT(remarks(data()), ElementsAre(HasSubstr("has 65 tokens, model.vocab is 65536")));
  write("meta.pkl", "no number");
  EXPECT_THAT(remarks(data()), ElementsAre(HasSubstr("compare its vocab_size")));
  // pickle.dumps({'vocab_size': 65536}, 0)
  write("meta.pkl", "(dp0\nVvocab_size\np1\nI65536\ns.");
  EXPECT_THAT(remarks(data()), IsEmpty());
}

}  // namespace
}  // namespace motley
