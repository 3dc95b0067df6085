#include "cluster/diagnose/memory_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/quantity_text.h"
#include "plan/units.h"

namespace motley {
namespace {

std::string memory_text(const MachineMemory& each) {
  std::string text = fmt::format("{} has {}", each.name, bytes_text(each.bytes));
  if (!each.is_granted) return text;
  if (!each.is_measured) return fmt::format("{} by the cluster file", text);
  return fmt::format("{} by memory_gib in the cluster file, with {} free", text,
                     bytes_text(each.free_bytes));
}

// The hint for the first machine of which only the configured limit excludes the model.
std::string raised_limit(const std::vector<MachineMemory>& all, double short_bytes) {
  for (const MachineMemory& each : all) {
    const bool is_free = !each.is_measured || each.free_bytes >= each.bytes + short_bytes;
    if (!each.is_granted || !is_free) continue;
    return fmt::format("set memory_gib of {} to at least {:.3g}, or leave it out; else ", each.name,
                       rounded_up((each.bytes + short_bytes) / kBytesPerGib));
  }
  return "";
}

}  // namespace

std::optional<Error> memory_problem(const std::vector<MachineMemory>& all, double least_bytes) {
  double all_bytes = 0;
  std::vector<std::string> texts;
  for (const MachineMemory& each : all) {
    all_bytes += each.bytes;
    texts.push_back(memory_text(each));
  }
  if (all_bytes >= least_bytes) return std::nullopt;
  const double short_bytes = least_bytes - all_bytes;
  return Error{
      ErrorCode::kInfeasible,
      fmt::format("the model does not fit: all devices together have {} of memory, {} too little",
                  bytes_text(all_bytes), bytes_text(short_bytes)),
      fmt::format("parameters, gradients, optimizer moments and frozen weights alone take {}; {}",
                  bytes_text(least_bytes), fmt::join(texts, "; ")),
      raised_limit(all, short_bytes) + "add a machine or memory, or make the model smaller"};
}

}  // namespace motley
