#include "data/tokens/megatron_index.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/data/fixture.h"
#include "tests/fuzz/data_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MegatronFiles : public testing::Test {
 protected:
  [[nodiscard]] DataConfig data(const std::string& index, const std::string& tokens) const {
    folder_.write("text_document.idx", index);
    return data_config("tokens", folder_.write("text_document.bin", tokens));
  }

  [[nodiscard]] std::string prefix() const { return folder_.root().string() + "/text_document"; }

 private:
  DataFolder folder_;
};

TEST_F(MegatronFiles, AreReadWithTheDtypeOfTheirIndex) {
  const auto read = [&](std::uint8_t code, std::size_t bytes, const std::string& tokens) {
    const auto config = data(megatron_index(code, bytes, {2, 1, 2}, {0, 1, 3}), tokens);
    const auto source = opened(config, model_config(4, 1 << 17));
    return source == nullptr ? std::vector<std::int32_t>() : train_sample(*source, 0, 4).inputs;
  };
  const auto right = ElementsAre(1, 5, 120, 7);
  EXPECT_THAT(read(1, 1, bytes_of<std::uint8_t>({1, 5, 120, 7, 9})), right);
  EXPECT_THAT(read(2, 1, bytes_of<std::int8_t>({1, 5, 120, 7, 9})), right);
  EXPECT_THAT(read(3, 2, bytes_of<std::int16_t>({1, 5, 120, 7, 9})), right);
  EXPECT_THAT(read(4, 4, bytes_of<std::int32_t>({1, 5, 120, 7, 9})), right);
  EXPECT_THAT(read(5, 8, bytes_of<std::int64_t>({1, 5, 120, 7, 9})), right);
  EXPECT_THAT(read(8, 2, bytes_of<std::uint16_t>({1, 5, 120, 7, 9})), right);
}

TEST_F(MegatronFiles, AreFoundByTheirPrefix) {
  const auto tokens = bytes_of<std::uint16_t>({1, 5, 120});
  auto config = data(megatron_index(8, 2, {3}, {0, 1}), tokens);
  config.path = prefix();
  EXPECT_NE(opened(config, model_config(2, 200)), nullptr);
  config.path = prefix() + ".idx";
  EXPECT_THAT(open_error(config, model_config(2, 200)).remedy, HasSubstr(".bin file beside it"));
}

// As unsigned numbers they would be within a vocabulary of 65536.
TEST_F(MegatronFiles, WithNegativeTokensAreRefused) {
  const auto config = data(megatron_index(3, 2, {3}, {0, 1}), bytes_of<std::int16_t>({1, -100, 3}));
  const Error error = open_error(config, model_config(2, 65536));
  EXPECT_THAT(error.what, HasSubstr("token -100 at position 1"));
  EXPECT_THAT(error.remedy, HasSubstr("negative"));
}

TEST_F(MegatronFiles, ThatContradictEachOtherAreRefused) {
  const auto tokens = bytes_of<std::uint16_t>({1, 5, 120});
  const auto cause = [&](const std::string& index, const std::string& dtype = "auto") {
    auto config = data(index, tokens);
    config.dtype = dtype;
    return open_error(config, model_config(2, 200)).cause;
  };
  EXPECT_THAT(cause(megatron_index(8, 2, {4}, {0, 1})), HasSubstr("the .bin file has 6 bytes"));
  EXPECT_THAT(cause(megatron_index(4, 4, {3}, {0, 1})), HasSubstr("3 tokens of 4 bytes"));
  EXPECT_THAT(cause(megatron_index(7, 4, {3}, {0, 1})), HasSubstr("dtype code is 7"));
  EXPECT_THAT(cause(megatron_index(8, 2, {4, -1}, {0, 2})), HasSubstr("sequence 1 is -1"));
  EXPECT_THAT(cause(megatron_index(8, 2, {3}, {0, 2})), HasSubstr("2 sequences of 1"));
  EXPECT_THAT(cause(megatron_index(8, 4, {1, 2}, {0, 2})), HasSubstr("begins at byte 4, not at 2"));
  EXPECT_THAT(cause(megatron_index(8, 2, {3}, {0, 1}) + "xx"), HasSubstr("bytes follow"));
  EXPECT_THAT(cause("TNTIDX\0\0 of an earlier version"), HasSubstr("does not begin"));
  EXPECT_THAT(cause(std::string("TNTIDX\0\0", 8)), HasSubstr("earlier format"));
  EXPECT_THAT(cause(megatron_index(8, 2, {3}, {0, 1}), "uint32"),
              HasSubstr("its index declares uint16, data.dtype is uint32"));
}

// With the modes of sequences, as of data with several kinds of input.
TEST_F(MegatronFiles, MayHaveModes) {
  const auto config = data(megatron_index(8, 2, {2, 1}, {0, 2}) + std::string(2, '\0'),
                           bytes_of<std::uint16_t>({1, 2, 3}));
  EXPECT_NE(opened(config, model_config(2, 200)), nullptr);
}

RC_GTEST_PROP(DamagedMegatronIndexes, AreReadOrRefused, ()) {
  RC_ASSERT(wrong_with_megatron_index(right_megatron_index()) == "");
  RC_ASSERT(wrong_with_megatron_index(damaged(right_megatron_index(), fragments_of_bytes())) == "");
}

RC_GTEST_PROP(DamagedMetas, GiveNoSizeOrOne, ()) {
  RC_ASSERT(wrong_with_meta(right_meta()) == "");
  RC_ASSERT(wrong_with_meta(damaged(right_meta(), fragments_of_bytes())) == "");
}

RC_GTEST_PROP(DamagedTexts, AreConvertedOrRefused, ()) {
  const std::string wide("\xFF\xFEm\0o\0t\0l\0e\0y\0\n\0", 16);
  RC_ASSERT(wrong_with_text_encoding(damaged(wide, fragments_of_bytes())) == "");
}

TEST(NanoGptMeta, HasItsVocabularyInEveryProtocol) {
  const auto size = [](const std::string& file) {
    return vocab_size_in_meta(std::as_bytes(std::span(file)));
  };
  // pickle.dumps({'vocab_size': N}, protocol), by Python 3.11.
  EXPECT_EQ(size("(dp0\nVvocab_size\np1\nI65\ns."), 65);
  EXPECT_EQ(size(std::string("}q\0X\n\0\0\0vocab_sizeq\1KAs.", 24)), 65);
  EXPECT_EQ(size(std::string("\x80\2}q\0X\n\0\0\0vocab_sizeq\1J\xb5\x87\1\0s.", 29)), 100277);
  EXPECT_EQ(size(right_meta()), 50304);
  EXPECT_EQ(size("vocab_size"), std::nullopt);
  EXPECT_EQ(size("vocab_size\x94K"), std::nullopt);
  EXPECT_EQ(size("vocab_size\x94KAvocab_size\x94KA"), std::nullopt);
}

}  // namespace
}  // namespace motley
