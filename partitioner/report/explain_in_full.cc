// The long explanation: sections of a few lines, each answering one question of a reader without
// knowledge of pipelines.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text/text_table.h"
#include "partitioner/report/explain.h"
#include "partitioner/report/plan_analysis.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

constexpr std::size_t kLinksShown = 8;
constexpr std::size_t kNamesShown = 8;
// Below this share of the step no resource is a bottleneck.
constexpr double kBinding = 0.6;

// "stage 0 (desktop)" of the rank's first chunk.
std::string rank_text(const Plan& plan, std::size_t rank) {
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const auto& replicas = plan.chunks[c].replicas;
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      if (replicas[i].rank.index() != rank) continue;
      return fmt::format("stage {} ({})", stage_name(plan, c, i), plan.ranks[rank].machine);
    }
  }
  return plan.ranks[rank].machine;
}

std::vector<std::string> ranks_text(const Plan& plan) {
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) texts.push_back(rank_text(plan, r));
  return texts;
}

// "desktop 0-17 | laptop 18-24 + box | …": the layers of each machine.
std::string stages_text(const Plan& plan) {
  std::vector<std::string> stages;
  for (const ChunkPlan& chunk : plan.chunks) {
    std::vector<std::string> machines;
    for (const Replica& replica : chunk.replicas) {
      machines.push_back(plan.ranks[replica.rank.index()].machine);
    }
    const int last = chunk.first_layer + chunk.layer_count - 1;
    stages.push_back(fmt::format("{} {}-{}{}", fmt::join(machines, "+"), chunk.first_layer, last,
                                 chunk.recompute ? " (recomputes)" : ""));
  }
  if (stages.size() > kNamesShown) {
    const std::size_t more = stages.size() - kNamesShown;
    stages.resize(kNamesShown);
    stages.push_back(fmt::format("{} more", more));
  }
  return fmt::format("{}; {}, {} x {}", fmt::join(stages, " | "), plan.schedule, plan.micro_batches,
                     plan.micro_batch);
}

std::string time_section(const Plan& plan, const PlanAnalysis& analysis) {
  std::vector<TextRow> rows = {
      {"", "computes", "codec", "fills", "drains", "waits for a stage", "waits for a link"}};
  const auto share = [&](double part_s) { return percent_text(part_s / analysis.step_s); };
  for (std::size_t r = 0; r < analysis.ranks.size(); ++r) {
    const RankTime& time = analysis.ranks[r];
    rows.push_back({rank_text(plan, r), share(time.compute_s), share(time.codec_s),
                    share(time.fill_s), share(time.drain_s), share(time.wait_stage_s),
                    share(time.wait_link_s)});
  }
  return fmt::format(
      "Use of each machine's time, of a step\n"
      "{}  fills: no micro-batch has reached it yet; drains: its work is done and others still "
      "work;\n"
      "  waits for a stage: its share of the layers is smaller than a neighbour's\n",
      aligned_table(rows, 2));
}

std::string link_section(const PlanAnalysis& analysis) {
  if (analysis.links.empty()) return "";
  std::vector<TextRow> rows = {{"from", "to", "a step", "in use"}};
  for (std::size_t i = 0; i < std::min(kLinksShown, analysis.links.size()); ++i) {
    const LinkUse& link = analysis.links[i];
    rows.push_back(
        {link.from, link.to, bytes_text(link.bytes), percent_text(link.busy_s / analysis.step_s)});
  }
  std::string text = fmt::format("\nLinks\n{}", aligned_table(rows, 2));
  if (analysis.links.size() > kLinksShown) {
    text += fmt::format("  … and {} that are used less\n", analysis.links.size() - kLinksShown);
  }
  return text;
}

constexpr std::string_view kLinks = "links";

// The causes of time that no rank computes, as shares of all ranks' time, the largest first.
std::vector<std::pair<double, std::string_view>> bubble_parts(const PlanAnalysis& analysis) {
  std::vector<std::pair<double, std::string_view>> parts = {{0, "the codec"},
                                                            {0, "filling the pipeline"},
                                                            {0, "draining it"},
                                                            {0, "unequal stages"},
                                                            {0, kLinks}};
  const double all_s = analysis.step_s * static_cast<double>(analysis.ranks.size());
  for (const RankTime& time : analysis.ranks) {
    const double times_s[] = {time.codec_s, time.fill_s, time.drain_s, time.wait_stage_s,
                              time.wait_link_s};
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].first += times_s[i] / all_s;
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return parts;
}

std::string bubble_text(const PlanAnalysis& analysis) {
  double sum = 0;
  std::vector<std::string> texts;
  for (const auto& [share, cause] : bubble_parts(analysis)) {
    sum += share;
    if (share >= 0.005) texts.push_back(fmt::format("{} {}", percent_text(share), cause));
  }
  if (texts.empty()) return "no time is lost: every device computes all the time\n";
  return fmt::format("of the devices' time {} is not spent computing:\n  {}\n", percent_text(sum),
                     fmt::join(texts, ", "));
}

// The resource that is busy for most of the step.
std::string binding_section(const Plan& plan, const PlanAnalysis& analysis) {
  double most_s = 0;
  std::string what;
  std::string change;
  for (std::size_t r = 0; r < analysis.ranks.size(); ++r) {
    const double busy_s = analysis.ranks[r].compute_s + analysis.ranks[r].codec_s;
    if (busy_s <= most_s) continue;
    most_s = busy_s;
    what = "computing on " + rank_text(plan, r);
    change = fmt::format("machine.{}.speed=2", plan.ranks[r].machine);
  }
  for (const LinkUse& link : analysis.links) {
    if (link.busy_s <= most_s) continue;
    most_s = link.busy_s;
    what = fmt::format("the link from {} to {}", link.from, link.to);
    change = fmt::format("link.{}.{}.bandwidth_mbps=x10", link.from, link.to);
  }
  const double share = most_s / analysis.step_s;
  std::string text =
      "\n"
      "Bottleneck\n";
  if (share >= kBinding) {
    text +=
        fmt::format("  {}, {} of the step; see --what-if {}\n", what, percent_text(share), change);
  } else {
    const auto waits_most = std::ranges::max_element(analysis.ranks, {}, &RankTime::wait_link_s);
    const auto r = static_cast<std::size_t>(waits_most - analysis.ranks.begin());
    const bool waits = !analysis.links.empty() && bubble_parts(analysis).front().second == kLinks;
    const bool sums = plan.gradient_codec == "none" &&
                      std::ranges::any_of(plan.chunks, [](const ChunkPlan& chunk) {
                        return chunk.replicas.size() > 1;
                      });
    const std::string rest =
        waits
            ? fmt::format(
                  "waiting for\n  links, most on {}; see --what-if link.{}.bandwidth_mbps=x10{}.\n",
                  rank_text(plan, r), plan.ranks[r].machine,
                  sums ? ", and\n  --set compression.gradients=auto for all-reduces" : "")
            : "waiting\n  in turn; more and smaller micro-batches or shorter latencies would "
              "help.\n";
    text += fmt::format("  No bottleneck: the busiest is {}, {} of the step. The rest is {}", what,
                        percent_text(share), rest);
  }
  return text + "  " + bubble_text(analysis);
}

// `step_s`: the plan's.
std::string contribution_section(const PlanAnalysis& analysis, double step_s) {
  const std::vector<TextRow> rows = contribution_rows(analysis, step_s);
  if (rows.empty()) return "";
  std::string text = fmt::format(
      "\n"
      "Gain of each machine\n"
      "{}",
      aligned_table(rows, 2));
  if (!analysis.not_tried.empty()) {
    text += fmt::format("  not tested: {} more machines\n", analysis.not_tried.size());
  }
  return text;
}

std::string alternatives_section(const Planning& planning) {
  const double step_s = planning.plan.predicted_step_s;
  std::vector<TextRow> rows;
  const auto add = [&](const char* name, const Plan& plan) {
    rows.push_back({name, seconds_text(plan.predicted_step_s),
                    change_text(step_s, plan.predicted_step_s), stages_text(plan)});
  };
  for (const Plan& plan : planning.alternatives) add("close", plan);
  if (planning.single && planning.plan.rank_count() > 1) add("one device", *planning.single);
  if (planning.data_parallel) add("data parallel", *planning.data_parallel);
  if (rows.empty()) return "";
  return fmt::format("\nOther plans\n{}", aligned_table(rows, 2));
}

// The proven bound on plans with one stage a device. The prediction comes from the simulator and
// may be below every estimate of the search; a lower bound on estimates would then be meaningless.
std::string estimate_proof(const PlanBounds& bounds, double predicted_step_s) {
  if (predicted_step_s < bounds.step_bound_s) {
    return "no other plan with one stage a device is estimated to be faster";
  }
  return fmt::format("no plan with one stage a device is estimated below {}",
                     seconds_text(bounds.step_bound_s));
}

std::string bounds_section(const PlanBounds& bounds, double predicted_step_s) {
  std::string text;
  if (bounds.period_bound_s > 0) {
    text += fmt::format(
        "  no pipeline of single devices completes a micro-batch more often than every {}\n",
        seconds_text(bounds.period_bound_s));
  }
  if (bounds.fluid_period_s > 0) {
    const double longer = std::max(0.0, bounds.period_s / bounds.fluid_period_s - 1);
    text += fmt::format(
        "  the slowest stage or link takes {} longer than if layers could be cut anywhere\n",
        percent_text(longer));
  }
  if (bounds.method == "exact" && bounds.proven) {
    text += fmt::format("  {}\n", estimate_proof(bounds, predicted_step_s));
  } else if (bounds.proven) {
    text += fmt::format("  this minimum was found and proven: {}\n",
                        seconds_text(bounds.least_period_s));
  } else if (bounds.least_period_s > 0) {
    text += fmt::format("  the smallest time found is {}, not proven to be minimal\n",
                        seconds_text(bounds.least_period_s));
  }
  return text.empty() ? ""
                      : "\n"
                        "Quality of the plan\n" +
                            text;
}

}  // namespace

std::vector<TextRow> contribution_rows(const PlanAnalysis& analysis, double step_s) {
  std::vector<TextRow> rows;
  if (analysis.machines.size() < 2) return rows;
  for (const MachineContribution& contribution : analysis.machines) {
    const std::string name = (contribution.used ? "without " : "also with ") + contribution.machine;
    if (contribution.forbidden) {
      rows.push_back({name, "left out by a pin"});
    } else if (!contribution.step_s) {
      rows.push_back({name, fmt::format("no plan: {}", contribution.why_not)});
    } else {
      rows.push_back(
          {name, fmt::format("{} a step, {}{}", seconds_text(*contribution.step_s),
                             change_text(step_s, *contribution.step_s), contribution.how)});
    }
  }
  return rows;
}

std::string search_line(const Planning& planning) {
  const PlanBounds& bounds = planning.bounds;
  if (!planning.is_complete) {
    return "search    ended early; a longer one (--seconds) may find a better plan\n";
  }
  if (!bounds.proven) return "search    complete; not proven that no plan is better\n";
  if (bounds.method == "exact") {
    return fmt::format("search    complete; proven: {}\n",
                       estimate_proof(bounds, planning.plan.predicted_step_s));
  }
  return fmt::format(
      "search    complete; proven: no pipeline completes a micro-batch more often than every {}\n",
      seconds_text(bounds.period_bound_s));
}

Result<std::string> explain_in_full(const PlanningInput& input, const Planning& planning) {
  MOTLEY_ASSIGN(const PlanAnalysis analysis, analyse_plan(input, planning.plan));
  return explain_in_full(input, planning, analysis);
}

Result<std::string> explain_in_full(const PlanningInput& input,
                                    const Planning& planning,
                                    const PlanAnalysis& analysis) {
  const Plan& plan = planning.plan;
  MOTLEY_ASSIGN(const std::string short_form,
                explain_plan(plan, input.model, input.cluster, input.profile));
  return short_form + "\n" + time_section(plan, analysis) +
         "\nMemory of each process at its peak\n" +
         memory_table(analysis.memory, ranks_text(plan)) + link_section(analysis) +
         binding_section(plan, analysis) + contribution_section(analysis, plan.predicted_step_s) +
         alternatives_section(planning) + bounds_section(planning.bounds, plan.predicted_step_s);
}

}  // namespace motley
