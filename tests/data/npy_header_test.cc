#include "data/files/npy_header.h"

#include <gmock/gmock.h>

#include "tests/data/array_fixture.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<NpyHeader> parsed(const std::string& file) {
  return parse_npy(std::as_bytes(std::span(file)), "a.npy");
}

Error refused(const std::string& file) {
  const auto header = parsed(file);
  EXPECT_FALSE(header.ok());
  const Error error = header.ok() ? Error{} : header.error();
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_THAT(error.what, HasSubstr("a.npy"));
  EXPECT_NE(error.remedy, "");
  return error;
}

// With a header of a later version, whose length field has four bytes.
std::string later_version(char version, const std::string& header, const std::string& data) {
  return std::string("\x93NUMPY") + version + '\0' + static_cast<char>(header.size()) +
         std::string(3, '\0') + header + data;
}

TEST(NpyHeader, SaysTypeAndShapeAndWhereTheNumbersBegin) {
  const std::string file = npy("<i4", {2, 3}, std::vector<std::int32_t>(6));
  const auto header = parsed(file);
  ASSERT_TRUE(header.ok()) << describe(header.error());
  EXPECT_EQ(header->type, ElementType::kInt32);
  EXPECT_THAT(header->shape, ElementsAre(2, 3));
  EXPECT_EQ(header->data_begin, file.size() - 24);
  EXPECT_EQ(header->data_begin % 64, 0U);
}

TEST(NpyHeader, IsReadForEveryType) {
  EXPECT_EQ(parsed(npy_bytes({2}, {1, 2}))->type, ElementType::kUint8);
  EXPECT_EQ(parsed(npy_longs({2}, {1, 2}))->type, ElementType::kInt64);
  EXPECT_EQ(parsed(npy("|b1", {2}, std::vector<std::uint8_t>{0, 1}))->type, ElementType::kBool);
  EXPECT_EQ(parsed(npy("|i1", {2}, std::vector<std::int8_t>{0, -1}))->type, ElementType::kInt8);
  EXPECT_EQ(parsed(npy("<i2", {2}, std::vector<std::int16_t>{0, -1}))->type, ElementType::kInt16);
  EXPECT_EQ(parsed(npy_floats({2}, {1, 2}))->type, ElementType::kFloat32);
}

TEST(NpyHeader, OfLaterVersionsIsRead) {
  for (const char version : {'\2', '\3'}) {
    const auto header = parsed(later_version(version, npy_header("|u1", {3}), "abc"));
    ASSERT_TRUE(header.ok()) << describe(header.error());
    EXPECT_THAT(header->shape, ElementsAre(3));
  }
}

TEST(NpyHeader, IsReadInAnyOrderAndWithoutSpaces) {
  const auto header =
      parsed(npy_of("{\"shape\":(2,2),\"fortran_order\":False,\"descr\":\"|u1\"}", "abcd"));
  ASSERT_TRUE(header.ok()) << describe(header.error());
  EXPECT_THAT(header->shape, ElementsAre(2, 2));
}

TEST(NpyHeader, OfASingleNumberHasNoDimensions) {
  EXPECT_THAT(parsed(npy_longs({}, {7}))->shape, IsEmpty());
}

TEST(NpyHeader, OfAnotherTypeIsRefusedWithWhatToDo) {
  const auto remedy = [](const std::string& type) {
    return refused(npy_of(npy_header(type, {0}), "")).remedy;
  };
  EXPECT_THAT(remedy("<f8"), HasSubstr("a.astype('float32')"));
  EXPECT_THAT(remedy("<f2"), HasSubstr("a.astype('float32')"));
  EXPECT_THAT(remedy(">f4"), HasSubstr("a.astype('float32')"));
  EXPECT_THAT(remedy("<u2"), HasSubstr("a.astype('int32')"));
  EXPECT_THAT(remedy(">i8"), HasSubstr("a.astype('int64')"));
  EXPECT_THAT(remedy(">i2"), HasSubstr("a.astype('int32')"));
  EXPECT_THAT(remedy("<U5"), HasSubstr("bool, uint8, int8, int16, int32, int64 or float32"));
  EXPECT_THAT(remedy(""), HasSubstr("bool, uint8, int8, int16, int32, int64 or float32"));
}

TEST(NpyHeader, OfAnArrayStoredByColumnsIsRefused) {
  const Error error =
      refused(npy_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", "abcd"));
  EXPECT_THAT(error.remedy, HasSubstr("numpy.ascontiguousarray"));
}

TEST(NpyHeader, MustFitTheLengthOfTheFile) {
  const std::string right = npy_longs({3}, {1, 2, 3});
  EXPECT_THAT(refused(right.substr(0, right.size() - 1)).cause,
              HasSubstr("declares [3] of int64, but 23 bytes follow"));
  EXPECT_THAT(refused(right + "x").cause, HasSubstr("25 bytes follow"));
}

// 2^40 · 2^40 elements overflow to 0 in 64 bits.
TEST(NpyHeader, WhoseBytesOverflowIsRefused) {
  const std::string long_side = "1099511627776";
  refused(npy_of(
      "{'descr': '|u1', 'fortran_order': False, 'shape': (" + long_side + ", " + long_side + "), }",
      ""));
  refused(npy_of("{'descr': '<i8', 'fortran_order': False, 'shape': (1099511627777,), }", ""));
}

TEST(NpyHeader, CutShortIsRefused) {
  const std::string right = npy_bytes({1}, {1});
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{5}, std::size_t{7}, std::size_t{9}, std::size_t{20}}) {
    refused(right.substr(0, bytes));
  }
  refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12));
  refused(std::string("\x93NUMPY\x04\x00", 8) + right.substr(8));
}

class BadDictionary : public testing::TestWithParam<const char*> {};

TEST_P(BadDictionary, IsRefused) {
  EXPECT_THAT(refused(npy_of(GetParam(), "a")).cause, HasSubstr("not that of an array"));
}

INSTANTIATE_TEST_SUITE_P(
    NpyHeader,
    BadDictionary,
    testing::Values("",
                    "{}",
                    "[1]",
                    "{'descr': '|u1', 'fortran_order': False}",
                    "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)",
                    "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x",
                    "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
                    "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
                    "{'descr': '|u1', 'fortran_order': False, 'shape': (1;2)}",
                    "{'descr': '|u1', 'fortran_order': False, 'shape': 1}",
                    "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 'x'}",
                    "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}",
                    "{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (1,)}",
                    "{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1)}",
                    "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}"));

}  // namespace
}  // namespace motley
