#include <gmock/gmock.h>

#include "tests/data/fixture.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::vector<std::int32_t> words(256, 0);
  words[0] = magic;
  words[1] = version;
  words[2] = count;
  return bytes_of(words);
}

const std::string kThreeShort = bytes_of<std::uint16_t>({1, 500, 50000});
const std::string kThreeLong = bytes_of<std::uint32_t>({1, 500, 100000});

class TokenFile : public testing::Test {
 protected:
  [[nodiscard]] Sample sample_of(const std::string& bytes) const {
    const auto source = opened(data(bytes), model_config(2, 200000));
    return source == nullptr ? Sample{} : train_sample(*source, 0, 2);
  }

  [[nodiscard]] Error error_of(const std::string& bytes, int vocab = 200000) const {
    const Error error = open_error(data(bytes), model_config(2, vocab));
    EXPECT_EQ(error.code, ErrorCode::kData);
    return error;
  }

 private:
  [[nodiscard]] DataConfig data(const std::string& bytes) const {
    return data_config("tokens", folder_.write("t.bin", bytes));
  }

  DataFolder folder_;
};

TEST_F(TokenFile, OfNanoGptIsRead) {
  EXPECT_THAT(sample_of(kThreeShort).inputs, ElementsAre(1, 500));
  EXPECT_THAT(sample_of(kThreeShort).targets, ElementsAre(500, 50000));
}

TEST_F(TokenFile, OfLlmcWithShortTokensIsRead) {
  EXPECT_THAT(sample_of(header(20240520, 1, 3) + kThreeShort).targets, ElementsAre(500, 50000));
}

TEST_F(TokenFile, OfLlmcWithLongTokensIsRead) {
  EXPECT_THAT(sample_of(header(20240801, 7, 3) + kThreeLong).targets, ElementsAre(500, 100000));
}

TEST_F(TokenFile, OfOddSizeIsRefused) {
  EXPECT_EQ(error_of(kThreeShort + "x").cause, "7 bytes are no whole number of 16-bit tokens");
}

TEST_F(TokenFile, OfWrongVersionIsRefused) {
  EXPECT_THAT(error_of(header(20240520, 7, 3) + kThreeShort).cause, HasSubstr("its version is 7"));
}

TEST_F(TokenFile, CutShortIsRefused) {
  const std::string whole = header(20240520, 1, 3) + kThreeShort;
  EXPECT_THAT(error_of(whole.substr(0, whole.size() - 2)).cause, HasSubstr("4 bytes follow"));
  EXPECT_THAT(error_of(whole.substr(0, 100)).cause, HasSubstr("less than the header's 1024"));
}

TEST_F(TokenFile, WithMoreThanItsCountIsRefused) {
  EXPECT_THAT(error_of(header(20240801, 7, 2) + kThreeLong).cause, HasSubstr("12 bytes follow"));
}

TEST_F(TokenFile, OfNegativeCountIsRefused) {
  EXPECT_THAT(error_of(header(20240520, 1, -1)).cause, HasSubstr("-1 tokens"));
}

TEST_F(TokenFile, WithATokenOutsideTheVocabularyIsRefused) {
  const Error error = error_of(kThreeShort, 50000);
  EXPECT_THAT(error.what,
              HasSubstr("token 50000 at position 2 is outside the vocabulary of 50000"));
  EXPECT_THAT(error.remedy, HasSubstr("model.vocab to at least 50001"));
}

TEST_F(TokenFile, WithATokenBeyond31BitsIsRefused) {
  const auto tokens = bytes_of<std::uint32_t>({1, 2, 0xFFFFFFFF});
  EXPECT_THAT(error_of(header(20240801, 7, 3) + tokens).what, HasSubstr("token 4294967295"));
}

TEST_F(TokenFile, ThatIsEmptyIsTooShort) {
  EXPECT_THAT(error_of("").what, HasSubstr("too short, 0 tokens"));
}

}  // namespace
}  // namespace motley
