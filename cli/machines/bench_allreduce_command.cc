// motley bench allreduce: the cost of an all-reduce of gradients between these machines, for each
// codec, beside the limit of the links.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/text/text_table.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cluster/diagnose/allreduce.h"
#include "cluster/diagnose/automatic_devices.h"
#include "compression/facts/codec_facts.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

constexpr std::int64_t kValuesPerMib = (std::int64_t{1} << 20) / std::int64_t{sizeof(float)};

// The first codec is the baseline of the comparison.
std::vector<std::string> chains_to_sum(const Arguments& arguments) {
  std::vector<std::string> chains = {"none"};
  std::ranges::copy_if(arguments.values("codec"), std::back_inserter(chains),
                       [](const std::string& chain) { return chain != "none"; });
  if (arguments.has("codec")) return chains;
  for (const CodecFacts& codec : codecs()) {
    chains.insert(chains.end(), codec.allreduce_chains.begin(), codec.allreduce_chains.end());
  }
  return chains;
}

Result<AllreduceOptions> read_options(const Arguments& arguments) {
  AllreduceOptions options;
  options.codecs = chains_to_sum(arguments);
  if (arguments.has("transport")) options.comm.transport = arguments.value("transport");
  if (arguments.has("encrypt")) options.comm.encrypt = arguments.value("encrypt");
  if (arguments.has("mib")) {
    MOTLEY_ASSIGN(const auto mib, integer_value(arguments, "mib", 1, 4096));
    options.values = mib * kValuesPerMib;
  }
  if (arguments.has("runs")) {
    MOTLEY_ASSIGN(const auto runs, integer_value(arguments, "runs", 1, 100));
    options.runs = static_cast<int>(runs);
  }
  return options;
}

std::string allreduce_table(const std::vector<AllreduceFigures>& all, bool has_limit) {
  std::vector<TextRow> rows = {{"codec", "time", "of the links", "faster", "MB sent per machine",
                                "largest error", "lost", "CPU s"}};
  for (const AllreduceFigures& each : all) {
    std::vector<std::string> megabytes;
    for (const double bytes : each.uplink_bytes) {
      megabytes.push_back(fmt::format("{:.2f}", bytes / 1e6));
    }
    rows.push_back({each.codec, seconds_text(each.allreduce_s),
                    has_limit ? percent_text(each.bound_s / each.allreduce_s) : "-",
                    fmt::format("{:.2f} x", all.front().allreduce_s / each.allreduce_s),
                    fmt::format("{}", fmt::join(megabytes, " ")),
                    fmt::format("{:.2g}", each.largest_error),
                    fmt::format("{:.2g}", each.lost_error), fmt::format("{:.2f}", each.cpu_s)});
  }
  return aligned_table(rows);
}

Json sums_to_json(const std::vector<AllreduceFigures>& all,
                  const AllreduceOptions& options,
                  bool has_limit) {
  Json sums = Json::array();
  for (const AllreduceFigures& each : all) {
    Json row = {{"codec", each.codec},
                {"sum_s", each.allreduce_s},
                {"times_faster", all.front().allreduce_s / each.allreduce_s},
                {"uplink_bytes", each.uplink_bytes},
                {"largest_error", each.largest_error},
                {"lost_error", each.lost_error},
                {"cpu_s", each.cpu_s}};
    if (has_limit) row["bound_s"] = each.bound_s;
    sums.push_back(std::move(row));
  }
  return {{"values", options.values}, {"runs", options.runs}, {"sums", sums}};
}

Result<void> bench_allreduce(const Arguments& arguments) {
  Cluster cluster = loopback_pair();
  const bool has_limit = arguments.has("cluster");
  if (has_limit || arguments.has("links")) {
    MOTLEY_ASSIGN(cluster, read_cluster(arguments, 1));
  }
  MOTLEY_ASSIGN(const AllreduceOptions options, read_options(arguments));
  MOTLEY_ASSIGN(const auto program, stage_program());
  ProgressLine line("asking the machines for their devices");
  const Log log("", LogLevel::kInfo, line.log_output());
  MOTLEY_TRY(settle_by_queries(cluster, program, options.comm.start_timeout_s, log));
  line.say("all-reduce with each codec");
  MOTLEY_ASSIGN(const auto all, measure_allreduces(cluster, options, program, log));
  line.clear();
  if (arguments.has("json")) {
    std::puts(sums_to_json(all, options, has_limit).dump(2).c_str());
    return {};
  }
  fmt::print(
      "All-reduce of {} of fp32 values over {}, median of {} runs\n\n"
      "{}",
      bytes_text(static_cast<double>(options.values) * sizeof(float)),
      has_limit ? "the devices of all machines" : "two processes of this machine", options.runs,
      allreduce_table(all, has_limit));
  return {};
}

}  // namespace

Command bench_allreduce_command() {
  CommandSpec spec{
      "bench allreduce",
      "measure the all-reduce of gradients, with each codec",
      {},
      {cluster_option(),
       links_option(),
       {"codec", "CHAIN", "compress with this chain (default: some of each kind)", true},
       {"mib", "N", "size of the gradient on each rank (default 64)"},
       {"runs", "N", "measured runs of each codec, after one for warming up (default 5)"},
       transport_option(),
       encrypt_option(),
       json_option()},
      "Replicas of a stage all-reduce their gradients after each step. This command runs the\n"
      "same all-reduce on generated values, over all devices of the cluster, or between two\n"
      "processes of this machine: first inside each machine, then between machines with the\n"
      "codec and error feedback. Results that differ between ranks are an error.\n\n"
      "  of the links   share of the time that the fastest possible all-reduce of these bytes\n"
      "                 takes at the speeds of the cluster file, or of --links. Near 100 %: only\n"
      "                 fewer bytes help. Far below: processors or latency are the limit\n"
      "  faster         than without compression\n"
      "  largest error  of one all-reduce; values are between -1 and 1. topk delays most values,\n"
      "                 so its error is large\n"
      "  lost           error of the sum of all runs including the residuals. Near 0: error\n"
      "                 feedback delays values and loses nothing\n"
      "  CPU s          of all ranks, in one all-reduce\n\n"
      "Example\n"
      "  motley bench allreduce --cluster home.toml --codec int8 --codec \"topk(0.01)|fp16\"\n"};
  return {spec, bench_allreduce};
}

}  // namespace motley
