#include <string>
#include <vector>

#include "comm/frames/frame_link.h"
#include "comm/transport/transport.h"
#include "plan/group_limits.h"
#include "profiling/allreduce_bench.h"
#include "worker/group/join_ranks.h"
#include "worker/jobs.h"

namespace motley {
namespace {

constexpr std::int64_t kValuesMax = std::int64_t{1} << 30;
constexpr std::int64_t kRunsMax = 100;
constexpr std::size_t kCodecsMax = 64;

struct AllreduceTask {
  Rank self;
  RanksByMachine machines;
  int rank_count = 0;
  std::vector<std::string> codecs;
  std::size_t values = 0;
  int runs = 0;
};

Result<AllreduceTask> read_allreduce_task(const Job& job) {
  static const std::string kSource = "the options of an allreduce job";
  const Error unusable{ErrorCode::kInternal, "an allreduce job with unusable options", "", ""};
  AllreduceTask task;
  MOTLEY_ASSIGN(const auto rank, json_get<std::int64_t>(job.options, "rank", kSource));
  MOTLEY_ASSIGN(const auto values, json_get<std::int64_t>(job.options, "values", kSource));
  MOTLEY_ASSIGN(const auto runs, json_get<std::int64_t>(job.options, "runs", kSource));
  for (const Json& count : job.options.value("machines", Json::array())) {
    if (!count.is_number_integer()) return unusable;
    const auto ranks = count.get<std::int64_t>();
    if (ranks < 1 || ranks > static_cast<std::int64_t>(kSummingRanksMax) - task.rank_count)
      return unusable;
    std::vector<Rank>& members = task.machines.emplace_back();
    for (std::int64_t i = 0; i < ranks; ++i) members.push_back(Rank{task.rank_count++});
  }
  for (const Json& codec : job.options.value("codecs", Json::array())) {
    if (!codec.is_string()) return unusable;
    task.codecs.push_back(codec.get<std::string>());
  }
  if (task.rank_count < 2 || rank < 0 || rank >= task.rank_count) return unusable;
  if (values < 1 || values > kValuesMax || runs < 1 || runs > kRunsMax) return unusable;
  if (task.codecs.empty() || task.codecs.size() > kCodecsMax) return unusable;
  task.self = Rank{static_cast<std::int32_t>(rank)};
  task.values = static_cast<std::size_t>(values);
  task.runs = static_cast<int>(runs);
  return task;
}

Json sum_event(std::size_t codec, const AllreduceSample& sample) {
  return {{"event", "sum"},
          {"codec", codec},
          {"runs_s", sample.runs_s},
          {"cpu_s", sample.cpu_s},
          {"bytes_out", sample.bytes_out},
          {"largest_error", sample.largest_error},
          {"lost_error", sample.lost_error}};
}

}  // namespace

Result<void> run_allreduce_job(const Job& job, WorkerChannel& channel) {
  MOTLEY_ASSIGN(const AllreduceTask task, read_allreduce_task(job));
  const double timeout_s = job.config.comm.timeout_s;
  MOTLEY_ASSIGN(const auto transport,
                join_ranks(job, task.self, task.rank_count, channel, timeout_s));
  channel.send({{"event", "ready"}});
  const AllreducePlan plan(task.machines, task.values, kBucketValues);
  for (std::size_t codec = 0; codec < task.codecs.size(); ++codec) {
    // Each codec's all-reduce has its own frame ids, so that no message is taken for one of
    // another.
    FrameLink link(*transport, task.self, epoch_of(job), /*plan_hash=*/codec);
    MOTLEY_ASSIGN(const AllreduceSample sample,
                  measure_allreduce(link, task.self, plan, {.chain = task.codecs[codec]},
                                    {.stall_timeout = timeout_s}, task.runs));
    channel.send(sum_event(codec, sample));
  }
  FrameLink link(*transport, task.self, epoch_of(job), task.codecs.size());
  disconnect_ranks(link, task.self, task.rank_count, 0, channel.group_progress_clock());
  return {};
}

}  // namespace motley
