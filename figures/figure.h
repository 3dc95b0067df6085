// Figure: a drawing as a value, from which pictures and pages are composed. Pure.
//
// Appearance is defined only in figure_style(); drawings refer to it by name. Every paint has a
// pattern besides its colour, so that it can be distinguished without colours. The style has a
// light and a dark variant, of which the browser selects the one that its user prefers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace motley {

inline constexpr double kFigureWidth = 1280;  // pixels
inline constexpr double kFontPx = 12;
inline constexpr double kSmallFontPx = 10;

// SVG elements within a box of kFigureWidth x `height` pixels.
struct Figure {
  double height = 0;
  std::string body;
};

struct FigureBox {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

struct FigurePoint {
  double x = 0;
  double y = 0;
};

// Draws one figure. `look`: one or more names of figure_style(), separated by spaces. Escapes all
// texts.
class FigurePen {
 public:
  // `hint`: the tooltip; "" = none.
  void box(const FigureBox& box, std::string_view look, std::string_view hint = "");
  void line(const FigurePoint& from, const FigurePoint& to, std::string_view look);
  void curve(const std::vector<FigurePoint>& points, std::string_view look);
  void dot(const FigurePoint& middle, double radius, std::string_view look, std::string_view hint);
  void text(const FigurePoint& at, std::string_view text, std::string_view look = "");
  // Draws as much of the text as fits into `width`; a shortened text has the whole one as its
  // tooltip.
  void text_in(double width,
               const FigurePoint& at,
               std::string_view text,
               std::string_view look = "");

  [[nodiscard]] Figure finish(double height) &&;

 private:
  std::string body_;
};

// A self-contained SVG file.
[[nodiscard]] std::string svg_file(std::string_view title, const std::vector<Figure>& figures);

// The same as part of a page, which must contain figure_style() and figure_patterns() once.
// `label`: text for screen readers.
[[nodiscard]] std::string svg_in_page(std::string_view label, const Figure& figure);

// The CSS of all looks, and the SVG definitions that it refers to.
[[nodiscard]] std::string figure_style();
[[nodiscard]] std::string figure_patterns();

}  // namespace motley
