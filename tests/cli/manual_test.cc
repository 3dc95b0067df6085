#include "cli/guide/manual.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "cli/guide/guide.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

std::string page(const std::vector<ManualPage>& pages, const std::string& file) {
  const auto found = std::ranges::find(pages, file, &ManualPage::file);
  return found == pages.end() ? "" : found->text;
}

TEST(Manual, HasAPageForEveryCommandWithAllItsOptions) {
  const auto pages = manual_pages(all_specs(), "1.2.3");
  EXPECT_EQ(pages.size(), all_specs().size() + 3);
  for (const CommandSpec& spec : all_specs()) {
    std::string file = "motley-" + spec.name + ".1";
    std::ranges::replace(file, ' ', '-');
    const std::string text = page(pages, file);
    EXPECT_THAT(text, HasSubstr("Motley 1.2.3"));
    EXPECT_THAT(text, HasSubstr(troff_text(usage_line(spec)))) << file;
    EXPECT_THAT(page(pages, "motley.1"), HasSubstr(troff_text(file.substr(0, file.size() - 2))));
    for (const OptionSpec& option : options_with_help(spec)) {
      EXPECT_THAT(text, HasSubstr("\\fB" + troff_text("--" + option.name) + "\\fR")) << file;
    }
  }
}

// A text line that begins with a point would be missing from the page.
TEST(Manual, HasNoRequestsButItsOwn) {
  const std::set<std::string> known = {".TH", ".SH", ".TP", ".PP", ".nf", ".fi",
                                       ".RS", ".RE", ".B",  ".I",  ".br"};
  for (const ManualPage& manual : manual_pages(all_specs(), "1")) {
    std::istringstream lines(manual.text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(".") && !line.starts_with("'")) continue;
      EXPECT_TRUE(known.contains(line.substr(0, line.find(' ')))) << manual.file << ": " << line;
    }
  }
}

// Undoes troff's escapes: character names become these characters.
std::string read_by_troff(std::string text) {
  if (text.starts_with("\\&")) text.erase(0, 2);
  const std::pair<const char*, const char*> names[] = {
      {"\\(aq", "'"}, {"\\(ga", "`"}, {"\\(ha", "^"}, {"\\(ti", "~"}, {"\\-", "-"}};
  std::string read;
  for (std::size_t at = 0; at < text.size();) {
    const auto name = std::ranges::find_if(names, [&](const auto& known) {
      return text.compare(at, std::string(known.first).size(), known.first) == 0;
    });
    if (name != std::end(names)) {
      read += name->second;
      at += std::string(name->first).size();
    } else if (text.compare(at, 4, "\\(rs") == 0) {
      read += '\\';
      at += 4;
    } else {
      RC_ASSERT(text[at] != '\\');
      read += text[at++];
    }
  }
  return read;
}

RC_GTEST_PROP(Manual, ShowsTextAsItIs, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::element('a', ' ', '.', '\'', '`', '\\', '-', '^', '~', '(', 'r', 's', '&'));
  const std::string written = troff_text(text);
  RC_ASSERT(!written.starts_with(".") && !written.starts_with("'"));
  RC_ASSERT(read_by_troff(written) == text);
}

}  // namespace
}  // namespace motley
