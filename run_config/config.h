// Config: all user settings, with their defaults.
//
// The keys, their types and their help texts are defined once, in the table of
// run_config/config_keys.cc; this struct is what the rest of the program reads.
// ResolvedConfig::origins has the source of each value (default, file, MOTLEY_* environment,
// command line). Format: docs/formats/config.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace motley {

// Changes the result.
struct ModelConfig {
  std::string kind = "gpt2";  // gpt2 | mlp | package
  std::string path;           // package: its folder; only init_from is used besides
  int layers = 12;            // gpt2: blocks; mlp: hidden layers
  int width = 768;            // gpt2: embedding width; mlp: hidden width
  int heads = 12;             // gpt2 only
  int context = 1024;         // tokens per sample
  int vocab = 50257;
  bool tied = true;       // gpt2: the head uses the token embedding
  double dropout = 0.0;   // in [0, 1)
  std::string init_from;  // safetensors file or checkpoint folder with initial weights; "" = none
};

// Changes the result.
struct DataConfig {
  std::string kind = "text";          // text (bytes) | tokens (.bin) | arrays | images | synthetic
  std::string path;                   // a file or folder, by kind; unused for synthetic
  std::vector<std::string> suffixes;  // text folders: only files with these suffixes; empty = all
  std::string dtype = "auto";         // tokens without a header: auto | uint8 | uint16 | …
  bool allow_nonfinite = false;       // accept NaN and infinity in arrays of floats
  bool skip_damaged = false;          // images: leave out files that cannot be decoded
  double holdout = 0.1;               // share held out from training, for evaluation
  std::string holdout_path;           // samples for evaluation of their own; "" = holdout's share
  std::vector<double> mean;           // of each channel of arrays and images, or one for all;
  std::vector<double> std;            // inputs become (value - mean) / std
  std::vector<std::string> augment;   // images: flip, crop, resized_crop, color, erase
  int crop_pixels = 4;                // maximum shift of crop in each direction
  std::string changed = "refuse";  // on resume, if the data differs from the run's: refuse | accept
};

// Changes the result.
struct TrainConfig {
  std::int64_t steps = 1000;
  double epochs = 0;      // passes over the training samples, in place of steps; 0 = steps
  int global_batch = 32;  // samples per optimizer step
  int micro_batch = 0;    // samples per forward; 0 = chosen once, retained on resume
  std::string optimizer = "adamw";  // adamw | sgd | lion | muon
  double lr = 3e-4;
  std::int64_t warmup_steps = 100;
  std::string schedule = "cosine";  // of the learning rate: cosine | constant | linear | wsd
  std::int64_t schedule_steps = 0;  // over which cosine and linear decay; 0 = steps
  std::int64_t decay_steps = 0;     // wsd: the last ones of schedule_steps; 0 = a tenth of them
  double min_lr = 0.0;              // final value of cosine, linear and wsd
  double weight_decay = 0.1;        // not applied to biases, norms and positional embeddings
  double beta1 = 0.9;               // adamw
  double beta2 = 0.95;              // adamw
  double epsilon = 1e-8;            // adamw
  double momentum = 0.9;            // sgd
  double muon_momentum = 0.95;      // muon
  std::vector<std::string>
      groups;                  // parameters by name, with factors of rate and decay of their own
  double ema = 0;              // decay of an exponential average of the weights; 0 = none
  double label_smoothing = 0;  // of cross-entropy losses, in [0, 1)
  std::vector<double> class_weights;  // of cross-entropy losses, one for each class; empty = equal
  double clip = 1.0;                  // global gradient norm; 0 = no clipping
  int max_skipped = 20;               // consecutive skipped steps that end the run; 0 = no limit
  std::int64_t seed = 1;
  std::string precision = "fp32";  // of matrix products: fp32 | bf16 | fp16
  std::int64_t eval_every = 0;     // steps between evaluations; 0 = none
  int eval_batches = 8;            // global batches per evaluation
  int early_stopping = 0;          // evaluations without a better loss that end the run; 0 = none
  // Of rounds (plan/rounds/rounds_plan.h).
  double synchronous_start = 0.1;  // share of the steps before the first round
  double outer_lr = 0.7;
  double outer_momentum = 0;  // 0 = by the number of rounds
};

// Changes only speed and memory, but for rounds.
struct ParallelConfig {
  // off | auto | steps of a round; changes the result.
  std::string rounds = "off";
  // auto | off | steps during which the all-reduces of a round run; changes the result.
  std::string rounds_overlap = "auto";
  std::string schedule = "auto";   // auto | gpipe | 1f1b | split
  std::vector<std::int64_t> cuts;  // layers at which stages 1, 2, … begin; empty = automatic
  bool replicas = true;            // whether several devices may share a stage
  std::string recompute = "auto";  // auto | none | all
  std::vector<std::string> pins;   // constraints of the planner: docs/formats/pins.md
};

// Changes the result (lossy) and speed.
struct CompressionConfig {
  std::string activations = "none";       // codec chain of activations and their gradients
  std::string gradients = "none";         // codec chain of gradient all-reduces, or auto
  bool error_feedback = true;             // error feedback for their messages
  std::int64_t warmup_steps = 100;        // topk: number of first steps with higher densities
  std::string pseudo_gradients = "int4";  // codec chain of the all-reduces between rounds
};

// Changes only speed.
struct CommConfig {
  std::string transport = "auto";  // auto | ucx | gloo | tcp
  std::string encrypt = "auto";    // auto | always | never
  double timeout_s = 60;  // stall timeout of waits for peers: time without progress of any rank
  double start_timeout_s = 60;  // stall timeout of a rank before it is ready
  // How long a rank or a link may be silent before it counts as lost.
  double patience_s = 20;
};

// Changes only the accuracy of device profiles.
struct ProfileConfig {
  double seconds = 40;  // for measuring one device
};

struct CheckpointConfig {
  std::int64_t every = 100;  // steps; 0 = only at the end
  // Also once this many minutes have passed since the last one or the start; 0 = not by time.
  double every_minutes = 0;
  int keep = 3;            // newest checkpoints retained; 0 = all
  bool keep_best = false;  // also the one of the best evaluation
  // Checkpoints of steps that are multiples of it are also retained; 0 = none.
  std::int64_t keep_every = 0;
  // Copies of each machine's files on other machines, if machines have their own run folders.
  int copies = 1;
};

struct RunConfig {
  std::string dir = "runs/default";
  // Compute threads of each stage process; 0 = the machine's cores divided among its devices. After
  // planning it is the number used, if that is the same for all stages.
  int threads = 0;
  // Maximum of consecutive automatic restarts, after the loss of a process or a machine, without a
  // new checkpoint; 0 = none.
  int restarts = 3;
  // How long it waits for its network or for machines without which it cannot continue; 0 = without
  // limit.
  double patience_s = 0;
  std::int64_t trace_steps = 5;  // steps recorded in trace.json, after two for warm-up
  bool tensorboard = false;      // whether steps are also written for TensorBoard
};

struct Config {
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  ParallelConfig parallel;
  CompressionConfig compression;
  CommConfig comm;
  ProfileConfig profile;
  CheckpointConfig checkpoint;
  RunConfig run;
};

}  // namespace motley
