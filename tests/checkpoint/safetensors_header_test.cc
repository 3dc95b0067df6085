#include "checkpoint/safetensors_header.h"

#include <rapidcheck.h>

#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

constexpr const char* kGood = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                              R"("b":{"dtype":"I8","shape":[2,2],"data_offsets":[8,12]}})";

Result<SafetensorsHeader> parse(const std::string& text, std::uint64_t data_bytes = 12) {
  return parse_safetensors_header(text, data_bytes, "test");
}

std::string one_tensor(const std::string& fields) {
  return R"({"a":{)" + fields + "}}";
}

TEST(SafetensorsHeader, ListsTensorsAndMetadata) {
  const auto header = parse(std::string(kGood).replace(0, 1, R"({"__metadata__":{"k":"v"},)"));
  ASSERT_OK(header);
  EXPECT_EQ(header->metadata.at("k"), "v");
  EXPECT_EQ(header->entries.at("b").dtype, "I8");
  EXPECT_EQ(header->entries.at("b").shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(header->entries.at("b").begin, 8U);
  EXPECT_EQ(header->entries.at("b").end, 12U);
}

TEST(SafetensorsHeader, AcceptsScalarsEmptyTensorsAndNoTensors) {
  EXPECT_OK(parse("{}   ", 0));
  EXPECT_OK(parse(one_tensor(R"("dtype":"F64","shape":[],"data_offsets":[0,8])"), 8));
  EXPECT_OK(parse(one_tensor(R"("dtype":"F32","shape":[0,5],"data_offsets":[0,0])"), 0));
}

TEST(SafetensorsHeader, RefusesWhatIsNotOneJsonObject) {
  const std::string zero_byte = std::string(kGood) + '\0' + "MZ";
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string(" {}"), std::string("{"), std::string("{}{}"),
        std::string("{\"\xFF\":1}"), zero_byte}) {
    EXPECT_CORRUPT(parse(text, 0), "damaged safetensors file, test");
  }
}

TEST(SafetensorsHeader, RefusesValuesInTheWrongPlace) {
  for (const char* text :
       {R"({"a":1})", R"({"a":"x"})", R"({"a":[]})", R"({"__metadata__":{"k":1}})",
        R"({"a":{"dtype":1}})", R"({"a":{"shape":[-1]}})", R"({"a":{"shape":[1.5]}})",
        R"({"a":{"shape":[[1]]}})", R"({"a":{"shape":3}})", R"({"a":{"dtype":null}})",
        R"({"a":{"data_offsets":[0,1,2]}})", R"({"a":{"shape":[true]}})",
        R"({"a":{"dtype":{"F32":1}}})"}) {
    EXPECT_CORRUPT(parse(text), "not allowed there");
  }
}

TEST(SafetensorsHeader, RefusesDuplicates) {
  const std::string tensor = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_CORRUPT(parse("{" + tensor + "," + tensor + "}", 8), "duplicate tensor 'a'");
  EXPECT_CORRUPT(parse(one_tensor(R"("dtype":"F32","dtype":"F16")")), "duplicate key 'dtype'");
  EXPECT_CORRUPT(parse(R"({"__metadata__":{"k":"1","k":"2"}})"), "duplicate key 'k'");
  EXPECT_CORRUPT(parse(R"({"__metadata__":{},"__metadata__":{}})"), "duplicate __metadata__");
}

TEST(SafetensorsHeader, IsQuotedInPartWhereNamesAreLong) {
  const std::string name(10'000, 'n');
  const std::string tensor = R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  for (const std::string& text :
       {"{\"" + name + R"(":1})", "{\"" + name + tensor + "}",
        "{\"" + name + tensor + ",\"" + name + tensor + "}", one_tensor("\"" + name + "\":1"),
        one_tensor(R"("dtype":")" + name + R"(","shape":[2],"data_offsets":[0,8])")}) {
    const auto header = parse(text, 4);
    ASSERT_FALSE(header.ok());
    EXPECT_LT(describe(header.error()).size(), 500U);
  }
}

TEST(SafetensorsHeader, RefusesBadTensors) {
  EXPECT_CORRUPT(parse(one_tensor(R"("dtype":"F32","shape":[2])")), "needs dtype");
  EXPECT_CORRUPT(parse(one_tensor(R"("dtype":"F32","strides":[2])")), "unknown key 'strides'");
  EXPECT_CORRUPT(parse(one_tensor(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])")),
                 "unknown dtype 'F31'");
  EXPECT_CORRUPT(parse(one_tensor(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1])")),
                 "more than 8 dimensions");
  EXPECT_CORRUPT(parse(R"({"":{"dtype":"F32"}})"), "name is empty");
  EXPECT_CORRUPT(parse(R"({"a\nb":{"dtype":"F32"}})"), "control characters");
}

TEST(SafetensorsHeader, RefusesSizesThatOverflow) {
  EXPECT_CORRUPT(parse(one_tensor(R"("dtype":"F32","shape":[4611686018427387905],)"
                                  R"("data_offsets":[0,4])"),
                       4),
                 "does not match its offsets");
  EXPECT_CORRUPT(parse(one_tensor(R"("dtype":"F32","shape":[18446744073709551615])")),
                 "a dimension of");
  EXPECT_CORRUPT(parse(one_tensor(R"("dtype":"F32","shape":[1],"data_offsets":[8,4])")),
                 "does not match its offsets");
}

TEST(SafetensorsHeader, RefusesHolesOverlapsAndOtherFileSizes) {
  const auto two = [](int begin, int end) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
           R"("b":{"dtype":"U8","shape":[4],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(end) + "]}}";
  };
  EXPECT_OK(parse(two(4, 8), 8));
  EXPECT_CORRUPT(parse(two(5, 9), 9), "'b' begins at 5, where 4 was expected");
  EXPECT_CORRUPT(parse(two(2, 6), 8), "begins at 2");
  EXPECT_CORRUPT(parse(two(4, 8), 9), "need 8 bytes, but the file has 9");
  EXPECT_CORRUPT(parse(two(4, 8), 7), "need 8 bytes, but the file has 7");
}

TEST(SafetensorsHeader, RefusesTooManyTensors) {
  std::string text = "{";
  for (std::size_t i = 0; i <= kSafetensorsTensorsMax; ++i) {
    text += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                        i == 0 ? "" : ",", i);
  }
  EXPECT_CORRUPT(parse(text + "}", 0), "more than 100000 tensors");
}

// For arbitrary bytes, the result is an error or a header whose tensors lie within the data.
TEST(SafetensorsHeader, MutatedHeadersAreRefusedOrConsistent) {
  EXPECT_TRUE(rc::check([] {
    std::string text = kGood;
    const int mutations = *rc::gen::inRange(1, 6);
    for (int i = 0; i < mutations && !text.empty(); ++i) {
      const auto position = *rc::gen::inRange<std::size_t>(0, text.size());
      const auto length = *rc::gen::inRange<std::size_t>(0, 12);
      const auto source = *rc::gen::inRange<std::size_t>(0, text.size());
      const std::string piece = *rc::gen::oneOf(rc::gen::just(text.substr(source, length)),
                                                rc::gen::arbitrary<std::string>());
      text.replace(position, *rc::gen::inRange<std::size_t>(0, 12), piece);
    }
    const auto header = parse(text);
    if (!header.ok()) return;
    for (const auto& [name, entry] : header->entries) {
      RC_ASSERT(entry.begin <= entry.end);
      RC_ASSERT(entry.end <= 12U);
    }
  }));
}

TEST(SafetensorsHeader, FormatsPaddedTextThatParsesBack) {
  const std::vector<testing::OwnedTensor> tensors = {{"x", {2, 1}, {1, 2}}, {"s", {}, {3}}};
  const std::string text =
      format_safetensors_header(outlines_of(testing::views(tensors)), {{"format", "pt"}});
  EXPECT_EQ(text.size() % 8, 0U);
  EXPECT_THAT(text, ::testing::StartsWith(R"({"__metadata__":{"format":"pt"},"x":{"dtype":"F32",)"
                                          R"("shape":[2,1],"data_offsets":[0,8]},"s":{"dtype":)"));
  EXPECT_OK(parse(text, 12));
}

}  // namespace
}  // namespace motley
