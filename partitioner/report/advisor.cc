#include "partitioner/report/advisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/text/text_table.h"
#include "compression/facts/codec_facts.h"
#include "partitioner/report/remedy.h"
#include "partitioner/report/what_if.h"
#include "plan/quantity_text.h"
#include "plan/units.h"

namespace motley {
namespace {

constexpr std::size_t kMachinesMax = 16;
constexpr std::size_t kShownMax = 10;
constexpr double kLeastGain = 0.01;
// More memory can only help if existing memory is nearly used up.
constexpr double kMemoryShort = 0.7;

bool uses(const Plan& plan, const std::string& machine) {
  return std::any_of(plan.ranks.begin(), plan.ranks.end(),
                     [&](const RankPlan& rank) { return rank.machine == machine; });
}

// Machines that the plan uses first, then the others, each in the cluster's order.
std::vector<std::string> machines_by_use(const Cluster& cluster, const Plan& plan) {
  std::vector<std::string> names;
  for (const Machine& machine : cluster.machines) names.push_back(machine.name);
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return uses(plan, name); });
  return names;
}

bool memory_is_short(const PlanningInput& input, const Plan& plan, const std::string& machine) {
  double used_bytes = 0;
  for (const RankPlan& rank : plan.ranks) {
    if (rank.machine == machine) used_bytes += static_cast<double>(rank.memory_bytes);
  }
  // A machine without a rank may be unused because of its memory.
  return used_bytes == 0 ||
         used_bytes >= kMemoryShort * kBytesPerGib * machine_memory_gib(input, machine);
}

std::vector<Advice> changes_of(const PlanningInput& input,
                               const Plan& plan,
                               const std::string& machine) {
  std::vector<Advice> changes;
  if (input.cluster.machines.size() > 1) {
    for (const char* factor : {"2.5", "10"}) {
      changes.push_back({fmt::format("link.{}.bandwidth_mbps=x{}", machine, factor),
                         fmt::format("links of {} {} times as fast", machine, factor), 0});
    }
  }
  const Machine* const it = input.cluster.find(machine);
  if (it != nullptr && !it->medium.empty()) {
    changes.push_back({fmt::format("machine.{}.medium=cable", machine),
                       fmt::format("{}{} on a cable as fast as its present link", machine,
                                   it->medium_is_supposed ? ", if not yet," : ""),
                       0});
  }
  changes.push_back(
      {fmt::format("machine.{}.speed=2", machine), fmt::format("{} twice as fast", machine), 0});
  if (memory_is_short(input, plan, machine)) {
    changes.push_back({fmt::format("machine.{}.memory_gib=x2", machine),
                       fmt::format("twice the memory in {}", machine), 0});
  }
  changes.push_back(
      {fmt::format("add={}", machine), fmt::format("one more machine like {}", machine), 0});
  return changes;
}

bool measured_everywhere(const Profile& profile, const std::string& codec) {
  return std::all_of(profile.devices.begin(), profile.devices.end(),
                     [&](const DeviceProfile& device) { return device.codecs.contains(codec); });
}

// A codec on every link, and in every all-reduce between machines, if none is in use.
std::vector<Advice> codec_changes(const PlanningInput& input) {
  std::vector<Advice> changes;
  if (input.cluster.machines.size() == 1) return changes;
  const auto add = [&](const char* what, const char* key, const std::vector<std::string>& now) {
    if (now != std::vector<std::string>{"none"}) return;
    for (const CodecFacts& codec : codecs()) {
      if (!codec.is_advised || !measured_everywhere(input.profile, codec.name)) continue;
      changes.push_back({fmt::format("{}={}", what, codec.name),
                         fmt::format("compression.{} = \"{}\"", key, codec.name), 0});
    }
  };
  add("codec", "activations", input.options.codecs);
  if (input.options.replicas) add("gradients", "gradients", input.options.gradient_codecs);
  return changes;
}

// The fastest size if the planner took the usual one (docs/decisions/0024). Not for layers with
// statistics: these depend on the micro-batch size, so another size would train another model.
std::vector<Advice> size_changes(const PlanningInput& input, const Plan& plan) {
  if (input.options.micro_batch > 0 || input.model.keeps_statistics()) return {};
  PlanningInput of_any_size = input;
  of_any_size.options.usual_micro_batch = 0;
  const Result<Plan> fastest = make_plan(of_any_size);
  if (!fastest.ok() || fastest->micro_batch == plan.micro_batch) return {};
  return {{fmt::format("micro_batch={}", fastest->micro_batch),
           fmt::format("train.micro_batch = {}", fastest->micro_batch), 0}};
}

}  // namespace

Result<AdvisorReport> advise(
    const PlanningInput& input,
    const std::function<void(std::size_t tried, std::size_t of)>& progress) {
  MOTLEY_ASSIGN(const Planning planning, plan_or_remedy(input));
  const Plan& plan = planning.plan;
  AdvisorReport report;
  report.step_s = plan.predicted_step_s;
  std::vector<std::string> machines = machines_by_use(input.cluster, plan);
  if (machines.size() > kMachinesMax) {
    report.not_tried.assign(machines.begin() + kMachinesMax, machines.end());
    machines.resize(kMachinesMax);
  }
  std::vector<Advice> changes = codec_changes(input);
  std::ranges::move(size_changes(input, plan), std::back_inserter(changes));
  for (const std::string& machine : machines) {
    for (Advice& advice : changes_of(input, plan, machine)) changes.push_back(std::move(advice));
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Advice& advice = changes[i];
    if (progress) progress(i, changes.size());
    MOTLEY_ASSIGN(const PlanningInput changed, apply_changes(input, {advice.change}));
    MOTLEY_ASSIGN(const Plan with, make_plan(changed));
    advice.step_s = with.predicted_step_s;
    const bool helps = advice.step_s <= (1 - kLeastGain) * report.step_s;
    (helps ? report.helpful : report.without_gain).push_back(std::move(advice));
  }
  std::stable_sort(report.helpful.begin(), report.helpful.end(),
                   [](const Advice& a, const Advice& b) { return a.step_s < b.step_s; });
  return report;
}

std::string advice_text(const AdvisorReport& report) {
  std::string text = fmt::format("a step takes {} now\n\n", seconds_text(report.step_s));
  if (report.helpful.empty()) {
    text += "No tested change saves 1 % of it.\n";
  } else {
    std::vector<TextRow> rows = {{"change", "step", "saved", "see it with --what-if"}};
    for (std::size_t i = 0; i < std::min(kShownMax, report.helpful.size()); ++i) {
      const Advice& advice = report.helpful[i];
      rows.push_back({advice.words, seconds_text(advice.step_s),
                      percent_text(1 - advice.step_s / report.step_s), advice.change});
    }
    text += aligned_table(rows);
  }
  if (report.helpful.size() > kShownMax) {
    text += fmt::format("… and {} with smaller savings\n", report.helpful.size() - kShownMax);
  }
  std::vector<std::string> useless;
  for (const Advice& advice : report.without_gain) useless.push_back(advice.words);
  if (!useless.empty()) {
    text += fmt::format("\nless than 1 %: {}\n", fmt::join(useless, "; "));
  }
  if (!report.not_tried.empty()) {
    text += fmt::format("not tested: changes of {} more machines\n", report.not_tried.size());
  }
  return text;
}

}  // namespace motley
