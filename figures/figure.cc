#include "figures/figure.h"

#include <fmt/format.h>

#include <iterator>

#include "figures/figure_text.h"

namespace motley {
namespace {

std::string hint_element(std::string_view hint) {
  return hint.empty() ? "" : fmt::format("<title>{}</title>", escaped(hint));
}

double font_px(std::string_view look) {
  return look.find("small") != std::string_view::npos ? kSmallFontPx : kFontPx;
}

}  // namespace

void FigurePen::box(const FigureBox& box, std::string_view look, std::string_view hint) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" class="{}")", box.x,
                 box.y, box.width, box.height, look);
  body_ += hint.empty() ? "/>\n" : fmt::format(">{}</rect>\n", hint_element(hint));
}

void FigurePen::line(const FigurePoint& from, const FigurePoint& to, std::string_view look) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<line x1="{:.2f}" y1="{:.2f}" x2="{:.2f}" y2="{:.2f}" class="{}"/>)"
                 "\n",
                 from.x, from.y, to.x, to.y, look);
}

void FigurePen::curve(const std::vector<FigurePoint>& points, std::string_view look) {
  if (points.empty()) return;
  body_ += R"(<polyline points=")";
  for (const FigurePoint& point : points) {
    fmt::format_to(std::back_inserter(body_), "{:.2f},{:.2f} ", point.x, point.y);
  }
  body_.back() = '"';
  fmt::format_to(std::back_inserter(body_),
                 R"( class="{}"/>)"
                 "\n",
                 look);
}

void FigurePen::dot(const FigurePoint& middle,
                    double radius,
                    std::string_view look,
                    std::string_view hint) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<circle cx="{:.2f}" cy="{:.2f}" r="{:.2f}" class="{}">{}</circle>)"
                 "\n",
                 middle.x, middle.y, radius, look, hint_element(hint));
}

void FigurePen::text(const FigurePoint& at, std::string_view text, std::string_view look) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<text x="{:.2f}" y="{:.2f}" class="{}">{}</text>)"
                 "\n",
                 at.x, at.y, look, escaped(text));
}

void FigurePen::text_in(double width,
                        const FigurePoint& at,
                        std::string_view whole,
                        std::string_view look) {
  const std::string part = fitted(whole, width, font_px(look));
  if (part == whole) return text(at, whole, look);
  fmt::format_to(std::back_inserter(body_),
                 R"(<text x="{:.2f}" y="{:.2f}" class="{}">{}{}</text>)"
                 "\n",
                 at.x, at.y, look, hint_element(whole), escaped(part));
}

Figure FigurePen::finish(double height) && {
  return {height, std::move(body_)};
}

std::string svg_file(std::string_view title, const std::vector<Figure>& figures) {
  double height = 0;
  for (const Figure& figure : figures) height += figure.height;
  std::string text = fmt::format(
      R"(<?xml version="1.0" encoding="UTF-8"?>)"
      "\n"
      R"(<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {0:.0f} {1:.0f}" )"
      R"(width="{0:.0f}" height="{1:.0f}" role="img" aria-label="{2}">)"
      "\n<style>{3}</style>\n{4}"
      R"(<rect width="{0:.0f}" height="{1:.0f}" class="paper"/>)"
      "\n",
      kFigureWidth, height, escaped(title), figure_style(), figure_patterns());
  double y = 0;
  for (const Figure& figure : figures) {
    text += fmt::format("<g transform=\"translate(0 {:.0f})\">\n{}</g>\n", y, figure.body);
    y += figure.height;
  }
  return text + "</svg>\n";
}

std::string svg_in_page(std::string_view label, const Figure& figure) {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {:.0f} {:.0f}" )"
      R"(role="img" aria-label="{}">)"
      "\n{}</svg>\n",
      kFigureWidth, figure.height, escaped(label), figure.body);
}

}  // namespace motley
