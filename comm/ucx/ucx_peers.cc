#include "comm/ucx/ucx_peers.h"

#include <utility>

#include "comm/transport/comm_errors.h"
#include "comm/ucx/ucx_worker.h"

namespace motley {
namespace {

// UCX's tag matching ignores the sender, so the sender's rank is part of the tag.
ucp_tag_t wire_tag(Rank sender, Tag tag) {
  return static_cast<ucp_tag_t>(sender.value) << kTagBits | tag;
}

}  // namespace

// An operation that was passed to UCX.
struct UcxPeers::Message {
  Peer* peer;
  UcxOperation operation;
  bool answered = false;
  void* request = nullptr;
  bool* ended = nullptr;  // set to true when the message is destroyed
  std::list<std::unique_ptr<Message>>::iterator place;
};

struct UcxPeers::Peer {
  Rank rank;
  ucp_ep_h endpoint = nullptr;
  std::string lost;  // the reason; empty while connected
  std::list<std::unique_ptr<Message>> under_way;
};

UcxPeers::UcxPeers(ucp_worker* worker, Rank self, int rank_count)
    : worker_(worker), self_(self), peers_(static_cast<std::size_t>(rank_count)) {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    peers_[rank].rank = Rank{static_cast<std::int32_t>(rank)};
  }
}

UcxPeers::~UcxPeers() = default;

Result<void> UcxPeers::create_endpoints(const std::vector<std::string>& addresses) {
  for (Peer& peer : peers_) {
    if (peer.rank == self_) continue;
    const std::string& text = addresses[peer.rank.index()];
    if (!is_ucx_address(text)) return peer_unreachable(peer.rank, "its address is not one of UCX");
    const auto bytes = read_ucx_address(text);
    if (!bytes) return peer_unreachable(peer.rank, "its address is damaged");
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(bytes->data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {on_endpoint_error, this};
    const auto status = ucp_ep_create(worker_, &params, &peer.endpoint);
    if (status != UCS_OK) return peer_unreachable(peer.rank, ucs_status_string(status));
  }
  return {};
}

void UcxPeers::start(UcxOperation operation) {
  Peer& peer = peers_[operation.rank.index()];
  peer.under_way.push_front(std::make_unique<Message>(Message{&peer, std::move(operation)}));
  Message& message = *peer.under_way.front();
  message.place = peer.under_way.begin();
  if (message.operation.direction == UcxOperation::Direction::kSend) {
    start_send(message);
  } else {
    start_receive(message);
  }
}

void UcxPeers::start_send(Message& message) {
  const Peer& peer = *message.peer;
  if (peer.endpoint == nullptr) {
    answer(message, peer_lost(peer.rank, peer.lost.empty() ? "not connected" : peer.lost));
    forget(message);
    return;
  }
  ucp_request_param_t param = request_param(message);
  param.cb.send = on_sent;
  const auto bytes = message.operation.buffer.message();
  const auto request = ucp_tag_send_nbx(peer.endpoint, bytes.data(), bytes.size(),
                                        wire_tag(self_, message.operation.tag), &param);
  if (UCS_PTR_IS_PTR(request)) {
    message.request = request;
  } else {
    finish_send(message, UCS_PTR_STATUS(request));
  }
}

void UcxPeers::start_receive(Message& message) {
  // Without immediate completion, which in UCX 1.13 does not report the length. The callback may
  // still run before the call returns and destroy the message.
  bool ended = false;
  message.ended = &ended;
  ucp_request_param_t param = request_param(message);
  param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = on_received;
  const auto space = message.operation.buffer.message_space();
  const auto request =
      ucp_tag_recv_nbx(worker_, space.data(), space.size(),
                       wire_tag(message.peer->rank, message.operation.tag), ~ucp_tag_t{0}, &param);
  if (ended) return;
  message.ended = nullptr;
  if (!UCS_PTR_IS_PTR(request)) {
    finish_receive(message, UCS_PTR_STATUS(request), 0);
    return;
  }
  message.request = request;
  // A lost peer's earlier messages were received above; nothing else will arrive.
  if (!message.peer->lost.empty()) abandon(message);
}

ucp_request_param_t UcxPeers::request_param(Message& message) {
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.user_data = &message;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  return param;
}

void UcxPeers::on_sent(void* /*request*/, ucs_status_t status, void* message) {
  finish_send(*static_cast<Message*>(message), status);
}

void UcxPeers::on_received(void* request,
                           ucs_status_t status,
                           const ucp_tag_recv_info_t* info,
                           void* message) {
  auto& received = *static_cast<Message*>(message);
  received.request = request;
  finish_receive(received, status, info->length);
}

void UcxPeers::finish_send(Message& message, ucs_status_t status) {
  if (status == UCS_OK) {
    if (!message.answered) answer(message, std::move(message.operation.buffer));
  } else {
    answer(message, peer_lost(message.peer->rank, ucs_status_string(status)));
  }
  forget(message);
}

void UcxPeers::finish_receive(Message& message, ucs_status_t status, std::size_t bytes) {
  const Rank from = message.peer->rank;
  Buffer& buffer = message.operation.buffer;
  if (message.answered) {
    // abandoned; only the buffer had to live until now
  } else if (status == UCS_OK) {
    answer(message, received(from, std::move(buffer), bytes));
  } else if (status == UCS_ERR_MESSAGE_TRUNCATED) {
    answer(message, message_too_long(from, buffer.message_space().size()));
  } else {
    answer(message, peer_lost(from, ucs_status_string(status)));
  }
  forget(message);
}

void UcxPeers::answer(Message& message, Result<Buffer> outcome) {
  if (std::exchange(message.answered, true)) return;
  message.operation.completion->finish(std::move(outcome));
}

// UCX has released the message's buffer.
void UcxPeers::forget(Message& message) {
  if (message.ended != nullptr) *message.ended = true;
  if (message.request != nullptr) ucp_request_free(message.request);
  message.peer->under_way.erase(message.place);
}

// UCX never ends a lost peer's posted receive by itself. Cancelling may end it at once.
void UcxPeers::abandon(Message& message) {
  answer(message, peer_lost(message.peer->rank, message.peer->lost));
  if (message.operation.direction == UcxOperation::Direction::kReceive &&
      message.request != nullptr) {
    ucp_request_cancel(worker_, message.request);
  }
}

// Called inside ucp_worker_progress, which must not be re-entered.
void UcxPeers::on_endpoint_error(void* peers, ucp_ep_h endpoint, ucs_status_t status) {
  static_cast<UcxPeers*>(peers)->failed_.emplace_back(endpoint, status);
}

void UcxPeers::drop_failed() {
  for (const auto& [endpoint, status] : std::exchange(failed_, {})) {
    for (Peer& peer : peers_) {
      if (peer.endpoint == endpoint) lose(peer, ucs_status_string(status));
    }
  }
}

void UcxPeers::lose(Rank peer, const std::string& cause) {
  lose(peers_[peer.index()], cause);
}

void UcxPeers::lose(Peer& peer, const std::string& cause) {
  if (!peer.lost.empty()) return;
  peer.lost = cause;
  if (peer.endpoint != nullptr) close_endpoint(std::exchange(peer.endpoint, nullptr));
  for (auto next = peer.under_way.begin(); next != peer.under_way.end();) {
    Message& message = **next++;  // abandon() may erase it
    abandon(message);
  }
}

void UcxPeers::close_endpoint(ucp_ep_h endpoint) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const auto request = ucp_ep_close_nbx(endpoint, &param);
  if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
}

void UcxPeers::close(const Deadline& deadline) {
  for (Peer& peer : peers_) lose(peer, "this rank disconnected");
  for (void* request : closing_) {
    while (ucp_request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) {
      ucp_worker_progress(worker_);
    }
    ucp_request_free(request);
  }
}

}  // namespace motley
