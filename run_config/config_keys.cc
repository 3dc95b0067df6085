#include "run_config/config_keys.h"

#include <algorithm>
#include <map>

#include "base/toml.h"
#include "compression/facts/codec_facts.h"
#include "plan/schedule_facts.h"
#include "run_config/optimizers.h"

namespace motley {
namespace {

constexpr std::int64_t kManySteps = 1'000'000'000'000;
constexpr std::int64_t kManySamples = 1 << 24;
constexpr double kManyMinutes = 1'000'000;
constexpr double kLargeWeight = 10'000;

template <auto kSection, auto kMember>
auto& member(Config& config) {
  return config.*kSection.*kMember;
}

template <auto kMember>
constexpr Accessor kModel = &member<&Config::model, kMember>;
template <auto kMember>
constexpr Accessor kData = &member<&Config::data, kMember>;
template <auto kMember>
constexpr Accessor kTrain = &member<&Config::train, kMember>;
template <auto kMember>
constexpr Accessor kParallel = &member<&Config::parallel, kMember>;
template <auto kMember>
constexpr Accessor kCompression = &member<&Config::compression, kMember>;
template <auto kMember>
constexpr Accessor kComm = &member<&Config::comm, kMember>;
template <auto kMember>
constexpr Accessor kProfile = &member<&Config::profile, kMember>;
template <auto kMember>
constexpr Accessor kCheckpoint = &member<&Config::checkpoint, kMember>;
template <auto kMember>
constexpr Accessor kRun = &member<&Config::run, kMember>;

NumberRange positive(double high) {
  return {0, high, true, false};
}

NumberRange non_negative(double high) {
  return {0, high, false, false};
}

NumberRange share_below_one() {
  return {0, 1, false, true};
}

std::vector<ConfigEntry> make_entries() {
  return {
      {"model.kind", kModel<&ModelConfig::kind>, Choices{{"gpt2", "mlp", "package"}},
       "model family; package = exported from PyTorch"},
      {"model.path", kModel<&ModelConfig::path>, {}, "folder of the package"},
      {"model.layers", kModel<&ModelConfig::layers>, IntegerRange{1, 10'000},
       "blocks (gpt2), hidden layers (mlp)"},
      {"model.width", kModel<&ModelConfig::width>, IntegerRange{1, 1 << 20},
       "width of embeddings (gpt2), of hidden layers (mlp)"},
      {"model.heads", kModel<&ModelConfig::heads>, IntegerRange{1, 1 << 16},
       "attention heads, which divide the width (gpt2)"},
      {"model.context", kModel<&ModelConfig::context>, IntegerRange{1, 1 << 24},
       "tokens per sample"},
      {"model.vocab", kModel<&ModelConfig::vocab>, IntegerRange{2, 1 << 28},
       "number of distinct tokens"},
      {"model.tied", kModel<&ModelConfig::tied>, {}, "the head uses the token embedding (gpt2)"},
      {"model.dropout", kModel<&ModelConfig::dropout>, share_below_one(),
       "fraction of activations dropped during training"},
      {"model.init_from",
       kModel<&ModelConfig::init_from>,
       {},
       "safetensors file or checkpoint folder with the initial weights; empty = random"},

      {"data.kind", kData<&DataConfig::kind>,
       Choices{{"text", "tokens", "arrays", "images", "synthetic"}},
       "text (bytes), tokens (.bin of nanoGPT, llm.c or Megatron, .npy), arrays (.npy), images "
       "(MNIST's, CIFAR's or a folder of pictures), synthetic (needs no file)"},
      {"data.path",
       kData<&DataConfig::path>,
       {},
       "file or folder (text), file, pattern or folder (tokens), folder (arrays, images)"},
      {"data.suffixes",
       kData<&DataConfig::suffixes>,
       {},
       "in a folder of text, only files with one of these suffixes; empty = all"},
      {"data.dtype", kData<&DataConfig::dtype>,
       Choices{{"auto", "uint8", "uint16", "uint32", "int8", "int16", "int32", "int64"}},
       "dtype of the tokens of files without a header; auto = detected, or refused"},
      {"data.allow_nonfinite",
       kData<&DataConfig::allow_nonfinite>,
       {},
       "whether arrays of floats may contain NaN and infinity; otherwise they are refused"},
      {"data.skip_damaged",
       kData<&DataConfig::skip_damaged>,
       {},
       "whether pictures that cannot be decoded are left out, with their number; otherwise they "
       "are "
       "refused"},
      {"data.holdout", kData<&DataConfig::holdout>, NumberRange{0, 0.9},
       "fraction of the data reserved for evaluation, if it has no separate part for that"},
      {"data.holdout_path",
       kData<&DataConfig::holdout_path>,
       {},
       "file or folder with the data for evaluation, of the kind of path; all of path is then for "
       "training; empty = the fraction holdout of path, or its separate part"},
      {"data.mean", kData<&DataConfig::mean>, NumberRange{-1e6, 1e6},
       "arrays and images of floats: value subtracted in each channel, or one number for all"},
      {"data.std", kData<&DataConfig::std>, NumberRange{1e-6, 1e6},
       "arrays and images of floats: divisor of each channel after that, or one number for all"},
      {"data.augment", kData<&DataConfig::augment>,
       Choices{{"flip", "crop", "resized_crop", "color", "erase"}},
       "when training on images: flip = mirrored half the time, crop = shifted at random, "
       "resized_crop = a random part enlarged, color = other brightness, contrast and saturation, "
       "erase = a random part removed half the time"},
      {"data.crop_pixels", kData<&DataConfig::crop_pixels>, IntegerRange{1, 1024},
       "maximum shift of an image by crop in each direction; the border is black"},
      {"data.changed", kData<&DataConfig::changed>, Choices{{"refuse", "accept"}},
       "on resume: refuse other data, another seed or another held-out share than the run's, or "
       "accept them"},

      {"train.steps", kTrain<&TrainConfig::steps>, IntegerRange{0, kManySteps},
       "optimizer steps; 0 = by epochs"},
      {"train.epochs", kTrain<&TrainConfig::epochs>, non_negative(1e6),
       "passes over the training samples, in place of steps, also fractions; 0 = by steps"},
      {"train.global_batch", kTrain<&TrainConfig::global_batch>, IntegerRange{1, kManySamples},
       "samples per optimizer step"},
      {"train.micro_batch", kTrain<&TrainConfig::micro_batch>, IntegerRange{0, kManySamples},
       "samples per forward pass; 0 = chosen once, by the model and global_batch where that costs "
       "little, and retained on resume"},
      {"train.optimizer", kTrain<&TrainConfig::optimizer>, Choices{optimizer_names()},
       "optimizer; sgd has momentum; muon = matrices of hidden layers by Muon, the rest by adamw"},
      {"train.lr", kTrain<&TrainConfig::lr>, positive(1e6), "highest learning rate"},
      {"train.warmup_steps", kTrain<&TrainConfig::warmup_steps>, IntegerRange{0, kManySteps},
       "steps over which the learning rate rises to lr; if unset, at most a tenth of steps"},
      {"train.schedule", kTrain<&TrainConfig::schedule>,
       Choices{{"cosine", "linear", "constant", "wsd"}},
       "learning rate after the warm-up; wsd = constant, then linear in the last decay_steps"},
      {"train.schedule_steps", kTrain<&TrainConfig::schedule_steps>, IntegerRange{0, kManySteps},
       "steps after which all but constant have reached min_lr, warm-up included; 0 = steps"},
      {"train.decay_steps", kTrain<&TrainConfig::decay_steps>, IntegerRange{0, kManySteps},
       "the last steps of the schedule, in which wsd falls to min_lr; 0 = a tenth of it"},
      {"train.min_lr", kTrain<&TrainConfig::min_lr>, non_negative(1e6),
       "learning rate that all but constant fall to, and have after schedule_steps"},
      {"train.weight_decay", kTrain<&TrainConfig::weight_decay>, non_negative(1e6),
       "weight decay of matrices and token embeddings"},
      {"train.beta1", kTrain<&TrainConfig::beta1>, share_below_one(),
       "decay of the mean of gradients (adamw, muon); lion: its share of the step's direction"},
      {"train.beta2", kTrain<&TrainConfig::beta2>, share_below_one(),
       "decay of the mean of squared gradients (adamw, muon); lion: of the mean of gradients"},
      {"train.epsilon", kTrain<&TrainConfig::epsilon>, NumberRange{1e-30, 1, false, false},
       "added to the root of the mean square (adamw, muon)"},
      {"train.momentum", kTrain<&TrainConfig::momentum>, share_below_one(),
       "momentum (sgd); topk all-reduces apply it before sending (momentum correction)"},
      {"train.label_smoothing", kTrain<&TrainConfig::label_smoothing>, share_below_one(),
       "share of each target that all classes have in equal parts (gpt2, mlp)"},
      {"train.class_weights", kTrain<&TrainConfig::class_weights>, NumberRange{0, kLargeWeight},
       "weight of each class in the loss, one number for each token (gpt2, mlp); empty = equal"},
      {"train.muon_momentum", kTrain<&TrainConfig::muon_momentum>, share_below_one(),
       "decay of the mean of gradients of hidden matrices (muon)"},
      {"train.groups",
       kTrain<&TrainConfig::groups>,
       {},
       "parameters by name pattern, with factors of rate and decay, such as '*.bias: "
       "weight_decay=0' or 'h.0.*: lr=0.5'; the first match counts"},
      {"train.ema", kTrain<&TrainConfig::ema>, share_below_one(),
       "decay of an exponential average of the weights, which checkpoints contain and `motley ckpt "
       "export --ema` writes; 0 = none"},
      {"train.clip", kTrain<&TrainConfig::clip>, non_negative(1e30),
       "largest global gradient norm; 0 = no clipping"},
      {"train.max_skipped", kTrain<&TrainConfig::max_skipped>, IntegerRange{0, kManySamples},
       "number of consecutive steps skipped for a non-finite gradient that ends the run; 0 = no "
       "limit"},
      {"train.seed", kTrain<&TrainConfig::seed>, IntegerRange{},
       "seed of initial weights, dropout and data order"},
      {"train.precision", kTrain<&TrainConfig::precision>, Choices{{"fp32", "bf16", "fp16"}},
       "compute dtype of products, where the device supports it; all else is fp32"},
      {"train.eval_every", kTrain<&TrainConfig::eval_every>, IntegerRange{0, kManySteps},
       "steps between evaluations on held-out data; 0 = none"},
      {"train.eval_batches", kTrain<&TrainConfig::eval_batches>, IntegerRange{1, kManySamples},
       "global batches per evaluation"},
      {"train.early_stopping", kTrain<&TrainConfig::early_stopping>, IntegerRange{0, kManySamples},
       "number of consecutive evaluations without a lower held-out loss that ends the run; 0 = no "
       "limit"},

      {"train.synchronous_start", kTrain<&TrainConfig::synchronous_start>, share_below_one(),
       "with parallel.rounds: the share of the steps before the first round, at least twice "
       "train.warmup_steps; 0 = none"},
      {"train.outer_lr", kTrain<&TrainConfig::outer_lr>, positive(10),
       "with parallel.rounds: learning rate of the outer optimizer"},
      {"train.outer_momentum", kTrain<&TrainConfig::outer_momentum>, share_below_one(),
       "with parallel.rounds: Nesterov momentum of the outer optimizer; 0 = by the number of "
       "rounds, from 0.7 to 0.9"},

      {"parallel.rounds",
       kParallel<&ParallelConfig::rounds>,
       {},
       "local training in rounds (DiLoCo) where links are too slow for a synchronisation in each "
       "step: the number of steps of a round, auto = if the plan gains 20 % or more, or off"},
      {"parallel.rounds_overlap",
       kParallel<&ParallelConfig::rounds_overlap>,
       {},
       "with parallel.rounds: the number of steps of the next round during which a round is "
       "synchronised, auto = the planner chooses, or off"},
      {"parallel.schedule", kParallel<&ParallelConfig::schedule>, Choices{schedule_choices()},
       "order of micro-batches on the stages"},
      {"parallel.cuts", kParallel<&ParallelConfig::cuts>, IntegerRange{1, 1 << 20},
       "layers at which stages 1, 2, … begin; empty = the planner chooses"},
      {"parallel.replicas",
       kParallel<&ParallelConfig::replicas>,
       {},
       "whether several devices may share a stage, each with a part of the micro-batches"},
      {"parallel.recompute", kParallel<&ParallelConfig::recompute>,
       Choices{{"auto", "none", "all"}},
       "stages with activation checkpointing, which store only their input and compute forward "
       "twice; auto = where memory is short"},
      {"parallel.pins",
       kParallel<&ParallelConfig::pins>,
       {},
       "constraints on the plan, such as 'never laptop' (docs/formats/pins.md)"},

      {"compression.activations",
       kCompression<&CompressionConfig::activations>,
       {},
       "codec chain of activations and their gradients, none, or auto = for each link " +
           auto_codecs_text(CodecUse::kActivations)},
      {"compression.gradients",
       kCompression<&CompressionConfig::gradients>,
       {},
       "codec chain of the gradient all-reduces between machines, none, or auto = " +
           auto_codecs_text(CodecUse::kGradients)},
      {"compression.error_feedback",
       kCompression<&CompressionConfig::error_feedback>,
       {},
       "whether the residual of compressed gradients is added to the next step's"},
      {"compression.warmup_steps", kCompression<&CompressionConfig::warmup_steps>,
       IntegerRange{0, kManySteps},
       "steps in which topk sends more: 1/4 of the values, then 1/16, down to its own share"},

      {"compression.pseudo_gradients",
       kCompression<&CompressionConfig::pseudo_gradients>,
       {},
       "with parallel.rounds: codec chain of what the islands exchange at the end of a round"},

      {"comm.transport", kComm<&CommConfig::transport>, Choices{{"auto", "ucx", "gloo", "tcp"}},
       "how stages exchange data; auto = tcp"},
      {"comm.encrypt", kComm<&CommConfig::encrypt>, Choices{{"auto", "always", "never"}},
       "whether tcp encrypts; auto = between machines, unless the network is declared trusted; "
       "always = inside a machine too"},
      {"comm.timeout_s", kComm<&CommConfig::timeout_s>, positive(86'400),
       "stall timeout within a step: longest wait for a peer while no stage makes progress; a "
       "stage that saves or loads does not time out"},
      {"comm.start_timeout_s", kComm<&CommConfig::start_timeout_s>, positive(86'400),
       "start-up stall timeout; slow but progressing stages do not time out"},
      {"comm.patience_s", kComm<&CommConfig::patience_s>, NumberRange{1, 600, false, false},
       "how long a stage or a link may be silent before it counts as lost; a closed connection and "
       "an ended process count at once"},

      {"profile.seconds", kProfile<&ProfileConfig::seconds>, positive(86'400),
       "approximate duration of profiling a device, before its first plan; more time makes "
       "predictions slightly better"},

      {"checkpoint.every", kCheckpoint<&CheckpointConfig::every>, IntegerRange{0, kManySteps},
       "steps between checkpoints; 0 = only at the end"},
      {"checkpoint.every_minutes", kCheckpoint<&CheckpointConfig::every_minutes>,
       non_negative(kManyMinutes),
       "an additional checkpoint is saved when this many minutes have passed since the last one, "
       "or the start; 0 = not by time"},
      {"checkpoint.keep", kCheckpoint<&CheckpointConfig::keep>, IntegerRange{0, 1'000'000},
       "number of newest checkpoints retained; 0 = all"},
      {"checkpoint.keep_best",
       kCheckpoint<&CheckpointConfig::keep_best>,
       {},
       "also save after each evaluation with the lowest held-out loss so far, and retain the last "
       "of these checkpoints"},
      {"checkpoint.keep_every", kCheckpoint<&CheckpointConfig::keep_every>,
       IntegerRange{0, kManySteps},
       "checkpoints of steps that are multiples of it are retained in addition to the newest; 0 = "
       "none"},
      {"checkpoint.copies", kCheckpoint<&CheckpointConfig::copies>, IntegerRange{0, 16},
       "copies of each machine's part of a checkpoint, on other machines, if they share no run "
       "folder"},

      {"run.dir", kRun<&RunConfig::dir>, {}, "output folder of the run"},
      {"run.threads", kRun<&RunConfig::threads>, IntegerRange{0, 1024},
       "compute threads per stage process; 0 = the physical cores of its machine, within its "
       "quota, divided among its devices; a device with its own memory takes one core if there is "
       "also a processor; retained on resume"},
      {"run.restarts", kRun<&RunConfig::restarts>, IntegerRange{0, 1000},
       "maximum consecutive automatic restarts, after the loss of a process or a machine, without "
       "a new checkpoint; 0 = the run ends with an error"},
      {"run.patience_s", kRun<&RunConfig::patience_s>, non_negative(1e9),
       "how long a run waits for its network, or for machines without which it cannot continue; 0 "
       "= "
       "without limit"},
      {"run.trace_steps", kRun<&RunConfig::trace_steps>, IntegerRange{0, 100'000},
       "steps recorded in trace.json, after two for warming up"},
      {"run.tensorboard",
       kRun<&RunConfig::tensorboard>,
       {},
       "also write each step for TensorBoard, into the run folder's tensorboard/"},
  };
}

// Names of our keys in other trainers.
const std::map<std::string, std::string>& foreign_names() {
  static const std::map<std::string, std::string> names = {
      {"batch_size", "train.global_batch"},
      {"block_size", "model.context"},
      {"dim", "model.width"},
      {"early_stopping_patience", "train.early_stopping"},
      {"grad_clip", "train.clip"},
      {"hidden_size", "model.width"},
      {"learning_rate", "train.lr"},
      {"max_epochs", "train.epochs"},
      {"max_iters", "train.steps"},
      {"max_steps", "train.steps"},
      {"n_embd", "model.width"},
      {"n_head", "model.heads"},
      {"n_layer", "model.layers"},
      {"num_epochs", "train.epochs"},
      {"num_heads", "model.heads"},
      {"num_layers", "model.layers"},
      {"num_train_epochs", "train.epochs"},
      {"seq_len", "model.context"},
      {"vocab_size", "model.vocab"},
      {"warmup_iters", "train.warmup_steps"},
  };
  return names;
}

struct TypeName {
  std::string operator()(Access<bool>) const { return "boolean"; }

  std::string operator()(Access<int>) const { return "integer"; }

  std::string operator()(Access<std::int64_t>) const { return "integer"; }

  std::string operator()(Access<double>) const { return "number"; }

  std::string operator()(Access<std::string>) const { return "string"; }

  std::string operator()(Access<std::vector<std::int64_t>>) const { return "list of integers"; }

  std::string operator()(Access<std::vector<double>>) const { return "list of numbers"; }

  std::string operator()(Access<std::vector<std::string>>) const { return "list of strings"; }
};

}  // namespace

std::string_view ConfigEntry::section() const {
  return std::string_view(name).substr(0, name.find('.'));
}

std::string_view ConfigEntry::word() const {
  return std::string_view(name).substr(name.find('.') + 1);
}

const std::vector<ConfigEntry>& config_entries() {
  static const std::vector<ConfigEntry> entries = make_entries();
  return entries;
}

const ConfigEntry* find_entry(std::string_view name) {
  const auto& entries = config_entries();
  const auto it = std::find_if(entries.begin(), entries.end(),
                               [&](const ConfigEntry& entry) { return entry.name == name; });
  return it == entries.end() ? nullptr : &*it;
}

std::vector<std::string> config_sections() {
  std::vector<std::string> sections;
  for (const ConfigEntry& entry : config_entries()) {
    if (sections.empty() || sections.back() != entry.section()) {
      sections.emplace_back(entry.section());
    }
  }
  return sections;
}

std::string suggest_key(const std::string& unknown) {
  const std::string section = unknown.substr(0, unknown.find('.'));
  const std::string word = unknown.substr(unknown.rfind('.') + 1);
  // Full names by words that a user may have written for them, the same section first.
  std::map<std::string, std::string> name_of_word = foreign_names();
  for (const ConfigEntry& entry : config_entries()) {
    const bool same_section = entry.section() == section;
    if (same_section) name_of_word[std::string(entry.word())] = entry.name;
    if (!same_section) name_of_word.try_emplace(std::string(entry.word()), entry.name);
  }
  std::vector<std::string> words;
  for (const auto& [known, name] : name_of_word) words.push_back(known);
  const std::string closest = closest_word(word, words);
  return closest.empty() ? "" : name_of_word[closest];
}

std::vector<std::string> choices_of(const ConfigEntry& entry) {
  if (std::holds_alternative<Access<bool>>(entry.access)) return {"true", "false"};
  const auto* const choices = std::get_if<Choices>(&entry.rule);
  if (choices == nullptr) return {};
  return {choices->words.begin(), choices->words.end()};
}

std::string type_name(const ConfigEntry& entry) {
  return std::visit(TypeName{}, entry.access);
}

}  // namespace motley
