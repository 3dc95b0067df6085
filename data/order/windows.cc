#include "data/order/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/philox.h"
#include "data/order/permutation.h"

namespace motley {
namespace {

// Separates the draws of the data order from others with the same seed.
constexpr std::uint64_t kOrderKey = 0x6F72646572206F66;

// Outside the block numbers that a permutation uses.
constexpr std::uint64_t kShiftBlock = std::numeric_limits<std::uint64_t>::max();

WindowLayout layout_of(std::uint64_t train_tokens,
                       std::uint64_t eval_tokens,
                       std::uint64_t context) {
  WindowLayout layout{.context = context, .train_tokens = train_tokens};
  // One window fewer than would fit, so that every epoch can shift by up to a whole context.
  layout.train_windows = std::max<std::uint64_t>(1, train_tokens / context - 1);
  layout.eval_windows = eval_tokens > 0 ? (eval_tokens - 1) / context : 0;
  return layout;
}

}  // namespace

std::uint64_t WindowLayout::shifts() const {
  return train_tokens - train_windows * context;
}

Result<WindowLayout> lay_out_windows(std::uint64_t tokens, double holdout, std::uint64_t context) {
  const auto eval_tokens = static_cast<std::uint64_t>(static_cast<double>(tokens) * holdout);
  const std::uint64_t train_tokens = tokens - eval_tokens;
  const std::uint64_t shortest = context + 1;
  const bool lacks_eval = holdout > 0 && eval_tokens < shortest;
  if (train_tokens < shortest || lacks_eval) {
    return Error{ErrorCode::kData, fmt::format("the data is too short, {} tokens", tokens),
                 fmt::format("training has {} and evaluation {} of them; with model.context = {} "
                             "each needs at least {}",
                             train_tokens, eval_tokens, context, shortest),
                 lacks_eval ? "use more data, a smaller model.context, or data.holdout = 0 with "
                              "train.eval_every = 0"
                            : "use more data or a smaller model.context"};
  }
  return layout_of(train_tokens, eval_tokens, context);
}

Result<WindowLayout> lay_out_windows_apart(std::uint64_t tokens,
                                           std::uint64_t eval_tokens,
                                           std::uint64_t context) {
  MOTLEY_TRY(lay_out_windows(tokens, 0, context));
  return layout_of(tokens, eval_tokens, context);
}

WindowOrder::WindowOrder(std::uint64_t seed, std::uint64_t windows)
    : key_(seed ^ kOrderKey), windows_(windows) {
  MOTLEY_CHECK(windows >= 1, "an order of no windows");
}

WindowOrder::Place WindowOrder::place(std::uint64_t index) const {
  const std::uint64_t epoch = index / windows_;
  return {epoch, Permutation(windows_, key_, epoch)(index % windows_)};
}

std::uint64_t WindowOrder::shift(std::uint64_t epoch, std::uint64_t shifts) const {
  MOTLEY_CHECK(shifts >= 1, "a shift of nothing");
  const PhiloxBlock draw = philox4x32(key_, epoch, kShiftBlock);
  return ((std::uint64_t{draw[0]} << 32) | draw[1]) % shifts;
}

}  // namespace motley
