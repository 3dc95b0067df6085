#include "watch/terminal/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/json.h"
#include "plan/quantity_text.h"
#include "record/held_out_result.h"
#include "watch/terminal/screen_text.h"
#include "watch/view/utc_clock.h"

namespace motley {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string or_unknown(double value, std::string (*text)(double)) {
  return std::isfinite(value) ? text(value) : "?";
}

std::string step_text(const Json& state) {
  const double steps = number_at(state, "steps");
  const std::string of = std::isfinite(steps) ? fmt::format("/{:.0f}", steps) : "";
  return fmt::format("step {:.0f}{}", number_at(state, "step"), of);
}

// Of the last evaluation.
std::string evaluation_text(const Json& eval) {
  const double loss = number_at(eval, "loss");
  if (!std::isfinite(loss)) return "";
  const auto value_of = [&](const char* key) {
    const double value = number_at(eval, key);
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  };
  return "  " + held_out_text({.loss = loss,
                               .perplexity = value_of("perplexity"),
                               .accuracy = value_of("accuracy"),
                               .top5_accuracy = value_of("top5_accuracy")});
}

// Unknown values are omitted.
std::string figures_text(const Json& state) {
  std::string text = step_text(state);
  if (state.value("virtual", false)) text += "  virtual";
  const double loss = number_at(state, "loss");
  if (std::isfinite(loss)) text += fmt::format("  loss {:.3f}", loss);
  if (state.contains("eval") && state["eval"].is_object()) text += evaluation_text(state["eval"]);
  const double rate = number_at(state, "tokens_per_s");
  if (std::isfinite(rate)) text += fmt::format("  {} tok/s", per_second_text(rate));
  const double step_s = number_at(state, "step_s");
  if (std::isfinite(step_s)) text += fmt::format("  {} a step", seconds_text(step_s));
  const double planned_s = number_at(state, "predicted_step_s");
  if (std::isfinite(planned_s)) text += fmt::format(" (planned {})", seconds_text(planned_s));
  const double left_s = number_at(state, "eta_s");
  if (std::isfinite(left_s)) text += "  ETA " + duration_text(left_s);
  return text;
}

LineStyle style_of(const Json& health) {
  const std::string level = text_at(health, "level");
  if (level == "good") return LineStyle::kGood;
  return level == "watch" ? LineStyle::kWatch : LineStyle::kBad;
}

// The level as a word, in addition to its colour.
std::string health_text(const Json& health) {
  return fmt::format("{}: {}", text_at(health, "level"), text_at(health, "text"));
}

double waited_s(const Json& rank) {
  double sum_s = 0;
  if (!rank.contains("wait_s")) return std::nan("");
  for (const auto& [cause, seconds] : rank["wait_s"].items()) {
    if (seconds.is_number()) sum_s += seconds.get<double>();
  }
  return sum_s;
}

std::string over_text(double planned, double measured) {
  return planned > 0 && std::isfinite(measured)
             ? fmt::format("{:+.0f} %", (measured / planned - 1) * 100)
             : "";
}

// "0-3", or "0-3,8-11" for a rank with several chunks.
std::string layers_text(const Json& rank) {
  std::string text;
  for (const Json& chunk : rank["chunks"]) {
    const auto first = chunk[0].get<std::int64_t>();
    const auto last = chunk[1].get<std::int64_t>();
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

Rows rank_rows(const Json& description, const Json& state) {
  Rows rows = {{"", "device", "layers", "computes", "planned", "over", "waits", "memory", "of"}};
  const Json& planned = description["ranks"];
  const Json& measured = state["ranks"];
  for (std::size_t r = 0; r < planned.size(); ++r) {
    const Json none = Json::object();
    const Json& rank = r < measured.size() ? measured[r] : none;
    const Json& predicted = planned[r]["predicted"];
    const double compute_s = number_at(rank, "compute_s");
    const double limit = number_at(planned[r], "memory_limit_bytes");
    rows.push_back({text_at(planned[r], "name"), text_at(planned[r], "device"),
                    layers_text(planned[r]), or_unknown(compute_s, seconds_text),
                    or_unknown(number_at(predicted, "compute_s"), seconds_text),
                    over_text(number_at(predicted, "compute_s"), compute_s),
                    or_unknown(waited_s(rank), seconds_text),
                    or_unknown(number_at(rank, "memory_bytes"), bytes_text),
                    or_unknown(std::isfinite(limit) ? limit : number_at(predicted, "memory_bytes"),
                               bytes_text)});
  }
  return rows;
}

// The links between machines.
Rows link_rows(const Json& description, const Json& state) {
  Rows rows = {{"link", "codec", "used", "of"}};
  for (const Json& link : description["links"]) {
    if (link["from_machine"] == link["to_machine"]) continue;
    double used = std::nan("");
    for (const Json& each : state["links"]) {
      if (each["from"] == link["from"] && each["to"] == link["to"])
        used = number_at(each, "bytes_s");
    }
    rows.push_back(
        {fmt::format("{} → {}", text_at(link, "from_machine"), text_at(link, "to_machine")),
         text_at(link, "codec"), or_unknown(used, link_rate_text),
         or_unknown(number_at(link, "bandwidth_bytes_s"), link_rate_text)});
  }
  return rows.size() == 1 ? Rows() : rows;
}

std::string losses_text(const Json& losses) {
  const std::vector<std::pair<const char*, const char*>> parts = {
      {"imbalance", "unequal work"},
      {"links_and_filling", "links and filling"},
      {"codec", "messages and codecs"},
      {"optimizer", "optimizer"}};
  std::string text;
  for (const auto& [key, words] : parts) {
    const double share = number_at(losses, key);
    if (!std::isfinite(share)) continue;
    text +=
        fmt::format("{}{} {:.1f} %", text.empty() ? "not computing: " : ", ", words, share * 100);
  }
  return text;
}

std::string loss_line(const Json& history, std::size_t columns) {
  std::vector<double> losses;
  for (const Json& loss : history["loss"]) {
    losses.push_back(loss.is_number() ? loss.get<double>() : std::nan(""));
  }
  if (losses.size() > columns) {
    losses.erase(losses.begin(), losses.end() - static_cast<std::ptrdiff_t>(columns));
  }
  return sparkline(losses);
}

// Collects lines until the screen is full.
class Page {
 public:
  explicit Page(ScreenSize size) : size_(size) {}

  void add(const std::string& text, LineStyle style = LineStyle::kPlain) {
    if (lines_.size() < size_.rows) lines_.push_back({clipped(text, size_.columns), style});
  }

  // Adds the text, wrapped.
  void add_wrapped(const std::string& text, LineStyle style) {
    for (const std::string& line : wrapped(text, std::max<std::size_t>(size_.columns, 1))) {
      add(line, style);
    }
  }

  // The first line is a heading. Rows that do not fit are left out at the end and counted in a last
  // line.
  void add_table(const Rows& rows, std::size_t names, std::size_t rows_kept_free) {
    constexpr std::size_t kLeast = 3;  // a heading, a row, and the count of the omitted ones
    const std::size_t space = size_.rows - std::min(size_.rows, lines_.size() + rows_kept_free + 1);
    if (rows.empty() || space < kLeast) return;
    const std::vector<std::string> lines = aligned_lines(rows, names);
    add("");
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i + 1 >= space && i + 1 < lines.size()) {
        add(fmt::format("… and {} more", lines.size() - i), LineStyle::kFaint);
        return;
      }
      add(lines[i], i == 0 ? LineStyle::kFaint : LineStyle::kPlain);
    }
  }

  [[nodiscard]] std::size_t space() const { return size_.rows - lines_.size(); }

  [[nodiscard]] std::vector<ScreenLine> take() { return std::move(lines_); }

 private:
  const ScreenSize size_;
  std::vector<ScreenLine> lines_;
};

// Lower screens show no curve and no bar.
constexpr std::size_t kRowsOfLowScreen = 20;

void add_head(const ScreenDocuments& run, ScreenSize size, Page& page) {
  const Json& about = run.description["run"];
  page.add(fmt::format("{}  {}  {}", text_at(about, "name"), text_at(about, "model"),
                       text_at(about, "state")),
           LineStyle::kStrong);
  const Json& health = run.state["verdict"];
  page.add_wrapped(health_text(health), style_of(health));
  page.add_wrapped(text_at(health, "advice"), LineStyle::kFaint);
  page.add(figures_text(run.state));
  if (size.rows < kRowsOfLowScreen) return;
  page.add(progress_bar(number_at(run.state, "step") / number_at(run.state, "steps"), size.columns),
           LineStyle::kFaint);
  const std::string curve =
      loss_line(run.history, size.columns - std::min<std::size_t>(size.columns, 6));
  if (curve.find_first_not_of(' ') != std::string::npos) page.add("loss  " + curve);
}

}  // namespace

std::vector<ScreenLine> screen_lines(const ScreenDocuments& run, ScreenSize size) {
  const bool is_low = size.rows < kRowsOfLowScreen;
  const std::size_t below_ranks = is_low ? 0 : 6;
  const std::size_t below_links = is_low ? 0 : 4;
  Page page(size);
  add_head(run, size, page);
  page.add_table(rank_rows(run.description, run.state), 3, below_ranks);
  page.add_table(link_rows(run.description, run.state), 2, below_links);
  page.add("");
  page.add(losses_text(run.state["losses"]), LineStyle::kFaint);
  const std::size_t count = std::min(run.events.size(), page.space());
  for (std::size_t i = run.events.size() - count; i < run.events.size(); ++i) {
    page.add(event_line(run.events[i]));
  }
  return page.take();
}

std::string one_line(const Json& state) {
  return figures_text(state) + "  " + health_text(state["verdict"]);
}

std::string event_line(const Json& event) {
  const std::string time = clock_text(number_at(event, "time")).value_or("--:--:--");
  return fmt::format("{}  {}  {}", time, text_at(event, "kind"), text_at(event, "text"));
}

}  // namespace motley
