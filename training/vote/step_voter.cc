#include "training/vote/step_voter.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "training/optimizer/lr_schedule.h"
#include "training/vote/gradient_scaler.h"

namespace motley {
namespace {

// The loss of a batch without terms. One bit pattern everywhere: ranks compare its bits.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// The factors in their order on the wire: the learning rate, then the corrections.
std::vector<double> flat(const StepFactors& factors) {
  return {factors.lr, factors.corrections[0], factors.corrections[1]};
}

// REQUIRES: kStepFactors values.
StepFactors factors_of(const std::vector<double>& values) {
  return {values[0], {values[1], values[2]}};
}

}  // namespace

StepVoter::StepVoter(const TrainConfig& train,
                     int layer_count,
                     std::vector<CopyGroup> copies,
                     Rank self,
                     std::function<BatchLoss()> loss,
                     OptimizedState& state,
                     CheckpointState progress,
                     std::function<bool()> is_to_end,
                     std::function<bool()> is_save_due,
                     CorrectedPart corrected,
                     std::optional<RoundsPlan> rounds)
    : train_(train),
      optimizer_(make_optimizer(train)),
      rules_{layer_count, std::move(copies), std::move(corrected.layers), islands_by_rank(rounds)},
      clip_(rules_.corrected.empty() ? train.clip
                                     : train.clip * std::sqrt(1 - corrected.parameter_share)),
      self_(self),
      loss_(std::move(loss)),
      state_(state),
      progress_(std::move(progress)),
      is_to_end_(std::move(is_to_end)),
      is_save_due_(std::move(is_save_due)),
      rounds_(std::move(rounds)),
      island_(static_cast<std::size_t>(island_of(rounds_, self))),
      first_step_(progress_.step + 1),
      counted_round_(round_of(rounds_, progress_.step, train_.steps)),
      round_counts_(progress_.round_tokens) {
  if (round_counts_.size() == rules_.island_count() && counted_round_ > 0) return;
  counted_round_ = 0;
  progress_.round_tokens.clear();
}

// Within a round the copies of different islands differ.
bool StepVoter::is_compared() const {
  const std::int64_t step = position_.step;
  if (step == first_step_) return true;
  if (!rounds_) return step % kCompareEvery == 0;
  return step >= compared_at_ + kCompareEvery &&
         has_equal_copies(step_scope(rounds_, step - 1, train_.steps));
}

StepScope StepVoter::scope() const {
  return step_scope(rounds_, position_.step, train_.steps);
}

const IslandTally& StepVoter::own_tally() const {
  // All islands have the same gradients in a synchronous step.
  return tally_.islands[scope() == StepScope::kSynchronous ? 0 : island_];
}

double StepVoter::gradient_norm() const {
  if (scope() == StepScope::kSynchronous) {
    return std::sqrt(tally_.islands.front().squared_norm) / tally_.count;
  }
  // The mean over the islands, by tokens.
  double sum = 0;
  for (const IslandTally& island : tally_.islands) sum += std::sqrt(island.squared_norm);
  return sum / tally_.count;
}

void StepVoter::add_to_round() {
  const std::int64_t round = round_of(rounds_, position_.step, train_.steps);
  if (round == 0) return;
  if (round != counted_round_) round_counts_.assign(tally_.islands.size(), 0);
  counted_round_ = round;
  for (std::size_t i = 0; i < round_counts_.size(); ++i) {
    round_counts_[i] += tally_.islands[i].count;
  }
  // Without overlap, no state lies within a round.
  progress_.round_tokens = rounds_->overlap_steps > 0 ? round_counts_ : std::vector<double>();
}

double StepVoter::round_share() const {
  const bool is_counted = counted_round_ == round_of(rounds_, position_.step, train_.steps);
  const double sum = std::accumulate(round_counts_.begin(), round_counts_.end(), 0.0);
  const auto islands = static_cast<double>(rules_.island_count());
  return is_counted && sum > 0 ? round_counts_[island_] / sum : 1 / islands;
}

StepFactors StepVoter::own_factors() const {
  return {learning_rate(train_, position_.step),
          optimizer_->corrections(progress_.optimizer_updates + 1)};
}

std::size_t StepVoter::vote_bytes_max() const {
  return motley::vote_bytes_max(rules_);
}

std::vector<std::byte> StepVoter::vote(const BatchPosition& position) {
  position_ = position;
  Vote vote;
  // On a device this waits for the whole batch, so the loss is then available at once.
  if (position.training) vote.layers = state_.layer_norms();
  const BatchLoss loss = loss_();
  vote.count = loss.count;
  vote.loss_sum = loss.sum;
  vote.correct = loss.correct;
  if (!position.training) {
    vote.predictions = loss.predictions;
    return encode_vote(vote);
  }
  vote.ends = is_to_end_();
  if (self_ == Rank{0}) {
    vote.saves = is_save_due_();
    vote.factors = flat(own_factors());
  }
  if (is_compared()) {
    compared_at_ = position_.step;
    copy_hashes_.clear();
    for (const CopyGroup& group : rules_.copies) {
      if (holds_copy(group, self_)) copy_hashes_.push_back(state_.copy_hash(group));
    }
  }
  vote.copy_hashes = copy_hashes_;
  return encode_vote(vote);
}

Result<void> StepVoter::count_votes(const std::vector<std::vector<std::byte>>& votes) {
  const VoteKind kind = position_.training ? VoteKind::kStep : VoteKind::kEvaluation;
  MOTLEY_ASSIGN(tally_, tally_votes(votes, rules_, kind));
  const double count = tally_.count;
  outcome_ = {.loss = kUnknown, .tokens = reported_count(count)};
  if (count > 0) {
    outcome_.loss = tally_.loss_sum / count;
    if (tally_.correct) outcome_.accuracy = *tally_.correct / count;
  }
  if (!position_.training) return {};
  if (count > 0) outcome_.grad_norm = gradient_norm();
  outcome_.skipped = !tally_.finite;
  if (progress_.gradient_scale) outcome_.gradient_scale = progress_.gradient_scale->value;
  factors_ = factors_of(tally_.factors);
  outcome_.lr = factors_.lr;
  return check_factors(factors_);
}

// C libraries differ by far less than this; factors of another step differ by far more.
Result<void> StepVoter::check_factors(const StepFactors& factors) const {
  constexpr double kTolerance = 1e-9;
  const std::vector<double> theirs = flat(factors);
  const std::vector<double> mine = flat(own_factors());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double scale = i == 0 ? train_.lr : 1;
    // Written so that NaN and infinity fail the comparison.
    if (std::abs(theirs[i] - mine[i]) <= kTolerance * scale) continue;
    return Error{
        ErrorCode::kInternal,
        fmt::format("the update of step {} differs between rank 0 and rank {}", position_.step,
                    self_.value),
        fmt::format("{} {} there and {} here",
                    i == 0 ? "the learning rate is" : "a bias correction is", theirs[i], mine[i]),
        "use the same build of Motley on all machines"};
  }
  return {};
}

// A step without targets leaves the gradient scale unchanged.
StepEffect StepVoter::step() {
  const StepEffect effect = !tally_.finite      ? StepEffect::kSkipped
                            : tally_.count == 0 ? StepEffect::kWithoutTargets
                                                : StepEffect::kUpdated;
  if (effect == StepEffect::kUpdated) {
    ++progress_.optimizer_updates;
    add_to_round();
    const IslandTally& own = own_tally();
    const double count = scope() == StepScope::kSynchronous ? tally_.count : own.count;
    // An island without targets has no gradient.
    if (count > 0) {
      const double scale = 1.0 / count;
      const double norm = std::sqrt(own.clipped_squared_norm) / count;
      const double factor = clip_ > 0 && norm > clip_ ? clip_ / norm : 1;
      state_.update(factors_, {static_cast<float>(scale * factor), static_cast<float>(scale)});
    }
  }
  if (progress_.gradient_scale && effect != StepEffect::kWithoutTargets) {
    progress_.gradient_scale = next_gradient_scale(*progress_.gradient_scale, tally_.finite);
  }
  state_.clear_gradients();
  progress_.step = position_.step;
  progress_.samples += static_cast<std::uint64_t>(train_.global_batch);
  progress_.tokens += static_cast<std::uint64_t>(outcome_.tokens);
  return effect;
}

}  // namespace motley
