// One rank of bench/allreduce, which starts all ranks. Prints one line of JSON: its times.
//
//   allreduce_rank --rank R --machines 2,2 --address A --folder F [--engine motley | gloo]
//
// machines: the number of ranks on each machine; ranks are numbered machine by machine. folder:
// shared by all ranks and initially empty, for the exchange of addresses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <boost/program_options.hpp>

#include "base/clock.h"
#include "base/system/files.h"
#include "comm/make_transport.h"
#include "comm/transport/transport.h"
#include "profiling/allreduce_bench.h"
#ifdef MOTLEY_WITH_GLOO
#include "bench/gloo_allreduce.h"
#endif

namespace {

using namespace motley;
namespace po = boost::program_options;

struct Options {
  int rank = 0;
  std::string machines = "1,1";
  std::string address;
  std::string folder;
  std::string engine = "motley";
  std::string transport = "auto";
  std::string codec = "none";
  std::string speeds;
  std::size_t floats = 29'500'000;
  std::size_t bucket_floats = kBucketValues;
  int window = HierarchicalAllreduceOptions{}.window;
  int runs = 5;
  double timeout_s = 60;
};

bool read_options(int argc, char** argv, Options& o) {
  po::options_description options("allreduce_rank");
  const auto value = [](auto* field) { return po::value(field)->default_value(*field); };
  options.add_options()("help", "this text")("rank", value(&o.rank))("machines", value(&o.machines),
                                                                     "ranks of each machine")(
      "address", value(&o.address), "of this rank's machine")("folder", value(&o.folder),
                                                              "where the ranks find each other")(
      "engine", value(&o.engine), "motley or gloo")("transport", value(&o.transport),
                                                    "of motley: auto, ucx or gloo")(
      "codec", value(&o.codec), "of motley, between machines, with error feedback")(
      "speeds", value(&o.speeds),
      "of the machines' links, such as 1000,1000,200; parts of equal size without")(
      "floats", value(&o.floats))("bucket-floats", value(&o.bucket_floats))(
      "window", value(&o.window))("runs", value(&o.runs))("timeout", value(&o.timeout_s),
                                                          "seconds");
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, options), given);
  po::notify(given);
  if (given.count("help") != 0) std::cout << options;
  return given.count("help") == 0;
}

std::vector<std::int64_t> numbers(const std::string& text) {
  std::vector<std::int64_t> numbers;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) numbers.push_back(std::stoll(word));
  return numbers;
}

RanksByMachine machines_of(const std::string& text) {
  RanksByMachine machines;
  std::int32_t next = 0;
  for (const std::int64_t count : numbers(text)) {
    machines.emplace_back();
    for (std::int64_t i = count; i > 0; --i) machines.back().push_back(Rank{next++});
  }
  return machines;
}

// Every rank writes its address into the folder and waits for the others'. [Rank]
Result<std::vector<std::string>> exchange_addresses(const Options& o,
                                                    int rank_count,
                                                    const std::string& mine) {
  const std::filesystem::path folder(o.folder);
  MOTLEY_TRY(write_file_atomic(folder / std::to_string(o.rank), mine));
  const Deadline deadline = Deadline::after_s(o.timeout_s);
  std::vector<std::string> addresses;
  for (int rank = 0; rank < rank_count; ++rank) {
    const std::filesystem::path file = folder / std::to_string(rank);
    while (!std::filesystem::exists(file)) {
      if (deadline.passed()) {
        return Error{ErrorCode::kPeer, fmt::format("rank {} gave no address", rank), "", ""};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    MOTLEY_ASSIGN(std::string address, read_file(file));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

Result<void> run_motley(const Options& o, const RanksByMachine& machines, int rank_count) {
  const Rank self{o.rank};
  TransportOptions transport_options;
  transport_options.kind = o.transport;
  transport_options.rank = self;
  transport_options.rank_count = rank_count;
  transport_options.bind_address = o.address;
  transport_options.stall_timeout = o.timeout_s;
  MOTLEY_ASSIGN(const auto transport, make_transport(transport_options));
  MOTLEY_ASSIGN(const auto addresses, exchange_addresses(o, rank_count, transport->address()));
  MOTLEY_TRY(transport->connect(addresses, Deadline::after_s(o.timeout_s)));
  FrameLink link(*transport, self, /*epoch=*/1, /*plan_hash=*/0);
  const AllreducePlan plan(machines, o.floats, o.bucket_floats, numbers(o.speeds));
  MOTLEY_ASSIGN(const AllreduceSample sample,
                measure_allreduce(link, self, plan, {.chain = o.codec},
                                  {.window = o.window, .stall_timeout = o.timeout_s}, o.runs));
  fmt::print(
      "{{\"runs_s\": [{:.4f}], \"wait_s\": {:.4f}, \"cpu_s\": {:.2f}, \"error\": {:.3g}, "
      "\"lost\": {:.3g}}}\n",
      fmt::join(sample.runs_s, ", "), sample.wait_s, sample.cpu_s, sample.largest_error,
      sample.lost_error);
  std::fflush(stdout);
  // Leaving drops data in flight. All ranks have their results once rank 0 has heard from all;
  // that it has left by then is no error.
  (void)all_gather_small(link, self, rank_count, -1, {}, 0, Deadline::after_s(o.timeout_s));
  return {};
}

Result<void> run(const Options& o) {
  const RanksByMachine machines = machines_of(o.machines);
  int rank_count = 0;
  for (const auto& members : machines) rank_count += static_cast<int>(members.size());
  if (o.engine == "motley") return run_motley(o, machines, rank_count);
#ifdef MOTLEY_WITH_GLOO
  const auto runs_s =
      time_gloo_allreduce(o.rank, rank_count, o.address, o.folder, o.floats, o.runs);
  fmt::print("{{\"runs_s\": [{:.4f}]}}\n", fmt::join(runs_s, ", "));
  return {};
#else
  return Error{ErrorCode::kConfig, "this build has no Gloo", "", "use --engine motley"};
#endif
}

}  // namespace

int main(int argc, char** argv) {
  motley::quiet_transports();
  Options options;
  if (!read_options(argc, argv, options)) return 0;
  const auto done = run(options);
  if (done.ok()) return 0;
  std::cerr << describe(done.error());
  return 1;
}
