// motley probe: measures the links between the machines of a cluster.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "base/json.h"
#include "base/log.h"
#include "base/process/progress_line.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/output_file.h"
#include "cluster/diagnose/probe.h"
#include "plan/links.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

// The remaining speed of one direction while the other one is in use.
std::string both_ways_text(const MeasuredLink& link) {
  if (!link.turns) return "?";
  return fmt::format("{:.0f} %", 100 / (1 + *link.turns));
}

std::string probe_table(const Cluster& cluster, const ProbeReport& report) {
  std::string text =
      fmt::format("{:<12} {:<12} {:>12} {:>12} {:>12} {:>10} {:>14} {:>14}\n", "from", "to",
                  "speed", "latency us", "jitter us", "both ways", "send ns/byte", "recv ns/byte");
  for (std::size_t i = 0; i < report.links.size(); ++i) {
    const MeasuredLink& link = report.links[i];
    text +=
        fmt::format("{:<12} {:<12} {:>12} {:>12.1f} {:>12.1f} {:>10} {:>14.3f} {:>14.3f}\n",
                    link.from, link.to, link_rate_text(link.speed.bandwidth_bytes_per_s),
                    link.speed.latency_s * 1e6, link.jitter_p95_s * 1e6, both_ways_text(link),
                    report.cpu[i].send_s_per_byte * 1e9, report.cpu[i].receive_s_per_byte * 1e9);
  }
  for (const std::string& line : media_lines(cluster, report.links)) text += line + "\n";
  for (std::size_t i = 0; i < report.networks.size(); ++i) {
    text += fmt::format("{} uses {}\n", cluster.machines[i].name, report.networks[i]);
  }
  return text + report.transport + "\n";
}

Result<void> probe(const Arguments& arguments) {
  MOTLEY_ASSIGN(const Cluster cluster, read_cluster(arguments, 1));
  ProbeOptions options;
  if (arguments.has("transport")) options.comm.transport = arguments.value("transport");
  if (arguments.has("encrypt")) options.comm.encrypt = arguments.value("encrypt");
  if (arguments.has("seconds")) {
    MOTLEY_ASSIGN(const auto seconds, integer_value(arguments, "seconds", 1, 60));
    options.seconds = static_cast<double>(seconds);
  }
  MOTLEY_TRY(check_outputs(arguments, {"output"}));
  MOTLEY_ASSIGN(const auto program, stage_program());
  ProgressLine line("starting the machines' workers");
  options.on_link = [&line](std::size_t done, std::size_t of) {
    line.say(fmt::format("measuring links: {} of {} directions", done, of));
  };
  const Log log("", LogLevel::kInfo, line.log_output());
  MOTLEY_ASSIGN(const ProbeReport report, probe_links(cluster, options, program, log));
  line.clear();
  const std::string text = links_to_json(report.links).dump(2) + "\n";
  if (arguments.has("output")) MOTLEY_TRY(write_output(arguments.value("output"), text));
  std::fputs((arguments.has("json") ? text : probe_table(cluster, report)).c_str(), stdout);
  return {};
}

}  // namespace

Command probe_command() {
  CommandSpec spec{
      "probe",
      "measure the links between the machines",
      {},
      {cluster_option(),
       {"output", "FILE", "write the speeds for --links of other commands", false, 'o'},
       {"seconds", "S", "time for each direction of each pair (default 1)"},
       transport_option(),
       encrypt_option(),
       json_option()},
      "Starts a worker on each machine and measures each direction of each pair, one\n"
      "after another, with the transport of the training: bandwidth of large messages,\n"
      "latency and its 95th percentile, and processor time per byte at both ends. Then both\n"
      "directions at once: \"both ways\" is the remaining speed of each, 100 % over a cable\n"
      "(full duplex) and about 50 % over Wi-Fi (half duplex). Also shows the network\n"
      "interface of each machine.\n"
      "Plans with --links use these figures instead of those of the cluster file.\n\n"
      "Example\n"
      "  motley probe --cluster home.toml --output links.json\n"
      "  motley plan gpt.toml --cluster home.toml --links links.json\n"};
  spec.needs = "--cluster FILE";
  return {spec, [](const Arguments& arguments) -> Result<void> {
            if (!arguments.has("cluster")) {
              return Error{ErrorCode::kUsage, "motley probe needs --cluster FILE", "",
                           "it lists the machines and their addresses"};
            }
            return probe(arguments);
          }};
}

}  // namespace motley
