// The families:
//
// gpt2   embed · (attn · mlp) per block · head. Names and shapes are Hugging Face's; linear weights
//        are stored [in, out]. Initial values are GPT-2's: normal with deviation 0.02, residual
//        projections divided by sqrt(2 * layers), biases 0. Positions start with 0.02 like tokens.
// mlp    input · hidden per layer · head. A language model without attention: each position sees
//        the embeddings (width / 8 each) of its last 8 tokens, concatenated, zeros before the
//        start. Hidden layers are x + gelu(norm(x) W + b). `heads` and `tied` are not used.
#include "models/spec/native_families.h"

#include <fmt/format.h>

#include <cmath>

#include "models/spec/mlp_window.h"

namespace motley {
namespace {

using Parameters = std::vector<ParameterSpec>;

constexpr double kDeviation = 0.02;

InitRule normal(double deviation) {
  return {InitRule::Kind::kNormal, deviation};
}

InitRule constant(double value) {
  return {InitRule::Kind::kConstant, value};
}

ParameterSpec matrix(std::string name,
                     std::int64_t rows,
                     std::int64_t columns,
                     double deviation = kDeviation) {
  return {std::move(name), {rows, columns}, normal(deviation), /*decayed=*/true};
}

ParameterSpec bias(std::string name, std::int64_t size) {
  return {std::move(name), {size}, constant(0.0)};
}

void add_norm(Parameters& parameters, const std::string& name, std::int64_t size) {
  parameters.push_back({name + ".weight", {size}, constant(1.0)});
  parameters.push_back(bias(name + ".bias", size));
}

// A weight stored [in, out] and its bias.
void add_linear(Parameters& parameters,
                const std::string& name,
                std::int64_t in,
                std::int64_t out,
                double deviation = kDeviation) {
  parameters.push_back(matrix(name + ".weight", in, out, deviation));
  parameters.push_back(bias(name + ".bias", out));
}

// Two for each multiply-add, over the T positions of a sample.
double linear_flops(double positions, double in, double out) {
  return 2.0 * positions * in * out;
}

class Describer {
 public:
  explicit Describer(const ModelConfig& config) : config_(config) {
    spec_.family = config.kind;
    spec_.tokens_per_sample = config.context;
    const TensorSpec tokens{Dtype::kInt64, {config.context}};
    spec_.sample = {{{"", tokens, config.vocab}}, tokens, config.vocab, /*is_next_token=*/true, {}};
  }

  ModelSpec gpt2() {
    add_gpt2_embed();
    for (int block = 0; block < config_.layers; ++block) {
      add_gpt2_attention(block);
      add_gpt2_mlp(block);
    }
    Parameters head;
    add_norm(head, "ln_f", width());
    if (config_.tied) {
      head.push_back(matrix("wte.weight", config_.vocab, width()));
      head.back().tied_use = true;
    } else {
      head.push_back(matrix("lm_head.weight", config_.vocab, width()));
    }
    add_head(std::move(head));
    return std::move(spec_);
  }

  ModelSpec mlp() {
    const std::int64_t embedding = width() / kMlpWindow;
    Parameters input{matrix("input.embedding.weight", config_.vocab, embedding)};
    add_linear(input, "input.linear", width(), width());
    add("input", "mlp.input", fmt::format("vocab={}", config_.vocab), std::move(input),
        linear_flops(positions(), width(), width()));
    for (int index = 0; index < config_.layers; ++index) {
      const std::string name = fmt::format("hidden.{}", index);
      Parameters hidden;
      add_norm(hidden, name + ".norm", width());
      add_linear(hidden, name + ".linear", width(), width());
      add(name, "mlp.hidden", "", std::move(hidden), linear_flops(positions(), width(), width()));
    }
    Parameters head;
    add_norm(head, "head.norm", width());
    head.push_back(matrix("head.weight", config_.vocab, width()));
    add_head(std::move(head));
    return std::move(spec_);
  }

 private:
  std::int64_t width() const { return config_.width; }

  double positions() const { return config_.context; }

  // `sizes`: further inputs of this layer's shapes, besides width and context.
  void add(std::string name,
           std::string kind,
           const std::string& sizes,
           Parameters parameters,
           double flops,
           bool last = false) {
    LayerSpec layer;
    layer.name = std::move(name);
    layer.kind = std::move(kind);
    layer.signature = fmt::format("{} width={} context={}{}{}{}", layer.kind, config_.width,
                                  config_.context, sizes.empty() ? "" : " ", sizes,
                                  config_.dropout > 0.0 && !last ? " dropout" : "");
    layer.parameters = std::move(parameters);
    if (!last) layer.outputs = {{config_.context, width()}};
    layer.forward_flops_per_sample = flops;
    layer.input_part_flops_per_sample = flops;
    layer.weight_part_flops_per_sample = flops;
    if (layer.kind == "gpt2.attn") layer.heads = config_.heads;
    spec_.layers.push_back(std::move(layer));
  }

  void add_gpt2_embed() {
    ParameterSpec positions_weight = matrix("wpe.weight", config_.context, width());
    positions_weight.decayed = false;
    add("embed", "gpt2.embed", fmt::format("vocab={}", config_.vocab),
        {matrix("wte.weight", config_.vocab, width()), std::move(positions_weight)},
        positions() * static_cast<double>(width()));
  }

  double residual_deviation() const { return kDeviation / std::sqrt(2.0 * config_.layers); }

  void add_gpt2_attention(int block) {
    const std::string name = fmt::format("h.{}.attn", block);
    Parameters parameters;
    add_norm(parameters, fmt::format("h.{}.ln_1", block), width());
    add_linear(parameters, name + ".c_attn", width(), 3 * width());
    add_linear(parameters, name + ".c_proj", width(), width(), residual_deviation());
    // Scores and their product with the values, each over the causal half.
    const double causal = 2.0 * positions() * positions() * static_cast<double>(width());
    add(name, "gpt2.attn", fmt::format("heads={}", config_.heads), std::move(parameters),
        linear_flops(positions(), width(), 4 * width()) + causal);
  }

  void add_gpt2_mlp(int block) {
    const std::string name = fmt::format("h.{}.mlp", block);
    Parameters parameters;
    add_norm(parameters, fmt::format("h.{}.ln_2", block), width());
    add_linear(parameters, name + ".c_fc", width(), 4 * width());
    add_linear(parameters, name + ".c_proj", 4 * width(), width(), residual_deviation());
    add(name, "gpt2.mlp", "", std::move(parameters),
        linear_flops(positions(), width(), 8 * width()));
  }

  void add_head(Parameters parameters) {
    const bool tied = parameters.back().tied_use;
    add("head", spec_.family + ".head",
        fmt::format("vocab={}{}", config_.vocab, tied ? " tied" : ""), std::move(parameters),
        linear_flops(positions(), width(), config_.vocab), /*last=*/true);
  }

  const ModelConfig& config_;
  ModelSpec spec_;
};

Error bad_size(const char* key, auto value, std::string remedy) {
  return {ErrorCode::kConfig, fmt::format("invalid model.{} = {}", key, value), "",
          std::move(remedy)};
}

// The upper bounds are far beyond any real model; with them every product below fits 63 bits.
Result<void> check_sizes(const ModelConfig& config) {
  struct Bound {
    const char* key;
    int value;
    int least;
    int most;
  };

  for (const Bound& bound :
       {Bound{"layers", config.layers, 1, 1 << 14}, Bound{"width", config.width, 1, 1 << 20},
        Bound{"context", config.context, 1, 1 << 24}, Bound{"vocab", config.vocab, 2, 1 << 24}}) {
    if (bound.value < bound.least || bound.value > bound.most) {
      return bad_size(bound.key, bound.value,
                      fmt::format("choose a value from {} to {}", bound.least, bound.most));
    }
  }
  if (!(config.dropout >= 0.0 && config.dropout < 1.0)) {
    return bad_size("dropout", config.dropout, "choose a value from 0 to below 1");
  }
  return {};
}

Result<void> check_gpt2(const ModelConfig& config) {
  if (config.heads < 1 || config.width % config.heads != 0) {
    return bad_size("heads", config.heads,
                    fmt::format("choose a divisor of model.width = {}", config.width));
  }
  return {};
}

Result<void> check_mlp(const ModelConfig& config) {
  if (config.width % kMlpWindow != 0) {
    return bad_size(
        "width", config.width,
        fmt::format("choose a multiple of {}, the tokens in the input of an mlp", kMlpWindow));
  }
  return {};
}

}  // namespace

Result<ModelSpec> describe_gpt2(const ModelConfig& config) {
  MOTLEY_TRY(check_sizes(config));
  MOTLEY_TRY(check_gpt2(config));
  return Describer(config).gpt2();
}

Result<ModelSpec> describe_mlp(const ModelConfig& config) {
  MOTLEY_TRY(check_sizes(config));
  MOTLEY_TRY(check_mlp(config));
  return Describer(config).mlp();
}

}  // namespace motley
