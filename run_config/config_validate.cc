#include "run_config/config_validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include "run_config/config_io.h"
#include "run_config/optimizers.h"
#include "run_config/parameter_groups.h"
#include "run_config/rounds_choice.h"
#include "run_config/schedule_length.h"

namespace motley {
namespace {

std::optional<Conflict> model_conflict(const ModelConfig& model) {
  if (model.kind == "gpt2" && model.width % model.heads != 0) {
    return Conflict{"model.heads", "model.width", "model.heads must divide model.width",
                    fmt::format("{} is not a multiple of {}", model.width, model.heads),
                    "each head takes an equal part of the width"};
  }
  if (model.kind == "package" && model.path.empty()) {
    return Conflict{"model.kind", "model.path", "model.kind = \"package\" needs model.path",
                    "it is not set", "name the folder that motley.export wrote"};
  }
  return std::nullopt;
}

std::optional<Conflict> train_conflict(const TrainConfig& train) {
  if (train.micro_batch > 0 && train.global_batch % train.micro_batch != 0) {
    return Conflict{
        "train.micro_batch", "train.global_batch",
        "train.micro_batch must divide train.global_batch",
        fmt::format("{} is not a multiple of {}", train.global_batch, train.micro_batch),
        "set train.micro_batch = 0 to let the plan choose"};
  }
  if (train.min_lr > train.lr) {
    return Conflict{"train.min_lr", "train.lr", "train.min_lr must be at most train.lr",
                    fmt::format("{} is more than {}", train.min_lr, train.lr),
                    "lower train.min_lr or raise train.lr"};
  }
  return std::nullopt;
}

// Of the keys that count steps.
std::optional<Conflict> steps_conflict(const TrainConfig& train) {
  if (train.steps == 0 && train.epochs > 0) return std::nullopt;  // not known yet
  if (train.steps == 0) {
    return Conflict{"train.steps", "", "train.steps must be at least 1",
                    "it is 0, and train.epochs is not set", "set train.steps or train.epochs"};
  }
  if (train.warmup_steps > train.steps) {
    return Conflict{
        "train.warmup_steps", "train.steps", "train.warmup_steps must be at most train.steps",
        fmt::format("{} is more than {}", train.warmup_steps, train.steps),
        fmt::format("set train.warmup_steps to {} or less, or train for more steps", train.steps)};
  }
  if (train.schedule != "constant" && train.warmup_steps > schedule_length(train)) {
    return Conflict{"train.schedule_steps", "train.warmup_steps",
                    "train.schedule_steps must be at least train.warmup_steps",
                    fmt::format("{} is less than {}", train.schedule_steps, train.warmup_steps),
                    fmt::format("set train.schedule_steps to {} or more, or to 0 for train.steps",
                                train.warmup_steps)};
  }
  if (train.schedule == "wsd" && train.decay_steps > schedule_length(train) - train.warmup_steps) {
    return Conflict{"train.decay_steps", "train.schedule",
                    "train.decay_steps must be at most the steps of the schedule after the warm-up",
                    fmt::format("{} is more than {} - {}", train.decay_steps,
                                schedule_length(train), train.warmup_steps),
                    "lower train.decay_steps, or set it to 0 for a tenth of the schedule"};
  }
  return std::nullopt;
}

std::optional<Conflict> groups_conflict(const TrainConfig& train) {
  const auto groups = parse_parameter_groups(train.groups);
  if (!groups.ok()) {
    const Error& error = groups.error();
    return Conflict{"train.groups", "", error.what, error.cause, error.remedy};
  }
  const bool has_matrices = !optimizer_of(train).matrix_moments.empty();
  if (!has_matrices && std::ranges::any_of(*groups, &ParameterGroup::by_adamw)) {
    return Conflict{"train.groups", "train.optimizer",
                    "optimizer=adamw in train.groups needs train.optimizer = \"muon\"",
                    fmt::format("train.optimizer is \"{}\"", train.optimizer),
                    "remove optimizer=adamw from the group"};
  }
  return std::nullopt;
}

std::optional<Conflict> data_conflict(const DataConfig& data) {
  if (data.mean.size() != data.std.size()) {
    return Conflict{"data.std", "data.mean", "data.mean and data.std must be equally long",
                    fmt::format("they have {} and {} numbers", data.mean.size(), data.std.size()),
                    "give both one number for each channel, or one for all"};
  }
  if (data.dtype != "auto" && data.kind != "tokens") {
    return Conflict{"data.dtype", "data.kind", "data.dtype needs tokens",
                    fmt::format("data.kind is \"{}\"", data.kind),
                    "leave out data.dtype: other data contains its dtype"};
  }
  if (data.skip_damaged && data.kind != "images") {
    return Conflict{"data.skip_damaged", "data.kind", "data.skip_damaged needs images",
                    fmt::format("data.kind is \"{}\"", data.kind), "leave out data.skip_damaged"};
  }
  if (data.kind == "synthetic" && !data.holdout_path.empty()) {
    return Conflict{"data.holdout_path", "data.kind", "data.holdout_path needs data in files",
                    "data.kind is \"synthetic\"",
                    "leave out data.holdout_path: data.holdout is the share held out"};
  }
  if (data.kind == "arrays" || data.kind == "images") return std::nullopt;
  const auto of_arrays = [&](const std::string& key) {
    return Conflict{key, "data.kind", key + " needs arrays or images",
                    fmt::format("data.kind is \"{}\"", data.kind),
                    fmt::format("leave out {}, or use other data", key)};
  };
  if (!data.mean.empty()) return of_arrays("data.mean");
  if (!data.augment.empty()) return of_arrays("data.augment");
  return std::nullopt;
}

// The loss of a package is part of its graphs.
std::optional<Conflict> loss_conflict(const Config& config) {
  const auto of_package = [](const std::string& key, const std::string& remedy) {
    return Conflict{key, "model.kind", key + " does not apply to a package",
                    "its loss was exported with the model", remedy};
  };
  const TrainConfig& train = config.train;
  const bool is_package = config.model.kind == "package";
  if (is_package && train.label_smoothing > 0) {
    return of_package("train.label_smoothing",
                      "export it with loss=nn.CrossEntropyLoss(label_smoothing=...)");
  }
  const std::vector<double>& weights = train.class_weights;
  if (weights.empty()) return std::nullopt;
  if (is_package) {
    return of_package("train.class_weights", "export it with loss=nn.CrossEntropyLoss(weight=...)");
  }
  if (std::ssize(weights) != config.model.vocab) {
    return Conflict{
        "train.class_weights", "model.vocab",
        "train.class_weights must have a weight for each token",
        fmt::format("it has {}, and model.vocab is {}", weights.size(), config.model.vocab),
        "give as many weights as there are classes, in their order"};
  }
  if (std::ranges::all_of(weights, [](double w) { return static_cast<float>(w) == 0; })) {
    return Conflict{"train.class_weights", "", "train.class_weights are all 0",
                    "no target would have a loss", "give at least one class a weight above 0"};
  }
  return std::nullopt;
}

std::optional<Conflict> holdout_conflict(const Config& config) {
  const bool has_held_out = config.data.holdout > 0 || !config.data.holdout_path.empty();
  if (config.train.eval_every > 0 && !has_held_out) {
    return Conflict{"train.eval_every", "data.holdout", "train.eval_every needs held-out data",
                    "data.holdout is 0",
                    "set data.holdout, for instance to 0.1, or data.holdout_path, or "
                    "train.eval_every = 0"};
  }
  if (config.train.eval_every > 0) return std::nullopt;
  const auto without_evaluations = [&](const std::string& key, const std::string& off) {
    return Conflict{key, "train.eval_every", key + " needs evaluations", "train.eval_every is 0",
                    fmt::format("set train.eval_every, for instance to {}, or {}",
                                std::max<std::int64_t>(1, config.train.steps / 20), off)};
  };
  if (config.train.early_stopping > 0) {
    return without_evaluations("train.early_stopping", "train.early_stopping = 0");
  }
  if (config.checkpoint.keep_best) {
    return without_evaluations("checkpoint.keep_best", "checkpoint.keep_best = false");
  }
  return std::nullopt;
}

std::optional<Conflict> rounds_conflict(const Config& config) {
  const std::string& asked = config.parallel.rounds;
  const auto choice = parse_rounds_choice(asked);
  if (!choice) {
    return Conflict{"parallel.rounds", "", fmt::format("parallel.rounds cannot be '{}'", asked),
                    "it is off, auto, or the number of steps of a round",
                    "set parallel.rounds to off, auto or a number such as 30"};
  }
  const std::string& overlap = config.parallel.rounds_overlap;
  const auto steps = parse_rounds_choice(overlap);
  if (!steps) {
    return Conflict{"parallel.rounds_overlap", "",
                    fmt::format("parallel.rounds_overlap cannot be '{}'", overlap),
                    "it is off, auto, or a number of steps",
                    "set parallel.rounds_overlap to off, auto or a number such as 15"};
  }
  if (choice->steps > 0 && steps->steps >= choice->steps) {
    return Conflict{
        "parallel.rounds_overlap", "parallel.rounds",
        "a round is synchronised during fewer steps than it has",
        fmt::format("parallel.rounds_overlap is {}, parallel.rounds is {}", overlap, asked),
        fmt::format("set parallel.rounds_overlap to auto or to at most {}", choice->steps - 1)};
  }
  if (choice->is_off() || config.train.ema == 0) return std::nullopt;
  return Conflict{"parallel.rounds", "train.ema",
                  "an exponential average of the weights does not go with rounds",
                  fmt::format("train.ema is {}, parallel.rounds is {}", config.train.ema, asked),
                  "set train.ema = 0 or parallel.rounds = \"off\""};
}

std::optional<Conflict> cuts_conflict(const ParallelConfig& parallel) {
  const auto& cuts = parallel.cuts;
  if (std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) != cuts.end()) {
    return Conflict{"parallel.cuts", "", "parallel.cuts must be ascending",
                    "every stage has at least one layer", "write each cut once, in order"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Conflict> find_conflict(const Config& config) {
  if (auto conflict = model_conflict(config.model)) return conflict;
  if (auto conflict = data_conflict(config.data)) return conflict;
  if (auto conflict = train_conflict(config.train)) return conflict;
  if (auto conflict = steps_conflict(config.train)) return conflict;
  if (auto conflict = groups_conflict(config.train)) return conflict;
  if (auto conflict = holdout_conflict(config)) return conflict;
  if (auto conflict = loss_conflict(config)) return conflict;
  if (auto conflict = rounds_conflict(config)) return conflict;
  return cuts_conflict(config.parallel);
}

Result<void> validate_config(const Config& config) {
  const auto conflict = find_conflict(config);
  if (!conflict) return {};
  return with_key({ErrorCode::kConfig, conflict->problem, conflict->cause, conflict->remedy},
                  conflict->key);
}

}  // namespace motley
