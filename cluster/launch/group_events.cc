#include "cluster/launch/group_events.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "protocol/link_message.h"

namespace motley {

Result<void> GroupEvents::handle(Worker& worker, const Json& event) {
  group_.waits.note_heard(worker);
  const auto kind = event["event"].get<std::string>();
  if (kind == kUnreachedEvent) return handle_unreached(worker, event);
  if (kind != "beat") note_progress_made(worker);
  if (kind == "hello") {
    group_.starter.greeted(worker);
  } else if (kind == "address") {
    take_address(worker, event);
  } else if (kind == "ready") {
    take_readiness(worker, /*is_done=*/false);
  } else if (kind == "done") {
    take_readiness(worker, /*is_done=*/true);
    return hand_on(worker, event);
  } else if (kind == "beat") {
    if (worker.take_heartbeat(event)) note_progress_made(worker);
    if (group_.options.on_task) group_.options.on_task(index_of(worker), worker.task_bytes);
  } else if (kind == "error") {
    Error error = error_from_json(event);
    const FailureKind failure = failure_kind(error);
    fail(worker, failure, with_context(std::move(error), worker.spec().name));
  } else {
    return hand_on(worker, event);
  }
  return {};
}

void GroupEvents::fail(Worker& worker, FailureKind kind, Error error) {
  worker.failed = true;
  group_.failures.add({kind, std::move(error), index_of(worker)});
}

Result<void> GroupEvents::handle_unreached(Worker& worker, const Json& event) {
  const Result<void> taken = worker.take_unreached(event);
  if (!taken.ok()) return fail(worker, FailureKind::kCertain, taken.error()), Result<void>();
  if (!group_.failures.empty()) return {};
  auto dead = group_.failures.dead_links();
  return dead ? Result<void>(group_.failures.blame(*std::move(dead))) : Result<void>();
}

Result<void> GroupEvents::hand_on(const Worker& worker, const Json& event) {
  std::optional<LeaseRenewer::Work> work;
  if (group_.renewer) work.emplace(*group_.renewer);
  return on_event_(index_of(worker), event);
}

void GroupEvents::take_address(Worker& worker, const Json& event) {
  Result<std::string> address = json_get<std::string>(event, "address", worker.spec().name);
  if (!address) return fail(worker, FailureKind::kCertain, address.error());
  worker.address = std::move(address).value();
  send_addresses_when_complete();
}

void GroupEvents::take_readiness(Worker& worker, bool is_done) {
  worker.activity.ready = true;
  worker.done = worker.done || is_done;
  const bool had_started = group_.waits.started();
  group_.waits.record_worker_progress();
  if (!group_.waits.started() || had_started) return;
  for (const std::string& line : group_.failures.one_way_links()) group_.warn(line);
}

void GroupEvents::send_addresses_when_complete() {
  const auto has_address = [](const auto& worker) { return worker->address.has_value(); };
  if (addresses_sent_ || !std::ranges::all_of(group_.workers, has_address)) return;
  addresses_sent_ = true;
  Json addresses = Json::array();
  for (const auto& worker : group_.workers) addresses.push_back(*worker->address);
  for (const auto& worker : group_.workers) worker->input().send({{"addresses", addresses}});
  group_.starter.addresses_sent();
}

void GroupEvents::note_progress_made(Worker& worker) {
  worker.progress_at_s = now_s();
  if (group_.renewer) group_.renewer->note_progress_made();
}

int GroupEvents::index_of(const Worker& worker) const {
  const auto found = std::ranges::find_if(
      group_.workers, [&](const auto& other) { return other.get() == &worker; });
  return static_cast<int>(found - group_.workers.begin());
}

}  // namespace motley
