// The page needs only its own parts: every name in its texts exists, and nothing is loaded from
// elsewhere.
#include "watch/page/page_parts.h"

#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/watch/played_run.h"
#include "watch/http/answers.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> named_in(std::string_view text, const std::string& pattern) {
  const std::string all(text);
  const std::regex what(pattern);
  std::vector<std::string> names;
  for (std::sregex_iterator at(all.begin(), all.end(), what), end; at != end; ++at) {
    names.push_back((*at)[1]);
  }
  return names;
}

bool is_of_the_library(std::string_view name) {
  return name.starts_with("dygraph");
}

TEST(PageParts, EveryFileThatThePageNamesIsOneOfThem) {
  const PagePart* page = find_page_part("/");
  ASSERT_NE(page, nullptr);
  const auto named = named_in(page->text, R"re((?:src|href)="([^"#]+)")re");
  EXPECT_GE(named.size(), 5U);
  for (const std::string& name : named) EXPECT_NE(find_page_part("/" + name), nullptr) << name;
  for (const EmbeddedFile& file : embedded_files()) {
    if (is_of_the_library(file.name)) continue;
    for (const std::string& name : named_in(file.text, R"re(from '\./([^']+)')re")) {
      EXPECT_NE(find_page_part("/" + name), nullptr) << file.name << " imports " << name;
    }
  }
}

TEST(PageParts, NameNoOtherMachine) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (is_of_the_library(file.name)) continue;
    for (const std::string& address : named_in(file.text, R"re((https?://[^'"\s]*))re")) {
      EXPECT_EQ(address, "http://www.w3.org/2000/svg") << file.name;  // a name, which is never
                                                                      // requested
    }
  }
}

TEST(PageParts, PutNoTextInAsMarkup) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (is_of_the_library(file.name)) continue;
    for (const char* way :
         {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=\""}) {
      EXPECT_THAT(std::string(file.text), Not(HasSubstr(way))) << file.name;
    }
  }
}

TEST(PageParts, HaveTheTypesThatBrowsersInsistOn) {
  EXPECT_EQ(find_page_part("/page.js")->type, "text/javascript; charset=utf-8");
  EXPECT_EQ(find_page_part("/page.css")->type, "text/css; charset=utf-8");
  EXPECT_EQ(find_page_part("/")->type, "text/html; charset=utf-8");
}

class AnswersTest : public testing::Test {
 protected:
  Answer asked(const std::string& path, const std::string& query = {}) {
    return answer({.path = path, .query = query}, "", run_);
  }

  PlayedRun run_{100};
};

TEST_F(AnswersTest, TellTheRun) {
  run_.play(12);
  EXPECT_THAT(asked("/api/description").body, HasSubstr("\"schedule\":\"1f1b\""));
  EXPECT_THAT(asked("/api/state").body, HasSubstr("\"step\":12"));
  EXPECT_THAT(asked("/api/timeline").body, HasSubstr("\"measured\""));
  EXPECT_THAT(asked("/api/history", "points=4").body, HasSubstr("\"step\":[1,4,7,10]"));
  EXPECT_EQ(asked("/api/history", "points=0").status, 400U);
  EXPECT_EQ(asked("/api/events", "n=1001").status, 400U);
}

TEST_F(AnswersTest, KnowNoPathButTheirOwn) {
  for (const char* path :
       {"/index.html", "/..", "/../etc/passwd", "//etc/passwd", "/page.css/", "/api", "/api/",
        "/page.js%00", "/%70age.js", "/page/page.js", "/embedded_page.cc"}) {
    EXPECT_EQ(asked(path).status, 404U) << path;
  }
}

TEST_F(AnswersTest, AFolderThatCannotBeReadIsToldWithItsRemedy) {
  run_.breaks(
      {ErrorCode::kCorrupt, "cannot read metrics.jsonl", "no permission", "ask its owner\xff"});
  const Answer answered = asked("/api/state");
  EXPECT_EQ(answered.status, 503U);
  EXPECT_THAT(answered.body, HasSubstr("no permission"));
}

}  // namespace
}  // namespace motley
