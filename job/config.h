// Config: everything a person can ask for, with its default beside it.
//
// The keys, their types and their help texts stand once, in the table of job/config_keys.cc; this
// struct is what the rest of the program reads. Where a value came from (default, file, MOTLEY_*
// environment, command line) is kept in ResolvedConfig::origins. Format: docs/formats/config.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace motley {

// Changes the result.
struct ModelConfig {
  std::string kind = "gpt2";  // gpt2 | mlp | package
  std::string path;           // package: its folder; the other keys are the package's affair
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
  std::string path;                   // a file or folder, as the kind says; unused for synthetic
  std::vector<std::string> suffixes;  // text folders: only files ending so; empty = all
  std::string dtype = "auto";         // tokens without a header: auto | uint8 | uint16 | …
  bool allow_nonfinite = false;       // arrays of floats may hold NaN and infinity
  double holdout = 0.1;               // share that is never trained on, for evaluation
  std::vector<double> mean;           // of each channel of arrays and images, or one for all;
  std::vector<double> std;            // inputs become (value - mean) / std
  std::vector<std::string> augment;   // images: flip, crop
  int crop_pixels = 4;                // how far crop shifts in each direction
  std::string changed = "refuse";     // on resume, other data than the run's: refuse | accept
};

// Changes the result.
struct TrainConfig {
  std::int64_t steps = 1000;
  int global_batch = 32;            // samples per optimizer step
  int micro_batch = 0;              // samples per forward; 0 = chosen once, and kept on resume
  std::string optimizer = "adamw";  // adamw | sgd
  double lr = 3e-4;
  std::int64_t warmup_steps = 100;
  std::string schedule = "cosine";  // of the learning rate: cosine | constant | linear
  std::int64_t schedule_steps = 0;  // over which cosine and linear fall; 0 = steps
  double min_lr = 0.0;              // what cosine and linear fall to
  double weight_decay = 0.1;        // not applied to biases, norms and embeddings of positions
  double beta1 = 0.9;               // adamw
  double beta2 = 0.95;              // adamw
  double epsilon = 1e-8;            // adamw
  double momentum = 0.9;            // sgd
  double clip = 1.0;                // global gradient norm; 0 = no clipping
  int max_skipped = 20;             // skipped steps in a row that end the run; 0 = none do
  std::int64_t seed = 1;
  std::string precision = "fp32";  // of products: fp32 | bf16 | fp16
  std::int64_t eval_every = 0;     // steps between evaluations; 0 = none
  int eval_batches = 8;            // global batches per evaluation
};

// Changes only speed and memory.
struct ParallelConfig {
  std::string schedule = "auto";   // auto | gpipe | 1f1b | split
  std::vector<std::int64_t> cuts;  // layers at which stages 1, 2, … begin; empty = the planner's
  bool replicas = true;            // may several devices share a stage?
  std::string recompute = "auto";  // auto | none | all
  std::vector<std::string> pins;   // what the planner must obey: docs/formats/pins.md
};

// Changes the result (lossy) and speed.
struct CompressionConfig {
  std::string activations = "none";  // codec chain of activations and their gradients
  std::string gradients = "none";    // codec chain of sums of gradients, or auto
  bool error_feedback = true;        // what their messages leave out is sent later
  std::int64_t warmup_steps = 100;   // topk: so many steps begin denser
};

// Changes only speed.
struct CommConfig {
  std::string transport = "auto";  // auto | ucx | gloo | tcp
  std::string encrypt = "auto";    // auto | always | never
  double timeout_s = 60;           // longest wait for a peer in which no rank gets on
  double start_timeout_s = 60;     // longest that a rank may stand still before it is ready
};

// Changes only how well the plan knows its devices.
struct ProfileConfig {
  double seconds = 40;  // for measuring a device
};

struct CheckpointConfig {
  std::int64_t every = 100;  // steps; 0 = only at the end
  // Besides, once so many minutes have passed since the last one or the start; 0 = not by time.
  double every_minutes = 0;
  int keep = 3;  // newest checkpoints kept; 0 = all
  // Checkpoints of a step that is a multiple of it are kept besides; 0 = none.
  std::int64_t keep_every = 0;
  // Of each machine's files, on others, where machines have run folders of their own.
  int copies = 1;
};

struct RunConfig {
  std::string dir = "runs/default";
  // Compute threads of each stage process; 0 = the machine's cores, shared among its devices. What
  // was used stands here once the run is planned, where all stages have as many.
  int threads = 0;
  // How often in a row a run that lost a process or a machine goes on by itself without having
  // reached a new checkpoint; 0 = it ends.
  int restarts = 3;
  std::int64_t trace_steps = 5;  // steps recorded in trace.json, after two for warming up
  bool tensorboard = false;      // whether steps are also written as TensorBoard reads them
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
