// motley profile: profiles this machine, or every machine of a cluster.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/output_file.h"
#include "cluster/diagnose/automatic_devices.h"
#include "cluster/diagnose/measure.h"
#include "cluster/launch/workers.h"
#include "cluster/planning/planning_options.h"
#include "cluster/planning/resolve_plan.h"
#include "models/spec/model_spec.h"

namespace motley {
namespace {

// The display name of a kind of layer: its first layer, and their number.
std::string kind_text(const ModelSpec& model, const std::string& signature) {
  const auto is_of_kind = [&](const LayerSpec& layer) { return layer.signature == signature; };
  const auto first = std::ranges::find_if(model.layers, is_of_kind);
  const auto count = std::ranges::count_if(model.layers, is_of_kind);
  if (count == 0) return signature;
  return count == 1 ? first->name : fmt::format("{} and {} like it", first->name, count - 1);
}

std::string profile_table(const Profile& profile, const ModelSpec& model) {
  std::size_t width = 40;
  for (const LayerSpec& layer : model.layers) {
    width = std::max(width, kind_text(model, layer.signature).size());
  }
  std::string text;
  for (const DeviceProfile& device : profile.devices) {
    text += fmt::format(
        "{} {}: products in {}, {} thread{}, {:.1f} GiB available, "
        "optimizer {:.2f} ns a parameter\n",
        device.machine, device.device, device.compute_dtype, device.threads,
        device.threads == 1 ? "" : "s", static_cast<double>(device.memory_bytes) / (1LL << 30),
        device.optimizer_s_per_parameter * 1e9);
    text += fmt::format("  {:<{}} {:>6} {:>12} {:>12} {:>10}\n", "layer", width, "batch",
                        "forward ms", "backward ms", "saved MiB");
    for (const auto& [signature, samples] : device.layers) {
      for (const LayerSample& sample : samples) {
        text += fmt::format("  {:<{}} {:>6} {:>12.3f} {:>12.3f} {:>10.2f}\n",
                            kind_text(model, signature), width, sample.micro_batch,
                            sample.forward_s * 1e3, sample.backward_s * 1e3,
                            static_cast<double>(sample.saved_bytes) / (1 << 20));
      }
    }
    text += fmt::format("  {:<{}} {:>6} {:>12} {:>12} {:>10}\n", "codec", width, "", "encode ns",
                        "decode ns", "bytes");
    for (const auto& [name, codec] : device.codecs) {
      text += fmt::format("  {:<{}} {:>6} {:>12.3f} {:>12.3f} {:>10.2f}\n", name, width, "",
                          codec.encode_s_per_float * 1e9, codec.decode_s_per_float * 1e9,
                          codec.bytes_per_float);
    }
    text += fmt::format("  a message costs {:.1f} us of processor time\n", device.message_s * 1e6);
    if (device.shared_s_per_float > 0) {
      text += fmt::format("  an all-reduce inside the machine costs each rank {:.3f} ns a value\n",
                          device.shared_s_per_float * 1e9);
    }
  }
  return text;
}

Result<void> profile(const Arguments& arguments) {
  MOTLEY_ASSIGN(ResolvedConfig resolved, read_config(arguments.operand(0), arguments));
  MOTLEY_TRY(validate_config(resolved.config));
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(resolved.config.model));
  if (const auto options = plan_options(resolved.config, model, 0); !options.ok()) {
    return with_key_position(options.error(), resolved);
  }
  MOTLEY_TRY(check_initial_weights_here(resolved.config, resolved.origins));
  MOTLEY_ASSIGN(Cluster cluster, read_cluster(arguments, 1, Mixture::kAllowed));
  MOTLEY_TRY(check_outputs(arguments, {"output"}));
  MOTLEY_ASSIGN(const auto program, stage_program());
  MOTLEY_TRY(check_usable(cluster, machine_names(cluster), model, program));
  MOTLEY_TRY(settle_by_queries(cluster, program, resolved.config.comm.start_timeout_s, Log("")));
  MOTLEY_ASSIGN(
      const Profile measured,
      measure_cluster(cluster, without_initial_weights(resolved.config), program, Profile{},
                      {.anew = arguments.has("measure"), .all_codecs = true, .any_precision = true},
                      Log("")));
  warn_of(measured, Log(""));
  const std::string text = profile_to_json(measured).dump(2) + "\n";
  if (arguments.has("output")) MOTLEY_TRY(write_output(arguments.value("output"), text));
  std::fputs((arguments.has("json") ? text : profile_table(measured, model)).c_str(), stdout);
  return {};
}

}  // namespace

Command profile_command() {
  CommandSpec spec{
      "profile",
      "measure the speed of each layer on this machine",
      {"CONFIG"},
      {cluster_option(),
       {"output", "FILE", "write the profile for --profile of other commands", false, 'o'},
       measure_option(),
       set_option(),
       json_option()},
      "Runs each distinct layer of the configured model forward and backward, and reports\n"
      "medians, the memory of saved activations, the optimizer's speed, and the processor\n"
      "time of codecs and messages. Layers run with cold caches, as in a step. Noisy times\n"
      "and changes of the machine's speed give warnings. profile.seconds is the approximate\n"
      "time for a device. Each machine caches its profile and reuses it if a short sample\n"
      "agrees with it.\n\n"
      "Profiles are portable files: measure each machine once, then plan anywhere. With\n"
      "--cluster all its machines are measured at the same time.\n\n"
      "Example\n"
      "  motley profile gpt.toml --output here.json\n"};
  return {spec, profile};
}

}  // namespace motley
