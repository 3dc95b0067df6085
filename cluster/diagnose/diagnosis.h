// Converts an examination into findings, each with a hint. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/diagnose/doctor.h"
#include "plan/cluster.h"
#include "protocol/device_facts.h"
#include "run_config/config.h"

namespace motley {

enum class FindingLevel {
  kOk,
  kNote,     // for information
  kWarning,  // a run works, but not as well as it could
  kProblem,  // a run fails
};

[[nodiscard]] const char* to_text(FindingLevel level);  // "ok", "note", "warning", "PROBLEM"

struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string subject;  // "laptop", "desktop -> laptop", "all"
  std::string check;    // "version", "address"
  std::string what;
  std::string remedy;                     // the suggested action; may be empty
  ErrorCode code = ErrorCode::kInternal;  // of a problem: the exit status of a run that fails by it
};

// An address of a machine, and why Motley uses it or not.
struct AssessedAddress {
  std::string machine;
  std::string interface;
  std::string address;
  bool is_taken = false;
  std::string why;
};

// The transport that two machines would use if they were alone. A run has one transport for all of
// its machines.
struct PairChoice {
  std::string from;
  std::string to;
  std::string transport;  // "tcp with TLS"; "" = none
  std::string why;
};

struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<AssessedAddress> addresses;
  std::vector<PairChoice> pairs;  // each pair once, in the order of the cluster
};

// REQUIRES: the examination is of this cluster.
[[nodiscard]] Diagnosis diagnose(const Cluster& cluster,
                                 const CommConfig& comm,
                                 const Inspection& inspection);

// The parts of diagnose(). `index` is the machine's in the cluster.
[[nodiscard]] std::vector<Finding> diagnose_machine(const Cluster& cluster,
                                                    std::size_t index,
                                                    const Inspection& inspection);
// REQUIRES: the machine's devices are not simulated.
[[nodiscard]] std::vector<Finding> diagnose_devices(const Machine& machine,
                                                    const DevicesFound& found);
[[nodiscard]] std::vector<Finding> diagnose_address(const Cluster& cluster,
                                                    std::size_t index,
                                                    const MachineFacts& facts);
[[nodiscard]] std::vector<AssessedAddress> assess_addresses(const Cluster& cluster,
                                                            std::size_t index,
                                                            const MachineFacts& facts);
[[nodiscard]] PairChoice choose_for_pair(const Cluster& cluster,
                                         std::size_t from,
                                         std::size_t to,
                                         const CommConfig& comm);
[[nodiscard]] std::vector<Finding> diagnose_links(const Cluster& cluster,
                                                  const CommConfig& comm,
                                                  const Inspection& inspection);

}  // namespace motley
