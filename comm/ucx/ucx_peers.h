// This header holds the peers of one ucp worker: an endpoint to each, and the messages under way.
//
// One thread owns the worker and all that is here; UCX calls back from within that thread's calls
// of ucp_worker_progress.
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

// Lives until UCX has let go of its buffer, which may be after the waiter was answered.
struct UcxOperation {
  enum class Direction { kSend, kReceive };

  Rank rank;  // of the peer
  Direction direction;
  Tag tag;
  Buffer buffer;
  std::shared_ptr<Completion> completion = std::make_shared<Completion>();
};

class UcxPeers {
 public:
  // `worker` is lent and must outlive this.
  UcxPeers(ucp_worker* worker, Rank self, int rank_count);
  ~UcxPeers();
  UcxPeers(const UcxPeers&) = delete;
  UcxPeers& operator=(const UcxPeers&) = delete;

  // One address a rank, the own one unused. kPeer, naming the rank, when one is none.
  [[nodiscard]] Result<void> create_endpoints(const std::vector<std::string>& addresses);

  // Answers the operation's completion when UCX is done with it or the peer is lost.
  void start(UcxOperation operation);

  // Every operation with the peer is answered by kPeer with the first cause, those to come too.
  void lose(Rank peer, const std::string& cause);

  // Loses the peers whose endpoints UCX found broken during progress.
  void drop_failed();

  // Loses all peers, and closes their endpoints so that they notice.
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
  std::vector<Peer> peers_;  // [Rank]; its size and ranks never change
  std::vector<std::pair<ucp_ep_h, ucs_status_t>> failed_;
  std::vector<void*> closing_;
};

}  // namespace motley
