#include "bench/gloo_allreduce.h"

#include <memory>

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "base/clock.h"

namespace motley {

std::vector<double> time_gloo_allreduce(int rank,
                                        int rank_count,
                                        const std::string& address,
                                        const std::string& folder,
                                        std::size_t count,
                                        int runs) {
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
  gloo::rendezvous::FileStore store(folder);
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, rank_count);
  context->connectFullMesh(store, device);
  std::vector<float> values(count);
  std::vector<double> runs_s;
  for (int run = 0; run <= runs; ++run) {
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(rank);
    gloo::BarrierOptions barrier(context);
    gloo::barrier(barrier);
    const double start_s = now_s();
    gloo::AllreduceOptions options(context);
    options.setOutput(values.data(), count);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    gloo::allreduce(options);
    if (run > 0) runs_s.push_back(now_s() - start_s);
  }
  return runs_s;
}

}  // namespace motley
