#include "base/json_position.h"

#include <fmt/format.h>

#include "base/json.h"
#include "tests/support/property.h"

namespace motley {
namespace {

constexpr std::string_view kText = "{\"a\": [1,\n  {\"b\\n\": \"ü]\", \"c\": 2}],\n \"d\": {}}";

TEST(JsonPosition, FindsKeysAndIndexes) {
  EXPECT_EQ(json_position(kText, {}), (SourcePosition{1, 1}));
  EXPECT_EQ(json_position(kText, {"a", 0UL}), (SourcePosition{1, 8}));
  EXPECT_EQ(json_position(kText, {"a", 1UL, "b\n"}), (SourcePosition{2, 11}));
  EXPECT_EQ(json_position(kText, {"a", 1UL, "c"}), (SourcePosition{2, 22}));
  EXPECT_EQ(json_position(kText, {"d"}), (SourcePosition{3, 7}));
}

TEST(JsonPosition, KnowsWhatIsNotThere) {
  EXPECT_EQ(json_position(kText, {"a", 2UL}), std::nullopt);
  EXPECT_EQ(json_position(kText, {"e"}), std::nullopt);
  EXPECT_EQ(json_position(kText, {"d", "x"}), std::nullopt);
  EXPECT_EQ(json_position(kText, {0UL}), std::nullopt);
  EXPECT_EQ(json_position("", {}), std::nullopt);
}

TEST(JsonFlaw, IsFoundWhereItStands) {
  EXPECT_EQ(find_json_flaw(kText, 3), std::nullopt);
  EXPECT_EQ(find_json_flaw(kText, 2)->offset, kText.find("{\"b"));
  EXPECT_EQ(find_json_flaw("{\"a\":1,\"a\":2}", 9)->offset, 7U);
  EXPECT_EQ(find_json_flaw("[{\"a\":1},{\"a\":\"a\"}]", 9), std::nullopt);
}

TEST(ParseJson, RefusesWhatOverflowsAnotherReader) {
  EXPECT_TRUE(parse_json(std::string(32, '[') + std::string(32, ']'), "t").ok());
  EXPECT_FALSE(parse_json(std::string(33, '[') + std::string(33, ']'), "t").ok());
  EXPECT_FALSE(parse_json(std::string(1'000'000, '['), "t").ok());
}

TEST(ParseJson, KeepsTheOrderOfKeysAndAllTypes) {
  const std::string text =
      R"({"b":[1,-1,1.5,"x",true,null,{}],"a":{"c":[[]],"d":18446744073709551615}})";
  EXPECT_EQ(parse_json(text, "t")->dump(), text);
  EXPECT_TRUE(parse_json("3", "t")->is_number_unsigned());
  EXPECT_EQ(parse_json("[1e308, -1e309]", "t").error().what, "unreadable JSON, t:1:9");
  EXPECT_EQ(parse_json("[1e-999]", "t")->at(0), 0);
}

TEST(ParseJson, TakesAnObjectOfManyKeys) {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += fmt::format("\"{}\":0,", i);
  EXPECT_EQ(parse_json(text + "\"x\":0}", "t")->size(), 300'001U);
}

// A random document in which every leaf is a different number.
Json arbitrary_document(int depth, int& next) {
  const int kind = depth > 3 ? 0 : *rc::gen::inRange(0, 3);
  if (kind == 0) return ++next;
  Json value = kind == 1 ? Json::array() : Json::object();
  const int size = *rc::gen::inRange(0, 4);
  for (int i = 0; i < size; ++i) {
    Json child = arbitrary_document(depth + 1, next);
    if (kind == 1) value.push_back(std::move(child));
    if (kind == 2) value[*rc::gen::element<std::string>("a", "\"", "\\", "é", "\n")] = child;
  }
  return value;
}

void expect_places(const Json& value, const std::string& text, JsonPath path) {
  const auto place = json_position(text, path);
  RC_ASSERT(place.has_value());
  // dump() returns one line, and all characters are ASCII: the column is the byte offset plus one.
  RC_ASSERT(text.substr(static_cast<std::size_t>(place->column) - 1)
                .starts_with(value.dump(-1, ' ', true)));
  if (!value.is_structured()) return;
  for (const auto& [key, child] : value.items()) {
    JsonPath longer = path;
    if (value.is_object()) longer.emplace_back(key);
    if (value.is_array()) longer.emplace_back(static_cast<std::size_t>(std::stoul(key)));
    expect_places(child, text, longer);
  }
}

RC_GTEST_PROP(JsonPosition, FindsEveryValue, ()) {
  int next = 0;
  const Json document = arbitrary_document(0, next);
  expect_places(document, document.dump(-1, ' ', true), {});
}

RC_GTEST_PROP(JsonPosition, SurvivesAnyText, (const std::string& text)) {
  (void)json_position(text, {"a", 0UL});
  (void)json_position("{\"a\":[" + text, {"a", 1UL});
  (void)find_json_flaw("{" + text, 4);
  (void)parse_json(text, "t");
}

TEST(Excerpt, IsShortAndOneLine) {
  EXPECT_EQ(excerpt("a\nb\x7f"), "a?b?");
  EXPECT_EQ(excerpt("a\xc2\x9bü\xe2\x80\xae\xe2\x81\xa6→"), "a??ü??????→");
  EXPECT_EQ(excerpt("aaaaü", 5), "aaaa…");
  EXPECT_EQ(excerpt("aaaü", 5), "aaaü");
  EXPECT_LT(excerpt(std::string(1000, '\x80')).size(), 100U);
}

}  // namespace
}  // namespace motley
