#include "watch/browser/token_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/browser/browser_watch.h"

namespace motley {
namespace {

using testing::HasSubstr;

class TokenFileTest : public testing::Test {
 protected:
  TokenFileTest() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    file_ =
        std::filesystem::path(testing::TempDir()) / (std::string("motley-token-") + info->name());
    std::filesystem::remove(file_);
  }

  ~TokenFileTest() override { std::filesystem::remove(file_); }

  void write(const std::string& text, std::filesystem::perms rights) const {
    std::ofstream(file_) << text;
    std::filesystem::permissions(file_, rights);
  }

  std::filesystem::path file_;
};

constexpr auto kOwners = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;

TEST_F(TokenFileTest, MakesOneAndGivesTheSameAgain) {
  const auto made = stored_token(file_);
  ASSERT_TRUE(made.ok()) << describe(made.error());
  EXPECT_EQ(made->size(), 32U);
  EXPECT_EQ(std::filesystem::status(file_).permissions(), kOwners);
  const auto again = stored_token(file_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *made);
}

TEST_F(TokenFileTest, TakesOneThatAGroupReads) {
  const std::string token(40, 'a');
  write(token + "\n", kOwners | std::filesystem::perms::group_read);
  const auto kept = stored_token(file_);
  ASSERT_TRUE(kept.ok()) << describe(kept.error());
  EXPECT_EQ(*kept, token);
}

TEST_F(TokenFileTest, RefusesOneThatEverybodyReads) {
  write(std::string(40, 'a'), kOwners | std::filesystem::perms::others_read);
  const auto kept = stored_token(file_);
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().code, ErrorCode::kConfig);
  EXPECT_THAT(kept.error().remedy, HasSubstr("chmod"));
}

TEST_F(TokenFileTest, RefusesWhatIsNoToken) {
  for (const std::string& text : {std::string(), std::string(31, 'a'), std::string(129, 'a'),
                                  std::string(40, 'a') + "\n" + std::string(40, 'a'),
                                  std::string(40, ' '), std::string(40, ';')}) {
    write(text, kOwners);
    EXPECT_FALSE(stored_token(file_).ok()) << text;
  }
}

TEST(ScrapeConfig, NamesTheFileOrTheToken) {
  const std::string with_file = scrape_config(9464, "abc", "/etc/motley.token");
  EXPECT_THAT(with_file, HasSubstr("credentials_file: /etc/motley.token\n"));
  EXPECT_THAT(with_file, HasSubstr("[\"127.0.0.1:9464\"]"));
  EXPECT_THAT(with_file, testing::Not(HasSubstr("abc")));
  EXPECT_THAT(scrape_config(9464, "abc", ""), HasSubstr("credentials: abc\n"));
}

}  // namespace
}  // namespace motley
