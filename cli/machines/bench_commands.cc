// motley bench codec, motley bench transport: the cost of compression and links on these machines,
// beside their limits.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/text/text_table.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cluster/diagnose/probe.h"
#include "comm/make_transport.h"
#include "comm/transport/transport.h"
#include "compression/facts/codec_facts.h"
#include "compression/feedback/codec_rates.h"
#include "compression/feedback/gradient_compressor.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

constexpr int kRounds = 7;
constexpr std::size_t kFloatsPerMib = (std::size_t{1} << 20) / sizeof(float);

std::vector<std::string> measured_chains(const Arguments& arguments) {
  if (arguments.has("codec")) return arguments.values("codec");
  std::vector<std::string> chains;
  for (const CodecFacts& codec : codecs()) {
    chains.insert(chains.end(), codec.bench_chains.begin(), codec.bench_chains.end());
  }
  return chains;
}

std::string rate_text(double bytes_per_s, double copy_bytes_per_s) {
  if (bytes_per_s == 0) return "-";
  return fmt::format("{:.1f} ({:.2f})", bytes_per_s / 1e9, bytes_per_s / copy_bytes_per_s);
}

Json rates_to_json(const CodecRates& rates) {
  return {{"codec", rates.chain},
          {"wire_bytes_per_value", rates.wire_bytes_per_value},
          {"copy_bytes_per_s", rates.copy_bytes_per_s},
          {"encode_bytes_per_s", rates.encode_bytes_per_s},
          {"feedback_bytes_per_s", rates.feedback_bytes_per_s},
          {"momentum_bytes_per_s", rates.momentum_bytes_per_s},
          {"decode_bytes_per_s", rates.decode_bytes_per_s},
          {"decode_add_bytes_per_s", rates.decode_add_bytes_per_s}};
}

Result<void> bench_codecs(const Arguments& arguments) {
  std::int64_t mib = 256;
  if (arguments.has("mib")) {
    MOTLEY_ASSIGN(mib, integer_value(arguments, "mib", 1, 4096));
  }
  for (const std::string& chain : measured_chains(arguments)) {
    MOTLEY_ASSIGN([[maybe_unused]] const auto codec, make_gradient_codec({.chain = chain}));
  }
  std::vector<TextRow> rows = {{"codec", "smaller", "encode", "with feedback", "and momentum",
                                "decode", "decode and add", "memcpy"}};
  Json json = Json::array();
  for (const std::string& chain : measured_chains(arguments)) {
    const auto floats = static_cast<std::size_t>(mib) * kFloatsPerMib;
    MOTLEY_ASSIGN(const CodecRates rates, measure_codec_rates(chain, floats, floats, kRounds));
    const auto rate = [&](double bytes_per_s) {
      return rate_text(bytes_per_s, rates.copy_bytes_per_s);
    };
    rows.push_back({chain, fmt::format("{:.1f} x", sizeof(float) / rates.wire_bytes_per_value),
                    rate(rates.encode_bytes_per_s), rate(rates.feedback_bytes_per_s),
                    rate(rates.momentum_bytes_per_s), rate(rates.decode_bytes_per_s),
                    rate(rates.decode_add_bytes_per_s), rate(rates.copy_bytes_per_s)});
    json.push_back(rates_to_json(rates));
  }
  if (arguments.has("json")) {
    std::puts(json.dump(2).c_str());
    return {};
  }
  fmt::print(
      "GB/s of fp32 values on one core, and relative to memcpy, for slices of {} MiB\n\n"
      "{}",
      mib, aligned_table(rows));
  return {};
}

// Every transport of this build that the cluster permits: unencrypted ones only on trusted
// networks.
std::vector<CommConfig> usable_transports(const Cluster& cluster) {
  std::vector<CommConfig> all;
  CommConfig comm;
  for (const std::string& kind : transport_kinds()) {
    comm.transport = kind;
    comm.encrypt = "never";
    if (cluster.trusted) all.push_back(comm);
    comm.encrypt = "always";
    if (kind == "tcp") all.push_back(comm);
  }
  return all;
}

std::string name_of(const CommConfig& comm) {
  return comm.encrypt == "always" ? comm.transport + " with TLS" : comm.transport;
}

Result<void> bench_transports(const Arguments& arguments) {
  Cluster cluster = loopback_pair();
  if (arguments.has("cluster")) {
    MOTLEY_ASSIGN(cluster, read_cluster(arguments, 1));
  }
  MOTLEY_ASSIGN(const auto program, stage_program());
  std::vector<TextRow> rows = {{"transport", "from", "to", "MB/s", "of the link", "latency us",
                                "jitter us", "send ns/byte", "receive ns/byte"}};
  Json json = Json::array();
  ProgressLine line("");
  const Log log("", LogLevel::kInfo, line.log_output());
  for (const CommConfig& comm : usable_transports(cluster)) {
    ProbeOptions options;
    options.comm = comm;
    line.say("measuring " + name_of(comm));
    MOTLEY_ASSIGN(const ProbeReport report, probe_links(cluster, options, program, log));
    for (std::size_t i = 0; i < report.links.size(); ++i) {
      const MeasuredLink& link = report.links[i];
      const double nominal = cluster.link(link.from, link.to).bandwidth_bytes_per_s;
      const bool has_limit = arguments.has("cluster");
      rows.push_back({name_of(comm), link.from, link.to,
                      fmt::format("{:.1f}", link.speed.bandwidth_bytes_per_s / 1e6),
                      has_limit ? percent_text(link.speed.bandwidth_bytes_per_s / nominal) : "-",
                      fmt::format("{:.1f}", link.speed.latency_s * 1e6),
                      fmt::format("{:.1f}", link.jitter_p95_s * 1e6),
                      fmt::format("{:.3f}", report.cpu[i].send_s_per_byte * 1e9),
                      fmt::format("{:.3f}", report.cpu[i].receive_s_per_byte * 1e9)});
    }
    json.push_back({{"transport", name_of(comm)}, {"links", links_to_json(report.links)}});
  }
  std::fputs(arguments.has("json") ? (json.dump(2) + "\n").c_str() : aligned_table(rows).c_str(),
             stdout);
  return {};
}

}  // namespace

std::vector<Command> bench_commands() {
  const CommandSpec codec{
      "bench codec",
      "measure how fast codecs compress gradients on this machine",
      {},
      {{"codec", "CHAIN", "measure this chain (default: all)", true},
       {"mib", "N", "size of the slice of values (default 256)"},
       json_option()},
      "Compresses one slice of normally distributed values on one core repeatedly, and\n"
      "compares with memcpy of the same slice. A slice far larger than the caches has the\n"
      "cost of a gradient. Rates count the fp32 bytes read or written.\n\n"
      "Example\n"
      "  motley bench codec --codec int8 --codec \"topk(0.01)|fp16\"\n"};
  const CommandSpec transport{
      "bench transport",
      "measure each transport over the links of a cluster",
      {},
      {cluster_option(), json_option()},
      "Measures bandwidth, latency and processor time of each transport, one after another,\n"
      "between the machines of a cluster, or between two processes of this machine:\n"
      "unencrypted ones only if the cluster file declares the network trusted. The limit of a\n"
      "link is its bandwidth in the cluster file.\n\n"
      "Example\n"
      "  motley bench transport --cluster home.toml\n"};
  return {{codec, bench_codecs}, {transport, bench_transports}, bench_allreduce_command()};
}

}  // namespace motley
