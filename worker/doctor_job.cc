#include "worker/doctor_job.h"

#include <chrono>
#include <filesystem>
#include <string>

#include <torch/version.h>

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
#include "protocol/machine_facts.h"
#include "worker/libraries.h"

namespace motley {
namespace {

std::int64_t free_disk_bytes(const std::filesystem::path& folder) {
  std::error_code code;
  const auto space = std::filesystem::space(folder, code);
  return code ? 0 : static_cast<std::int64_t>(space.available);
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
  facts.torch = TORCH_VERSION;
  facts.blas = loaded_blas();
  facts.transports = transport_kinds();
  facts.devices = devices_here();
  facts.cores = usable_cores();
  facts.physical_cores = physical_cores();
  facts.memory_bytes = available_memory_bytes();
  facts.computer = computer_id();
  facts.computer_memory_bytes = computer_memory_bytes();
  facts.disk_bytes = mark.empty() ? 0 : free_disk_bytes(std::filesystem::path(mark).parent_path());
  facts.sees_mark = sees(mark, job.options.value("mark_text", ""));
  MOTLEY_TRY(find_ways(job.options.value("peers", Json::array()), facts));
  facts.unix_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Json event = facts_to_json(facts);
  event["event"] = "facts";
  channel.send(event);
  return {};
}

}  // namespace motley
