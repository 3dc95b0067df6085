// A self-contained HTML page: it fetches nothing, runs no scripts, and can be printed. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "figures/figure.h"

namespace motley {

class HtmlPage {
 public:
  explicit HtmlPage(std::string title) : title_(std::move(title)) {}

  // All functions escape their texts.
  void section(std::string_view title);
  void paragraph(std::string_view text);
  void lines(std::string_view text);  // preformatted, in a monospaced font
  // The first row is the header. Other rows may be shorter.
  void table(const std::vector<std::vector<std::string>>& rows);
  // `label`: text for screen readers.
  void figure(std::string_view label, const Figure& figure);
  // The summary in a box at the top of the page. `level`: good, watch or bad.
  void headline(std::string_view level, std::string_view text);

  [[nodiscard]] std::string text() const;

 private:
  std::string title_;
  std::string body_;
};

}  // namespace motley
