#include "protocol/machine_facts.h"

#include <limits>

#include <gmock/gmock.h>

#include "tests/support/drawn_values.h"
#include "tests/support/json_members.h"

namespace motley {
namespace {

MachineFacts some_facts() {
  MachineFacts facts;
  facts.version = "1.2.3";
  facts.build = "0123456789abcdef";
  facts.found.torch = "1.13.1 for CUDA 11.8";
  facts.blas = "/usr/lib/libblas.so.3";
  facts.transports = {"gloo", "tcp"};
  facts.found.devices = {{.name = "cpu", .memory_bytes = 8, .free_bytes = 5, .types = {"fp32"}},
                         {"cuda:0", "Card", "8.6", "for CUDA 12.4", 12, 11, {"fp32", "bf16"}, {}},
                         {.name = "cuda:1", .fault = {"too old", "a newer one"}}};
  facts.found.missing = {{"mps", {"no such kind", "a Mac"}, false}, {"privateuseone", {}, true}};
  facts.cores = 1.5;
  facts.physical_cores = 3;
  facts.memory_bytes = 1 << 30;
  facts.computer = "b7e3-f0c4";
  facts.computer_memory_bytes = std::int64_t{1} << 31;
  facts.disk_bytes = 5;
  facts.unix_s = 1.7e9;
  facts.sees_mark_file = true;
  facts.candidates = {{"eth0", "10.0.0.1", "wired", true, 1000}, {"lo", "::1", "loopback"}};
  facts.routes = {{"10.0.0.2", "10.0.0.1"}, {"10.9.9.9", ""}};
  return facts;
}

std::int64_t drawn_bytes() {
  return drawn_whole<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
}

DeviceFault drawn_fault() {
  return drawn_flag() ? DeviceFault{drawn_word(), drawn_text()} : DeviceFault{};
}

DeviceFacts drawn_device() {
  return {drawn_word(),
          drawn_text(),
          drawn_text(),
          drawn_text(),
          drawn_bytes(),
          drawn_bytes(),
          drawn_list(0, drawn_text),
          drawn_fault()};
}

MissingKind drawn_missing_kind() {
  return {drawn_text(), drawn_fault(), drawn_flag()};
}

AddressCandidate drawn_candidate() {
  return {drawn_text(), drawn_text(), drawn_text(), drawn_flag(),
          drawn_whole(0, std::numeric_limits<int>::max())};
}

RouteFound drawn_route() {
  return {drawn_text(), drawn_text()};
}

// In the order of the members.
MachineFacts drawn_facts() {
  return {drawn_text(),
          drawn_text(),
          drawn_text(),
          drawn_list(0, drawn_text),
          {drawn_text(), drawn_list(1, drawn_device), drawn_list(0, drawn_missing_kind)},
          drawn_quantity(1e6),
          drawn_whole(1, 1000),
          drawn_bytes(),
          drawn_text(),
          drawn_bytes(),
          drawn_bytes(),
          drawn_quantity(1e10),
          drawn_flag(),
          drawn_list(0, drawn_candidate),
          drawn_list(0, drawn_route)};
}

RC_GTEST_PROP(MachineFacts, AreTheSameAfterWritingAndReading, ()) {
  const MachineFacts facts = drawn_facts();
  const auto read = facts_from_json(*parse_json(facts_to_json(facts).dump(), "box"), "box");
  RC_ASSERT(read.ok());
  RC_ASSERT(*read == facts);
}

TEST(MachineFacts, ReadBackAsTheyWere) {
  const auto read = facts_from_json(facts_to_json(some_facts()), "box");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(*read, some_facts());
}

TEST(MachineFacts, AreRefusedWithTheNameOfAnAbsentOrStrangeMember) {
  const auto error_in = [](const Json& json) {
    std::optional<Error> error = error_of(facts_from_json(json, "box"));
    EXPECT_EQ(error.value_or(Error{ErrorCode::kPeer}).code, ErrorCode::kPeer);
    EXPECT_THAT(error ? error->what : "box", testing::HasSubstr("box"));
    return error;
  };
  EXPECT_THAT(members_that_may_be_absent(facts_to_json(some_facts()), error_in),
              testing::IsEmpty());
  // null: no fault
  EXPECT_THAT(members_of_any_type(facts_to_json(some_facts()), error_in),
              testing::ElementsAre("devices[0].fault", "devices[1].fault", "devices[2].fault",
                                   "missing[0].fault", "missing[1].fault"));
}

TEST(MachineFacts, RefuseDevicesThatAreNone) {
  const auto is_read = [](const auto& change) {
    Json damaged = facts_to_json(some_facts());
    change(damaged);
    return facts_from_json(damaged, "box").ok();
  };
  EXPECT_TRUE(is_read([](Json&) {}));
  EXPECT_FALSE(is_read([](Json& facts) { facts["devices"] = Json::array(); }));
  EXPECT_FALSE(is_read([](Json& facts) { facts["devices"][1]["name"] = "cuda 0"; }));
  EXPECT_FALSE(is_read([](Json& facts) { facts["devices"][1]["memory_bytes"] = -1; }));
  EXPECT_FALSE(is_read([](Json& facts) { facts["devices"][1]["types"] = "fp32"; }));
  EXPECT_FALSE(is_read([](Json& facts) { facts["devices"][2].erase("fault"); }));
  EXPECT_TRUE(is_read([](Json& facts) { facts["devices"][2]["fault"] = nullptr; }));
  EXPECT_FALSE(is_read([](Json& facts) { facts["missing"][0]["is_shown"] = 1; }));
}

TEST(MachineFacts, RefuseNumbersThatAreNone) {
  for (const auto& [key, value] :
       {std::pair{"cores", -1.0}, {"memory_bytes", -1.0}, {"disk_bytes", 0.5}}) {
    Json damaged = facts_to_json(some_facts());
    damaged[key] = value;
    EXPECT_FALSE(facts_from_json(damaged, "box").ok()) << key;
  }
}

}  // namespace
}  // namespace motley
