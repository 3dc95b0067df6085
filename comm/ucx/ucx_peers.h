// The peers of one ucp worker: an endpoint for each, and the operations in progress.
//
// One thread owns the worker and everything here; UCX calls back only within that thread's calls of
// ucp_worker_progress.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/transport/pending.h"
#include "comm/transport/transport.h"

namespace motley {

// Exists until UCX has released its buffer, which may be after its completion was answered.
struct UcxOperation {
  enum class Direction { kSend, kReceive };

  Rank rank;  // the peer
  Direction direction;
  Tag tag;
  Buffer buffer;
  std::shared_ptr<Completion> completion = std::make_shared<Completion>();
};

class UcxPeers {
 public:
  // `worker` is borrowed and must outlive this.
  UcxPeers(ucp_worker* worker, Rank self, int rank_count);
  ~UcxPeers();
  UcxPeers(const UcxPeers&) = delete;
  UcxPeers& operator=(const UcxPeers&) = delete;

  // One address per rank, this rank's own unused. kPeer, naming the rank, if one is invalid.
  [[nodiscard]] Result<void> create_endpoints(const std::vector<std::string>& addresses);

  // Completes the operation when UCX has finished it or the peer is lost.
  void start(UcxOperation operation);

  // Completes every current and future operation with the peer with kPeer and the first cause.
  void lose(Rank peer, const std::string& cause);

  // Loses the peers whose endpoints failed during progress.
  void drop_failed();

  // Loses all peers, and closes their endpoints so that they detect it.
  void close(const Deadline& deadline);

 private:
  struct Message;
  struct Peer;

  void lose(Peer& peer, const std::string& cause);
  void start_send(Message& message);
  void start_receive(Message& message);
  void abandon(Message& message);
  void close_endpoint(ucp_ep_h endpoint);

  static ucp_request_param_t request_param(Message& message);
  static void on_sent(void* request, ucs_status_t status, void* message);
  static void on_received(void* request,
                          ucs_status_t status,
                          const ucp_tag_recv_info_t* info,
                          void* message);
  static void finish_send(Message& message, ucs_status_t status);
  static void finish_receive(Message& message, ucs_status_t status, std::size_t bytes);
  static void answer(Message& message, Result<Buffer> outcome);
  static void forget(Message& message);
  static void on_endpoint_error(void* peers, ucp_ep_h endpoint, ucs_status_t status);

  ucp_worker* const worker_;
  const Rank self_;
  std::vector<Peer> peers_;  // [Rank]; its size and ranks are constant
  std::vector<std::pair<ucp_ep_h, ucs_status_t>> failed_;
  std::vector<void*> closing_;
};

}  // namespace motley
