// What an examination means: pure functions from what was found to findings, each with what to do
// about it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/examine/doctor.h"
#include "job/config.h"
#include "plan/cluster.h"
#include "protocol/device_facts.h"

namespace motley {

enum class FindingLevel {
  kOk,
  kNote,     // good to know
  kWarning,  // it will run, but not as well as it could
  kProblem,  // a run would fail
};

[[nodiscard]] const char* to_text(FindingLevel level);  // "ok", "note", "warning", "PROBLEM"

struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string subject;  // "laptop", "desktop -> laptop", "all"
  std::string check;    // "version", "address"
  std::string what;
  std::string remedy;                     // what to do next; may be empty
  ErrorCode code = ErrorCode::kInternal;  // of a problem: the exit status of a run that meets it
};

// An address of a machine, and why Motley uses it or does not.
struct JudgedAddress {
  std::string machine;
  std::string interface;
  std::string address;
  bool is_taken = false;
  std::string why;
};

// How two machines would talk, were they alone. A run has one transport for all of its machines.
struct PairChoice {
  std::string from;
  std::string to;
  std::string transport;  // "tcp with TLS"; "" = none
  std::string why;
};

struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<JudgedAddress> addresses;
  std::vector<PairChoice> pairs;  // each pair once, in the order of the cluster
};

// REQUIRES: the examination is of this cluster.
[[nodiscard]] Diagnosis diagnose(const Cluster& cluster,
                                 const CommConfig& comm,
                                 const Examination& examination);

// The parts of it. `index` is the machine's in the cluster.
[[nodiscard]] std::vector<Finding> diagnose_machine(const Cluster& cluster,
                                                    std::size_t index,
                                                    const Examination& examination);
// REQUIRES: the machine's devices are not virtual.
[[nodiscard]] std::vector<Finding> diagnose_devices(const Machine& machine,
                                                    const DevicesFound& found);
[[nodiscard]] std::vector<Finding> diagnose_address(const Cluster& cluster,
                                                    std::size_t index,
                                                    const MachineFacts& facts);
[[nodiscard]] std::vector<JudgedAddress> judge_addresses(const Cluster& cluster,
                                                         std::size_t index,
                                                         const MachineFacts& facts);
[[nodiscard]] PairChoice choose_for_pair(const Cluster& cluster,
                                         std::size_t from,
                                         std::size_t to,
                                         const CommConfig& comm);
[[nodiscard]] std::vector<Finding> diagnose_links(const Cluster& cluster,
                                                  const CommConfig& comm,
                                                  const Examination& examination);

}  // namespace motley
