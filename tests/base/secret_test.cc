#include "base/secret.h"

#include <gtest/gtest.h>

#include "base/hex.h"

namespace motley {
namespace {

TEST(Secret, IsAnotherEachTime) {
  const auto one = make_secret();
  const auto other = make_secret();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->size(), kSecretBytes);
  EXPECT_EQ(other->size(), kSecretBytes);
  EXPECT_NE(*one, *other);
}

TEST(Secret, IsGoneAfterwards) {
  std::string secret(kSecretBytes, 'x');
  const char* bytes = secret.data();
  wipe(secret);
  EXPECT_TRUE(secret.empty());
  EXPECT_EQ(secret.data(), bytes);  // not moved
  for (std::size_t i = 0; i < kSecretBytes; ++i) EXPECT_EQ(bytes[i], '\0') << i;
}

TEST(Hex, ReadsWhatItWrote) {
  const std::vector<char> bytes = {'\0', '\x7f', '\x80', '\xff'};
  EXPECT_EQ(to_hex(bytes), "007f80ff");
  EXPECT_EQ(from_hex("007f80ff"), bytes);
}

TEST(Hex, RefusesWhatIsNotHexadecimal) {
  for (const auto* text : {"0", "0g", "-1", "+1", "0x", " 1"}) {
    EXPECT_EQ(from_hex(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace motley
