#include "plan/profile.h"

#include <functional>

#include "base/json.h"
#include "tests/plan/value_fixtures.h"
#include "tests/support/property.h"

namespace motley {
namespace {

std::string verdict(const std::function<void(Json&)>& change) {
  Json json = profile_to_json(one_device());
  change(json);
  const auto profile = profile_from_json(json, "p.json");
  if (profile.ok()) return "accepted";
  EXPECT_EQ(profile.error().code, ErrorCode::kCorrupt);
  return profile.error().cause;
}

TEST(ProfileJson, ReadsBackExactly) {
  const Json json = profile_to_json(one_device());
  const auto profile = profile_from_json(*parse_json(json.dump(), "p.json"), "p.json");
  ASSERT_TRUE(profile.ok()) << describe(profile.error());
  EXPECT_EQ(profile_to_json(*profile), json);
}

TEST(ProfileJson, ADeviceIsAsFastAloneWhereNothingIsSaid) {
  Json json = profile_to_json(one_device());
  json["devices"][0]["alone_factor"] = 0.5;
  EXPECT_EQ(profile_from_json(json, "p.json")->devices[0].single_device_factor, 0.5);
  json["devices"][0].erase("alone_factor");
  EXPECT_EQ(profile_from_json(json, "p.json")->devices[0].single_device_factor, 1);
  for (const double impossible : {0.0, 1.5, -1.0}) {
    json["devices"][0]["alone_factor"] = impossible;
    EXPECT_FALSE(profile_from_json(json, "p.json").ok()) << impossible;
  }
}

TEST(ProfileJson, TellsWhatSharedMemoryCostsWhereItIsKnown) {
  Profile profile = one_device();
  EXPECT_FALSE(profile_to_json(profile)["devices"][0].contains("shared_s_per_float"));
  profile.devices[0].shared_s_per_float = 1e-9;
  Json json = profile_to_json(profile);
  EXPECT_EQ(profile_from_json(json, "p.json")->devices[0].shared_s_per_float, 1e-9);
  profile.devices[0].scale_times(3);
  EXPECT_DOUBLE_EQ(profile.devices[0].shared_s_per_float, 3e-9);
  json["devices"][0]["shared_s_per_float"] = -1;
  EXPECT_FALSE(profile_from_json(json, "p.json").ok());
}

TEST(ProfileJson, TellsTheComputerWhereItIsKnown) {
  Profile profile = one_device();
  EXPECT_FALSE(profile_to_json(profile)["devices"][0].contains("computer"));
  profile.devices[0].computer = "b7e3-f0c4";
  const Json json = profile_to_json(profile);
  EXPECT_EQ(profile_from_json(json, "p.json")->devices[0].computer, "b7e3-f0c4");
}

TEST(ProfileJson, ADeviceComputesInWhatItWasAskedForWhereNothingElseIsSaid) {
  Profile profile = one_device();
  profile.devices[0].precision = "fp16";
  profile.devices[0].compute_dtype = "fp16";
  Json json = profile_to_json(profile);
  EXPECT_FALSE(json["devices"][0].contains("numbers"));
  EXPECT_EQ(profile_from_json(json, "p.json")->devices[0].compute_dtype, "fp16");
  profile.devices[0].compute_dtype = "fp32";
  json = profile_to_json(profile);
  EXPECT_EQ(profile_from_json(json, "p.json")->devices[0].compute_dtype, "fp32");
}

TEST(ProfileJson, RefusesImpossibleValues) {
  const auto sample = [](Json& j) -> Json& { return j["devices"][0]["layers"]["attn"][0]; };
  EXPECT_EQ(verdict([](Json&) {}), "accepted");
  EXPECT_NE(verdict([&](Json& j) { sample(j)["forward_s"] = -1; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { sample(j)["forward_s"] = 1e300; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { sample(j)["saved_bytes"] = std::int64_t{1} << 60; }),
            "accepted");
  EXPECT_NE(verdict([&](Json& j) { sample(j)["micro_batch"] = 4; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { sample(j).erase("workspace_bytes"); }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["devices"][0]["layers"]["attn"] = Json::array(); }),
            "accepted");
  EXPECT_NE(verdict([](Json& j) { j["devices"].push_back(j["devices"][0]); }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["format"] = "motley.plan"; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["devices"][0]["message_s"] = -1; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["devices"][0]["warnings"] = {1}; }), "accepted");
}

TEST(ProfileJson, KeepsThePartsOfBackwardWhereTheyWereMeasured) {
  Profile profile = one_device();
  profile.devices[0].layers["attn"][0].split = {0.125, 0.25, 77};
  const auto read = profile_from_json(profile_to_json(profile), "p.json");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->devices[0].layers, profile.devices[0].layers);
}

TEST(ProfileJson, RefusesImpossiblePartsOfBackward) {
  const auto parts = [](double input_s, double weight_s, std::int64_t queued_bytes) {
    return verdict([&](Json& j) {
      Json& sample = j["devices"][0]["layers"]["attn"][0];
      sample["backward_input_s"] = input_s;
      sample["backward_weight_s"] = weight_s;
      sample["queued_bytes"] = queued_bytes;
    });
  };
  EXPECT_EQ(parts(0.2, 0.3, 0), "accepted");
  EXPECT_EQ(parts(0.21, 0, 0), "it is larger than backward_s, of which it is a part");
  EXPECT_NE(parts(0.1, -1, 0), "accepted");
  EXPECT_NE(parts(0.1, 0, -1), "accepted");
  EXPECT_NE(
      verdict([](Json& j) { j["devices"][0]["layers"]["attn"][0]["backward_input_s"] = 0.1; }),
      "accepted");
}

TEST(ProfileJson, RefusesImpossibleCodecs) {
  const auto codecs = [](Json& j) -> Json& { return j["devices"][0]["codecs"]; };
  EXPECT_EQ(verdict([&](Json& j) { codecs(j).erase("none"); }), "codec 'none' is missing");
  EXPECT_NE(verdict([&](Json& j) { codecs(j)["none"]["bytes_per_float"] = 0; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { codecs(j)["none"]["bytes_per_float"] = 65; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { codecs(j)["none"]["encode_s_per_float"] = -1; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { codecs(j)["none"].erase("decode_s_per_float"); }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { codecs(j)[""] = codecs(j)["none"]; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { codecs(j)["fp16"] = 2; }), "accepted");
}

TEST(ProfileJson, RefusesAFormerVersion) {
  EXPECT_EQ(verdict([](Json& j) { j["version"] = 1; }), "it is 1; this program reads 3");
}

LayerSample at(int micro_batch, double forward_s, std::int64_t saved_bytes) {
  return {.micro_batch = micro_batch, .forward_s = forward_s, .saved_bytes = saved_bytes};
}

TEST(Interpolate, FollowsTheLineThroughTheNearestTwo) {
  const std::vector<LayerSample> samples = {at(2, 3, 20), at(4, 5, 40), at(8, 13, 80)};
  EXPECT_EQ(interpolate(samples, 4).forward_s, 5);
  EXPECT_DOUBLE_EQ(interpolate(samples, 3).forward_s, 4);
  EXPECT_DOUBLE_EQ(interpolate(samples, 6).forward_s, 9);
  EXPECT_DOUBLE_EQ(interpolate(samples, 16).forward_s, 29);
  EXPECT_DOUBLE_EQ(interpolate(samples, 1).forward_s, 2);
  EXPECT_EQ(interpolate(samples, 16).saved_bytes, 160);
}

TEST(Interpolate, KnowsThePartsOfBackwardWhereBothSamplesDo) {
  LayerSample one{.micro_batch = 1, .backward_s = 3};
  LayerSample three{.micro_batch = 3, .backward_s = 9};
  one.split = {1, 3, 10};
  EXPECT_FALSE(interpolate({one, three}, 2).split);
  three.split = {4, 5, 40};
  EXPECT_EQ(interpolate({one, three}, 2).split, (SplitBackward{2.5, 4, 25}));
  EXPECT_EQ(interpolate({one}, 2).split, (SplitBackward{2, 6, 20}));
}

TEST(Interpolate, NeverFallsBelowZero) {
  EXPECT_EQ(interpolate({at(4, 1, 10), at(5, 10, 100)}, 1).forward_s, 0);
}

TEST(Interpolate, TakesOneSampleInProportion) {
  EXPECT_DOUBLE_EQ(interpolate({at(2, 3, 20)}, 4).forward_s, 6);
  EXPECT_DOUBLE_EQ(interpolate({at(4, 3, 20)}, 2).forward_s, 1.5);
}

}  // namespace
}  // namespace motley
