#include "tests/watch/played_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace motley {
namespace {

constexpr double kPlanned_s = 0.58;
constexpr std::array<const char*, 3> kMachines = {"old-box", "desktop", "laptop"};
constexpr std::array<double, 3> kCompute_s = {0.44, 0.51, 0.38};
constexpr int kRanks = 3;
constexpr int kMicroBatches = 8;
constexpr double kStart_s = 1795000000.0;  // since 1970

double loss_at(std::int64_t step) {
  const auto x = static_cast<double>(step);
  return 1.6 + 4.0 * std::exp(-x / 60.0) + 0.08 * std::sin(x * 1.7) * std::exp(-x / 300.0);
}

double step_s_at(std::int64_t step) {
  return kPlanned_s * (1.04 + 0.05 * std::sin(static_cast<double>(step) * 0.37));
}

// One forward and one backward of each micro-batch on each rank, in 1F1B order as far as a picture
// needs it; a `slow` rank takes `slow` times as long.
Json spans(double forward_s, double slow) {
  Json spans = Json::array();
  std::array<double, kRanks> free_s{};
  const auto add = [&](int rank, const std::string& name, double start_s, double duration_s) {
    const double ready_s = free_s[static_cast<std::size_t>(rank)];
    if (start_s - ready_s > 1e-4) {
      spans.push_back({{"rank", rank},
                       {"lane", "wait"},
                       {"name", name},
                       {"start_s", ready_s},
                       {"duration_s", start_s - ready_s}});
    }
    spans.push_back({{"rank", rank},
                     {"lane", "compute"},
                     {"name", name},
                     {"start_s", start_s},
                     {"duration_s", duration_s}});
    free_s[static_cast<std::size_t>(rank)] = start_s + duration_s;
  };
  const auto named = [](const char* kind, int rank, int micro) {
    return kind + std::to_string(rank) + "." + std::to_string(micro);
  };
  for (int micro = 0; micro < kMicroBatches; ++micro) {
    double before_s = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      const double takes_s = forward_s * (rank == 1 ? slow : 1);
      add(rank, named("F", rank, micro), std::max(free_s[r], before_s), takes_s);
      before_s = free_s[r];
    }
  }
  for (int micro = 0; micro < kMicroBatches; ++micro) {
    double before_s = 0;
    for (int rank = kRanks - 1; rank >= 0; --rank) {
      const auto r = static_cast<std::size_t>(rank);
      add(rank, named("B", rank, micro), std::max(free_s[r], before_s),
          1.9 * forward_s * (rank == 1 ? slow : 1));
      before_s = free_s[r];
    }
  }
  const double all_s = *std::ranges::max_element(free_s);
  for (int rank = 0; rank < kRanks; ++rank) add(rank, "V", all_s, forward_s / 2);
  return spans;
}

}  // namespace

void PlayedRun::play(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  step_ = std::min(step_ + count, steps_);
  changes_.state = true;
  changes_.last_step = step_;
}

void PlayedRun::cut_to(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  changes_.state = changes_.cut = true;
  changes_.last_step = step;
}

void PlayedRun::happens(const std::string& kind, const std::string& text) {
  const std::lock_guard lock(mutex_);
  events_.push_back({{"time", kStart_s + static_cast<double>(step_)},
                     {"step", step_},
                     {"kind", kind},
                     {"text", text}});
  changes_.events = true;
}

void PlayedRun::ends(const std::string& state, const std::string& text) {
  const std::lock_guard lock(mutex_);
  run_state_ = state;
  text_ = text;
  changes_.description = changes_.state = true;
}

void PlayedRun::is_long() {
  const std::lock_guard lock(mutex_);
  is_long_ = true;
}

void PlayedRun::breaks(Error error) {
  const std::lock_guard lock(mutex_);
  broken_.assign(1, std::move(error));
}

int PlayedRun::looks() const {
  const std::lock_guard lock(mutex_);
  return looks_;
}

RunChanges PlayedRun::look() {
  const std::lock_guard lock(mutex_);
  ++looks_;
  changes_.has_more = is_long_;
  return std::exchange(changes_, RunChanges{.last_step = step_});
}

Json PlayedRun::description() const {
  Json machines = Json::array();
  Json ranks = Json::array();
  Json links = Json::array();
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string machine = kMachines[static_cast<std::size_t>(rank)];
    machines.push_back({{"name", machine}, {"ranks", Json::array({rank})}});
    ranks.push_back({{"name", "stage " + std::to_string(rank) + " (" + machine + ")"},
                     {"machine", machine},
                     {"device", "cpu"},
                     {"first_layer", 4 * rank},
                     {"last_layer", 4 * rank + 3},
                     {"predicted",
                      {{"compute_s", kCompute_s[static_cast<std::size_t>(rank)]},
                       {"memory_bytes", 400 << 20},
                       {"sent_bytes", 4 << 20}}}});
    for (const int other : {rank - 1, rank + 1}) {
      if (other < 0 || other >= kRanks) continue;
      links.push_back({{"from", rank},
                       {"to", other},
                       {"from_machine", machine},
                       {"to_machine", kMachines[static_cast<std::size_t>(other)]},
                       {"codec", other > rank ? "fp16" : "int8"},
                       {"bandwidth_bytes_s", other == 2 ? 6.25e6 : 12.5e6},
                       {"predicted_bytes", 2 << 20}});
    }
  }
  return {{"run",
           {{"name", "played"},
            {"folder", "runs/played"},
            {"model", "gpt2, 12 layers of 768, 124.4 M parameters"},
            {"steps", steps_},
            {"state", run_state_},
            {"status", nullptr},
            {"text", text_}}},
          {"machines", machines},
          {"ranks", ranks},
          {"links", links},
          {"plan",
           {{"hash", "5e1f0c27"},
            {"schedule", "1f1b"},
            {"micro_batches", kMicroBatches},
            {"predicted_step_s", kPlanned_s}}}};
}

Json PlayedRun::health() const {
  if (run_state_ != "training") {
    return {
        {"level", run_state_ == "ended" ? "good" : "bad"}, {"text", text_}, {"advice", nullptr}};
  }
  return {{"level", "watch"},
          {"text", "desktop is the bottleneck: +9 % over plan"},
          {"advice", "see what else runs there, or plan anew with motley plan --learn"}};
}

Json PlayedRun::state() const {
  Json ranks = Json::array();
  for (int rank = 0; rank < kRanks; ++rank) {
    const double compute_s = kCompute_s[static_cast<std::size_t>(rank)];
    ranks.push_back(
        {{"compute_s", compute_s},
         {"codec_s", 0.02},
         {"optimizer_s", 0.015},
         {"wait_s",
          {{"activation", 0.02 * rank}, {"gradient", 0.05}, {"vote", 0.01}, {"other", 0.002}}},
         {"memory_bytes", (rank == 1 ? 420 : 330) << 20}});
  }
  const bool any = step_ > 0;
  return {
      {"step", step_},
      {"steps", steps_},
      {"loss", any ? Json(loss_at(step_)) : Json()},
      {"step_s", any ? Json(step_s_at(step_)) : Json()},
      {"predicted_step_s", kPlanned_s},
      {"tokens_per_s", any ? Json(4096 / step_s_at(step_)) : Json()},
      {"eta_s", any ? Json(static_cast<double>(steps_ - step_) * kPlanned_s) : Json()},
      {"verdict", health()},
      {"ranks", ranks},
      {"links", Json::array({{{"from", 0}, {"to", 1}, {"bytes_s", 5.6e6}},
                             {{"from", 1}, {"to", 0}, {"bytes_s", 2.9e6}},
                             {{"from", 1}, {"to", 2}, {"bytes_s", 5.6e6}},
                             {{"from", 2}, {"to", 1}, {"bytes_s", 2.9e6}}})},
      {"losses",
       {{"imbalance", 0.09}, {"links_and_filling", 0.05}, {"codec", 0.03}, {"optimizer", 0.02}}}};
}

Result<std::string> PlayedRun::part(RunDocument part) {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty()) return broken_.front();
  switch (part) {
    case RunDocument::kDescription:
      return description().dump();
    case RunDocument::kState:
      return state().dump();
    case RunDocument::kTimeline:
      break;
  }
  return Json{{"measured", {{"step", 5}, {"spans", spans(0.02, 1.2)}}},
              {"simulated", {{"step", 0}, {"spans", spans(0.02, 1)}}}}
      .dump();
}

Result<std::string> PlayedRun::history(std::size_t points, std::int64_t after_step) {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty()) return broken_.front();
  const std::int64_t rows = std::max(step_ - after_step, std::int64_t{0});
  const std::int64_t stride = std::max<std::int64_t>(1, rows / static_cast<std::int64_t>(points));
  Json columns{{"step", Json::array()},   {"loss", Json::array()},
               {"step_s", Json::array()}, {"tokens_per_s", Json::array()},
               {"bubble", Json::array()}, {"lr", Json::array()},
               {"eval", Json::array()},   {"predicted_step_s", kPlanned_s}};
  for (std::int64_t step = after_step + 1; step <= step_; step += stride) {
    columns["step"].push_back(step);
    columns["loss"].push_back(loss_at(step));
    columns["step_s"].push_back(step_s_at(step));
    columns["tokens_per_s"].push_back(4096 / step_s_at(step));
    columns["bubble"].push_back(0.14 + 0.03 * std::sin(static_cast<double>(step)));
    columns["lr"].push_back(4e-4);
    if (step % 50 == 0) columns["eval"].push_back({step, loss_at(step) + 0.1});
  }
  return columns.dump();
}

Result<std::string> PlayedRun::events(std::size_t newest) {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty()) return broken_.front();
  const std::size_t count = std::min(newest, events_.size());
  return Json(std::vector<Json>(events_.end() - static_cast<std::ptrdiff_t>(count), events_.end()))
      .dump();
}

Result<std::string> PlayedRun::metrics(MetricsFormat format) {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty()) return broken_.front();
  const std::string sample = "motley_run_last_step " + std::to_string(step_) + "\n";
  return format == MetricsFormat::kOpenMetrics ? sample + "# EOF\n" : sample;
}

}  // namespace motley
