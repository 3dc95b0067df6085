#include "cluster/diagnose/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/system/system_cores.h"
#include "cluster/diagnose/folder_check.h"
#include "cluster/diagnose/shared_computer.h"
#include "plan/quantity_text.h"
#include "plan/units.h"

namespace motley {
namespace {

constexpr double kClocksApart_s = 2;
constexpr const char* kSameVersion = "install the same version of Motley on every machine";

std::string processes_text(int processes, int threads) {
  return fmt::format("{} process{} of {} thread{}", processes, processes == 1 ? "" : "es", threads,
                     threads == 1 ? "" : "s");
}

// Collects the findings of one machine.
class MachineFindings {
 public:
  MachineFindings(const Cluster& cluster, const Machine& machine, const MachineFacts& facts)
      : cluster_(cluster), machine_(machine), facts_(facts) {}

  void check_way() {
    if (cluster_.machines.size() > 1) add(FindingLevel::kOk, "reached", starting_folder(machine_));
  }

  void check_version(const Inspection& inspection) {
    const std::string own =
        fmt::format("motley-stage {}, LibTorch {}", facts_.version, facts_.found.torch);
    if (facts_.version != inspection.version) {
      problem(ErrorCode::kPeer, "version",
              fmt::format("{}; motley here is {}", own, inspection.version), kSameVersion);
    } else if (facts_.build != inspection.build) {
      add(FindingLevel::kNote, "version",
          own +
              ", a different build from the one here, as with another system, processor or "
              "LibTorch",
          "no action if both are built from the same sources (docs/portability.md)");
    } else {
      add(FindingLevel::kOk, "version", own + ", the same build as here");
    }
  }

  // A device that waits needs neither cores nor memory nor a fast matrix product.
  void check_computing() {
    if (!capabilities_of(machine_).computes) {
      add(FindingLevel::kNote, "devices",
          "virtual: computing is simulated by waiting, messages are real");
      return;
    }
    check_cores();
    check_memory();
    check_blas();
  }

  // A process keeps as many cores busy as it has threads, or fewer if its share is smaller.
  void check_cores() {
    const CoreSharers own = processes_of(machine_);
    const double threads = threads_of(own.computing == 0);
    const double share = machine_.cpu_share;
    const int wanted = own.computing * threads_of(false) + own.serving * threads_of(true);
    const double granted = share > 0 ? share * (own.computing + own.serving) : wanted;
    const std::string have = fmt::format("{:.4g} usable", facts_.cores);
    if (share > 0 && threads > std::max(1.0, std::ceil(share))) {
      add(FindingLevel::kWarning, "cores",
          fmt::format("{:g} threads compete for the {:g} cores that cpu_share grants", threads,
                      share),
          fmt::format("set threads = {:g}, or raise cpu_share", std::ceil(share)));
    } else if (share > facts_.cores) {
      add(FindingLevel::kWarning, "cores",
          fmt::format("{}, and cpu_share grants {:g} to each process", have, share),
          "leave cpu_share out: it limits nothing here");
    } else if (std::min<double>(wanted, granted) > facts_.cores + 1e-9) {
      add(FindingLevel::kWarning, "cores",
          fmt::format("{}, but {} compute threads are configured", have, wanted),
          share > 0 ? "lower cpu_share or threads, or list fewer devices"
                    : "lower threads, or list fewer devices");
    } else {
      add(FindingLevel::kOk, "cores", have + cores_used(own));
    }
  }

  [[nodiscard]] int threads_of(bool is_serving) const {
    if (machine_.threads > 0) return machine_.threads;
    const double usable = machine_.cpu_share > 0 ? machine_.cpu_share : facts_.cores;
    return threads_of_one(core_sharers(cluster_, machine_), is_serving, facts_.physical_cores,
                          usable);
  }

  // The processes and threads that compute on the usable cores, and the unused cores.
  [[nodiscard]] std::string cores_used(const CoreSharers& own) const {
    const int computing = threads_of(false);
    const int serving = threads_of(true);
    const bool are_alike = own.computing == 0 || own.serving == 0 || computing == serving;
    const std::string processes =
        are_alike
            ? processes_text(own.computing + own.serving, own.computing > 0 ? computing : serving)
            : fmt::format("{}, {} for devices with memory of their own",
                          processes_text(own.computing, computing),
                          processes_text(own.serving, serving));
    const CoreSharers sharers = machine_.cpu_share > 0 ? own : core_sharers(cluster_, machine_);
    const double cores = std::min(facts_.cores, static_cast<double>(facts_.physical_cores));
    const double unused =
        std::floor(cores - sharers.computing * computing - sharers.serving * serving);
    return fmt::format(
        ", {} physical: {}{}{}", facts_.physical_cores, processes,
        machine_.threads > 0 ? "" : " (run.threads changes that)",
        unused >= 1 ? fmt::format("; {:g} unused, as all processes get equally many", unused) : "");
  }

  void check_memory() {
    const auto available = static_cast<double>(facts_.memory_bytes);
    if (facts_.memory_bytes == 0) {
      add(FindingLevel::kNote, "memory", "the system does not report the available memory");
    } else if (machine_.memory_gib * kBytesPerGib > available) {
      add(FindingLevel::kWarning, "memory",
          fmt::format("{} available, less than memory_gib = {:g}", bytes_text(available),
                      machine_.memory_gib),
          "end other programs there, or lower memory_gib: a plan may use all of it");
    } else {
      add(FindingLevel::kOk, "memory", bytes_text(available) + " available" + memory_limit());
    }
  }

  [[nodiscard]] std::string memory_limit() const {
    if (machine_.memory_gib == 0) return "";
    return fmt::format(", limited to {} by memory_gib",
                       bytes_text(machine_.memory_gib * kBytesPerGib));
  }

  // The dtypes of the processor's matrix products.
  [[nodiscard]] std::string dtypes_text() const {
    const DeviceFacts* const processor = facts_.found.find("cpu");
    if (processor == nullptr || processor->types.empty()) return "";
    return fmt::format("; the processor computes in {}", fmt::join(processor->types, ", "));
  }

  // Warns of the reference implementation, which is the default of an unconfigured system.
  void check_blas() {
    const bool is_slow = facts_.blas.find("/blas/libblas") != std::string::npos ||
                         facts_.blas.find("/lapack/") != std::string::npos;
    if (facts_.blas.empty()) {
      add(FindingLevel::kNote, "matrices", "the BLAS library is unknown");
    } else if (is_slow) {
      add(FindingLevel::kWarning, "matrices",
          fmt::format("{} is the reference BLAS, tens of times slower than an optimized one",
                      facts_.blas),
          "apt-get install libopenblas0-pthread (it becomes the default automatically)");
    } else {
      add(FindingLevel::kOk, "matrices", facts_.blas + dtypes_text());
    }
  }

  void check_folder(const Inspection& inspection, const std::string& unwritable) {
    if (inspection.mark_failure.has_value()) return;  // reported once, for this machine
    findings_.push_back(assess_folder(machine_, facts_, unwritable, inspection.asked));
  }

  void check_clock(double ahead_s) {
    if (std::abs(ahead_s) < kClocksApart_s) return;
    add(FindingLevel::kNote, "clock",
        fmt::format("{:.1f} s {} of this machine's: times in logs differ; nothing else is affected",
                    std::abs(ahead_s), ahead_s > 0 ? "ahead" : "behind"),
        "synchronize both with a time server (timedatectl set-ntp true)");
  }

  std::vector<Finding> take() { return std::move(findings_); }

 private:
  void add(FindingLevel level, const char* check, std::string what, std::string remedy = "") {
    findings_.push_back({level, machine_.name, check, std::move(what), std::move(remedy)});
  }

  void problem(ErrorCode code, const char* check, std::string what, std::string remedy) {
    add(FindingLevel::kProblem, check, std::move(what), std::move(remedy));
    findings_.back().code = code;
  }

  const Cluster& cluster_;
  const Machine& machine_;
  const MachineFacts& facts_;
  std::vector<Finding> findings_;
};

// Machines that are one computer, which has its memory and its cores once.
std::vector<Finding> diagnose_computers(const Cluster& cluster, const Inspection& inspection) {
  std::vector<FoundMachine> found;
  for (std::size_t i = 0; i < cluster.machines.size(); ++i) {
    const Machine& machine = cluster.machines[i];
    FoundMachine& each = found.emplace_back();
    each.name = machine.name;
    const auto& facts = inspection.machines[i].facts;
    if (!facts || !capabilities_of(machine).is_measured) continue;
    each.computer = facts->computer;
    each.free_bytes = static_cast<double>(facts->memory_bytes);
    each.computer_bytes = static_cast<double>(facts->computer_memory_bytes);
    each.granted_bytes = machine.memory_gib * kBytesPerGib;
  }
  std::vector<Finding> findings;
  for (const SharedComputer& computer : shared_computers(found)) {
    std::size_t workers = 0;
    double cores = 0;
    for (const std::size_t i : computer.machines) {
      workers += cluster.machines[i].devices.size();
      cores = std::max(cores, inspection.machines[i].facts->cores);
    }
    findings.push_back(
        {computer.is_overcommitted() ? FindingLevel::kWarning : FindingLevel::kNote, "all",
         "computer",
         fmt::format("{}; {} workers share its {:.4g} core{}", shared_memory_text(computer, found),
                     workers, cores, cores < 1.05 ? "" : "s"),
         computer.is_overcommitted() ? "lower memory_gib: a plan may use all of it" : ""});
  }
  return findings;
}

Finding cannot_start(const Machine& machine, const Error& failure) {
  const std::string cause = failure.cause.empty() ? "" : fmt::format(" ({})", failure.cause);
  return {FindingLevel::kProblem, machine.name,   "start",
          failure.what + cause,   failure.remedy, failure.code};
}

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  std::ranges::move(more, std::back_inserter(all));
}

}  // namespace

const char* to_text(FindingLevel level) {
  switch (level) {
    case FindingLevel::kOk:
      return "ok";
    case FindingLevel::kNote:
      return "note";
    case FindingLevel::kWarning:
      return "warning";
    case FindingLevel::kProblem:
      return "PROBLEM";
  }
  return "";
}

std::vector<Finding> diagnose_machine(const Cluster& cluster,
                                      std::size_t index,
                                      const Inspection& inspection) {
  const Machine& machine = cluster.machines[index];
  const InspectedMachine& inspected = inspection.machines[index];
  if (inspected.failure.has_value()) return {cannot_start(machine, *inspected.failure)};
  MachineFindings findings(cluster, machine, *inspected.facts);
  findings.check_way();
  findings.check_version(inspection);
  findings.check_computing();
  findings.check_folder(inspection, inspected.unwritable);
  findings.check_clock(inspected.clock_ahead_s);
  std::vector<Finding> all = findings.take();
  if (capabilities_of(machine).is_measured)
    append(all, diagnose_devices(machine, inspected.facts->found));
  append(all, diagnose_address(cluster, index, *inspected.facts));
  return all;
}

Diagnosis diagnose(const Cluster& cluster, const CommConfig& comm, const Inspection& inspection) {
  Diagnosis diagnosis;
  if (inspection.mark_failure.has_value()) {
    const Error& failure = *inspection.mark_failure;
    diagnosis.findings.push_back({FindingLevel::kProblem, "here", "run folder",
                                  fmt::format("{} ({})", failure.what, failure.cause),
                                  "choose a folder that this program can write to by --run",
                                  failure.code});
  }
  for (std::size_t i = 0; i < cluster.machines.size(); ++i) {
    append(diagnosis.findings, diagnose_machine(cluster, i, inspection));
    if (!inspection.machines[i].facts) continue;
    const auto assessed = assess_addresses(cluster, i, *inspection.machines[i].facts);
    diagnosis.addresses.insert(diagnosis.addresses.end(), assessed.begin(), assessed.end());
    for (std::size_t peer = i + 1; peer < cluster.machines.size(); ++peer) {
      if (!inspection.machines[peer].facts) continue;
      diagnosis.pairs.push_back(choose_for_pair(cluster, i, peer, comm));
    }
  }
  append(diagnosis.findings, diagnose_computers(cluster, inspection));
  append(diagnosis.findings, diagnose_links(cluster, comm, inspection));
  return diagnosis;
}

}  // namespace motley
