#include "base/json/json_table.h"

#include <array>

#include <gmock/gmock.h>

#include "tests/support/drawn_values.h"
#include "tests/support/json_members.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSource = "a test";

struct Wheel {
  int spokes = 32;
  double pressure = 2.5;

  friend bool operator==(const Wheel&, const Wheel&) = default;
};

struct Size {
  std::int64_t frame_mm = 0;
  bool is_folding = false;

  friend bool operator==(const Size&, const Size&) = default;
};

struct Bell {
  std::string sound;

  friend bool operator==(const Bell&, const Bell&) = default;
};

struct Bicycle {
  Rank owner;
  std::string name;
  std::string colour = "red";
  std::string brake = "disc";
  std::uint64_t serial = 0;
  double price = 1;
  std::optional<double> discount;
  std::optional<Bell> bell;
  Size size;
  Wheel front;
  std::vector<Wheel> spares;
  std::vector<std::string> notes;
  std::map<std::string, Wheel> sets;
  int gears = 1;
  int gear = 1;  // up to `gears`

  friend bool operator==(const Bicycle&, const Bicycle&) = default;
};

constexpr std::array kBrakes = {"disc", "rim"};

constexpr auto kWheelTable =
    json::table<Wheel>(json::required("spokes", &Wheel::spokes, json::whole(1, 100)),
                       json::defaulted("pressure", &Wheel::pressure, json::quantity(10)));

constexpr auto kSizeTable =
    json::table<Size>(json::required("frame_mm", &Size::frame_mm, json::whole()),
                      json::required("is_folding", &Size::is_folding, json::flag()));

constexpr auto kBellTable =
    json::table<Bell>(json::required("bell_sound", &Bell::sound, json::text()));

Result<void> check_spare(const JsonFields& fields,
                         const std::vector<Wheel>& before,
                         const Wheel& spare) {
  if (before.empty() || before.back().spokes < spare.spokes) return {};
  return fields.bad("spokes", "the spares do not ascend");
}

Result<void> check_set(const JsonFields& fields, const std::string& name) {
  return name.size() < 30 ? Result<void>() : Result<void>(fields.bad("a long name"));
}

constexpr auto kBicycleTable = json::table<Bicycle>(
    json::header("motley.bicycle", 3),
    json::written("title", [](const Bicycle& bicycle) { return "the " + bicycle.name; }),
    json::required("owner", &Bicycle::owner, json::whole()),
    json::required("name", &Bicycle::name, json::word("-")),
    json::optional("colour", &Bicycle::colour, json::text()),
    json::required("brake", &Bicycle::brake, json::one_of(kBrakes)),
    json::required("serial", &Bicycle::serial, json::whole()),
    json::required("price", &Bicycle::price, json::quantity()),
    json::optional("discount", &Bicycle::discount, json::quantity(1)),
    json::part(&Bicycle::size, kSizeTable),
    json::part(&Bicycle::bell, kBellTable),
    json::required("front", &Bicycle::front, kWheelTable),
    json::required("spares", &Bicycle::spares, json::list(kWheelTable, 0, 4, check_spare)),
    json::required("notes", &Bicycle::notes, json::list(json::text(), 0, 4)),
    json::required("sets", &Bicycle::sets, json::map(kWheelTable, 3, check_set)),
    json::required("gears", &Bicycle::gears, json::whole(1, 30)),
    json::required("gear",
                   &Bicycle::gear,
                   [](const Bicycle& bicycle) { return json::whole(1, bicycle.gears); }),
    json::check([](const JsonFields& fields, const Bicycle& bicycle) -> Result<void> {
      if (bicycle.name != "stolen") return {};
      return fields.bad("name", "it is stolen");
    }));

Result<Bicycle> read_bicycle(const Json& json) {
  const JsonSource source(kSource);
  return kBicycleTable.read(JsonFields(json, source, ErrorCode::kData));
}

std::optional<Error> error_in(const Json& json) {
  return error_of(read_bicycle(json));
}

Bicycle full_bicycle() {
  Bicycle bicycle{.owner = Rank{3},
                  .name = "fast-1",
                  .colour = "blue",
                  .serial = 7,
                  .discount = 0.5,
                  .bell = Bell{"ding"},
                  .size = {560, true},
                  .front = {36, 4},
                  .spares = {{32, 2}, {36, 3}},
                  .notes = {"new"}};
  bicycle.sets = {{"winter", {28, 3}}};
  bicycle.gears = 9;
  bicycle.gear = 4;
  return bicycle;
}

Wheel drawn_wheel() {
  return {drawn_whole(1, 100), drawn_quantity(10)};
}

Bicycle drawn_bicycle() {
  Bicycle bicycle{
      .owner = Rank{drawn_whole<std::int32_t>(0, std::numeric_limits<std::int32_t>::max())},
      .name = drawn_word(),
      .colour = drawn_flag() ? "red" : drawn_text(),
      .brake = *rc::gen::elementOf(kBrakes),
      .serial = static_cast<std::uint64_t>(
          drawn_whole<std::int64_t>(0, std::numeric_limits<std::int64_t>::max())),
      .price = drawn_quantity(1e6),
      .size = {drawn_whole<std::int64_t>(0, 5000), drawn_flag()},
      .front = drawn_wheel(),
      .notes = drawn_list(0, drawn_text)};
  if (drawn_flag()) bicycle.discount = drawn_quantity(1);
  if (drawn_flag()) bicycle.bell = Bell{drawn_text()};
  for (int spokes = 1; drawn_flag() && spokes < 5; ++spokes) {
    bicycle.spares.push_back({spokes, drawn_quantity(10)});
  }
  if (drawn_flag()) bicycle.sets[drawn_word()] = drawn_wheel();
  bicycle.gears = drawn_whole(1, 30);
  bicycle.gear = drawn_whole(1, bicycle.gears);
  return bicycle;
}

RC_GTEST_PROP(JsonTable, ReadsBackWhatItWrites, ()) {
  const Bicycle bicycle = drawn_bicycle();
  const auto read = read_bicycle(*parse_json(kBicycleTable.write(bicycle).dump(), kSource));
  RC_ASSERT(read.ok());
  RC_ASSERT(*read == bicycle);
}

TEST(JsonTable, WritesItsEntriesInTheirOrder) {
  EXPECT_EQ(kBicycleTable.write(full_bicycle()).dump(),
            R"({"format":"motley.bicycle","version":3,"title":"the fast-1",)"
            R"("owner":3,"name":"fast-1","colour":"blue","brake":"disc","serial":7,"price":1.0,)"
            R"("discount":0.5,"frame_mm":560,"is_folding":true,"bell_sound":"ding",)"
            R"("front":{"spokes":36,"pressure":4.0},)"
            R"("spares":[{"spokes":32,"pressure":2.0},{"spokes":36,"pressure":3.0}],)"
            R"("notes":["new"],"sets":{"winter":{"spokes":28,"pressure":3.0}},)"
            R"("gears":9,"gear":4})");
}

TEST(JsonTable, LeavesOutOptionalMembersWithTheirDefaults) {
  const Json json = kBicycleTable.write(Bicycle{.name = "x"});
  for (const char* key : {"colour", "discount", "bell_sound"}) EXPECT_FALSE(json.contains(key));
  const auto read = read_bicycle(json);
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(*read, Bicycle{.name = "x"});
}

TEST(JsonTable, NamesEachAbsentMember) {
  EXPECT_THAT(members_that_may_be_absent(kBicycleTable.write(full_bicycle()), error_in),
              ElementsAre("title", "colour", "discount", "bell_sound", "front.pressure",
                          "spares[0].pressure", "spares[1].pressure", "sets.winter",
                          "sets.winter.pressure"));
}

TEST(JsonTable, NamesEachMemberOfAnotherType) {
  EXPECT_THAT(members_of_any_type(kBicycleTable.write(full_bicycle()), error_in),
              ElementsAre("title"));
}

TEST(JsonTable, NamesWhatIsOutOfRangeWithItsPlace) {
  const auto expect_refused = [](const auto& change, const char* name, const char* cause) {
    Json json = kBicycleTable.write(full_bicycle());
    change(json);
    const auto error = error_in(json);
    ASSERT_TRUE(error) << name;
    EXPECT_EQ(error->code, ErrorCode::kData);
    EXPECT_THAT(error->what, HasSubstr(std::string("'") + name + "', a test"));
    EXPECT_THAT(error->cause, HasSubstr(cause));
  };
  expect_refused([](Json& json) { json["owner"] = -1; }, "owner", "from 0 to 2147483647");
  expect_refused([](Json& json) { json["owner"] = std::int64_t{1} << 31; }, "owner", "from 0 to");
  expect_refused([](Json& json) { json["name"] = "a b"; }, "name", "allowed are");
  expect_refused([](Json& json) { json["name"] = "stolen"; }, "name", "it is stolen");
  expect_refused([](Json& json) { json["brake"] = "foot"; }, "brake", "allowed are disc, rim");
  expect_refused([](Json& json) { json["discount"] = 1.5; }, "discount", "from 0 to 1");
  expect_refused([](Json& json) { json["serial"] = -1; }, "serial", "from 0 to");
  expect_refused([](Json& json) { json["colour"] = std::string(5000, 'x'); }, "colour", "longer");
  expect_refused([](Json& json) { json["front"]["spokes"] = 0; }, "front.spokes", "from 1 to 100");
  expect_refused([](Json& json) { json["spares"][1]["spokes"] = 32; }, "spares[1].spokes",
                 "do not ascend");
  expect_refused(
      [](Json& json) {
        json["notes"] = {"a", "b", "c", "d", "e"};
      },
      "notes", "it has 5 items; 0 to 4");
  expect_refused([](Json& json) { json["sets"][std::string(30, 'x')] = json["front"]; },
                 ("sets." + std::string(30, 'x')).c_str(), "a long name");
  expect_refused([](Json& json) { json["gear"] = 10; }, "gear", "from 1 to 9");
  expect_refused([](Json& json) { json["version"] = 4; }, "version", "this program reads 3");
  expect_refused([](Json& json) { json["price"] = -1; }, "price", "it is -1; from 0 to");
  EXPECT_THAT(error_in(Json::array())->cause, HasSubstr("an object was expected"));
}

TEST(JsonTable, KnowsWhetherAnObjectHasAnyOfItsMembers) {
  const JsonSource source(kSource);
  const Json with = {{"is_folding", 3}};
  const Json without = {{"folding", true}};
  EXPECT_TRUE(kSizeTable.is_in(JsonFields(with, source, ErrorCode::kData)));
  EXPECT_FALSE(kSizeTable.is_in(JsonFields(without, source, ErrorCode::kData)));
}

}  // namespace
}  // namespace motley
