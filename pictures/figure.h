// Figure: a drawing as a value, of which pictures and pages are put together. Pure.
//
// What a thing looks like is said once, in figure_style(): drawings only name looks. Every paint
// has a pattern besides its colour, so that it is told apart without seeing colours, and the style
// has a light and a dark form, of which the browser takes the one that its user likes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace motley {

inline constexpr double kFigureWidth = 1280;  // pixels
inline constexpr double kFontPx = 12;
inline constexpr double kSmallFontPx = 10;

// SVG elements within a box of kFigureWidth by `height` pixels.
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

// Draws one figure. `look`: one or more names of figure_style(), with spaces between. All texts are
// escaped here.
class FigurePen {
 public:
  // `hint`: what a browser shows where somebody points at it; "" = nothing.
  void box(const FigureBox& box, std::string_view look, std::string_view hint = "");
  void line(const FigurePoint& from, const FigurePoint& to, std::string_view look);
  void curve(const std::vector<FigurePoint>& points, std::string_view look);
  void dot(const FigurePoint& middle, double radius, std::string_view look, std::string_view hint);
  void text(const FigurePoint& at, std::string_view text, std::string_view look = "");
  // As much of the text as `width` holds; the whole text is its hint where something is missing.
  void text_in(double width,
               const FigurePoint& at,
               std::string_view text,
               std::string_view look = "");

  [[nodiscard]] Figure finish(double height) &&;

 private:
  std::string body_;
};

// A picture of its own: a file that any browser shows.
[[nodiscard]] std::string svg_file(std::string_view title, const std::vector<Figure>& figures);

// The same as a part of a page, which must hold figure_style() and figure_patterns() once.
// `label`: said to those who hear the page.
[[nodiscard]] std::string svg_in_page(std::string_view label, const Figure& figure);

// CSS of all looks, and the SVG definitions that it refers to.
[[nodiscard]] std::string figure_style();
[[nodiscard]] std::string figure_patterns();

}  // namespace motley
