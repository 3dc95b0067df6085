// Causal self-attention, block by block.
//
// The score matrix of each sample and head is computed in blocks of rows. A block has only the
// columns that its rows attend to, which is half the work of a masked square. Each block goes
// through scores, softmax and the product with the values while it is in the cache. Queries, keys
// and values are read from the projection's output as strided views, and the heads' outputs are
// written side by side; nothing is transposed or copied. Saved for backward: the probabilities.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "models/kernels/in_parts.h"
#include "models/kernels/kernels.h"
#include "models/kernels/torch_threads.h"
#include "models/layers/layer_parts.h"

namespace motley {
namespace {

constexpr std::int64_t kBlockRows = 128;

// Saved tensors, in order.
enum Saved : std::size_t { kX, kMean, kDeviation, kNormed, kQkv, kProbabilities, kHeads };

// One block of rows of one head.
struct Block {
  std::int64_t head = 0;   // of all heads of all samples
  std::int64_t first = 0;  // row
  std::int64_t rows = 0;

  std::int64_t columns() const { return first + rows; }  // the others are masked
};

class Attention final : public Layer {
 public:
  Attention(const LayerContext& context, const LayerParameters& parameters)
      : norm_(parameters, 0),
        qkv_(parameters, 2),
        projection_(parameters, 4, context.model.dropout, context.index),
        p_(context.model.dropout),
        index_(context.index),
        width_(context.model.width),
        heads_(context.model.heads),
        head_width_(width_ / heads_),
        scale_(1.0 / std::sqrt(static_cast<double>(head_width_))) {}

  at::Tensor forward(at::Tensor x, const MicroContext& micro, SavedTensors& saved) override {
    const std::int64_t samples = x.size(0);
    tokens_ = x.size(1);
    Norm::Output normed = norm_.forward(as_matrix(x));
    at::Tensor qkv = qkv_.forward(normed.y);
    at::Tensor outputs = at::empty({samples * tokens_, width_}, x.options());
    at::Tensor probabilities;
    if (micro.training) probabilities = block_memory(qkv, samples * heads_ * tokens_);
    in_heads(samples * heads_, [&](std::int64_t from, std::int64_t to) {
      heads_forward({from, to}, qkv, micro, probabilities, outputs);
    });
    at::Tensor y = projection_.forward(as_matrix(x), outputs, micro).view_as(x);
    if (micro.training) {
      saved = {std::move(x),      normed.mean,    normed.inverse_deviation,
               normed.y,          std::move(qkv), std::move(probabilities),
               std::move(outputs)};
    }
    return y;
  }

  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& micro,
                            SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    tokens_ = grad_output.size(1);
    const at::Tensor grad_y = as_matrix(grad_output);
    at::Tensor grad_branch = projection_.branch_gradient(grad_y, micro);
    const at::Tensor grad_heads = projection_.linear().input_gradient(grad_branch);
    at::Tensor grad_qkv = heads_backward(grad_heads, kept, micro);
    at::Tensor grad_x = norm_.backward(qkv_.input_gradient(grad_qkv), as_matrix(kept[kX]),
                                       kept[kMean], kept[kDeviation]);
    grad_x.add_(grad_y);  // grad_y must not change: without dropout it is grad_branch
    saved = {kept[kNormed], kept[kHeads], std::move(grad_branch), std::move(grad_qkv)};
    return grad_x.view_as(grad_output);
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    projection_.linear().add_gradients(kept[1], kept[2]);
    qkv_.add_gradients(kept[0], kept[3]);
  }

 private:
  // [first, last) of all heads of all samples.
  struct Heads {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };

  // Threads divide the heads, which are independent: one division for hundreds of products, each
  // too small for more than one thread.
  template <class Body>
  static void in_heads(std::int64_t count, const Body& body) {
    const SingleThreadedProducts products;
    kernels::in_parts(count, 1, [&](std::int64_t from, std::int64_t to) {
      const c10::InferenceMode no_recording;  // thread-local, so each thread sets it
      body(from, to);
    });
  }

  at::Tensor block_memory(const at::Tensor& like, std::int64_t rows) const {
    return at::empty({rows, tokens_}, like.options());
  }

  // Without probabilities there is no backward, and the memory of one block suffices.
  void heads_forward(Heads heads,
                     const at::Tensor& qkv,
                     const MicroContext& micro,
                     const at::Tensor& probabilities,
                     const at::Tensor& outputs) const {
    const bool keeps = probabilities.defined();
    const at::Tensor memory = keeps ? probabilities : block_memory(qkv, kBlockRows);
    const std::optional<DropoutStream> dropout = probability_dropout(micro);
    at::Tensor dropped;
    if (dropout) dropped = block_memory(qkv, kBlockRows);
    for (std::int64_t head = heads.first; head < heads.last; ++head) {
      for (std::int64_t first = 0; first < tokens_; first += kBlockRows) {
        const Block block = block_at(head, first);
        at::Tensor p = square_part(memory, keeps ? head * tokens_ + first : 0, block);
        p.addmm_(part(qkv, 0, head, first, block.rows), part(qkv, 1, head, 0, block.columns()).t(),
                 0, scale_);
        kernels::causal_softmax(p.data_ptr<float>(), block.rows, block.columns(), tokens_, first);
        if (dropout) {
          at::Tensor kept = square_part(dropped, 0, block);
          drop(*dropout, p, kept, block);
          p = kept;
        }
        part(outputs, 0, head, first, block.rows)
            .addmm_(p, part(qkv, 2, head, 0, block.columns()), 0);
      }
    }
  }

  // From the gradient of the heads' outputs to that of queries, keys and values.
  at::Tensor heads_backward(const at::Tensor& grad_heads,
                            const SavedTensors& kept,
                            const MicroContext& micro) {
    at::Tensor grad_qkv = at::empty_like(kept[kQkv]);
    in_heads(grad_heads.size(0) / tokens_ * heads_, [&](std::int64_t from, std::int64_t to) {
      heads_backward({from, to}, grad_heads, kept, micro, grad_qkv);
    });
    return grad_qkv;
  }

  void heads_backward(Heads heads,
                      const at::Tensor& grad_heads,
                      const SavedTensors& kept,
                      const MicroContext& micro,
                      const at::Tensor& grad_qkv) const {
    const at::Tensor& qkv = kept[kQkv];
    const at::Tensor grad_p_memory = block_memory(qkv, kBlockRows);
    const std::optional<DropoutStream> dropout = probability_dropout(micro);
    at::Tensor dropped;
    if (dropout) dropped = block_memory(qkv, kBlockRows);
    const std::int64_t last = (tokens_ - 1) / kBlockRows * kBlockRows;
    for (std::int64_t head = heads.first; head < heads.last; ++head) {
      // Starts with the last block: it covers every key, so it initialises the sums.
      for (std::int64_t first = last; first >= 0; first -= kBlockRows) {
        const Block block = block_at(head, first);
        const double beta = first == last ? 0 : 1;
        const at::Tensor p = square_part(kept[kProbabilities], head * tokens_ + first, block);
        const at::Tensor grad_out = part(grad_heads, 0, head, first, block.rows);
        at::Tensor grad_p = square_part(grad_p_memory, 0, block);

        grad_p.addmm_(grad_out, part(qkv, 2, head, 0, block.columns()).t(), 0);
        at::Tensor used = p;
        if (dropout) {
          used = square_part(dropped, 0, block);
          drop(*dropout, p, used, block);
          drop(*dropout, grad_p, grad_p, block);
        }
        part(grad_qkv, 2, head, 0, block.columns()).addmm_(used.t(), grad_out, beta);
        kernels::softmax_backward(p.data_ptr<float>(), grad_p.data_ptr<float>(), block.rows,
                                  block.columns(), tokens_);
        part(grad_qkv, 0, head, first, block.rows)
            .addmm_(grad_p, part(qkv, 1, head, 0, block.columns()), 0, scale_);
        part(grad_qkv, 1, head, 0, block.columns())
            .addmm_(grad_p.t(), part(qkv, 0, head, first, block.rows), beta, scale_);
      }
    }
  }

  std::optional<DropoutStream> probability_dropout(const MicroContext& micro) const {
    if (p_ == 0.0 || !micro.training) return std::nullopt;
    return DropoutStream(p_, micro, index_, DropoutSite::kProbabilities);
  }

  Block block_at(std::int64_t head, std::int64_t first) const {
    return {head, first, std::min(kBlockRows, tokens_ - first)};
  }

  // `rows` positions from `first` on of one head's part of a matrix. The matrix's rows hold, per
  // position, one or three (which = query, key, value) times the width.
  at::Tensor part(const at::Tensor& matrix,
                  std::int64_t which,
                  std::int64_t head,
                  std::int64_t first,
                  std::int64_t rows) const {
    const std::int64_t stride = matrix.size(1);
    const std::int64_t row = head / heads_ * tokens_ + first;
    return matrix.as_strided({rows, head_width_}, {stride, 1},
                             row * stride + which * width_ + head % heads_ * head_width_);
  }

  // A block's scores in memory with one column a token.
  at::Tensor square_part(const at::Tensor& memory, std::int64_t row, const Block& block) const {
    return memory.as_strided({block.rows, block.columns()}, {tokens_, 1}, row * tokens_);
  }

  // to = from with dropout; each row begins a new tile.
  void drop(const DropoutStream& dropout,
            const at::Tensor& from,
            at::Tensor& to,
            const Block& block) const {
    const std::int64_t row_tiles = DropoutStream::tiles(tokens_);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      dropout.apply(from.data_ptr<float>() + r * tokens_, to.data_ptr<float>() + r * tokens_,
                    block.columns(), (block.head * tokens_ + block.first + r) * row_tiles);
    }
  }

  Norm norm_;
  Linear qkv_;
  ResidualLinear projection_;
  double p_;
  int index_;
  std::int64_t width_;
  std::int64_t heads_;
  std::int64_t head_width_;
  double scale_;
  std::int64_t tokens_ = 0;  // per sample, of the current micro-batch
};

}  // namespace

std::unique_ptr<Layer> make_gpt2_attention(const LayerContext& context,
                                           LayerParameters parameters) {
  return std::make_unique<Attention>(context, parameters);
}

}  // namespace motley
