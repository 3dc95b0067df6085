// Curves: values by step as a figure with axes. Pure.
#pragma once

#include <string>
#include <vector>

#include "figures/figure.h"

namespace motley {

// A y that is not finite makes a gap in the curve.
struct CurvePoint {
  double x = 0;
  double y = 0;
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // by ascending x
  bool dots = false;               // few points, each drawn as a dot
};

struct CurvesOptions {
  std::string title;
  std::string unit;  // of y
  std::string x_name = "step";
  bool from_zero = false;    // whether the y axis begins at 0
  double most_at_least = 0;  // minimum upper end of the y axis
  // The share of the points, from the lowest, that the y axis covers. Points above it are drawn at
  // the upper edge, and the figure states their number.
  double share_in_scale = 1;
};

// Up to three curves, distinguished by colour and dashes.
[[nodiscard]] Figure curves(const std::vector<Curve>& drawn, const CurvesOptions& options);

}  // namespace motley
