#include "data/identity.h"

#include <span>
#include <string>

#include "tests/data/fixture.h"

namespace motley {
namespace {

DataIdentity identity_of(const std::string& text) {
  return identify(std::as_bytes(std::span(text)));
}

TEST(DataIdentity, TellsEveryByteOfASmallCorpus) {
  std::string text(100'000, 'a');
  const DataIdentity before = identity_of(text);
  EXPECT_EQ(before, identity_of(text));
  EXPECT_EQ(before.bytes, text.size());
  for (const std::size_t place : {std::size_t{0}, std::size_t{54'321}, text.size() - 1}) {
    std::string changed = text;
    changed[place] = 'b';
    EXPECT_NE(identity_of(changed), before) << place;
  }
  EXPECT_NE(identity_of(text + "a"), before);
  EXPECT_NE(identity_of(""), before);
}

// Covers the length and some blocks of a large corpus, including the first and the last.
TEST(DataIdentity, SamplesALargeCorpus) {
  std::string text(40 << 20, 'a');
  const DataIdentity before = identity_of(text);
  for (const std::size_t place : {std::size_t{0}, text.size() - 1}) {
    text[place] = 'b';
    EXPECT_NE(identity_of(text), before) << place;
    text[place] = 'a';
  }
  EXPECT_EQ(identity_of(text), before);
  text += 'a';
  EXPECT_NE(identity_of(text), before);
}

TEST(DataIdentity, IsThatOfTheTokensWhereverTheyLie) {
  const DataFolder folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  const auto identity = [&](const std::string& name, const std::string& bytes, double holdout) {
    return opened(data_config("text", folder.write(name, bytes), holdout), model_config(8))
        ->identity();
  };
  const DataIdentity first = identity("one.txt", text, 0.0);
  EXPECT_EQ(identity("other.txt", text, 0.2), first);
  EXPECT_NE(identity("third.txt", text + "x", 0.0), first);
  EXPECT_EQ(first, identity_of(text));
}

}  // namespace
}  // namespace motley
