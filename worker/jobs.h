// The jobs of motley-stage besides training, one function each.
#pragma once

#include "base/progress_counter.h"
#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/worker_channel.h"

namespace motley {

// Measures the duration of an all-reduce over replicas between the machines. One worker per rank.
// options: "rank" of this one; "machines", the number of ranks of each machine, numbered machine by
// machine; "codecs", the chains to measure one after another; "values" on each rank; "runs" of
// each. Sends a "sum" event for each codec (profiling/allreduce_bench.h).
[[nodiscard]] Result<void> run_allreduce_job(const Job& job, WorkerChannel& channel);

// Reports the devices only. Joins no group. options: "details", whether to report everything, which
// takes time and device memory. Sends a "devices" event (protocol/device_facts.h).
[[nodiscard]] Result<void> run_devices_job(const Job& job, WorkerChannel& channel);

// For `motley doctor`. Joins no group. options: "peers", the addresses of the other machines;
// "mark" and "mark_text", a file that the launcher created in the run folder and its contents, both
// empty if it could not. Sends a "facts" event (protocol/machine_facts.h).
[[nodiscard]] Result<void> run_doctor_job(const Job& job, WorkerChannel& channel);

// Samples text from a checkpoint. Loads the model from job.resume_from onto job.device and
// continues options.prompt (a list of tokens) by options.tokens tokens, drawn at
// options.temperature (0 = always the most likely) from the options.top_k most likely (0 = all)
// with options.seed. Sends a "result" event with the new tokens.
[[nodiscard]] Result<void> run_generate_job(const Job& job,
                                            WorkerChannel& channel,
                                            ProgressCounter& work);

// Measures the links from this machine to the others. One worker per machine. options: "rank" of
// this one; "machines", the addresses of all, by rank; "seconds" for each directed pair. The pairs
// are measured one after another, in the same order on all ranks. Sends a "network" event (the
// interface, and why it was chosen), then for each directed pair a "link" event from the measuring
// end and a "served" event from the other.
[[nodiscard]] Result<void> run_probe_job(const Job& job, WorkerChannel& channel);

// Measures how fast this device computes. Sends a "result" event with the profile of this device
// (named options.machine): every kind of layer of the job's model at each size of options.sizes
// (samples) that the time permits, forward and backward, the optimizer, codecs and messages. Values
// that this machine stored earlier are used if a short sample agrees with them, unless
// options.measure requests new measurements; new values are stored. Before that each kind of layer
// of a package is compared with its reference (worker/check/layer_checks.h), once for each device.
// If options.company says that other devices are measured too, it also measures how fast the device
// is while those of the same computer are idle.
[[nodiscard]] Result<void> run_profile_job(const Job& job, WorkerChannel& channel);

}  // namespace motley
