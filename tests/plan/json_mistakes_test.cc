// Every mistake in a plan or profile is reported with line and column, cause and remedy.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>

#include "base/json.h"
#include "tests/plan/value_fixtures.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

// A change to a valid file: `from` is replaced by `to`; '@' in `to` marks the position that the
// error must name.
struct Mistake {
  std::string from;
  std::string to;
  const char* message;  // part of the cause
  ErrorCode code;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << excerpt(mistake.to);
}

void expect_named(const Mistake& mistake,
                  std::string text,
                  const std::function<Error(const std::string&)>& error_of) {
  const std::size_t at = text.find(mistake.from);
  ASSERT_NE(at, std::string::npos) << mistake.from << " in\n" << text;
  text.replace(at, mistake.from.size(), mistake.to);
  const std::size_t mark = text.find('@');
  ASSERT_NE(mark, std::string::npos);
  text.erase(mark, 1);
  const std::string before = text.substr(0, mark);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto column = mark - (before.rfind('\n') + 1) + 1;  // npos + 1 = 0
  const Error error = error_of(text);
  EXPECT_EQ(error.code, mistake.code);
  EXPECT_TRUE(error.what.ends_with(fmt::format(", p.json:{}:{}", line, column))) << error.what;
  EXPECT_THAT(error.cause, HasSubstr(mistake.message));
  EXPECT_NE(error.remedy, "");
  EXPECT_LT(describe(error).size(), 1000U);
}

template <class T>
Error error_in(const Result<T>& result) {
  EXPECT_FALSE(result.ok());
  return result.ok() ? Error{} : result.error();
}

class PlanMistake : public testing::TestWithParam<Mistake> {};

TEST_P(PlanMistake, IsNamedWithItsPlace) {
  expect_named(GetParam(), plan_text(),
               [](const std::string& text) { return error_in(parse_plan(text, "p.json")); });
}

class ProfileMistake : public testing::TestWithParam<Mistake> {};

TEST_P(ProfileMistake, IsNamedWithItsPlace) {
  expect_named(GetParam(), profile_text(),
               [](const std::string& text) { return error_in(parse_profile(text, "p.json")); });
}

Mistake plan(std::string from, std::string to, const char* message) {
  return {std::move(from), std::move(to), message, ErrorCode::kConfig};
}

Mistake damaged(std::string from, std::string to, const char* message) {
  return {std::move(from), std::move(to), message, ErrorCode::kCorrupt};
}

INSTANTIATE_TEST_SUITE_P(
    Values,
    PlanMistake,
    testing::Values(
        plan("\"threads\": 2", "\"threads\": @0", "it is 0; from 1 to 4096"),
        plan("\"threads\": 2", "\"threads\": @1e3", "a whole number"),
        plan("\"threads\": 2", "\"threads\": @18446744073709551615", "it is 18446744073709551615"),
        plan("\"threads\": 2", "\"threads\": @[2]", "a whole number"),
        plan("\"device\": \"cuda:0\"", "\"device\": @\"a b\"", "it is 'a b'"),
        plan("\"machine\": \"slow\"", "\"machine\": @null", "a string was expected"),
        plan("\"compute_s\": 0.5", "\"compute_s\": @-0.5", "it is -0.5; from 0"),
        plan("\"compute_s\": 0.5", "\"compute_s\": @\"fast\"", "a number was expected"),
        plan("\"memory_bytes\": 1000", "\"memory_bytes\": @-1", "it is -1"),
        plan("\"first_layer\": 3", "\"first_layer\": @2", "must begin at 3"),
        plan("\"layer_count\": 3", "\"layer_count\": @0", "it is 0"),
        plan("\"layer_count\": 2", "\"layer_count\": @65536", "the limit is"),
        plan("\"rank\": 1", "\"rank\": @2", "it is 2; from 0 to 1"),
        plan("\"codec\": \"fp16\"", "\"codec\": @\"fp 16\"", "it is 'fp 16'"),
        plan("\"schedule\": \"1f1b\"", "\"schedule\": @\"zigzag\"", "unknown schedule 'zigzag'"),
        plan("\"micro_batches\": 8", "\"micro_batches\": @-1", "it is -1"),
        plan("\"notes\": [", "\"notes\": [@1, ", "a string was expected"),
        plan("\"version\": ", "\"version\": @9", "this program reads"),
        plan("\"format\": \"motley.plan\"", "\"format\": @\"motley.profile\"", "not 'motley.plan'"),
        plan("\"hash\": \"", "\"hash\": @\"0", "the hash of the content is"),
        plan("\"ranks\": [", "\"ranks\": [@[], ", "an object was expected")));

INSTANTIATE_TEST_SUITE_P(
    Values,
    ProfileMistake,
    testing::Values(
        damaged("\"forward_s\": 0.1", "\"forward_s\": @-0.1", "it is -0.1; from 0 to"),
        damaged("\"forward_s\": 0.1", "\"forward_s\": @1e300", "it is 1e+300"),
        damaged("\"forward_s\": 0.1", "\"forward_s\": @null", "a number was expected"),
        damaged("\"saved_bytes\": 100", "\"saved_bytes\": @1152921504606846976", "from 0 to"),
        damaged("\"micro_batch\": 4", "\"micro_batch\": @1", "do not ascend"),
        damaged("\"threads\": 1", "\"threads\": @-1", "it is -1"),
        damaged("\"memory_bytes\": 1000", "\"memory_bytes\": @-1000", "it is -1000"),
        damaged("\"layers\": {", "\"layers\": {\"x\": @[], ", "it has 0 items"),
        damaged("\"layers\": {", "\"layers\": {\"x\": @3, ", "an array was expected"),
        damaged("\"layers\": {", "\"layers\": @[], \"x\": {", "an object was expected"),
        damaged("\"devices\": [", "\"devices\": [@[], ", "an object was expected"),
        damaged("\"devices\": [", "\"devices\": [@{}, ", "is missing")));

const std::string kDeep(100'000, '[');

INSTANTIATE_TEST_SUITE_P(
    Syntax,
    PlanMistake,
    testing::Values(
        damaged("\"threads\": 2", "\"threads\": 2 @3", "unexpected number"),
        damaged("\"threads\": 2", "\"threads\": 2, @\"threads\": 3", "duplicate key"),
        damaged("\"threads\": 2", "\"threads\": 2, @\"\\u0074hreads\": 3", "duplicate key"),
        damaged("\"threads\": 2", "\"threads\": @1e999", "number overflow"),
        damaged("\"threads\": 2",
                "\"threads\": " + kDeep.substr(0, 29) + "@" + kDeep,
                "nested deeper than 32")));

TEST(JsonMistake, OfTheWholeFileIsNamedToo) {
  EXPECT_EQ(error_in(parse_plan("\n []", "p.json")).what, "unusable JSON, p.json:2:2");
  EXPECT_EQ(error_in(parse_plan("", "p.json")).what, "unreadable JSON, p.json:1:1");
  EXPECT_EQ(error_in(plan_from_json(Json(), "a message")).what, "unusable JSON, a message");
}

}  // namespace
}  // namespace motley
