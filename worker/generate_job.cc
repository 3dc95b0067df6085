#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <ATen/ATen.h>

#include "base/philox.h"
#include "checkpoint/checkpoint.h"
#include "models/device/compute_device.h"
#include "models/device/host_floats.h"
#include "models/layers/chain.h"
#include "worker/jobs.h"

namespace motley {
namespace {

struct Sampling {
  std::vector<std::int64_t> tokens;  // starts as the prompt
  std::int64_t count = 0;
  double temperature = 1;
  std::int64_t top_k = 0;
  std::int64_t seed = 1;
};

Result<Sampling> read_sampling(const Job& job, std::int64_t limit) {
  static const std::string kSource = "the options of a generate job";
  Sampling sampling;
  for (const Json& token : job.options.value("prompt", Json::array())) {
    const auto value = token.is_number_integer() ? token.get<std::int64_t>() : -1;
    if (value < 0 || value >= limit) {
      return Error{ErrorCode::kData, "the prompt contains a token outside the vocabulary", "", ""};
    }
    sampling.tokens.push_back(value);
  }
  MOTLEY_ASSIGN(sampling.count, json_get<std::int64_t>(job.options, "tokens", kSource));
  MOTLEY_ASSIGN(sampling.temperature, json_get<double>(job.options, "temperature", kSource));
  MOTLEY_ASSIGN(sampling.top_k, json_get<std::int64_t>(job.options, "top_k", kSource));
  MOTLEY_ASSIGN(sampling.seed, json_get<std::int64_t>(job.options, "seed", kSource));
  return sampling;
}

Result<void> check_writes_text(const ModelSpec& model) {
  if (model.sample.is_next_token) return {};
  const std::size_t inputs = model.sample.inputs.size();
  return Error{ErrorCode::kConfig, "the model is not a language model",
               inputs > 1
                   ? fmt::format("it takes {} inputs, and generation has tokens only", inputs)
                   : "its targets are not the next tokens of its inputs",
               "use motley generate with a language model"};
}

// Draws from softmax(logits / temperature), restricted to the k most likely tokens.
std::int64_t draw(std::span<const float> logits_V,
                  const Sampling& sampling,
                  std::int64_t position) {
  std::vector<std::int64_t> order(logits_V.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const std::size_t kept = sampling.top_k == 0
                               ? order.size()
                               : std::min(order.size(), static_cast<std::size_t>(sampling.top_k));
  const auto logit = [&](std::int64_t token) { return logits_V[static_cast<std::size_t>(token)]; };
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(kept),
                            std::ranges::greater{}, logit);
  if (sampling.temperature == 0) return order.front();
  std::vector<double> cumulative;
  double sum = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    sum += std::exp((logit(order[i]) - logit(order.front())) / sampling.temperature);
    cumulative.push_back(sum);
  }
  const PhiloxBlock block = philox4x32(static_cast<std::uint64_t>(sampling.seed), 0,
                                       static_cast<std::uint64_t>(position));
  const auto it = std::ranges::upper_bound(cumulative, to_unit_float(block[0]) * sum);
  return order[std::min(kept - 1, static_cast<std::size_t>(it - cumulative.begin()))];
}

Result<void> load_parameters(LayerChain& chain,
                             const CheckpointReader& reader,
                             ProgressCounter& work) {
  const ProgressCounter::Task loading(work, "loading parameters", chain.values_tensor().nbytes());
  for (const LayerChain::Parameter& parameter : chain.parameters()) {
    const bool is_here = parameter.value_tensor.is_cpu();
    const at::Tensor values =
        is_here ? parameter.value_tensor : at::empty(parameter.spec.shape, at::kFloat);
    MOTLEY_TRY(reader.read(parameter.spec.name, parameter.spec.shape, floats_of(values)));
    if (!is_here) parameter.value_tensor.copy_(values);
  }
  return {};
}

}  // namespace

Result<void> run_generate_job(const Job& job, WorkerChannel& channel, ProgressCounter& work) {
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(job.config.model));
  MOTLEY_TRY(check_writes_text(model));
  const SampleInput& tokens = model.sample.inputs.front();
  MOTLEY_ASSIGN(Sampling sampling, read_sampling(job, tokens.limit.value()));
  MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(job.resume_from, &work));
  MOTLEY_ASSIGN(const ComputeDevice device,
                ComputeDevice::open(job.device, job.config.comm.timeout_s));
  LayerChain chain(job.config.model, model, 0, static_cast<int>(model.layers.size()),
                   {.device = device.torch()});
  MOTLEY_TRY(load_parameters(chain, reader, work));
  channel.send({{"event", "ready"}});

  const auto context = static_cast<std::size_t>(tokens.tensor.count());
  Json generated = Json::array();
  if (sampling.tokens.empty()) sampling.tokens.push_back(0);
  for (std::int64_t i = 0; i < sampling.count; ++i) {
    const std::size_t length = std::min(context, sampling.tokens.size());
    // A package computes at its full length only; values after the position do not affect the
    // result there.
    const std::size_t padded = model.package == nullptr ? length : context;
    at::Tensor input = at::zeros({1, static_cast<std::int64_t>(padded)}, at::kLong);
    std::copy(sampling.tokens.end() - static_cast<std::ptrdiff_t>(length), sampling.tokens.end(),
              input.data_ptr<std::int64_t>());
    const at::Tensor there = chain.logits_at(
        input.to(device.torch()), static_cast<std::int64_t>(length) - 1, {0, 0, 0, false});
    device.finish();  // has a deadline
    const at::Tensor logits = there.cpu().contiguous();
    const std::int64_t token =
        draw({logits.data_ptr<float>(), static_cast<std::size_t>(logits.size(-1))}, sampling, i);
    sampling.tokens.push_back(token);
    channel.send({{"event", "token"}, {"token", token}});
    generated.push_back(token);
  }
  channel.send({{"event", "result"}, {"tokens", std::move(generated)}});
  return {};
}

}  // namespace motley
