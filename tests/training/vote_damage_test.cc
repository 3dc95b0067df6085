// Votes with random damage are added or refused with an error; tests/fuzz/ searches further with
// the same properties.
#include "tests/fuzz/vote_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedVotes, AreSummedOrRefused, ()) {
  RC_ASSERT(wrong_with_votes(right_votes()) == "");
  RC_ASSERT(wrong_with_votes(right_evaluation()) == "");
  RC_ASSERT(wrong_with_votes(damaged(right_evaluation(), fragments_of_bytes())) == "");
  RC_ASSERT(wrong_with_votes(damaged(right_votes(), fragments_of_bytes())) == "");
}

// Without a change of lengths, after which the input is nearly always refused.
RC_GTEST_PROP(DamagedVotes, WithAnotherByteAreSummedOrRefused, ()) {
  std::string votes = right_votes();
  const auto place = *rc::gen::inRange<std::size_t>(0, votes.size());
  votes[place] = *rc::gen::arbitrary<char>();
  RC_ASSERT(wrong_with_votes(votes) == "");
}

}  // namespace
}  // namespace motley
