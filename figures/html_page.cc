#include "figures/html_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "figures/figure_text.h"

namespace motley {
namespace {

constexpr std::string_view kPageStyle = R"(
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 1rem; max-width: 1280px; font: 15px/1.5 sans-serif;
       color: #1c1e21; background: #ffffff; }
h1 { font-size: 1.5rem; margin: .2rem 0; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .4rem; }
.wide { overflow-x: auto; }
.wide > svg { display: block; width: 100%; min-width: 900px; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .15rem .9rem .15rem 0; border-bottom: 1px solid #d9dce0;
         white-space: pre; vertical-align: top; }
pre { font-size: 13px; line-height: 1.35; }
.headline { border-left: .5rem solid #1e7a55; padding: .4rem .8rem; background: #f1f2f4; }
.headline.watch { border-left-style: dashed; border-color: #a05a00; }
.headline.bad { border-left-style: double; border-color: #b5382d; }
@media (prefers-color-scheme: dark) {
body { color: #e8eaed; background: #17191c; }
th, td { border-color: #383c42; }
.headline { background: #24272b; }
}
@media print { .wide > svg { min-width: 0; } }
)";

// Enforced by the browser: the page runs no scripts and fetches nothing.
constexpr std::string_view kPolicy = "default-src 'none'; style-src 'unsafe-inline'";

}  // namespace

void HtmlPage::section(std::string_view title) {
  body_ += fmt::format("<h2>{}</h2>\n", escaped(title));
}

void HtmlPage::paragraph(std::string_view text) {
  body_ += fmt::format("<p>{}</p>\n", escaped(text));
}

// escaped() replaces line ends, so each line is escaped alone.
void HtmlPage::lines(std::string_view text) {
  body_ += "<div class=\"wide\"><pre>";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    body_ += escaped(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  body_ += "</pre></div>\n";
}

void HtmlPage::table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return;
  body_ += "<div class=\"wide\"><table>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    body_ += "<tr>";
    for (std::size_t c = 0; c < rows.front().size(); ++c) {
      const std::string_view tag = r == 0 ? "th scope=\"col\"" : c == 0 ? "th scope=\"row\"" : "td";
      body_ += fmt::format("<{}>{}</{}>", tag, c < rows[r].size() ? escaped(rows[r][c]) : "",
                           tag.substr(0, 2));
    }
    body_ += "</tr>\n";
  }
  body_ += "</table></div>\n";
}

void HtmlPage::figure(std::string_view label, const Figure& figure) {
  body_ += fmt::format("<div class=\"wide\">{}</div>\n", svg_in_page(label, figure));
}

void HtmlPage::headline(std::string_view level, std::string_view text) {
  body_ += fmt::format("<p class=\"headline {}\">{}</p>\n", level, escaped(text));
}

std::string HtmlPage::text() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n"
      "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\">{}</svg>\n"
      "<h1>{}</h1>\n{}</body>\n</html>\n",
      kPolicy, escaped(title_), kPageStyle, figure_style(), figure_patterns(), escaped(title_),
      body_);
}

}  // namespace motley
