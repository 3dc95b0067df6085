#include <fmt/format.h>

#include <filesystem>
#include <string>

#include <torch/version.h>

#include "base/clock.h"
#include "base/system/computer_id.h"
#include "base/system/files.h"
#include "base/system/program_path.h"
#include "base/system/system_cores.h"
#include "base/system/system_memory.h"
#include "base/system/version.h"
#include "comm/make_transport.h"
#include "comm/transport/network_interface.h"
#include "comm/transport/transport.h"
#include "models/device/compute_device.h"
#include "models/device/dtype_support.h"
#include "models/device/kinds/device_queries.h"
#include "protocol/device_facts.h"
#include "protocol/machine_facts.h"
#include "worker/check/libraries.h"
#include "worker/jobs.h"

namespace motley {
namespace {

// kAll also opens each device and reports its memory, which takes time and allocates memory on the
// device.
enum class DeviceDetails { kNames, kAll };

// Texts of libraries and drivers may be long; lines to the launcher are limited.
constexpr std::size_t kWordsBytesMax = 1000;

std::string words_of(std::string (*question)(int), int index) {
  return question == nullptr ? "" : excerpt(question(index), kWordsBytesMax);
}

std::string words_of(std::string (*question)()) {
  return question == nullptr ? "" : excerpt(question(), kWordsBytesMax);
}

DeviceFault fault_of(const std::string& cause, const std::string& remedy) {
  return {excerpt(cause, kWordsBytesMax), excerpt(remedy, kWordsBytesMax)};
}

std::vector<std::string> types_of(const ComputeDevice& device) {
  std::vector<std::string> names;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    if (computes_products_in(device, type)) names.emplace_back(dtype_name(type));
  }
  return names;
}

DeviceFacts processor_facts() {
  DeviceFacts facts;
  facts.name = ComputeDevice().name();
  facts.model = excerpt(processor_name(), kWordsBytesMax);
  facts.memory_bytes = installed_memory_bytes();
  facts.free_bytes = available_memory_bytes();
  facts.types = types_of(ComputeDevice());
  return facts;
}

void add_details(DeviceFacts& facts) {
  constexpr double kStallTimeout_s = 10;  // per device; several of a machine may hang
  const auto device = ComputeDevice::open(facts.name, kStallTimeout_s);
  if (!device.ok()) {
    const Error& error = device.error();
    facts.fault = fault_of(error.cause.empty() ? error.what : error.cause, error.remedy);
    return;
  }
  if (const auto memory = device->memory()) {
    facts.memory_bytes = memory->total_bytes;
    facts.free_bytes = memory->free_bytes;
  }
  facts.types = types_of(*device);
}

DeviceFacts facts_of(const DeviceKind& kind, int index, DeviceDetails details) {
  DeviceFacts facts;
  facts.name = device_name(kind, index);
  const DeviceQueries& queries = queries_of(kind.library);
  facts.model = words_of(queries.model, index);
  facts.capability = words_of(queries.capability, index);
  facts.driver = words_of(queries.driver);
  if (queries.problem != nullptr) {
    if (const auto problem = queries.problem(index)) {
      facts.fault = fault_of(problem->cause, problem->remedy);
      return facts;
    }
  }
  if (details == DeviceDetails::kAll) add_details(facts);
  return facts;
}

DevicesFound find_devices(DeviceDetails details) {
  DevicesFound found;
  found.devices.push_back(processor_facts());
  std::string builds;
  for (const DeviceKind& kind : device_kinds()) {
    if (!is_accelerator(kind.capabilities)) continue;
    const DeviceCount counted = count_devices(kind);
    for (int index = 0; index < counted.count; ++index) {
      found.devices.push_back(facts_of(kind, index, details));
    }
    if (counted.count == 0) {
      const DeviceProblem& why = counted.unavailable;
      found.missing.push_back(
          {std::string(kind.name), fault_of(why.cause, why.remedy), why.is_shown});
    }
    if (const std::string build = words_of(queries_of(kind.library).build); !build.empty())
      builds += " " + build;
  }
  found.torch = fmt::format("{}{}", TORCH_VERSION, builds.empty() ? " for processors" : builds);
  return found;
}

bool sees(const std::string& mark, const std::string& text) {
  constexpr std::size_t kMarkBytesMax = 4096;
  if (mark.empty()) return false;
  const auto found = read_file(mark, kMarkBytesMax);
  return found.ok() && *found == text;
}

Result<void> find_ways(const Json& peers, MachineFacts& facts) {
  MOTLEY_ASSIGN(const auto interfaces, network_interfaces());
  for (const NetworkInterface& each : interfaces) {
    facts.candidates.push_back({each.name, each.address, each.kind, each.is_up, each.mbps});
  }
  for (const Json& peer : peers) {
    if (!peer.is_string()) continue;
    const auto from = source_address_to(peer.get<std::string>());
    facts.routes.push_back({peer.get<std::string>(), from.ok() ? *from : ""});
  }
  return {};
}

}  // namespace

Result<void> run_doctor_job(const Job& job, WorkerChannel& channel) {
  channel.send({{"event", "ready"}});
  const std::string mark = job.options.value("mark", "");
  MachineFacts facts;
  facts.version = motley_version();
  facts.build = build_of(program_path());
  facts.blas = loaded_blas();
  facts.transports = transport_kinds();
  facts.found = find_devices(DeviceDetails::kAll);
  facts.cores = usable_cores();
  facts.physical_cores = physical_cores();
  facts.memory_bytes = available_memory_bytes();
  facts.computer = computer_id();
  facts.computer_memory_bytes = computer_memory_bytes();
  if (!mark.empty()) {
    const auto free = free_disk_bytes(std::filesystem::path(mark).parent_path());
    facts.disk_bytes = static_cast<std::int64_t>(free.value_or(0));
  }
  facts.sees_mark_file = sees(mark, job.options.value("mark_text", ""));
  MOTLEY_TRY(find_ways(job.options.value("peers", Json::array()), facts));
  facts.unix_s = unix_time_s();
  Json event = facts_to_json(facts);
  event["event"] = "facts";
  channel.send(event);
  return {};
}

Result<void> run_devices_job(const Job& job, WorkerChannel& channel) {
  channel.send({{"event", "ready"}});
  const bool is_full = job.options.value("details", false);
  Json event = devices_to_json(find_devices(is_full ? DeviceDetails::kAll : DeviceDetails::kNames));
  event["event"] = "devices";
  channel.send(event);
  return {};
}

}  // namespace motley
