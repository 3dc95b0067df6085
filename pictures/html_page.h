// A page that is one file: nothing is fetched, nothing runs, and it prints. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pictures/figure.h"

namespace motley {

class HtmlPage {
 public:
  explicit HtmlPage(std::string title) : title_(std::move(title)) {}

  // All texts are escaped here.
  void section(std::string_view title);
  void paragraph(std::string_view text);
  void lines(std::string_view text);  // as it stands, in letters of one width
  // The first row is the head. Rows may be shorter than it.
  void table(const std::vector<std::vector<std::string>>& rows);
  // `label`: said to those who hear the page.
  void figure(std::string_view label, const Figure& figure);
  // What leads to the page: its words, in a box before all else. `level`: good, watch or bad.
  void headline(std::string_view level, std::string_view text);

  [[nodiscard]] std::string text() const;

 private:
  std::string title_;
  std::string body_;
};

}  // namespace motley
