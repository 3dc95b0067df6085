#include "protocol/machine_facts.h"

#include <gtest/gtest.h>

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

TEST(MachineFacts, ReadBackAsTheyWere) {
  const auto read = facts_from_json(facts_to_json(some_facts()), "box");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(*read, some_facts());
}

TEST(MachineFacts, RefuseAnyMissingOrStrangeMember) {
  const Json valid = facts_to_json(some_facts());
  for (const auto& [key, value] : valid.items()) {
    Json damaged = valid;
    damaged.erase(key);
    EXPECT_FALSE(facts_from_json(damaged, "box").ok()) << key;
    damaged[key] = Json::object({{"strange", true}});
    const auto read = facts_from_json(damaged, "box");
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_EQ(read.error().code, ErrorCode::kPeer);
    EXPECT_NE(describe(read.error()).find("box"), std::string::npos);
  }
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
