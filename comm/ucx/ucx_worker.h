// The UCX objects of a process: a context, a worker in it, and the worker's address as text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ucp/api/ucp.h>

#include "base/result.h"

namespace motley {

struct UcxContextDelete {
  void operator()(ucp_context* context) const { ucp_cleanup(context); }
};

struct UcxWorkerDelete {
  void operator()(ucp_worker* worker) const { ucp_worker_destroy(worker); }
};

using UcxContextPtr = std::unique_ptr<ucp_context, UcxContextDelete>;
using UcxWorkerPtr = std::unique_ptr<ucp_worker, UcxWorkerDelete>;

// kPeer, with UCX's text for the status.
[[nodiscard]] Error ucx_error(const std::string& what, ucs_status_t status);

// All functions below fail with kPeer if UCX fails.
[[nodiscard]] Result<UcxContextPtr> open_ucx_context(const std::string& interface, int rank_count);
[[nodiscard]] Result<UcxWorkerPtr> open_ucx_worker(ucp_context* context,
                                                   const std::string& interface);
[[nodiscard]] Result<std::string> ucx_address_text(ucp_worker* worker);

// Returns whether the text has the form of ucx_address_text(); does not check the address.
[[nodiscard]] bool is_ucx_address(std::string_view text);
// Decodes the address; nullopt if it is damaged. REQUIRES: is_ucx_address(text).
[[nodiscard]] std::optional<std::vector<char>> read_ucx_address(std::string_view text);

}  // namespace motley
