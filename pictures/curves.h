// Curves: values by step as a figure with axes. Pure.
#pragma once

#include <string>
#include <vector>

#include "pictures/figure.h"

namespace motley {

// Where y is not finite the curve has a gap.
struct CurvePoint {
  double x = 0;
  double y = 0;
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // by ascending x
  bool dots = false;               // few points, each drawn
};

struct CurvesOptions {
  std::string title;
  std::string unit;  // of y
  std::string x_name = "step";
  bool from_zero = false;    // whether the axis of y begins there
  double most_at_least = 0;  // that the axis of y reaches, however low all values are
  // The share of the points, from the lowest, that the scale of y is chosen for: what lies above is
  // drawn at the upper edge, and the figure says how many do.
  double share_in_scale = 1;
};

// Up to three curves, told apart by colour and by dashes.
[[nodiscard]] Figure curves(const std::vector<Curve>& drawn, const CurvesOptions& options);

}  // namespace motley
