// Causal attention by LibTorch's fused operations, which never hold a matrix of scores. Saved for
// backward: for each row of scores the logarithm of its sum of exponentials, and two values of an
// unused random generator.
//
// Queries, keys and values are passed as views of one matrix, and the result has the layout of the
// outputs' matrix. Only the three gradients are copied, into one.
#include <array>
#include <exception>
#include <utility>

#include <ATen/ATen.h>

#include "models/device/device_operation.h"
#include "models/layers/device/attention_core.h"

namespace motley {
namespace {

using Values = std::vector<c10::IValue>;

constexpr double kNoDropout = 0.0;
constexpr bool kCausal = true;

// The two operations of a path; their arguments differ.
struct FusedPath {
  AttentionPath path;
  const char* forward;
  const char* backward;
  std::size_t first_random;  // index of the two values among the results of forward

  Values (*forward_arguments)(const std::array<at::Tensor, 3>& qkv, bool training);
  Values (*backward_arguments)(const at::Tensor& grad,
                               const std::array<at::Tensor, 3>& qkv,
                               const at::Tensor& outputs,
                               const SavedTensors& kept);
};

// Saved tensors of both, in order.
enum FusedKept : std::size_t { kRowSums, kRandom1, kRandom2 };

// Index of the sums in the results of both forwards; the outputs come first.
constexpr std::size_t kRowSumsMade = 1;

Values flash_forward(const std::array<at::Tensor, 3>& qkv, bool /*training*/) {
  return {qkv[0], qkv[1], qkv[2], kNoDropout, kCausal};
}

Values flash_backward(const at::Tensor& grad,
                      const std::array<at::Tensor, 3>& qkv,
                      const at::Tensor& outputs,
                      const SavedTensors& kept) {
  // Samples of equal length need no list of lengths.
  const at::Tensor no_lengths;
  const std::int64_t tokens = outputs.size(2);
  return {grad,       qkv[0], qkv[1], qkv[2],     outputs, kept[kRowSums], no_lengths,
          no_lengths, tokens, tokens, kNoDropout, kCausal, kept[kRandom1], kept[kRandom2]};
}

Values efficient_forward(const std::array<at::Tensor, 3>& qkv, bool training) {
  const c10::IValue no_bias;
  return {qkv[0], qkv[1], qkv[2], no_bias, /*row sums*/ training, kNoDropout, kCausal};
}

Values efficient_backward(const at::Tensor& grad,
                          const std::array<at::Tensor, 3>& qkv,
                          const at::Tensor& outputs,
                          const SavedTensors& kept) {
  const at::Tensor no_bias;
  const c10::List<bool> wanted({true, true, true, false});
  return {grad,           qkv[0],         qkv[1],         qkv[2],     no_bias, outputs,
          kept[kRowSums], kept[kRandom1], kept[kRandom2], kNoDropout, wanted,  kCausal};
}

constexpr FusedPath kPaths[] = {
    {AttentionPath::kFlash, "aten::_scaled_dot_product_flash_attention",
     "aten::_scaled_dot_product_flash_attention_backward", 6, flash_forward, flash_backward},
    {AttentionPath::kEfficient, "aten::_scaled_dot_product_efficient_attention",
     "aten::_scaled_dot_product_efficient_attention_backward", 2, efficient_forward,
     efficient_backward},
};

class FusedAttention final : public AttentionCore {
 public:
  FusedAttention(const FusedPath& path,
                 const DeviceOperation& forward,
                 const DeviceOperation& backward,
                 std::int64_t heads)
      : path_(path), forward_(forward), backward_(backward), heads_(heads) {}

  AttentionPath path() const override { return path_.path; }

  at::Tensor forward(const at::Tensor& qkv,
                     std::int64_t tokens,
                     const MicroContext& micro,
                     SavedTensors& kept) override {
    Values results = forward_(path_.forward_arguments(parts(qkv, tokens), micro.training));
    if (micro.training) {
      kept = {results[kRowSumsMade].toTensor(), results[path_.first_random].toTensor(),
              results[path_.first_random + 1].toTensor()};
    }
    return as_rows(results.front().toTensor());
  }

  at::Tensor backward(const at::Tensor& grad_outputs,
                      const at::Tensor& qkv,
                      const at::Tensor& outputs,
                      std::int64_t tokens,
                      const MicroContext& /*micro*/,
                      const SavedTensors& kept) override {
    const Values results = backward_(path_.backward_arguments(
        by_head(grad_outputs, tokens), parts(qkv, tokens), by_head(outputs, tokens), kept));
    return at::cat({as_rows(results[0].toTensor()), as_rows(results[1].toTensor()),
                    as_rows(results[2].toTensor())},
                   1);
  }

 private:
  // Queries, keys and values: [samples, heads, tokens, head width], views.
  std::array<at::Tensor, 3> parts(const at::Tensor& qkv, std::int64_t tokens) const {
    const std::int64_t width = qkv.size(1) / 3;
    const auto part = [&](std::int64_t which) {
      return by_head(qkv.narrow(1, which * width, width), tokens);
    };
    return {part(0), part(1), part(2)};
  }

  at::Tensor by_head(const at::Tensor& rows, std::int64_t tokens) const {
    return rows.view({-1, tokens, heads_, rows.size(1) / heads_}).transpose(1, 2);
  }

  static at::Tensor as_rows(const at::Tensor& by_head) {
    return by_head.transpose(1, 2).reshape({by_head.size(0) * by_head.size(2), -1});
  }

  const FusedPath& path_;
  DeviceOperation forward_;
  DeviceOperation backward_;
  std::int64_t heads_;
};

// Whether the device computes it. Only LibTorch knows the supported combinations of card, type and
// width, and refuses others before it computes.
bool works(AttentionCore& core, const LayerContext& context, at::ScalarType type) {
  constexpr std::int64_t kTokens = 16;
  const auto rows = [&](std::int64_t width) {
    return at::zeros({kTokens, width}, at::TensorOptions(context.device).dtype(type));
  };
  try {
    const MicroContext micro;
    const at::Tensor qkv = rows(3 * context.model.width);
    SavedTensors kept;
    const at::Tensor outputs = core.forward(qkv, kTokens, micro, kept);
    static_cast<void>(core.backward(rows(context.model.width), qkv, outputs, kTokens, micro, kept));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::unique_ptr<AttentionCore> make_fused_attention(const LayerContext& context,
                                                    at::ScalarType type) {
  const ModelConfig& model = context.model;
  if (!may_fuse_attention(model.width / model.heads, model.dropout)) return nullptr;
  for (const FusedPath& path : kPaths) {
    const auto forward = DeviceOperation::find(path.forward, context.device);
    const auto backward = DeviceOperation::find(path.backward, context.device);
    if (!forward || !backward) continue;
    auto core = std::make_unique<FusedAttention>(path, *forward, *backward, model.heads);
    if (works(*core, context, type)) return core;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<AttentionCore> make_attention_core(const LayerContext& context,
                                                   at::ScalarType type) {
  if (auto fused = make_fused_attention(context, type)) return fused;
  return make_explicit_attention(context);
}

}  // namespace motley
