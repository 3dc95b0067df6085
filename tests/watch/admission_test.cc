// Requests from strangers, foreign pages and faulty programs are all refused.
#include "watch/http/admission.h"

#include <gmock/gmock.h>

#include "tests/fuzz/request_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

using testing::HasSubstr;

unsigned status_of(const RequestHead& request) {
  const auto decided = admit(request, tested_access_rules());
  const auto* refused = std::get_if<Refused>(&decided);
  return refused == nullptr ? 200 : refused->status;
}

RequestHead right() {
  return {.method = "GET",
          .target = "/api/state",
          .host = kLawHost,
          .origin = {},
          .fetch_site = {},
          .cookie = kLawCookie,
          .authorization = {}};
}

template <class Change>
unsigned status_with(const Change& change) {
  RequestHead request = right();
  change(request);
  return status_of(request);
}

TEST(Admission, LetsInWhoHasTheCookieOrTheToken) {
  EXPECT_EQ(status_of(right()), 200U);
  EXPECT_EQ(status_with([](auto& r) { r.method = "HEAD"; }), 200U);
  EXPECT_EQ(status_with([](auto& r) { r.host = "localhost:4711"; }), 200U);
  EXPECT_EQ(status_with([](auto& r) { r.origin = "http://127.0.0.1:4711"; }), 200U);
  const std::string with_token =
      std::string("/?points=3&token=") + tested_access_rules().token + "&n=1";
  RequestHead by_address = right();
  by_address.target = with_token;
  by_address.cookie = {};
  const auto decided = admit(by_address, tested_access_rules());
  ASSERT_TRUE(std::holds_alternative<Admitted>(decided));
  EXPECT_EQ(std::get<Admitted>(decided).path, "/");
  EXPECT_EQ(std::get<Admitted>(decided).query, "points=3&n=1");
  EXPECT_TRUE(std::get<Admitted>(decided).has_token_in_address);
}

TEST(Admission, LetsInAProgramWithTheToken) {
  const std::string right_one = "Bearer " + tested_access_rules().token;
  const auto with = [](std::string_view authorization) {
    return status_with([&](auto& r) { r.cookie = {}, r.authorization = authorization; });
  };
  EXPECT_EQ(with(right_one), 200U);
  for (const std::string& other :
       {std::string("Bearer "), "Basic " + tested_access_rules().token,
        "Bearer" + tested_access_rules().token, right_one + " ",
        right_one.substr(0, right_one.size() - 1), tested_access_rules().token}) {
    EXPECT_EQ(with(other), 401U) << other;
  }
}

TEST(Admission, FindsItsCookieAmongOthers) {
  const std::string among = "motley_99=x; a=b;" + std::string(kLawCookie) + "; motley_4711=wrong";
  EXPECT_EQ(status_with([&](auto& r) { r.cookie = among; }), 200U);
}

TEST(Admission, RefusesEveryOtherTokenAsUnauthorised) {
  const std::string token = tested_access_rules().token;
  for (const std::string& other : {std::string(), token.substr(1), token + "0",
                                   token.substr(0, 31) + "0", std::string(32, '0')}) {
    const std::string cookie = "motley_4711=" + other;
    EXPECT_EQ(status_with([&](auto& r) { r.cookie = cookie; }), 401U) << other;
    const std::string target = "/?token=" + other;
    EXPECT_EQ(status_with([&](auto& r) { r.cookie = {}, r.target = target; }), 401U) << other;
  }
  EXPECT_EQ(status_with([](auto& r) { r.cookie = {}; }), 401U);
  EXPECT_EQ(status_with([](auto& r) { r.cookie = "motley_471=x; other"; }), 401U);
}

TEST(Admission, AServerWithoutATokenLetsNobodyIn) {
  RequestHead request = right();
  request.cookie = "motley_4711=";
  EXPECT_TRUE(std::holds_alternative<Refused>(admit(request, {4711, ""})));
}

TEST(Admission, RefusesANameThatIsNotThisMachines) {
  for (const char* host : {"", "evil.example:4711", "127.0.0.1", "127.0.0.1:4712", "localhost",
                           "127.0.0.1:4711.evil.example", "localhost:4711@evil.example",
                           "[::1]:4711", " 127.0.0.1:4711", "127.0.0.1:04711"}) {
    EXPECT_EQ(status_with([&](auto& r) { r.host = host; }), 403U) << host;
  }
}

TEST(Admission, RefusesWhatAnotherPageCaused) {
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:4711",
                             "http://127.0.0.1:4712", "http://127.0.0.1:4711.evil.example"}) {
    EXPECT_EQ(status_with([&](auto& r) { r.origin = origin; }), 403U) << origin;
  }
  for (const char* site : {"cross-site", "same-site", "anything"}) {
    EXPECT_EQ(status_with([&](auto& r) { r.fetch_site = site; }), 403U) << site;
  }
  EXPECT_EQ(status_with([](auto& r) { r.fetch_site = "same-origin"; }), 200U);
  EXPECT_EQ(status_with([](auto& r) { r.fetch_site = "none"; }), 200U);
}

TEST(Admission, OnlyShows) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get", ""}) {
    EXPECT_EQ(status_with([&](auto& r) { r.method = method; }), 405U) << method;
  }
  EXPECT_EQ(status_with([](auto& r) { r.has_body = true; }), 413U);
  EXPECT_EQ(status_with([](auto& r) { r.repeats_a_field = true; }), 400U);
}

TEST(Admission, BoundsTheAddress) {
  const std::string longest = "/" + std::string(kTargetBytesMax - 1, 'a');
  EXPECT_EQ(status_with([&](auto& r) { r.target = longest; }), 200U);
  const std::string longer = longest + "a";
  EXPECT_EQ(status_with([&](auto& r) { r.target = longer; }), 414U);
  for (const char* target : {"", "*", "api/state", "http://127.0.0.1:4711/", "/a b", "/\x80"}) {
    EXPECT_EQ(status_with([&](auto& r) { r.target = target; }), 400U) << target;
  }
}

TEST(Admission, ReadsNumbersInTheirRangeOnly) {
  const auto number = [](std::string_view query) {
    return number_of_query(query, "points", 7, 1, 100);
  };
  EXPECT_EQ(std::get<std::uint64_t>(number("")), 7U);
  EXPECT_EQ(std::get<std::uint64_t>(number("point=3&points=12")), 12U);
  for (const char* query : {"points=", "points=0", "points=101", "points=-1", "points=1x",
                            "points=99999999999999999999", "points=+1", "points= 1"}) {
    const auto answer = number(query);
    ASSERT_TRUE(std::holds_alternative<Refused>(answer)) << query;
    EXPECT_THAT(std::get<Refused>(answer).why, HasSubstr("from 1 to 100"));
  }
}

RC_GTEST_PROP(DamagedRequests, AreAdmittedWithTheTokenOnly, ()) {
  RC_ASSERT(wrong_with_request(right_request()) == "");
  RC_ASSERT(wrong_with_request(damaged(right_request(), fragments_of_requests())) == "");
}

}  // namespace
}  // namespace motley
