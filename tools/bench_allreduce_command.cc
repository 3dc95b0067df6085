// motley bench allreduce: the cost of an all-reduce of gradients between these machines, for each
// codec, beside the limit of the links.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "base/log.h"
#include "cluster/examine/allreduce.h"
#include "cluster/examine/automatic_devices.h"
#include "cluster/process/work_line.h"
#include "partitioner/advise/text_table.h"
#include "plan/quantity_text.h"
#include "tools/command.h"
#include "tools/inputs.h"

namespace motley {
namespace {

constexpr std::int64_t kValuesPerMib = (std::int64_t{1} << 20) / std::int64_t{sizeof(float)};

// The first codec is the baseline of the comparison.
std::vector<std::string> chains_to_sum(const Arguments& arguments) {
  std::vector<std::string> chains = {"none"};
  const std::vector<std::string> asked =
      arguments.has("codec") ? arguments.values("codec")
                             : std::vector<std::string>{"fp16", "int8", "int4", "topk(0.01)|fp16"};
  std::ranges::copy_if(asked, std::back_inserter(chains),
                       [](const std::string& chain) { return chain != "none"; });
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

std::string sums_table(const std::vector<AllreduceFigures>& all, bool has_limit) {
  std::vector<TextRow> rows = {{"codec", "time", "of the links", "faster", "MB out of each machine",
                                "largest error", "lost", "CPU s"}};
  for (const AllreduceFigures& each : all) {
    std::vector<std::string> megabytes;
    for (const double bytes : each.uplink_bytes) {
      megabytes.push_back(fmt::format("{:.2f}", bytes / 1e6));
    }
    rows.push_back({each.codec, seconds_text(each.sum_s),
                    has_limit ? percent_text(each.bound_s / each.sum_s) : "-",
                    fmt::format("{:.2f} x", all.front().sum_s / each.sum_s),
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
                {"sum_s", each.sum_s},
                {"times_faster", all.front().sum_s / each.sum_s},
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
  WorkLine line("asking the machines for their devices");
  const Log log("", LogLevel::kInfo, line.log_output());
  MOTLEY_TRY(settle_by_asking(cluster, program, options.comm.start_timeout_s, log));
  line.say("summing with each codec");
  MOTLEY_ASSIGN(const auto all, measure_allreduces(cluster, options, program, log));
  line.clear();
  if (arguments.has("json")) {
    std::puts(sums_to_json(all, options, has_limit).dump(2).c_str());
    return {};
  }
  fmt::print("Sum of {} of fp32 values over {}, median of {} runs\n\n{}",
             bytes_text(static_cast<double>(options.values) * sizeof(float)),
             has_limit ? "the devices of all machines" : "two processes of this machine",
             options.runs, sums_table(all, has_limit));
  return {};
}

}  // namespace

Command bench_allreduce_command() {
  CommandSpec spec{
      "bench allreduce",
      "measure the sum of gradients over replicas, with each codec",
      {},
      {cluster_option(),
       links_option(),
       {"codec", "CHAIN", "compress by this chain (default: some of each kind)", true},
       {"mib", "N", "size of the gradient on each rank (default 64)"},
       {"runs", "N", "runs of each codec that count, after one to warm up (default 5)"},
       {"transport", "KIND", "auto, ucx, gloo or tcp (default auto, as comm.transport)"},
       {"encrypt", "WHEN", "auto, always or never (default auto, as comm.encrypt)"},
       json_option()},
      "Replicas of a stage add up their gradients after each step. This does the same with\n"
      "made-up values, on every device of the cluster, or between two processes of this\n"
      "machine: inside each machine first, then between machines in the codec's form, with\n"
      "error feedback. Ranks that end with different bits are an error.\n\n"
      "  of the links   share of the time that the fastest possible sum of these bytes takes at\n"
      "                 the speeds of the cluster file, or of --links. Near 100 %: only fewer\n"
      "                 bytes help. Far below: processors or latency are the limit\n"
      "  faster         than without compression\n"
      "  largest error  of one sum; values lie between -1 and 1. topk leaves most of it for\n"
      "                 later, so it is large there\n"
      "  lost           what the sums of all runs, with what is kept for later, lack. Near 0:\n"
      "                 error feedback delays, and loses nothing\n"
      "  CPU s          of all ranks, in one sum\n\n"
      "Example\n"
      "  motley bench allreduce --cluster home.toml --codec int8 --codec \"topk(0.01)|fp16\"\n"};
  return {spec, bench_allreduce};
}

}  // namespace motley
