// Random plans, profiles and links are equal after writing and reading; an error names the member
// that is absent or has another type.
#include <algorithm>
#include <tuple>

#include <gmock/gmock.h>

#include "base/json.h"
#include "plan/group_limits.h"
#include "tests/plan/value_fixtures.h"
#include "tests/support/drawn_values.h"
#include "tests/support/json_members.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kSecondsMax = 1e6;

// All members; a new one makes this fail to compile.
auto members_of(const RankPlan& rank) {
  const auto& [machine, device, threads, compute_s, memory_bytes, link_mbps, dtype] = rank;
  return std::tie(machine, device, threads, compute_s, memory_bytes, link_mbps, dtype);
}

auto members_of(const Replica& replica) {
  const auto& [rank, micro_batches, times] = replica;
  return std::tie(rank, micro_batches, times);
}

auto members_of(const ChunkPlan& chunk) {
  const auto& [first, count, replicas, codec, recompute, in_flight, hop_us, queued] = chunk;
  return std::tie(first, count, codec, recompute, in_flight, hop_us, queued);
}

auto members_of(const Plan& plan) {
  const auto& [model, ranks, chunks, size, count, schedule, codec, rounds, step_s, notes] = plan;
  return std::tie(model, size, count, schedule, codec, step_s, notes);
}

auto members_of(const DeviceProfile& device) {
  const auto& [machine, name, computer, threads, cores, memory, baseline, precision, dtype, rounded,
               optimizer_s, codecs, message_s, shared_s, layers, factor, warnings] = device;
  return std::tie(machine, name, computer, threads, cores, memory, baseline, precision, dtype,
                  rounded, optimizer_s, codecs, message_s, shared_s, layers, factor, warnings);
}

template <class T>
bool are_same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(a, b,
                            [](const T& x, const T& y) { return members_of(x) == members_of(y); });
}

bool are_same(const Plan& a, const Plan& b) {
  const auto have_same_replicas = [](const ChunkPlan& x, const ChunkPlan& y) {
    return are_same(x.replicas, y.replicas);
  };
  return members_of(a) == members_of(b) && are_same(a.ranks, b.ranks) &&
         are_same(a.chunks, b.chunks) && std::ranges::equal(a.chunks, b.chunks, have_same_replicas);
}

std::string drawn_dtype() {
  return *rc::gen::elementOf(kProductDtypes);
}

std::int64_t drawn_bytes() {
  return drawn_whole<std::int64_t>(0, kMemoryBytesMax);
}

RankPlan drawn_rank() {
  return {.machine = drawn_word(),
          .device = drawn_word() + ":0",
          .threads = drawn_whole(1, kThreadsMax),
          .compute_s = drawn_quantity(kSecondsMax),
          .memory_bytes = drawn_bytes(),
          .link_mbps = drawn_whole<std::int64_t>(0, kLinkMbpsMax),
          .compute_dtype = drawn_dtype()};
}

std::int64_t drawn_microseconds() {
  return drawn_whole<std::int64_t>(1, 1'000'000'000);
}

// One chunk on each rank.
Plan drawn_plan() {
  Plan plan{.model_hash = drawn_word(),
            .ranks = drawn_list(1, drawn_rank),
            .micro_batch = drawn_whole(1, 1000),
            .micro_batches = drawn_whole(1, 1000),
            .schedule = *rc::gen::elementOf(std::vector<std::string>{"gpipe", "1f1b", "split"}),
            .gradient_codec = drawn_word() + "|zstd(1)",
            .predicted_step_s = drawn_quantity(kSecondsMax),
            .notes = drawn_list(0, drawn_text)};
  const int in_flight = plan.schedule == "gpipe" ? 0 : drawn_whole(0, plan.micro_batches);
  const int queued = plan.schedule == "split" ? drawn_whole(0, plan.micro_batches) : 0;
  int first_layer = 0;
  for (int r = 0; r < plan.rank_count(); ++r) {
    ChunkPlan& chunk = plan.chunks.emplace_back();
    chunk.first_layer = first_layer;
    chunk.layer_count = drawn_whole(1, 100);
    chunk.replicas = {{Rank{r},
                       plan.micro_batches,
                       {drawn_microseconds(), drawn_microseconds(), drawn_microseconds()}}};
    chunk.codec = drawn_word();
    chunk.recompute = drawn_flag();
    chunk.in_flight = in_flight;
    chunk.hop_us = drawn_whole<std::int64_t>(0, 1'000'000);
    chunk.queued_weights = queued;
    first_layer += chunk.layer_count;
  }
  return plan;
}

std::vector<LayerSample> drawn_samples() {
  std::vector<LayerSample> samples;
  int size = 0;
  do {
    LayerSample& sample = samples.emplace_back();
    sample.micro_batch = size += drawn_whole(1, 100);
    sample.forward_s = drawn_quantity(kSecondsMax);
    sample.backward_s = drawn_quantity(kSecondsMax);
    sample.forward_spread_s = drawn_quantity(kSecondsMax);
    sample.backward_spread_s = drawn_quantity(kSecondsMax);
    sample.saved_bytes = drawn_bytes();
    sample.workspace_bytes = drawn_bytes();
    if (drawn_flag()) {
      sample.split = {drawn_quantity(sample.backward_s), drawn_quantity(kSecondsMax),
                      drawn_bytes()};
    }
  } while (samples.size() < 4 && drawn_flag());
  return samples;
}

CodecSample drawn_codec() {
  return {1 + drawn_quantity(63), drawn_quantity(kSecondsMax), drawn_quantity(kSecondsMax)};
}

DeviceProfile drawn_device() {
  DeviceProfile device;
  device.machine = drawn_word();
  device.device = drawn_word();
  device.computer = drawn_flag() ? drawn_word() : "";
  device.threads = drawn_whole(1, kThreadsMax);
  device.cores = drawn_quantity(kThreadsMax);
  device.memory_bytes = drawn_bytes();
  device.baseline_bytes = drawn_bytes();
  device.precision = drawn_dtype();
  device.compute_dtype = drawn_dtype();
  device.rounded_bytes_per_parameter = drawn_whole(0, 4);
  device.optimizer_s_per_parameter = drawn_quantity(1);
  device.codecs = {{"none", drawn_codec()}, {drawn_word(), drawn_codec()}};
  device.message_s = drawn_quantity(1);
  device.shared_s_per_float = drawn_quantity(1);
  device.layers[drawn_text()] = drawn_samples();
  device.single_device_factor = 0.5 + drawn_quantity(0.5);
  device.warnings = drawn_list(0, drawn_text);
  return device;
}

RC_GTEST_PROP(RoundTrip, OfAPlanChangesNothing, ()) {
  const Plan plan = drawn_plan();
  const auto read = parse_plan(plan_to_json(plan).dump(), "p.json");
  RC_ASSERT(read.ok());
  RC_ASSERT(are_same(*read, plan));
}

RC_GTEST_PROP(RoundTrip, OfAProfileChangesNothing, ()) {
  Profile profile{drawn_list(0, drawn_device)};
  for (std::size_t i = 0; i < profile.devices.size(); ++i) {
    profile.devices[i].machine += std::to_string(i);
  }
  const auto read = parse_profile(profile_to_json(profile).dump(), "p.json");
  RC_ASSERT(read.ok());
  RC_ASSERT(are_same(read->devices, profile.devices));
}

RC_GTEST_PROP(RoundTrip, OfLinksChangesNothing, ()) {
  Links links = drawn_list(0, [] {
    MeasuredLink link{.to = drawn_word(),
                      .speed = {1 + drawn_quantity(1e12), drawn_quantity(1)},
                      .jitter_p95_s = drawn_quantity(1)};
    if (drawn_flag()) link.turns = drawn_quantity(1);
    return link;
  });
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i].from = links[i].to + std::to_string(i);
  }
  const auto read = parse_links(links_to_json(links).dump(), "p.json");
  RC_ASSERT(read.ok());
  RC_ASSERT(*read == links);
}

Json plan_without_hash() {
  Json json = plan_to_json(two_stages());
  json.erase("hash");
  json["ranks"][0]["numbers"] = "bf16";
  return json;
}

Json full_profile() {
  Profile profile = one_device();
  DeviceProfile& device = profile.devices.front();
  device.computer = "b7e3";
  device.cores = 2;
  device.precision = "bf16";
  device.rounded_bytes_per_parameter = 2;
  device.shared_s_per_float = 1e-9;
  device.codecs = {{"none", {}}};
  device.layers = {{"attn", {{1, 0.1, 0.2, 0.01, 0.02, 100, 10, SplitBackward{0.1, 0.1, 5}}}}};
  return profile_to_json(profile);
}

Json full_links() {
  Links links = both_ways();
  links.pop_back();
  links.front().turns = 0.5;
  return links_to_json(links);
}

std::optional<Error> error_in_plan(const Json& json) {
  return error_of(parse_plan(json.dump(), "p.json"));
}

std::optional<Error> error_in_profile(const Json& json) {
  return error_of(parse_profile(json.dump(), "p.json"));
}

std::optional<Error> error_in_links(const Json& json) {
  return error_of(parse_links(json.dump(), "p.json"));
}

TEST(JsonMember, ThatIsAbsentIsNamed) {
  // forward_us: a plan written by hand has no times.
  EXPECT_THAT(members_that_may_be_absent(plan_without_hash(), error_in_plan),
              ElementsAre("ranks[0].numbers", "chunks[0].replicas[0].forward_us",
                          "chunks[1].replicas[0].forward_us", "chunks[1].replicas[1].forward_us"));
  EXPECT_THAT(
      members_that_may_be_absent(full_profile(), error_in_profile),
      ElementsAre("devices[0].cores", "devices[0].alone_factor", "devices[0].layers.attn",
                  "devices[0].shared_s_per_float", "devices[0].computer", "devices[0].precision",
                  "devices[0].numbers", "devices[0].rounded_bytes_per_parameter"));
  EXPECT_THAT(members_that_may_be_absent(full_links(), error_in_links),
              ElementsAre("links[0].turns"));
}

TEST(JsonMember, OfAnotherTypeIsNamed) {
  EXPECT_THAT(members_of_any_type(plan_without_hash(), error_in_plan), IsEmpty());
  EXPECT_THAT(members_of_any_type(full_profile(), error_in_profile), IsEmpty());
  EXPECT_THAT(members_of_any_type(full_links(), error_in_links), IsEmpty());
}

}  // namespace
}  // namespace motley
