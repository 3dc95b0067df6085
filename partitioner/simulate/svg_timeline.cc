#include "partitioner/simulate/svg_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace motley {
namespace {

// Of the picture, in pixels.
constexpr double kWidth = 1280;
constexpr double kLeft = 190;  // of the time axis; the names stand before it
constexpr double kRight = 20;
constexpr double kTop = 74;
constexpr double kBottom = 40;
constexpr double kLaneHeight = 22;
constexpr double kLinkHeight = 6;
constexpr double kGap = 6;
constexpr std::size_t kNameCharacters = 26;

enum Paint : std::size_t {
  kForward,
  kBackward,
  kWeights,
  kUpdate,
  kCodec,
  kWait,
  kLink,
  kPaintCount
};

struct PaintLook {
  std::string_view name;
  std::string_view colour;
};

constexpr std::array<PaintLook, kPaintCount> kLooks = {{{"forward", "#4e79a7"},
                                                        {"backward", "#59a14f"},
                                                        {"weight part", "#8cd17d"},
                                                        {"update, vote", "#b07aa1"},
                                                        {"codec", "#f28e2b"},
                                                        {"wait", "#e3e3e3"},
                                                        {"link, sum", "#e15759"}}};

// A span's lane and name are those of docs/formats/trace.md.
Paint paint_of(const TraceSpan& span) {
  if (span.lane == "wait") return kWait;
  if (span.lane.starts_with("link") || span.lane == "sum") return kLink;
  if (span.lane == "codec") return kCodec;
  if (span.name.starts_with('F')) return kForward;
  if (span.name.starts_with("BW")) return kWeights;
  if (span.name.starts_with('B')) return kBackward;
  return kUpdate;
}

// As XML text: the five reserved characters, and a mark for what XML does not allow at all.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&apos;";
        break;
      default:
        result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return result;
}

// Cut between characters of UTF-8, with an ellipsis where something is missing.
std::string shortened(const std::string& text) {
  const auto is_start = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_start(text[at]) && ++characters > kNameCharacters) return text.substr(0, at) + "…";
  }
  return text;
}

std::string time_text(double seconds, double whole_s) {
  if (whole_s < 1e-3) return fmt::format("{:.4g} µs", seconds * 1e6);
  if (whole_s < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} s", seconds);
}

// 1, 2 or 5 times a power of ten, so that about ten of them make the whole.
double tick_s(double whole_s) {
  constexpr double kTicks = 10;
  const double power = std::pow(10, std::floor(std::log10(whole_s / kTicks)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power * kTicks >= whole_s) return step * power;
  }
  return 10 * power;
}

class Drawing {
 public:
  Drawing(const std::vector<TraceSpan>& spans,
          const std::vector<std::string>& rank_names,
          const TimelineOptions& options)
      : rank_names_(rank_names),
        options_(options),
        rank_count_(std::min(rank_names.size(), options.ranks_max)) {
    choose(spans);
    height_ = kTop + static_cast<double>(rank_count_) * pitch() + kBottom;
  }

  std::string draw() {
    add(R"(<?xml version="1.0" encoding="UTF-8"?>)"
        "\n"
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" )"
        R"(height="{1}" font-family="sans-serif" font-size="12">)",
        kWidth, height_);
    add(R"(<rect width="{}" height="{}" fill="#ffffff"/>)", kWidth, height_);
    add(R"(<text x="10" y="22" font-size="15">{}</text>)", escaped(options_.title));
    draw_legend();
    draw_axis();
    draw_lanes();
    for (const TraceSpan* span : chosen_) draw_span(*span);
    draw_note();
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  // The spans of the ranks that are shown: the longest, in their order.
  void choose(const std::vector<TraceSpan>& spans) {
    for (const TraceSpan& span : spans) {
      end_s_ = std::max(end_s_, span.start_s + span.duration_s);
      const bool shown = span.rank.value >= 0 && span.rank.index() < rank_count_;
      if (shown) chosen_.push_back(&span);
    }
    if (chosen_.size() <= options_.spans_max) return;
    left_out_ = chosen_.size() - options_.spans_max;
    std::vector<double> durations;
    for (const TraceSpan* span : chosen_) durations.push_back(span->duration_s);
    const auto limit = durations.begin() + static_cast<std::ptrdiff_t>(left_out_);
    std::nth_element(durations.begin(), limit, durations.end());
    // As many of the spans that are just as long as the limit are left out as it takes.
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
    const double share = end_s_ > 0 ? seconds / end_s_ : 0;
    return kLeft + share * (kWidth - kLeft - kRight);
  }

  void draw_legend() {
    constexpr double kEntryWidth = 110;
    constexpr double kBox = 12;
    for (std::size_t p = 0; p < kPaintCount; ++p) {
      const double x = kLeft + static_cast<double>(p) * kEntryWidth;
      add(R"(<rect x="{}" y="36" width="{}" height="{}" fill="{}"/>)", x, kBox, kBox,
          kLooks[p].colour);
      add(R"(<text x="{}" y="46">{}</text>)", x + kBox + 5, kLooks[p].name);
    }
  }

  void draw_axis() {
    const double bottom = height_ - kBottom;
    if (!(end_s_ > 0)) return;
    const double step_s = tick_s(end_s_);
    for (int i = 0; i * step_s <= end_s_; ++i) {
      const double x = x_of(i * step_s);
      add(R"(<line x1="{0:.2f}" y1="{1}" x2="{0:.2f}" y2="{2}" stroke="#d0d0d0"/>)", x, kTop - 6,
          bottom);
      add(R"(<text x="{:.2f}" y="{}" text-anchor="middle" font-size="10">{}</text>)", x, kTop - 10,
          time_text(i * step_s, end_s_));
    }
  }

  void draw_lanes() {
    for (std::size_t r = 0; r < rank_count_; ++r) {
      const double y = lane_y(r);
      add(R"(<text x="10" y="{}"><title>{}</title>{}</text>)", y + 15, escaped(rank_names_[r]),
          escaped(shortened(rank_names_[r])));
      add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="#f7f7f7"/>)", kLeft, y,
          kWidth - kLeft - kRight, kLaneHeight);
    }
  }

  void draw_span(const TraceSpan& span) {
    constexpr double kLeastWidth = 0.3;  // else it could not be seen
    constexpr double kCharacterWidth = 6.5;
    const Paint paint = paint_of(span);
    const double x = x_of(span.start_s);
    const double width = std::max(kLeastWidth, x_of(span.start_s + span.duration_s) - x);
    const double y = lane_y(span.rank.index()) + (paint == kLink ? kLaneHeight + 1 : 0);
    const std::string what = paint == kLink ? span.name + " " + span.lane : span.name;
    add(R"(<rect x="{:.2f}" y="{}" width="{:.2f}" height="{}" fill="{}"><title>{}, {} from {})"
        R"(</title></rect>)",
        x, y, width, paint == kLink ? kLinkHeight : kLaneHeight, kLooks[paint].colour,
        escaped(what), time_text(span.duration_s, span.duration_s),
        time_text(span.start_s, end_s_));
    const bool fits = width >= kCharacterWidth * static_cast<double>(span.name.size()) + 2;
    if (!fits || paint == kLink || paint == kWait) return;
    add(R"(<text x="{:.2f}" y="{}" font-size="10" fill="#ffffff" text-anchor="middle" )"
        R"(pointer-events="none">{}</text>)",
        x + width / 2, y + 15, escaped(span.name));
  }

  void draw_note() {
    std::string note = fmt::format("whole time {}", time_text(end_s_, end_s_));
    if (rank_count_ < rank_names_.size()) {
      note += fmt::format("; the first {} of {} ranks are drawn", rank_count_, rank_names_.size());
    }
    if (left_out_ > 0) note += fmt::format("; the {} shortest spans are left out", left_out_);
    add(R"(<text x="10" y="{}" fill="#555555">{}</text>)", height_ - 14, note);
  }

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... arguments) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(arguments)...);
    svg_ += '\n';
  }

  const std::vector<std::string>& rank_names_;
  const TimelineOptions& options_;
  const std::size_t rank_count_;
  double end_s_ = 0;
  double height_ = 0;
  std::vector<const TraceSpan*> chosen_;
  std::size_t left_out_ = 0;
  std::string svg_;
};

}  // namespace

std::string svg_timeline(const std::vector<TraceSpan>& spans,
                         const std::vector<std::string>& rank_names,
                         const TimelineOptions& options) {
  return Drawing(spans, rank_names, options).draw();
}

}  // namespace motley
