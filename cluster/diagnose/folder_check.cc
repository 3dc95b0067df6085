#include "cluster/diagnose/folder_check.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "plan/quantity_text.h"

namespace motley {
namespace {

constexpr std::int64_t kDiskBytesFew = std::int64_t{1} << 30;

Finding finding_of(const Machine& machine,
                   FindingLevel level,
                   std::string what,
                   std::string remedy = "") {
  return {level, machine.name, "run folder", std::move(what), std::move(remedy)};
}

// The free space, as a continuation of a sentence; "" if unknown.
std::string free_space_text(const MachineFacts& facts) {
  if (facts.disk_bytes == 0) return "";
  return fmt::format(", {} free", bytes_text(static_cast<double>(facts.disk_bytes)));
}

}  // namespace

Finding assess_folder(const Machine& machine,
                      const MachineFacts& facts,
                      const std::string& unwritable,
                      const DoctorOptions& asked) {
  if (!unwritable.empty() && !facts.sees_mark_file) {
    Finding finding = finding_of(
        machine, FindingLevel::kProblem,
        fmt::format("{} is not writable, and the machine would store its part of a run there",
                    unwritable),
        "give the user write permission, or set runs_dir in the cluster file to another folder");
    finding.code = ErrorCode::kCorrupt;
    return finding;
  }
  if (facts.disk_bytes > 0 && facts.disk_bytes < kDiskBytesFew) {
    const std::string where = machine.runs_dir.empty() ? "" : " in " + machine.runs_dir;
    return finding_of(
        machine, FindingLevel::kWarning,
        fmt::format("only {} free{}", bytes_text(static_cast<double>(facts.disk_bytes)), where),
        "free space: a checkpoint has three times the size of the parameters");
  }
  if (!machine.runs_dir.empty() && facts.disk_bytes == 0) {
    return finding_of(machine, FindingLevel::kNote, machine.runs_dir + " does not exist yet",
                      "check runs_dir; a run creates the folder when it starts");
  }
  if (!machine.runs_dir.empty()) {
    return finding_of(machine, FindingLevel::kOk,
                      fmt::format("its part of a run is stored in {}{}", machine.runs_dir,
                                  free_space_text(facts)));
  }
  if (!facts.sees_mark_file) {
    return finding_of(
        machine, FindingLevel::kOk,
        "not shared with this machine: its part of a run is stored in its own folder");
  }
  if (asked.missing_folder.empty()) {
    return finding_of(machine, FindingLevel::kOk, "the same as here" + free_space_text(facts));
  }
  return finding_of(
      machine, FindingLevel::kNote,
      fmt::format("{} does not exist yet; its parent {} is the same as here{}",
                  asked.missing_folder.string(), asked.run_folder.string(), free_space_text(facts)),
      "check the name; a run creates the folder when it starts");
}

}  // namespace motley
