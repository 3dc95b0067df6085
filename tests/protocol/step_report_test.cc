#include <bit>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck.h>

#include "protocol/protocol.h"

namespace motley {
namespace {

using testing::HasSubstr;

StepReport report() {
  return {.step = 3,
          .outcome = {.loss = 2.5, .tokens = 64, .lr = 1e-3, .grad_norm = 1.25},
          .step_s = 0.5,
          .times = {.compute_s = 0.3,
                    .codec_s = 0.02,
                    .optimizer_s = 0.01,
                    .wait_s = {{0.1, 0.05, 0, 0.05}},
                    .data_s = 0.005},
          .wire_bytes = 1000,
          .sent = {{Rank{1}, 600}, {Rank{3}, 400}},
          .memory_bytes = 4096};
}

// As received at the other end of the pipe.
Result<StepReport> sent(const StepReport& report) {
  Result<Json> parsed = parse_json(step_to_json(report).dump(), "stage 0");
  if (!parsed) return parsed.error();
  return step_from_json(*parsed, "stage 0");
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

TEST(StepReport, ArrivesWithTheSameBits) {
  EXPECT_TRUE(rc::check([](double loss, double lr, std::uint32_t bytes) {
    StepReport original = report();
    original.outcome.loss = loss;
    original.outcome.lr = lr;
    original.wire_bytes = bytes;
    const Result<StepReport> copy = sent(original);
    RC_ASSERT(copy.ok());
    RC_ASSERT(same_bits(copy->outcome.loss, loss));
    RC_ASSERT(same_bits(copy->outcome.lr, lr));
    RC_ASSERT(copy->wire_bytes == bytes);
    RC_ASSERT(copy->times.wait_s == original.times.wait_s);
    RC_ASSERT(copy->memory_bytes == original.memory_bytes);
    RC_ASSERT(copy->sent == original.sent);
  }));
}

TEST(StepReport, CarriesALossThatIsNotFinite) {
  StepReport original = report();
  original.outcome.loss = std::nan("");
  original.outcome.grad_norm = -std::numeric_limits<double>::infinity();
  original.outcome.skipped = true;
  const Result<StepReport> copy = sent(original);
  ASSERT_TRUE(copy.ok());
  EXPECT_TRUE(std::isnan(copy->outcome.loss));
  EXPECT_EQ(copy->outcome.grad_norm, original.outcome.grad_norm);
  EXPECT_TRUE(copy->outcome.skipped);
}

TEST(StepReport, CarriesAnEvaluationOnlyWhenThereWasOne) {
  StepReport original = report();
  EXPECT_FALSE(sent(original)->evaluation.has_value());
  original.evaluation = {.tokens = 64, .loss = 1.5, .bytes_per_token = 4.25};
  const Result<StepReport> copy = sent(original);
  ASSERT_TRUE(copy.ok());
  ASSERT_TRUE(copy->evaluation.has_value());
  EXPECT_EQ(copy->evaluation->loss, 1.5);
  EXPECT_EQ(copy->evaluation->tokens, 64);
  EXPECT_EQ(copy->evaluation->bytes_per_token, 4.25);
  EXPECT_FALSE(copy->outcome.accuracy || copy->evaluation->accuracy);
}

TEST(StepReport, CarriesWhatWasPredictedRightWhereItIsCounted) {
  StepReport original = report();
  original.outcome.accuracy = 0.5;
  original.evaluation = {.accuracy = 0.75, .top5_accuracy = 0.875};
  const Result<StepReport> copy = sent(original);
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy->outcome.accuracy, 0.5);
  EXPECT_EQ(copy->evaluation->accuracy, 0.75);
  EXPECT_EQ(copy->evaluation->top5_accuracy, 0.875);
  original.outcome.accuracy = 1.5;
  EXPECT_FALSE(sent(original).ok());
  original.outcome.accuracy = 0.5;
  original.evaluation->top5_accuracy = 1.5;
  EXPECT_FALSE(sent(original).ok());
}

TEST(StepReport, IsThisMessage) {
  StepReport original = report();
  original.outcome.accuracy = 0.5;
  original.outcome.gradient_scale = 64;
  original.evaluation = {
      .tokens = 64, .loss = 1.5, .accuracy = 0.75, .bytes_per_token = 4.25, .top5_accuracy = 0.875};
  EXPECT_EQ(step_to_json(original).dump(),
            R"({"event":"step","step":3,"loss":2.5,"tokens":64,"step_s":0.5,"lr":0.001,)"
            R"("grad_norm":1.25,"skipped":false,"wire_bytes":1000,"compute_s":0.3,)"
            R"("codec_s":0.02,"data_s":0.005,"optimizer_s":0.01,)"
            R"("wait_s":{"activation":0.1,"gradient":0.05,)"
            R"("sum":0.0,"vote":0.05,"other":0.0},"memory_bytes":4096,"sent":[[1,600],[3,400]],)"
            R"("gradient_scale":64.0,"accuracy":0.5,"eval_loss":1.5,"eval_tokens":64,)"
            R"("eval_bytes_per_token":4.25,"eval_accuracy":0.75,"eval_top5_accuracy":0.875})");
}

TEST(StepReport, RefusesEachMissingMember) {
  const Json valid = step_to_json(report());
  for (const auto& [key, value] : valid.items()) {
    if (key == "event" || key == "data_s") continue;  // the latter is absent from earlier versions
    Json damaged = valid;
    damaged.erase(key);
    const Result<StepReport> copy = step_from_json(damaged, "stage 0");
    ASSERT_FALSE(copy.ok()) << key;
    EXPECT_THAT(copy.error().cause, HasSubstr(key));
  }
}

TEST(StepReport, RefusesWrongTypesAndRanges) {
  const auto with = [](const char* key, const Json& value) {
    Json damaged = step_to_json(report());
    damaged[key] = value;
    return step_from_json(damaged, "stage 0").ok();
  };
  EXPECT_TRUE(with("step", 1));
  EXPECT_FALSE(with("step", 0));
  EXPECT_FALSE(with("tokens", -1));
  EXPECT_FALSE(with("wire_bytes", -1));
  EXPECT_FALSE(with("loss", "about two"));
  EXPECT_FALSE(with("skipped", 1));
  EXPECT_FALSE(with("wait_s", 0.5));
  EXPECT_FALSE(with("wait_s", {{"activation", "long"}}));
  EXPECT_FALSE(with("memory_bytes", -1));
  EXPECT_TRUE(with("sent", Json::array()));
  EXPECT_TRUE(with("sent", Json::parse("[[0,5],[2,7]]")));
  for (const char* sent : {"7", "[7]", "[[1]]", "[[1,2,3]]", "[[-1,2]]", "[[1,-2]]",
                           "[[1,2],[1,2]]", "[[2,2],[1,2]]", "[[4096,2]]", "[[1,1e3]]"}) {
    EXPECT_FALSE(with("sent", Json::parse(sent))) << sent;
  }
  EXPECT_FALSE(step_from_json(Json::array(), "stage 0").ok());
}

TEST(ErrorEvent, ArrivesUnchanged) {
  const Error original{ErrorCode::kData, "what", "cause", "remedy"};
  const Error copy = error_from_json(error_to_json(original));
  EXPECT_EQ(copy.code, ErrorCode::kData);
  EXPECT_EQ(copy.what, "what");
  EXPECT_EQ(copy.cause, "cause");
  EXPECT_EQ(copy.remedy, "remedy");
}

TEST(ErrorEvent, TellsWhatHappenedToThePeer) {
  Error lost{ErrorCode::kPeer, "in words that say nothing of it"};
  lost.peer_state = PeerState::kLost;
  lost.peer = 3;
  EXPECT_EQ(error_from_json(error_to_json(lost)).peer_state, PeerState::kLost);
  EXPECT_EQ(error_from_json(error_to_json(lost)).peer, 3);
  Error silent{ErrorCode::kPeer, "in words that say nothing of it"};
  silent.peer_state = PeerState::kSilent;
  EXPECT_EQ(error_from_json(error_to_json(silent)).peer_state, PeerState::kSilent);
  EXPECT_EQ(error_from_json(error_to_json(silent)).peer, std::nullopt);
}

TEST(ErrorEvent, TellsNothingOfThePeerInWordsAloneOrDamaged) {
  for (const Json& damaged :
       {Json{{"code", 4}, {"what", "rank 1 was lost"}}, Json{{"code", 4}, {"lost", -1}},
        Json{{"code", 4}, {"lost", 1e300}}, Json{{"code", 4}, {"lost", "1"}},
        Json{{"code", 4}, {"lost", 4096}}, Json{{"code", 1}, {"lost", 1}},
        Json{{"code", 1}, {"silent", true}}}) {
    const Error error = error_from_json(damaged);
    EXPECT_EQ(error.peer_state, PeerState::kUnspecified) << damaged;
    EXPECT_EQ(error.peer, std::nullopt) << damaged;
  }
}

TEST(ErrorEvent, SaysNothingToATerminal) {
  const Error copy = error_from_json(
      error_to_json({ErrorCode::kData, "a\x1b[2J", "one\ntwo\xc2\x9b", std::string(5000, 'r')}));
  EXPECT_EQ(copy.what, "a?[2J");
  EXPECT_EQ(copy.cause, "one\ntwo??");
  EXPECT_LT(copy.remedy.size(), 5000);
}

TEST(ErrorEvent, OfUnknownShapeIsStillAnError) {
  for (const Json& damaged : {Json::object(), Json::array(), Json{{"code", 77}, {"what", 5}}}) {
    const Error error = error_from_json(damaged);
    EXPECT_EQ(error.code, ErrorCode::kInternal);
    EXPECT_FALSE(error.what.empty());
  }
}

}  // namespace
}  // namespace motley
