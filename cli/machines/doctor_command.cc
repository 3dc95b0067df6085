// motley doctor: what Motley would use on these machines, whether it works, and how to fix what
// does not.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/json.h"
#include "base/log.h"
#include "base/text/text_table.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cluster/diagnose/diagnosis.h"

namespace motley {
namespace {

std::ptrdiff_t count_of(const Diagnosis& diagnosis, FindingLevel level) {
  return std::ranges::count(diagnosis.findings, level, &Finding::level);
}

std::string summary(const Diagnosis& diagnosis) {
  const auto counted = [&](FindingLevel level, const char* word) {
    const std::ptrdiff_t count = count_of(diagnosis, level);
    if (count == 0) return fmt::format("no {}s", word);
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
  };
  return fmt::format("{}, {}", counted(FindingLevel::kProblem, "problem"),
                     counted(FindingLevel::kWarning, "warning"));
}

std::string findings_table(const Diagnosis& diagnosis) {
  std::vector<TextRow> rows = {{"", "where", "what", "found"}};
  for (const Finding& finding : diagnosis.findings) {
    rows.push_back({to_text(finding.level), finding.subject, finding.check, finding.what});
    const bool is_good = finding.level == FindingLevel::kOk;
    if (!is_good && !finding.remedy.empty()) rows.push_back({"", "", "", "try: " + finding.remedy});
  }
  return aligned_table(rows);
}

std::string addresses_table(const Diagnosis& diagnosis) {
  std::vector<TextRow> rows = {{"machine", "interface", "address", "taken", "why"}};
  for (const AssessedAddress& each : diagnosis.addresses) {
    rows.push_back(
        {each.machine, each.interface, each.address, each.is_taken ? "yes" : "no", each.why});
  }
  return aligned_table(rows);
}

std::string pairs_table(const Diagnosis& diagnosis) {
  std::vector<TextRow> rows = {{"between", "and", "transport", "why"}};
  for (const PairChoice& each : diagnosis.pairs) {
    rows.push_back(
        {each.from, each.to, each.transport.empty() ? "none" : each.transport, each.why});
  }
  return aligned_table(rows);
}

std::string to_text(const Diagnosis& diagnosis) {
  std::string text = findings_table(diagnosis);
  if (!diagnosis.addresses.empty()) text += "\nAddresses\n" + addresses_table(diagnosis);
  if (!diagnosis.pairs.empty()) text += "\nTransports\n" + pairs_table(diagnosis);
  return fmt::format("{}\n{}\n", text, summary(diagnosis));
}

Json to_json(const Cluster& cluster, const Inspection& inspection, const Diagnosis& diagnosis) {
  Json findings = Json::array();
  for (const Finding& each : diagnosis.findings) {
    Json finding = {{"verdict", to_text(each.level)},
                    {"where", each.subject},
                    {"what", each.check},
                    {"found", each.what},
                    {"try", each.remedy}};
    if (each.level == FindingLevel::kProblem) finding["status"] = static_cast<int>(each.code);
    findings.push_back(std::move(finding));
  }
  Json addresses = Json::array();
  for (const AssessedAddress& each : diagnosis.addresses) {
    addresses.push_back({{"machine", each.machine},
                         {"interface", each.interface},
                         {"address", each.address},
                         {"taken", each.is_taken},
                         {"why", each.why}});
  }
  Json pairs = Json::array();
  for (const PairChoice& each : diagnosis.pairs) {
    pairs.push_back({{"between", each.from},
                     {"and", each.to},
                     {"transport", each.transport},
                     {"why", each.why}});
  }
  Json machines = Json::object();
  for (std::size_t i = 0; i < cluster.machines.size(); ++i) {
    const auto& facts = inspection.machines[i].facts;
    machines[cluster.machines[i].name] = facts ? facts_to_json(*facts) : Json(nullptr);
  }
  return {{"problems", count_of(diagnosis, FindingLevel::kProblem)},
          {"warnings", count_of(diagnosis, FindingLevel::kWarning)},
          {"findings", findings},
          {"addresses", addresses},
          {"transports", pairs},
          {"machines", machines}};
}

// The exit status is that of a run that fails with the first problem.
Result<void> check_result_of(const Diagnosis& diagnosis) {
  const auto first = std::ranges::find(diagnosis.findings, FindingLevel::kProblem, &Finding::level);
  if (first == diagnosis.findings.end()) return {};
  return Error{first->code, fmt::format("a run would fail: {}", summary(diagnosis)),
               fmt::format("{}, {}: {}", first->subject, first->check, first->what), first->remedy};
}

// A run's folder is created when it starts; until then its nearest existing parent is used.
std::filesystem::path existing_folder(const std::filesystem::path& folder) {
  std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  std::error_code ignored;
  while (path.has_relative_path() && !std::filesystem::exists(path, ignored)) {
    path = path.parent_path();
  }
  return path;
}

Result<void> doctor(const Arguments& arguments) {
  MOTLEY_ASSIGN(Cluster cluster, read_cluster(arguments, 1));
  DoctorOptions options;
  const std::filesystem::path run =
      std::filesystem::absolute(arguments.has("run") ? arguments.value("run") : ".");
  options.run_folder = existing_folder(run);
  if (options.run_folder != run.lexically_normal()) options.missing_folder = run;
  if (arguments.has("transport")) options.comm.transport = arguments.value("transport");
  if (arguments.has("encrypt")) options.comm.encrypt = arguments.value("encrypt");
  MOTLEY_ASSIGN(const auto program, stage_program());
  MOTLEY_ASSIGN(const Inspection inspection, inspect(cluster, options, program, Log("")));
  settle_by_inspection(cluster, inspection);
  const Diagnosis diagnosis = diagnose(cluster, options.comm, inspection);
  const std::string text = arguments.has("json")
                               ? to_json(cluster, inspection, diagnosis).dump(2) + "\n"
                               : to_text(diagnosis);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  return check_result_of(diagnosis);
}

}  // namespace

Command doctor_command() {
  CommandSpec spec{
      "doctor",
      "check for common problems, and print their fixes",
      {},
      {cluster_option(),
       {"run", "DIR",
        "folder of future runs, shared or separate on each machine (default: this one)"},
       transport_option(),
       encrypt_option(),
       json_option()},
      "Starts a worker on each machine, as a run would, and checks there: version, cores,\n"
      "memory, devices, their drivers and dtypes, the BLAS library, network addresses, and\n"
      "whether the run folder is shared or separate. Then the machines connect to each other\n"
      "briefly. Reports for each address why it is used or not, and for each pair of machines\n"
      "which transport it would use and why. Without --cluster it checks only this machine.\n\n"
      "  PROBLEM  a run would fail      warning  it would run, but not optimally\n\n"
      "Exit status: 0 without problems, else that of a run with the first of them.\n\n"
      "Example\n"
      "  motley doctor --cluster home.toml --run ~/runs\n"};
  return {spec, doctor};
}

}  // namespace motley
