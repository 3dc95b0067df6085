#include "figures/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "figures/figure_text.h"

namespace motley {
namespace {

constexpr double kPlotLeft = 80;
constexpr double kPlotRight = 20;
constexpr double kPlotTop = 50;
constexpr double kPlotHeight = 200;
constexpr double kFigureHeight = kPlotTop + kPlotHeight + 44;
constexpr std::array<std::string_view, 3> kCurveLooks = {"", "second", "third"};

struct Range {
  double least = 0;
  double most = 0;
};

bool is_drawn(const CurvePoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

// Widens the range of a single value, so that the axis has a scale.
Range widened(Range range) {
  if (range.most > range.least) return range;
  const double half = range.least == 0 ? 1 : std::abs(range.least) / 2;
  return {range.least - half, range.most + half};
}

// All digits before the point: 12000, not 1.2e+04.
std::string axis_text(double value) {
  constexpr double kManyDigits = 1000;
  return std::abs(value) >= kManyDigits ? fmt::format("{:.0f}", value)
                                        : fmt::format("{:.4g}", value);
}

class CurvesDrawing {
 public:
  CurvesDrawing(const std::vector<Curve>& drawn, const CurvesOptions& options)
      : drawn_(drawn), options_(options) {
    std::vector<double> ys;
    std::vector<double> xs;
    for (const Curve& curve : drawn) {
      for (const CurvePoint& point : curve.points) {
        if (!is_drawn(point)) continue;
        xs.push_back(point.x);
        ys.push_back(point.y);
      }
    }
    is_empty_ = xs.empty();
    if (is_empty_) return;
    const auto [x_least, x_most] = std::ranges::minmax(xs);
    x_ = widened({x_least, x_most});
    const auto in_scale = static_cast<std::size_t>(
        std::ceil(options.share_in_scale * static_cast<double>(ys.size())));
    const auto most = ys.begin() + static_cast<std::ptrdiff_t>(
                                       std::clamp<std::size_t>(in_scale, 1, ys.size()) - 1);
    std::nth_element(ys.begin(), most, ys.end());
    y_ = {*std::min_element(ys.begin(), most + 1), *most};
    if (options.from_zero) y_.least = std::min(y_.least, 0.0);
    if (options.most_at_least > 0) y_.most = std::max(y_.most, options.most_at_least);
    y_ = widened(y_);
    above_ = std::ranges::count_if(ys, [&](double y) { return y > y_.most; });
  }

  Figure draw() && {
    pen_.text_in(kFigureWidth - 20, {10, 22}, options_.title, "bold");
    if (is_empty_) {
      pen_.text({kPlotLeft, kPlotTop}, "no data", "faint");
      return std::move(pen_).finish(kPlotTop + 20);
    }
    draw_axes();
    for (std::size_t c = 0; c < std::min(drawn_.size(), kCurveLooks.size()); ++c) {
      draw_curve(drawn_[c], kCurveLooks[c]);
      draw_name(drawn_[c], kCurveLooks[c], c);
    }
    if (above_ > 0) {
      pen_.text({kFigureWidth - kPlotRight, kPlotTop - 8},
                fmt::format("{} points lie above the scale", above_), "small faint end");
    }
    return std::move(pen_).finish(kFigureHeight);
  }

 private:
  double x_of(double x) const {
    return kPlotLeft +
           (x - x_.least) / (x_.most - x_.least) * (kFigureWidth - kPlotLeft - kPlotRight);
  }

  double y_of(double y) const {
    const double share = (std::min(y, y_.most) - y_.least) / (y_.most - y_.least);
    return kPlotTop + (1 - share) * kPlotHeight;
  }

  void draw_axes() {
    const double y_tick = tick_of(y_.most - y_.least, 5);
    for (double i = std::ceil(y_.least / y_tick); i * y_tick <= y_.most; ++i) {
      const double y = y_of(i * y_tick);
      pen_.line({kPlotLeft, y}, {kFigureWidth - kPlotRight, y}, "grid");
      pen_.text({kPlotLeft - 6, y + 4}, axis_text(i * y_tick), "small end");
    }
    const double x_tick = std::max(1.0, tick_of(x_.most - x_.least, 10));
    for (double i = std::ceil(x_.least / x_tick); i * x_tick <= x_.most; ++i) {
      const double x = x_of(i * x_tick);
      pen_.line({x, kPlotTop}, {x, kPlotTop + kPlotHeight}, "grid");
      pen_.text({x, kPlotTop + kPlotHeight + 14}, fmt::format("{:.0f}", i * x_tick),
                "small middle");
    }
    pen_.text({kPlotLeft - 6, kPlotTop - 8}, options_.unit, "small faint end");
    pen_.text({kFigureWidth - kPlotRight, kPlotTop + kPlotHeight + 30}, options_.x_name,
              "small faint end");
  }

  void draw_curve(const Curve& curve, std::string_view look) {
    std::vector<FigurePoint> run;
    const auto end_run = [&] {
      pen_.curve(run, look);
      // A point between two gaps has no line; without a dot it would be invisible.
      if (run.size() == 1) pen_.dot(run.front(), 1.5, look, "");
      run.clear();
    };
    for (const CurvePoint& point : curve.points) {
      if (!is_drawn(point)) {
        end_run();
        continue;
      }
      run.push_back({x_of(point.x), y_of(point.y)});
      if (!curve.dots) continue;
      pen_.dot(run.back(), 3, look,
               fmt::format("{} {:.0f}: {:.5g}", options_.x_name, point.x, point.y));
    }
    end_run();
  }

  void draw_name(const Curve& curve, std::string_view look, std::size_t index) {
    constexpr double kNameWidth = 240;
    const double x = kPlotLeft + static_cast<double>(index) * kNameWidth;
    pen_.curve({{x, kPlotTop - 12}, {x + 24, kPlotTop - 12}}, look);
    pen_.text_in(kNameWidth - 40, {x + 30, kPlotTop - 8}, curve.name);
  }

  const std::vector<Curve>& drawn_;
  const CurvesOptions& options_;
  bool is_empty_ = false;
  Range x_;
  Range y_;
  std::ptrdiff_t above_ = 0;
  FigurePen pen_;
};

}  // namespace

Figure curves(const std::vector<Curve>& drawn, const CurvesOptions& options) {
  return CurvesDrawing(drawn, options).draw();
}

}  // namespace motley
