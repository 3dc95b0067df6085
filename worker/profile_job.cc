#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/system/computer_id.h"
#include "base/system/privacy.h"
#include "base/system/system_memory.h"
#include "models/device/dtype_support.h"
#include "models/device/product_type.h"
#include "models/layers/failure_of.h"
#include "models/spec/model_spec.h"
#include "plan/profile.h"
#include "plan/quantity_text.h"
#include "training/first_state.h"
#include "worker/check/layer_checks.h"
#include "worker/jobs.h"
#include "worker/profile/device_profiler.h"
#include "worker/profile/measuring_report.h"

namespace motley {
namespace {

Result<std::vector<int>> read_sizes(const Job& job) {
  std::vector<int> sizes;
  const Json list = job.options.value("sizes", Json::array());
  for (const Json& size : list) {
    if (size.is_number_integer() && size.get<int>() > 0) sizes.push_back(size.get<int>());
  }
  if (sizes.empty()) return Error{ErrorCode::kInternal, "a profile job without sizes", "", ""};
  std::ranges::sort(sizes);
  return sizes;
}

// From here on workers measure concurrently, as they will compute.
Result<void> meet_others(const Job& job, WorkerChannel& channel) {
  channel.send({{"event", "address"}, {"address", ""}});
  const Deadline deadline =
      Deadline::after_s(2 * job.config.comm.start_timeout_s, channel.group_progress_clock());
  MOTLEY_ASSIGN([[maybe_unused]] const Json all, channel.receive(deadline, "the other devices"));
  channel.send({{"event", "ready"}});
  return {};
}

// A layer that does not fit into the device's memory. The smallest micro-batch is measured first.
Error too_large(const Job& job, Error error, const std::string& what, std::int64_t memory_bytes) {
  error.what = fmt::format("{} has too little memory for {}", job.device, what);
  if (memory_bytes > 0) {
    error.cause = fmt::format("{} were free at the start ({})",
                              bytes_text(static_cast<double>(memory_bytes)), error.cause);
  }
  error.remedy = fmt::format(
      "each layer must fit on each device by itself: leave {} out of the cluster file, end other "
      "programs on it, or make the model{} smaller",
      job.device, job.config.train.micro_batch > 1 ? " or train.micro_batch" : "");
  return error;
}

}  // namespace

Result<void> run_profile_job(const Job& job, WorkerChannel& channel) {
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(job.config.model));
  MOTLEY_ASSIGN(const std::vector<int> sizes, read_sizes(job));
  const DeviceCapabilities capabilities = capabilities_of(job.device);
  ComputeDevice computes;
  if (capabilities.computes) {
    // Each machine reads its own folder, which the launcher may not see.
    MOTLEY_TRY(check_initial_weights(job.config.model));
    MOTLEY_ASSIGN(computes, ComputeDevice::open(job.device, job.config.comm.timeout_s));
  }
  const auto own_memory = computes.memory();
  const std::int64_t memory_bytes = !capabilities.is_measured
                                        ? job.options.value("memory_bytes", std::int64_t{0})
                                    : own_memory ? own_memory->free_bytes
                                                 : available_memory_bytes();
  const std::string computer = capabilities.is_measured ? computer_id() : "";
  keep_files_private({});  // stored profiles are in a user's private folder
  channel.send({{"event", "memory"},
                {"bytes", memory_bytes},
                {"computer", computer},
                {"computer_bytes", computer_memory_bytes()}});
  if (const std::string& wanted = job.config.train.precision; wanted != "fp32") {
    const std::string_view computed = dtype_name(product_type(computes, wanted));
    channel.send({{"event", "precision"}, {"numbers", capabilities.computes ? computed : wanted}});
  }
  MOTLEY_TRY(meet_others(job, channel));

  MeasuringReport report(channel, job.config.profile.seconds);
  Result<MeasuredDevice> measured = MeasuredDevice{};
  try {
    if (capabilities.computes) {
      MOTLEY_TRY(
          check_layers(job, model, all_layers(model), computes, [&](const std::string& what) {
            report.say(what);
            report.tick();
          }));
    }
    measured = measure_device(job, model, sizes, report, computes);
  } catch (const std::exception& thrown) {
    const Error error = failure_of(thrown, "measuring " + report.what());
    return error.code == ErrorCode::kInfeasible ? too_large(job, error, report.what(), memory_bytes)
                                                : error;
  }
  if (!measured.ok()) return measured.error();
  DeviceProfile& device = measured->device;
  device.memory_bytes = memory_bytes;
  device.computer = computer;
  device.precision = job.config.train.precision;
  Profile profile;
  profile.devices.push_back(std::move(device));
  channel.send(
      {{"event", "result"}, {"profile", profile_to_json(profile)}, {"kept", measured->was_stored}});
  return {};
}

}  // namespace motley
