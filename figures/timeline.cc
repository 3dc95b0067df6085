#include "figures/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "figures/figure_text.h"

namespace motley {
namespace {

// In pixels.
constexpr double kLeft = 190;  // the time axis's start; rank names are left of it
constexpr double kRight = 20;
constexpr double kTop = 74;
constexpr double kBottom = 40;
constexpr double kLaneHeight = 22;
constexpr double kLinkHeight = 6;
constexpr double kGap = 6;

struct Paint {
  std::string_view look;
  std::string_view name;
};

constexpr Paint kForward = {"forward", "forward"};
constexpr Paint kBackward = {"backward", "backward"};
constexpr Paint kWeights = {"weights", "weight part"};
constexpr Paint kUpdate = {"update", "update, vote"};
constexpr Paint kCodec = {"codec", "codec"};
constexpr Paint kWait = {"wait", "wait"};
constexpr Paint kLink = {"link", "link, all-reduce"};
constexpr std::array<Paint, 7> kPaints = {kForward, kBackward, kWeights, kUpdate,
                                          kCodec,   kWait,     kLink};

bool is_link(const TraceSpan& span) {
  return span.lane.starts_with("link") || span.lane == "sum";
}

// Lanes and names of spans are defined in docs/formats/trace.md.
Paint paint_of(const TraceSpan& span) {
  if (span.lane == "wait") return kWait;
  if (is_link(span)) return kLink;
  if (span.lane == "codec") return kCodec;
  if (span.name.starts_with('F')) return kForward;
  if (span.name.starts_with("BW")) return kWeights;
  if (span.name.starts_with('B')) return kBackward;
  return kUpdate;
}

class TimelineDrawing {
 public:
  TimelineDrawing(const std::vector<TraceSpan>& spans,
                  const std::vector<std::string>& rank_names,
                  const TimelineOptions& options)
      : rank_names_(rank_names),
        options_(options),
        rank_count_(std::min(rank_names.size(), options.ranks_max)),
        end_s_(end_of(spans)),
        whole_s_(std::max(end_s_, options.whole_s)),
        height_(kTop + static_cast<double>(rank_count_) * pitch() + kBottom) {
    choose(spans);
  }

  Figure draw() && {
    pen_.text_in(kFigureWidth - 20, {10, 22}, options_.title, "bold");
    draw_legend();
    draw_axis();
    draw_lanes();
    for (const TraceSpan* span : chosen_) draw_span(*span);
    draw_note();
    return std::move(pen_).finish(height_);
  }

 private:
  // Selects the longest spans of the ranks shown, in their order.
  void choose(const std::vector<TraceSpan>& spans) {
    for (const TraceSpan& span : spans) {
      const bool shown = span.rank.value >= 0 && span.rank.index() < rank_count_;
      if (shown) chosen_.push_back(&span);
    }
    if (chosen_.size() <= options_.spans_max) return;
    left_out_ = chosen_.size() - options_.spans_max;
    std::vector<double> durations;
    for (const TraceSpan* span : chosen_) durations.push_back(span->duration_s);
    const auto limit = durations.begin() + static_cast<std::ptrdiff_t>(left_out_);
    std::nth_element(durations.begin(), limit, durations.end());
    // Drops as many of the spans exactly as long as the limit as necessary.
    const double shortest_s =
        limit == durations.end() ? std::numeric_limits<double>::infinity() : *limit;
    std::size_t surplus = left_out_;
    for (const TraceSpan* span : chosen_) surplus -= span->duration_s < shortest_s ? 1 : 0;
    std::erase_if(chosen_, [&](const TraceSpan* span) {
      if (span->duration_s > shortest_s) return false;
      if (span->duration_s < shortest_s) return true;
      if (surplus == 0) return false;
      --surplus;
      return true;
    });
  }

  static double pitch() { return kLaneHeight + kLinkHeight + kGap; }

  static double lane_y(std::size_t rank) { return kTop + static_cast<double>(rank) * pitch(); }

  double x_of(double seconds) const {
    const double share = whole_s_ > 0 ? seconds / whole_s_ : 0;
    return kLeft + share * (kFigureWidth - kLeft - kRight);
  }

  void draw_legend() {
    constexpr double kEntryWidth = 110;
    constexpr double kBox = 12;
    double x = kLeft;
    for (const Paint& paint : kPaints) {
      pen_.box({x, 36, kBox, kBox}, paint.look);
      pen_.text({x + kBox + 5, 46}, paint.name);
      x += kEntryWidth;
    }
  }

  void draw_axis() {
    const double bottom = height_ - kBottom;
    if (!(whole_s_ > 0)) return;
    const double step_s = tick_of(whole_s_, 10);
    for (int i = 0; i * step_s <= whole_s_; ++i) {
      const double x = x_of(i * step_s);
      pen_.line({x, kTop - 6}, {x, bottom}, "grid");
      pen_.text({x, kTop - 10}, time_text(i * step_s, whole_s_), "small middle");
    }
  }

  void draw_lanes() {
    for (std::size_t r = 0; r < rank_count_; ++r) {
      const double y = lane_y(r);
      pen_.text_in(kLeft - 15, {10, y + 15}, rank_names_[r]);
      pen_.box({kLeft, y, kFigureWidth - kLeft - kRight, kLaneHeight}, "lane");
    }
  }

  void draw_span(const TraceSpan& span) {
    constexpr double kLeastWidth = 0.3;  // narrower spans would be invisible
    const bool in_link = is_link(span);
    const Paint paint = paint_of(span);
    const double x = x_of(span.start_s);
    const double width = std::max(kLeastWidth, x_of(span.start_s + span.duration_s) - x);
    const double y = lane_y(span.rank.index()) + (in_link ? kLaneHeight + 1 : 0);
    const std::string what = in_link ? span.name + " " + span.lane : span.name;
    pen_.box({x, y, width, in_link ? kLinkHeight : kLaneHeight}, paint.look,
             fmt::format("{}, {} from {}", what, time_text(span.duration_s, span.duration_s),
                         time_text(span.start_s, whole_s_)));
    const bool fits = width >= text_width(span.name, kSmallFontPx) + 2;
    if (!fits || in_link || paint.look == kWait.look) return;
    pen_.text({x + width / 2, y + 15}, span.name, "small middle on-paint");
  }

  void draw_note() {
    std::string note = fmt::format("whole time {}", time_text(end_s_, end_s_));
    if (rank_count_ < rank_names_.size()) {
      note += fmt::format("; the first {} of {} ranks are drawn", rank_count_, rank_names_.size());
    }
    if (left_out_ > 0) note += fmt::format("; the {} shortest spans are left out", left_out_);
    pen_.text({10, height_ - 14}, note, "faint");
  }

  const std::vector<std::string>& rank_names_;
  const TimelineOptions& options_;
  const std::size_t rank_count_;
  const double end_s_;
  const double whole_s_;  // the axis's length
  const double height_;
  std::vector<const TraceSpan*> chosen_;
  std::size_t left_out_ = 0;
  FigurePen pen_;
};

}  // namespace

double end_of(const std::vector<TraceSpan>& spans) {
  double end_s = 0;
  for (const TraceSpan& span : spans) end_s = std::max(end_s, span.start_s + span.duration_s);
  return end_s;
}

Figure timeline(const std::vector<TraceSpan>& spans,
                const std::vector<std::string>& rank_names,
                const TimelineOptions& options) {
  return TimelineDrawing(spans, rank_names, options).draw();
}

}  // namespace motley
