#include "figures/pages/plan_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "figures/figure_text.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

// In pixels. Columns, each with a gap to the next:
constexpr double kNameX = 10;
constexpr double kNameWidth = 225;
constexpr double kLayersX = 250;
constexpr double kLayersWidth = 400;
constexpr double kTimeX = 680;
constexpr double kTimeWidth = 270;
constexpr double kMemoryX = 980;
constexpr double kMemoryWidth = 280;

constexpr double kHeadHeight = 96;
constexpr double kRowHeight = 52;
constexpr double kJointHeight = 26;
constexpr double kBarHeight = 16;
constexpr double kLineHeight = 20;

double share_of(double part, double whole) {
  return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0;
}

class PlanDrawing {
 public:
  PlanDrawing(const PlanSketch& sketch, const std::vector<std::string>& rank_names)
      : sketch_(sketch), rank_names_(rank_names) {}

  Figure draw(const std::string& title) && {
    draw_head(title);
    double y = kHeadHeight;
    const std::size_t shown = std::min(sketch_.ranks.size(), kRanksDrawnMax);
    for (std::size_t r = 0; r < shown; ++r) {
      draw_rank(r, y);
      y += kRowHeight;
      if (r + 1 == shown) continue;
      draw_joint(sketch_.ranks[r], sketch_.ranks[r + 1], y);
      y += kJointHeight;
    }
    if (shown < sketch_.ranks.size()) {
      y += kLineHeight;
      pen_.text({kNameX, y}, fmt::format("and {} more ranks", sketch_.ranks.size() - shown),
                "faint");
    }
    if (!sketch_.links.empty()) y = draw_links(y + 14);
    return std::move(pen_).finish(y + 12);
  }

 private:
  // "" if at most 1 % are frozen.
  [[nodiscard]] std::string frozen_text() const {
    constexpr std::int64_t kShare = 100;
    if (sketch_.frozen_values <= sketch_.parameters / kShare) return "";
    return fmt::format(" ({} more are frozen)", count_text(sketch_.frozen_values));
  }

  void draw_head(const std::string& title) {
    pen_.text_in(kFigureWidth - 20, {kNameX, 26}, title, "title");
    pen_.text_in(kFigureWidth - 20, {kNameX, 48},
                 fmt::format("a step of {}{}, {} {}/s; {}; {} parameters{} in {} layers",
                             seconds_text(sketch_.step_s), sketch_.times_label,
                             per_second_text(sketch_.units_per_s), sketch_.unit, sketch_.shape,
                             count_text(sketch_.parameters), frozen_text(), sketch_.layer_count));
    pen_.text({kNameX, kHeadHeight - 14}, "stage (machine)", "faint");
    pen_.text({kLayersX, kHeadHeight - 14}, "its layers", "faint");
    draw_key(kTimeX, "forward", "computes");
    draw_key(kTimeX + 85, "codec", "codec");
    draw_key(kTimeX + 150, "wait", "waits, of a step");
    draw_key(kMemoryX, "used", "memory");
    pen_.line({kMemoryX + 85, kHeadHeight - 26}, {kMemoryX + 85, kHeadHeight - 10}, "limit");
    pen_.text({kMemoryX + 91, kHeadHeight - 14}, "its memory", "faint");
  }

  void draw_key(double x, std::string_view look, std::string_view words) {
    pen_.box({x, kHeadHeight - 24, 12, 12}, look);
    pen_.text({x + 17, kHeadHeight - 14}, words, "faint");
  }

  void draw_rank(std::size_t index, double y) {
    const RankSketch& rank = sketch_.ranks[index];
    pen_.text_in(kNameWidth, {kNameX, y + 14}, rank_names_[index], "bold");
    pen_.text_in(
        kNameWidth, {kNameX, y + 32},
        fmt::format("{}, {} thread{}", rank.device, rank.threads, rank.threads == 1 ? "" : "s"),
        "faint");
    draw_layers(rank, y + 2);
    draw_time(rank, y + 2);
    draw_memory(rank, y + 2);
  }

  void draw_layers(const RankSketch& rank, double y) {
    pen_.box({kLayersX, y, kLayersWidth, kBarHeight}, "lane");
    const double a_layer = kLayersWidth / std::max(1, sketch_.layer_count);
    for (const LayerRun& run : rank.runs) {
      const std::string count = fmt::format("{}", run.layer_count);
      const FigureBox box = {kLayersX + run.first_layer * a_layer, y, run.layer_count * a_layer,
                             kBarHeight};
      pen_.box(
          box, run.recompute ? "twice" : "held",
          fmt::format("layers {} to {}{}", run.first_layer, run.first_layer + run.layer_count - 1,
                      run.recompute ? ", forward runs twice" : ""));
      if (box.width < text_width(count, kSmallFontPx) + 2) continue;
      pen_.text({box.x + box.width / 2, y + 12}, count, "small middle on-paint");
    }
    pen_.box({kLayersX, y, kLayersWidth, kBarHeight}, "frame");
    const bool twice = std::ranges::any_of(rank.runs, &LayerRun::recompute);
    pen_.text_in(kLayersWidth, {kLayersX, y + 30},
                 fmt::format("{}; {} parameters{}", rank.layers, count_text(rank.parameters),
                             twice ? "; runs forward twice" : ""),
                 "faint");
  }

  void draw_time(const RankSketch& rank, double y) {
    const double computes = share_of(rank.time.compute_s, sketch_.step_s);
    const double codes = std::min(share_of(rank.time.codec_s, sketch_.step_s), 1 - computes);
    pen_.box({kTimeX, y, kTimeWidth, kBarHeight}, "wait");
    pen_.box({kTimeX, y, computes * kTimeWidth, kBarHeight}, "forward");
    pen_.box({kTimeX + computes * kTimeWidth, y, codes * kTimeWidth, kBarHeight}, "codec");
    pen_.box({kTimeX, y, kTimeWidth, kBarHeight}, "frame");
    const double stage_s = rank.time.fill_s + rank.time.drain_s + rank.time.wait_stage_s;
    pen_.text_in(kMemoryX - kTimeX - 8, {kTimeX, y + 30},
                 fmt::format("{}; waits: stages {}, links {}", percent_text(computes),
                             percent_text(share_of(stage_s, sketch_.step_s)),
                             percent_text(share_of(rank.time.wait_link_s, sketch_.step_s))),
                 "faint");
  }

  // If the limit is unknown or exceeded, the used memory fills the bar.
  void draw_memory(const RankSketch& rank, double y) {
    const bool is_known = rank.memory_limit_bytes > 0;
    const double whole = std::max(rank.memory_limit_bytes, rank.memory_bytes);
    pen_.box({kMemoryX, y, kMemoryWidth, kBarHeight}, "lane");
    pen_.box({kMemoryX, y, share_of(rank.memory_bytes, whole) * kMemoryWidth, kBarHeight}, "used");
    pen_.box({kMemoryX, y, kMemoryWidth, kBarHeight}, "frame");
    if (is_known) {
      const double x = kMemoryX + share_of(rank.memory_limit_bytes, whole) * kMemoryWidth;
      pen_.line({x, y - 3}, {x, y + kBarHeight + 3}, "limit");
    }
    pen_.text_in(kMemoryWidth, {kMemoryX, y + 30},
                 is_known
                     ? fmt::format("{} of {}, {}", bytes_text(rank.memory_bytes),
                                   bytes_text(rank.memory_limit_bytes),
                                   percent_text(rank.memory_bytes / rank.memory_limit_bytes))
                     : fmt::format("{}; its memory is not known", bytes_text(rank.memory_bytes)),
                 "faint");
  }

  [[nodiscard]] const LinkSketch* find(const std::string& from, const std::string& to) const {
    const auto link = std::ranges::find_if(sketch_.links, [&](const LinkSketch& candidate) {
      return candidate.use.from == from && candidate.use.to == to;
    });
    return link == sketch_.links.end() ? nullptr : &*link;
  }

  // The traffic between two rows.
  void draw_joint(const RankSketch& upper, const RankSketch& lower, double y) {
    const double x = kNameX + 8;
    std::string words;
    if (upper.machine == lower.machine) {
      words = "within " + upper.machine;
    } else if (const LinkSketch* down = find(upper.machine, lower.machine)) {
      const LinkSketch* up = find(lower.machine, upper.machine);
      words = fmt::format("{} down{}, at {}{}", bytes_text(down->use.bytes),
                          up == nullptr ? "" : fmt::format(" and {} up", bytes_text(up->use.bytes)),
                          link_rate_text(down->speed.bandwidth_bytes_per_s),
                          down->codec.empty() ? "" : ", codec " + down->codec);
    }
    if (words.empty()) return;
    pen_.line({x, y - 12}, {x, y + 16}, "limit");
    pen_.text_in(kLayersX + kLayersWidth - x - 12, {x + 12, y + 8}, words, "faint");
  }

  double draw_links(double y) {
    constexpr std::array<double, 6> kX = {10, 250, 400, 520, 680, 980};
    y += kLineHeight;
    pen_.text({kX[0], y}, "link", "faint");
    pen_.text({kX[1], y}, "a step", "faint");
    pen_.text({kX[2], y}, "codec", "faint");
    pen_.text({kX[3], y}, "rate", "faint");
    draw_in_use_head(kX[4], y);
    const std::size_t shown = std::min(sketch_.links.size(), kLinksDrawnMax);
    for (std::size_t i = 0; i < shown; ++i) {
      const LinkSketch& link = sketch_.links[i];
      const double share = share_of(link.use.busy_s, sketch_.step_s);
      y += kLineHeight;
      pen_.text_in(kX[1] - kX[0] - 10, {kX[0], y}, link.use.from + " → " + link.use.to);
      pen_.text({kX[1], y}, bytes_text(link.use.bytes));
      pen_.text_in(kX[3] - kX[2] - 10, {kX[2], y}, link.codec.empty() ? "-" : link.codec);
      pen_.text({kX[3], y}, link_rate_text(link.speed.bandwidth_bytes_per_s));
      pen_.box({kX[4], y - 10, kTimeWidth, 12}, "lane");
      pen_.box({kX[4], y - 10, share * kTimeWidth, 12}, "link");
      pen_.box({kX[4], y - 10, kTimeWidth, 12}, "frame");
      pen_.text({kX[5], y}, percent_text(share));
    }
    if (shown == sketch_.links.size()) return y;
    y += kLineHeight;
    pen_.text({kX[0], y}, fmt::format("and {} less used links", sketch_.links.size() - shown),
              "faint");
    return y;
  }

  void draw_in_use_head(double x, double y) {
    pen_.box({x, y - 10, 12, 12}, "link");
    pen_.text({x + 17, y}, "in use, of a step", "faint");
  }

  const PlanSketch& sketch_;
  const std::vector<std::string>& rank_names_;
  FigurePen pen_;
};

}  // namespace

Figure plan_figure(const PlanSketch& sketch,
                   const std::vector<std::string>& rank_names,
                   const std::string& title) {
  return PlanDrawing(sketch, rank_names).draw(title);
}

Figure contribution_figure(const std::vector<TextRow>& rows) {
  FigurePen pen;
  if (rows.empty()) return std::move(pen).finish(0);
  double y = 22;
  pen.text({kNameX, y}, "Gain of each machine", "bold");
  for (const TextRow& row : rows) {
    y += kLineHeight;
    pen.text_in(kNameWidth, {kNameX, y}, row.front());
    pen.text_in(kFigureWidth - kLayersX - 10, {kLayersX, y}, row.back());
  }
  return std::move(pen).finish(y + 14);
}

}  // namespace motley
