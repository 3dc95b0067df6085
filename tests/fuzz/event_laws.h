// The properties of messages between launcher and worker: lines of JSON with arbitrary piece
// boundaries. Also a valid one of each message.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/process/line_splitter.h"
#include "cluster/launch/event_fields.h"
#include "cluster/run_record/metrics_collector.h"
#include "protocol/data_message.h"
#include "protocol/machine_facts.h"
#include "protocol/protocol.h"
#include "protocol/shard_message.h"
#include "protocol/trace_message.h"
#include "tests/fuzz/laws.h"
#include "tests/plan/value_fixtures.h"

namespace motley {

inline Json right_trace() {
  TraceRecorder recorder(2);
  recorder.add({Rank{0}, "wait", "RA0.1", 0.5, 0.1, 3});
  recorder.add({Rank{0}, "compute", "F0.1", 0.6, 0.1, 3});
  recorder.add({Rank{0}, "compute", "F0.2", 0.7, 0.1, 3});
  Json event;
  send_trace(recorder, [&](const Json& sent) { event = sent; });
  return event;
}

inline std::vector<Json> right_messages() {
  const std::string hash(32, 'a');
  Job job;
  job.verb = "train";
  job.plan = two_stages();
  job.rank = Rank{1};
  job.run_dir = "/runs/a";
  job.launch = "000007-0123456789abcdef";
  job.secret = std::string(32, 's');
  StepReport step;
  step.step = 3;
  step.outcome.loss = std::nan("");
  step.outcome.tokens = 512;
  step.step_s = 0.5;
  step.times.wait_s.of(WaitCause::kSum) = 0.1;
  step.sent = {{Rank{0}, 77}};
  step.evaluation = {.tokens = 64, .loss = 2.5};
  const WrittenFile file{"model-00001-of-00001.safetensors", 100, hash, {{"ln.bias", hash}}};
  const WrittenFile moments{"optimizer-00001-of-00001.safetensors", 0, hash, {}};
  MachineFacts facts;
  facts.version = "0.1.0";
  facts.transports = {"ucx", "tcp"};
  facts.found.torch = "1.13.1 for CUDA 11.8";
  facts.found.devices = {{.name = "cpu", .types = {"fp32"}}};
  facts.found.missing = {{"cuda", {"no driver", "install it"}, true}};
  facts.cores = 4;
  facts.physical_cores = 2;
  facts.candidates = {{"eth0", "10.0.0.1", "ethernet", true, 1000}};
  facts.routes = {{"10.0.0.2", "10.0.0.1"}};
  Error lost{ErrorCode::kPeer, "rank 1 is gone", "it died", "start again"};
  lost.peer_state = PeerState::kLost;
  lost.peer = 1;
  return {{{"event", "hello"}, {"protocol", kProtocolVersion}},
          {{"event", "beat"}, {"step", 3}, {"doing", "computing"}},
          step_to_json(step),
          shard_event({{.step = 10, .samples = 80, .tokens = 5120}, {0, file, moments}}),
          shard_failed_event({10, {ErrorCode::kCorrupt, "cannot write", "the disk is full", ""}}),
          data_event({1024, hash, {"all targets are 3"}, {"cat", "dog"}}),
          right_trace(),
          {{"event", "result"}, {"facts", facts_to_json(facts)}},
          error_to_json(lost),
          job_to_json(job)};
}

// One message per line.
inline std::string right_events() {
  std::string text;
  for (const Json& message : right_messages()) text += message.dump() + "\n";
  return text;
}

// The lines of `bytes` if they arrive in pieces of this size, and the rest after the last.
inline std::vector<std::string> split_lines(std::string_view bytes, std::size_t piece) {
  LineSplitter splitter(bytes.size());
  std::vector<std::string> lines;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    splitter.add(bytes.substr(0, piece));
    while (auto line = splitter.next()) lines.push_back(std::move(*line));
    MOTLEY_CHECK(!splitter.too_long(), "a line longer than all that came");
  }
  lines.push_back(splitter.take_rest());
  return lines;
}

// `read(json)` returns a value and `write(value)` its JSON.
template <class Read, class Write>
std::string wrong_with_message(const Json& json, const Read& read, const Write& write) {
  const auto value = read(json);
  if (!value.ok()) {
    // An invalid configuration or plan in it has other error codes.
    return wrong_error(value.error(), {ErrorCode::kCorrupt, ErrorCode::kConfig, ErrorCode::kPeer},
                       "worker");
  }
  return wrong_way_back(value, read(parse_json(write(*value).dump(), "worker").value()), write);
}

// A piece of a trace can be sent again, in one piece or in several.
inline std::string wrong_with_trace(const Json& event) {
  const auto piece = trace_piece_from_json(event, Rank{2});
  if (!piece.ok()) return wrong_error(piece.error(), {ErrorCode::kCorrupt}, "worker");
  TraceRecorder recorder(piece->spans.size());
  for (const TraceSpan& span : piece->spans) recorder.add(span);
  std::vector<TraceSpan> again;
  std::string wrong;
  send_trace(recorder, [&](const Json& sent) {
    const auto read = trace_piece_from_json(parse_json(sent.dump(), "worker").value(), Rank{2});
    if (read.ok()) again.insert(again.end(), read->spans.begin(), read->spans.end());
    if (!read.ok()) wrong = "sent and refused: " + describe(read.error());
  });
  if (wrong.empty() && again != piece->spans) return "sent and read, and not the same";
  return wrong;
}

// The metrics of a run with one rank from its report.
inline std::string wrong_with_metrics(const StepReport& report) {
  MetricsCollector collector(1, 0.5);
  const auto metrics = collector.add(Rank{0}, report);
  if (!metrics.ok()) return wrong_error(metrics.error(), {ErrorCode::kPeer}, "rank 0");
  if (!metrics->has_value()) return "the only report does not complete its step";
  return metrics_to_json(**metrics).dump().empty() ? "no metrics" : "";
}

inline std::string wrong_with_fields(const Json& event) {
  const auto quantity = event_quantity(event, "step", "worker");
  if (quantity.ok() && !(std::isfinite(*quantity) && *quantity >= 0)) return "no quantity";
  const auto index = event_index(event, "step", 7, "worker");
  return index.ok() && *index >= 7 ? "no index" : "";
}

// Every parser accepts the message or returns an error.
inline std::string wrong_with_event(const Json& event) {
  const Json facts = event.is_object() && event.contains("facts") ? event["facts"] : Json();
  const auto step = [](const Json& json) { return step_from_json(json, "worker"); };
  const auto facts_of = [](const Json& json) { return facts_from_json(json, "worker"); };
  const auto job = [](const Json& json) { return job_from_json(json, "worker"); };
  const auto report = step(event);
  const Error error = error_from_json(event);
  if (error.what.empty()) return "an error without a word";
  const Error again = error_from_json(error_to_json(error));
  if (describe(again) != describe(error) || again.peer_state != error.peer_state ||
      again.peer != error.peer) {
    return "another error";
  }
  for (const std::string& wrong :
       {wrong_with_message(event, step, step_to_json),
        wrong_with_message(event, read_shard_event, shard_event),
        wrong_with_message(event, read_shard_failed_event, shard_failed_event),
        wrong_with_message(event, read_data_event, data_event), wrong_with_trace(event),
        wrong_with_message(facts, facts_of, facts_to_json),
        wrong_with_message(event, job, job_to_json),
        report.ok() ? wrong_with_metrics(*report) : std::string(), wrong_with_fields(event)}) {
    if (!wrong.empty()) return wrong;
  }
  return "";
}

inline std::string wrong_with_events(std::string_view bytes) {
  const std::vector<std::string> lines = split_lines(bytes, 5);
  if (split_lines(bytes, 64) != lines) return "other lines when they come in larger pieces";
  for (const std::string& line : lines) {
    const auto event = parse_json(line, "worker");
    const std::string wrong = event.ok()
                                  ? wrong_with_event(*event)
                                  : wrong_error(event.error(), {ErrorCode::kCorrupt}, "worker");
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace motley
