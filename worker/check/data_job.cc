#include "worker/check/data_job.h"

#include "base/json.h"
#include "data/source.h"
#include "models/spec/model_spec.h"
#include "protocol/data_message.h"

namespace motley {

Result<void> run_data_job(const Job& job, WorkerChannel& channel, ProgressCounter& work) {
  channel.send({{"event", "ready"}});
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(job.config.model));
  const ProgressCounter::Task task(work, "reading the data", 0);
  const auto source = open_source(job.config.data, model.sample, job.config.train.seed, &work);
  if (!source.ok()) {
    channel.send({{"event", "no_data"}, {"cause", describe(source.error())}});
    return {};
  }
  const DataIdentity data = (*source)->identity();
  channel.send(data_event(
      {.bytes = data.bytes, .hash = data.hash, .epoch_samples = (*source)->train_samples()}));
  return {};
}

}  // namespace motley
