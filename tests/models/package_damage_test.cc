// package.json with random changes is read or refused, and what is read names only allowed
// operations; tests/fuzz/ searches further with the same property.
#include "base/system/files.h"
#include "package_changes.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedPackage, IsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_package(damaged(right_package(), fragments_of_packages())) == "");
}

// Ten thousand changes that leave most of the text valid: one value replaces another.
TEST(DamagedPackage, WithOneValueForAnotherIsReadOrRefused) {
  constexpr int kChanges = 10'000;
  const std::string right = right_package();
  ASSERT_EQ(wrong_with_package(right), "");
  ASSERT_TRUE(parse_package(right, "p.json").ok());
  PackageChanges changes;
  int read = 0;
  for (int change = 0; change < kChanges; ++change) {
    const std::string text = changes.next();
    ASSERT_EQ(wrong_with_package(text), "") << text;
    if (parse_package(text, "p.json").ok()) ++read;
  }
  // Some changes had an effect, and some were accepted.
  EXPECT_GT(read, kChanges / 100);
  EXPECT_LT(read, kChanges / 2);
}

// The same for a package with exact boundary values.
TEST(DamagedPackage, WithExactValuesIsReadOrRefused) {
  const std::string right = *read_file(MOTLEY_PACKAGES_DIR "/exact.motley/package.json");
  ASSERT_EQ(wrong_with_package(right), "");
  ASSERT_TRUE(parse_package(right, "p.json").ok());
  PackageChanges changes(right);
  for (int change = 0; change < 5'000; ++change) {
    const std::string text = changes.next();
    ASSERT_EQ(wrong_with_package(text), "") << text;
  }
}

// The same for a package with inputs by name.
TEST(DamagedPackage, WithNamedInputsIsReadOrRefused) {
  const std::string right = right_named_package();
  ASSERT_EQ(wrong_with_package(right), "");
  ASSERT_TRUE(parse_package(right, "p.json").ok());
  PackageChanges changes(right);
  for (int change = 0; change < 5'000; ++change) {
    const std::string text = changes.next();
    ASSERT_EQ(wrong_with_package(text), "") << text;
  }
}

}  // namespace
}  // namespace motley
