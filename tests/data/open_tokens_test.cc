#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/data/array_fixture.h"
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

  [[nodiscard]] Error error_of(const std::string& bytes,
                               int vocab = 200000,
                               const std::string& dtype = "auto") const {
    const Error error = open_error(data(bytes, dtype), model_config(2, vocab));
    EXPECT_EQ(error.code, ErrorCode::kData);
    return error;
  }

  [[nodiscard]] DataIdentity identity_of(const std::string& bytes,
                                         int vocab,
                                         const std::string& dtype = "auto") const {
    const auto source = opened(data(bytes, dtype), model_config(2, vocab));
    return source == nullptr ? DataIdentity{} : source->identity();
  }

  [[nodiscard]] DataConfig data(const std::string& bytes, const std::string& dtype = "auto") const {
    DataConfig config = data_config("tokens", folder_.write("t.bin", bytes));
    config.dtype = dtype;
    return config;
  }

 private:
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
  EXPECT_EQ(error_of(kThreeShort + "x").cause, "7 bytes are not a multiple of 16-bit tokens");
  EXPECT_EQ(error_of(kThreeShort, 200000, "int32").cause,
            "6 bytes are not a multiple of 32-bit tokens");
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

// Tokens as from a tokenizer: a few frequent ones and many rare ones.
template <class T>
std::vector<T> usual_tokens(std::uint32_t vocab, std::size_t count = 4096) {
  std::vector<T> tokens;
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double share = static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
    tokens.push_back(static_cast<T>(share * share * share * vocab));
  }
  return tokens;
}

class TokenWidth : public TokenFile {
 protected:
  template <class T>
  void expect_read(std::uint32_t vocab) const {
    const auto tokens = usual_tokens<T>(vocab);
    DataConfig config = data(bytes_of(tokens));
    const auto source = opened(config, model_config(4095, static_cast<int>(vocab)));
    ASSERT_NE(source, nullptr) << sizeof(T) << " bytes, vocabulary of " << vocab;
    const Sample sample = train_sample(*source, 0, 4095);
    EXPECT_TRUE(std::equal(sample.inputs.begin(), sample.inputs.end(), tokens.begin()))
        << sizeof(T) << " bytes, vocabulary of " << vocab;
  }
};

TEST_F(TokenWidth, IsFoundOut) {
  for (const std::uint32_t vocab : {2U, 4U, 65U, 256U, 32000U, 50257U, 65536U}) {
    expect_read<std::uint16_t>(vocab);
  }
  for (const std::uint32_t vocab :
       {2U, 4U, 65U, 256U, 32000U, 65536U, 128256U, 262144U, 1U << 20}) {
    expect_read<std::int32_t>(vocab);
    expect_read<std::int64_t>(vocab);
  }
  // Tokens of a tokenizer with a small vocabulary, for a model with a large one.
  const auto tokens = usual_tokens<std::uint16_t>(50257);
  const auto source = opened(data(bytes_of(tokens)), model_config(4095, 128256));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(train_sample(*source, 0, 4095).inputs[100], tokens[100]);
  for (const std::uint32_t vocab : {5U, 65U, 256U}) expect_read<std::uint8_t>(vocab);
}

// Single bytes of wider tokens are always within a vocabulary of 256.
TEST_F(TokenWidth, IsNoByteWhereTheVocabularyIsTooSmall) {
  for (const std::uint32_t vocab : {300U, 1000U, 50257U}) {
    const Error error = error_of(bytes_of(usual_tokens<std::uint16_t>(vocab)), 256);
    EXPECT_EQ(error.code, ErrorCode::kData) << vocab;
    EXPECT_THAT(error.what, HasSubstr("is outside the vocabulary of 256")) << vocab;
  }
}

// Padding does not change the detected width.
TEST_F(TokenWidth, IsFoundOutAmongManyZeros) {
  auto tokens = usual_tokens<std::uint16_t>(32000);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i % 512 > 40) tokens[i] = 0;
  }
  const auto source = opened(data(bytes_of(tokens)), model_config(4095, 32000));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(train_sample(*source, 0, 4095).inputs[1030], tokens[1030]);
  const std::vector<std::uint16_t> zeros(4096);
  const auto of_zeros = opened(data(bytes_of(zeros)), model_config(4095, 32000));
  ASSERT_NE(of_zeros, nullptr);
  EXPECT_THAT(of_zeros->remarks(), ElementsAre(HasSubstr("tokens are all 0")));
}

TEST_F(TokenWidth, ThatCannotBeToldIsRefused) {
  const std::string few = bytes_of<std::uint32_t>({1, 500, 100, 7});
  const Error error = error_of(few, 128256);
  EXPECT_THAT(error.cause, HasSubstr("the dtype of its tokens cannot be detected"));
  EXPECT_THAT(error.remedy, HasSubstr("set data.dtype"));
  EXPECT_EQ(opened(data(few, "uint32"), model_config(3, 128256))->train_samples(), 1U);
  EXPECT_EQ(opened(data(few, "uint16"), model_config(7, 128256))->train_samples(), 1U);
}

TEST_F(TokenWidth, IsWhatAPersonSays) {
  const auto tokens = usual_tokens<std::uint16_t>(16);
  const auto source = opened(data(bytes_of(tokens), "uint32"), model_config(2047, 1 << 20));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(train_sample(*source, 0, 2047).inputs[5], tokens[10] | tokens[11] << 16);
}

// The error names the invalid token itself, not its halves.
TEST_F(TokenWidth, OfTokensOutsideTheVocabularyIsFoundOutToo) {
  auto tokens = usual_tokens<std::int32_t>(32000);
  tokens[777] = -100;
  const Error negative = error_of(bytes_of(tokens), 32000, "int32");
  EXPECT_THAT(negative.what, HasSubstr("token -100 at position 777"));
  EXPECT_THAT(negative.remedy, HasSubstr("negative tokens"));
  // Without data.dtype the file is read as uint32.
  const Error found = error_of(bytes_of(tokens), 32000);
  EXPECT_THAT(found.what, HasSubstr("token 4294967196 at position 777"));
  EXPECT_EQ(found.cause, "its tokens are read as uint32; as int32 it is -100");
  EXPECT_EQ(found.remedy, negative.remedy);
  EXPECT_THAT(found.remedy, HasSubstr("no ignored positions"));
  tokens[777] = 128000;
  EXPECT_THAT(error_of(bytes_of(tokens), 32000).what, HasSubstr("token 128000 at position 777"));
  const auto large = usual_tokens<std::int32_t>(128256);
  EXPECT_THAT(error_of(bytes_of(large), 32000).cause, HasSubstr("read as uint32"));
}

TEST_F(TokenWidth, OfTheOtherByteOrderIsSaid) {
  auto shorts = usual_tokens<std::uint16_t>(32000);
  for (auto& token : shorts) token = __builtin_bswap16(token);
  EXPECT_THAT(error_of(bytes_of(shorts), 32000).cause, HasSubstr("as big-endian numbers"));
  auto longs = usual_tokens<std::uint32_t>(128256);
  for (auto& token : longs) token = __builtin_bswap32(token);
  EXPECT_THAT(error_of(bytes_of(longs), 128256).cause, HasSubstr("big-endian"));
}

// A truncated file is not taken for a file of narrower tokens.
TEST_F(TokenWidth, IsFoundOutOfAFileThatWasCut) {
  const std::string ints = bytes_of(usual_tokens<std::int32_t>(32000));
  EXPECT_THAT(error_of(ints.substr(0, ints.size() - 2), 32000).cause,
              HasSubstr("not a multiple of 32-bit tokens"));
  const std::string longs = bytes_of(usual_tokens<std::int64_t>(128256));
  EXPECT_THAT(error_of(longs.substr(0, longs.size() - 2), 128256).cause,
              HasSubstr("not a multiple of 64-bit tokens"));
  EXPECT_THAT(error_of(longs.substr(0, longs.size() - 4), 128256).cause,
              HasSubstr("not a multiple of 64-bit tokens"));
  const std::string shorts = bytes_of(usual_tokens<std::uint16_t>(32000));
  EXPECT_NE(opened(data(shorts.substr(0, shorts.size() - 2)), model_config(8, 32000)), nullptr);
}

TEST_F(TokenWidth, MakesOtherDataOfTheSameBytes) {
  const std::string bytes = bytes_of(usual_tokens<std::uint32_t>(32000));
  EXPECT_EQ(identity_of(bytes, 32000), identity_of(bytes, 32000, "uint32"));
  EXPECT_NE(identity_of(bytes, 32000), identity_of(bytes, 32000, "uint16"));
  const std::string shorts = bytes_of(usual_tokens<std::uint16_t>(32000));
  EXPECT_EQ(identity_of(shorts, 32000), identity_of(shorts, 32000, "uint16"));
}

TEST_F(TokenFile, OfNumPySaysItsType) {
  for (const auto& bytes : {npy("<u2", {3}, std::vector<std::uint16_t>{1, 500, 50000}),
                            npy("<u4", {3}, std::vector<std::uint32_t>{1, 500, 50000}),
                            npy("<i4", {1, 3}, std::vector<std::int32_t>{1, 500, 50000}),
                            npy_longs({3, 1}, {1, 500, 50000})}) {
    const Sample sample = sample_of(bytes);
    EXPECT_EQ(sample.inputs[0], 1);
    EXPECT_EQ(sample.targets, (std::vector<std::int32_t>{500, 50000}));
  }
}

TEST_F(TokenFile, OfNumPyThatIsNoRowOfIntegersIsRefused) {
  EXPECT_THAT(error_of(npy_floats({3}, {1, 2, 3})).cause, HasSubstr("'<f4'"));
  EXPECT_THAT(error_of(npy(">u2", {3}, std::vector<std::uint16_t>{1, 2, 3})).cause,
              HasSubstr("'>u2'"));
  EXPECT_THAT(error_of(npy_longs({2, 2}, {1, 2, 3, 4})).cause, HasSubstr("its shape is [2, 2]"));
  EXPECT_THAT(error_of(npy_longs({4}, {1, 2, 3})).cause, HasSubstr("24 bytes follow"));
  EXPECT_THAT(error_of(npy_longs({3}, {1, 2, 3}), 200000, "uint16").cause,
              HasSubstr("its header declares int64, data.dtype is uint16"));
  EXPECT_THAT(error_of(header(20240520, 1, 3) + kThreeShort, 200000, "uint32").cause,
              HasSubstr("its header declares uint16"));
  EXPECT_THAT(error_of(npy_longs({3}, {1, -100, 3})).what, HasSubstr("token -100 at position 1"));
}

TEST_F(TokenFile, ThatIsNoneIsRefused) {
  EXPECT_THAT(error_of(std::string(300, 'a')).cause, HasSubstr("it is text"));
  EXPECT_THAT(error_of(std::string("PK\3\4", 4) + std::string(60, '\0')).cause,
              HasSubstr("ZIP archive"));
  EXPECT_THAT(error_of(std::string("\x1f\x8b\x08\0", 4)).cause, HasSubstr("gzip"));
  EXPECT_THAT(error_of(std::string("\x10\0\0\0\0\0\0\0{\"a\"", 12)).cause,
              HasSubstr("safetensors"));
  EXPECT_THAT(error_of("\x80\x04\x95 a pickle.").cause, HasSubstr("pickle"));
}

}  // namespace
}  // namespace motley
