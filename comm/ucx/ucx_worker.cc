#include "comm/ucx/ucx_worker.h"

#include <fmt/format.h>

#include <utility>

#include "base/hex.h"

namespace motley {
namespace {

constexpr std::string_view kUcxPrefix = "ucx:";

}  // namespace

Error ucx_error(const std::string& what, ucs_status_t status) {
  return {ErrorCode::kPeer, what, fmt::format("UCX: {}", ucs_status_string(status)),
          "check the interface and address of this machine, or choose transport gloo"};
}

Result<UcxContextPtr> open_ucx_context(const std::string& interface, int rank_count) {
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK) {
    return ucx_error("cannot read UCX's configuration", status);
  }
  const std::unique_ptr<ucp_config_t, decltype(&ucp_config_release)> owner(config,
                                                                           ucp_config_release);
  // This version of UCX cannot detect a lost peer over shared memory, so only TCP is used. No
  // rendezvous: its replies queue behind the replying side's own sends, so that two large messages
  // in opposite directions would be sent one after the other. No zero-copy sends: UCX aborts the
  // process if the peer leaves during such a send of several fragments (an assertion on its
  // completion; docs/decisions/0009).
  for (const auto& [key, value] : {std::pair{"TLS", "tcp,self"},
                                   {"RNDV_THRESH", "inf"},
                                   {"ZCOPY_THRESH", "inf"},
                                   {"NET_DEVICES", interface.c_str()}}) {
    if (const auto status = ucp_config_modify(config, key, value); status != UCS_OK) {
      return ucx_error(fmt::format("UCX refuses {}={}", key, value), status);
    }
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<std::size_t>(rank_count);
  ucp_context_h context = nullptr;
  if (const auto status = ucp_init(&params, config, &context); status != UCS_OK) {
    return ucx_error("cannot start UCX", status);
  }
  return UcxContextPtr(context);
}

Result<UcxWorkerPtr> open_ucx_worker(ucp_context* context, const std::string& interface) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  if (const auto status = ucp_worker_create(context, &params, &worker); status != UCS_OK) {
    return ucx_error(fmt::format("UCX cannot use interface {}", interface), status);
  }
  return UcxWorkerPtr(worker);
}

Result<std::string> ucx_address_text(ucp_worker* worker) {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (const auto status = ucp_worker_get_address(worker, &address, &bytes); status != UCS_OK) {
    return ucx_error("UCX has no address", status);
  }
  std::string text(kUcxPrefix);
  text += to_hex({reinterpret_cast<const char*>(address), bytes});
  ucp_worker_release_address(worker, address);
  return text;
}

bool is_ucx_address(std::string_view text) {
  return text.starts_with(kUcxPrefix);
}

std::optional<std::vector<char>> read_ucx_address(std::string_view text) {
  auto bytes = from_hex(text.substr(kUcxPrefix.size()));
  if (bytes && bytes->empty()) return std::nullopt;
  return bytes;
}

}  // namespace motley
