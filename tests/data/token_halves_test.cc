// Which headerless files are read as 16-bit tokens, judged by the distributions of the two bytes
// of a word.
#include "data/tokens/token_halves.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include "data/tokens/token_type.h"
#include "tests/data/fixture.h"

namespace motley {
namespace {

using testing::HasSubstr;
using Random = std::mt19937_64;
using Tokens = std::vector<std::uint16_t>;

double share(Random& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

Tokens tokens_of(std::size_t count, const std::function<double()>& next) {
  Tokens tokens(count);
  for (auto& token : tokens) token = static_cast<std::uint16_t>(next());
  return tokens;
}

Tokens uniform(Random& random, std::uint32_t vocab, std::size_t count) {
  return tokens_of(count, [&] { return std::floor(share(random) * vocab); });
}

// Tokens numbered by descending frequency, as tokenizers do: token k with a frequency proportional
// to about 1 / (k + 1).
Tokens zipf(Random& random, std::uint32_t vocab, std::size_t count) {
  return tokens_of(count, [&] { return std::floor(std::pow(vocab, share(random))) - 1; });
}

// The same with the token numbers in random order.
Tokens shuffled_zipf(Random& random, std::uint32_t vocab, std::size_t count) {
  Tokens ids(vocab);
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::shuffle(ids, random);
  Tokens tokens = zipf(random, vocab, count);
  for (auto& token : tokens) token = ids[token];
  return tokens;
}

Tokens padded(Tokens tokens, std::size_t kept = 40) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i % 512 > kept) tokens[i] = 0;
  }
  return tokens;
}

Tokens runs(Random& random, std::size_t count) {
  Tokens few = uniform(random, 50257, 3);
  few[0] = 0;  // so that not all bytes are valid text
  Tokens tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = few[i * few.size() / count];
  return tokens;
}

Tokens counted(Random& random, std::uint32_t vocab, std::size_t count) {
  Tokens tokens(count);
  const std::uint64_t first = random() % vocab;
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<std::uint16_t>((first + i) % vocab);
  }
  return tokens;
}

// Each token depends on the previous one, in most cases.
Tokens chained(Random& random, std::uint32_t vocab, std::size_t count) {
  Tokens tokens = zipf(random, vocab, count);
  for (std::size_t i = 1; i < count; ++i) {
    if (random() % 4 != 0) tokens[i] = static_cast<std::uint16_t>((tokens[i - 1] * 3U + 1) % vocab);
  }
  return tokens;
}

Tokens swapped(Tokens tokens) {
  for (auto& token : tokens) token = __builtin_bswap16(token);
  return tokens;
}

std::vector<std::uint8_t> bytes_from(const Tokens& tokens) {
  return {tokens.begin(), tokens.end()};
}

template <class T>
TokenEvidence evidence(const std::vector<T>& tokens, std::uint32_t vocab) {
  return token_evidence(std::as_bytes(std::span(tokens)), vocab);
}

// Of a vocabulary of 16 bits.
bool is_read_as_uint16(TokenEvidence found) {
  return found == TokenEvidence::kUint16 || found == TokenEvidence::kNone;
}

struct Kind {
  std::string name;
  std::uint32_t vocab;
  std::function<Tokens(Random&, std::size_t)> make;
};

std::vector<Kind> usual_kinds() {
  std::vector<Kind> kinds;
  for (const std::uint32_t vocab : {257U, 300U, 1000U, 32000U, 50257U, 50304U, 60000U, 65536U}) {
    const auto of = [vocab](Tokens (*make)(Random&, std::uint32_t, std::size_t)) {
      return [=](Random& random, std::size_t count) { return make(random, vocab, count); };
    };
    kinds.push_back({"uniform", vocab, of(uniform)});
    kinds.push_back({"zipf", vocab, of(zipf)});
    kinds.push_back({"shuffled", vocab, of(shuffled_zipf)});
    kinds.push_back({"counted", vocab, of(counted)});
    kinds.push_back({"chained", vocab, of(chained)});
  }
  kinds.push_back({"padded", 50257, [](Random& random, std::size_t count) {
                     return padded(zipf(random, 50257, count), 1 + random() % 40);
                   }});
  kinds.push_back({"runs", 50257, runs});
  for (const std::uint32_t used : {1U, 2U, 6U, 16U, 128U, 256U}) {
    kinds.push_back({"few", 50257, [used](Random& random, std::size_t count) {
                       return uniform(random, used, count);
                     }});
  }
  return kinds;
}

TEST(TokenHalves, OfUsualTokensAreReadAsOneWhateverTheyAre) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    for (const Kind& kind : usual_kinds()) {
      for (const std::size_t count : {5U, 21U, 301U, 1024U, 2001U, 6001U}) {
        const auto found = evidence(kind.make(random, count), kind.vocab);
        EXPECT_TRUE(is_read_as_uint16(found))
            << kind.name << ", vocabulary of " << kind.vocab << ", " << count << " tokens, seed "
            << seed << ": " << static_cast<int>(found);
      }
    }
  }
}

TEST(TokenHalves, OfManyUsualTokensAreReadAsOne) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    Random random(seed);
    for (const Kind& kind : usual_kinds()) {
      const auto found = evidence(kind.make(random, 200'000), kind.vocab);
      EXPECT_TRUE(is_read_as_uint16(found)) << kind.name << ", vocabulary of " << kind.vocab;
    }
  }
}

RC_GTEST_PROP(TokenHalves, OfUniformTokensAreReadAsOne, ()) {
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto vocab = *rc::gen::inRange<std::uint32_t>(257, 65537);
  const auto count = *rc::gen::inRange<std::size_t>(1, 20'000);
  RC_ASSERT(is_read_as_uint16(evidence(uniform(random, vocab, count), vocab)));
}

// The model's vocabulary is at least as large as the tokenizer's.
RC_GTEST_PROP(TokenHalves, OfZipfTokensAreReadAsOne, ()) {
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto used = *rc::gen::inRange<std::uint32_t>(2, 65537);
  const auto vocab = *rc::gen::inRange<std::uint32_t>(std::max(used, 257U), 65537);
  const auto count = *rc::gen::inRange<std::size_t>(1, 20'000);
  RC_ASSERT(is_read_as_uint16(evidence(zipf(random, used, count), vocab)));
}

TEST(TokenHalves, OfBytesAreNotReadAsOne) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    Random random(seed);
    for (const std::size_t count : {20'000U, 60'000U}) {
      const auto of_uniform = [&](std::uint32_t used, std::uint32_t vocab) {
        const auto found = evidence(bytes_from(uniform(random, used, count)), vocab);
        EXPECT_EQ(found, TokenEvidence::kUint8OrUint16) << used << " of " << vocab << ", " << seed;
      };
      of_uniform(2, 258);
      of_uniform(2, 128'256);
      of_uniform(6, 2048);
      of_uniform(16, 4096);
      of_uniform(190, 50'304);
      const auto found = evidence(bytes_from(zipf(random, 190, count)), 50'304);
      EXPECT_EQ(found, TokenEvidence::kUint8OrUint16) << seed;
    }
    const auto few = evidence(bytes_from(uniform(random, 6, 4000)), 2048);
    EXPECT_EQ(few, TokenEvidence::kUint8OrUint16) << seed;
    const auto zeros = evidence(bytes_from(padded(uniform(random, 200, 200'000))), 50'257);
    EXPECT_EQ(zeros, TokenEvidence::kUint8OrUint16) << seed;
  }
}

// Such bytes may be uniformly distributed 16-bit tokens, but only of a vocabulary of at most 2^16.
TEST(TokenHalves, OfUniformBytesAreThoseOfUniformTokens) {
  Random random(7);
  const auto bytes = bytes_from(uniform(random, 256, 600'000));
  EXPECT_EQ(evidence(bytes, 65'536), TokenEvidence::kUint16);
  EXPECT_EQ(evidence(bytes, 128'256), TokenEvidence::kUint8OrUint16);
}

TEST(TokenHalves, OfTheOtherByteOrderAreSwapped) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    Random random(seed);
    const auto expect_swapped = [&](auto make, std::uint32_t used, std::size_t count) {
      const Tokens tokens = swapped(make(random, used, count));
      for (const std::uint32_t vocab : {65'536U, 128'256U}) {
        EXPECT_EQ(evidence(tokens, vocab), TokenEvidence::kSwapped)
            << count << " tokens below " << used << ", vocabulary of " << vocab << ", " << seed;
      }
    };
    for (const std::size_t count : {3001U, 60'000U}) {
      for (const std::uint32_t used : {6U, 250U, 300U, 1000U, 2048U}) {
        expect_swapped(uniform, used, count);
      }
      for (const std::uint32_t used : {1000U, 32'000U, 50'257U}) expect_swapped(zipf, used, count);
    }
    expect_swapped(uniform, 8192, 60'000);
    expect_swapped(uniform, 32'000, 200'000);
  }
  Random random(1);
  EXPECT_EQ(evidence(swapped(uniform(random, 50'257, 1'000'000)), 65'536), TokenEvidence::kSwapped);
}

// Padding contributes equally to both bytes and is no evidence.
TEST(TokenHalves, OfPaddedTokensAreNoBytesWhereTheVocabularyIsTooSmall) {
  Random random(3);
  const Tokens tokens = padded(zipf(random, 50'257, 100'000));
  EXPECT_EQ(evidence(tokens, 256), TokenEvidence::kUint16);
}

TEST(TokenHalves, AreMeasuredWithoutWordsOfTwoEqualBytes) {
  const Tokens none;
  EXPECT_EQ(HalfCounts(std::as_bytes(std::span(none))).words(), 0);
  EXPECT_FALSE(HalfCounts(std::as_bytes(std::span(none))).are_alike());
  EXPECT_FALSE(are_halves_swapped(std::as_bytes(std::span(none))));
  const Tokens some = {0, 0x0101, 0x0102, 0x0201, 0x0104};
  const HalfCounts halves(std::as_bytes(std::span(some)));
  EXPECT_EQ(halves.words(), 3);
  EXPECT_DOUBLE_EQ(halves.distance(), 1.0 / 3);
}

class OpenedTokens : public testing::Test {
 protected:
  [[nodiscard]] DataConfig data(const std::string& bytes, const std::string& dtype) const {
    DataConfig config = data_config("tokens", folder_.write("t.bin", bytes));
    config.dtype = dtype;
    return config;
  }

 private:
  DataFolder folder_;
};

TEST_F(OpenedTokens, OfBytesOrWordsAreWhatAPersonSays) {
  Random random(1);
  const auto tokens = bytes_from(uniform(random, 6, 60'000));
  const Error error = open_error(data(bytes_of(tokens), "auto"), model_config(8, 2048));
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_THAT(error.cause, HasSubstr("ambiguous, uint8 or uint16"));
  EXPECT_THAT(error.remedy, HasSubstr("data.dtype = \"uint8\""));
  EXPECT_THAT(error.remedy, HasSubstr("data.dtype = \"uint16\""));
  const auto of_bytes = opened(data(bytes_of(tokens), "uint8"), model_config(8, 2048));
  ASSERT_NE(of_bytes, nullptr);
  EXPECT_EQ(train_sample(*of_bytes, 0, 8).inputs.size(), 8U);
  EXPECT_NE(opened(data(bytes_of(tokens), "uint16"), model_config(8, 2048)), nullptr);
}

TEST_F(OpenedTokens, ThatLookSwappedAreTakenWhereAPersonSaysSo) {
  Random random(1);
  const std::string bytes = bytes_of(swapped(zipf(random, 50'257, 60'000)));
  const Error error = open_error(data(bytes, "auto"), model_config(8, 65'536));
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_THAT(error.cause, HasSubstr("seem to be swapped"));
  EXPECT_THAT(error.remedy, HasSubstr("numpy.asarray(x, \"<u2\")"));
  EXPECT_NE(opened(data(bytes, "uint16"), model_config(8, 65'536)), nullptr);
}

}  // namespace
}  // namespace motley
