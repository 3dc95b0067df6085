// One ucp worker, owned by one thread ("comm"), which alone calls UCX once it runs. Other threads
// hand it tasks. It sleeps in poll() on the worker's descriptor and an eventfd for the tasks: UCX
// wants progress until nothing moves, then ucp_worker_arm (which may say "busy": progress again),
// and only then the poll; in another order a wake-up is lost.
#include "comm/ucx/ucx_transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "comm/transport/comm_errors.h"
#include "comm/transport/network_interface.h"
#include "comm/ucx/ucx_worker.h"

namespace motley {
namespace {

constexpr Tag kHelloTag = kTagsEnd;     // beyond the callers' tags
constexpr int kLongestSleep_ms = 1000;  // UCX's own timers (keep-alive) run in progress
constexpr double kCloseTimeout_s = 1.0;

// Tag matching in UCX does not look at the sender, so the sender's rank is part of the tag.
ucp_tag_t wire_tag(Rank sender, Tag tag) {
  return static_cast<ucp_tag_t>(sender.value) << kTagBits | tag;
}

enum class Direction { kSend, kReceive };

struct Peer;

// Lives until UCX has let go of its buffer, which may be after the waiter was answered.
struct Operation {
  Peer* peer;
  Direction direction;
  Tag tag;
  Buffer buffer;
  std::shared_ptr<Completion> completion = std::make_shared<Completion>();
  bool answered = false;
  void* request = nullptr;
  bool* ended = nullptr;  // told when the operation is forgotten
  std::list<std::unique_ptr<Operation>>::iterator place;
};

struct Peer {
  Rank rank;
  ucp_ep_h endpoint = nullptr;
  std::string lost;  // why; empty while it is there
  std::list<std::unique_ptr<Operation>> under_way;
};

class UcxTransport : public WatchableTransport {
 public:
  UcxTransport(const TransportOptions& options,
               UcxContextPtr context,
               UcxWorkerPtr worker,
               std::string address,
               int worker_fd,
               int task_fd)
      : self_(options.rank),
        address_(std::move(address)),
        worker_fd_(worker_fd),
        task_fd_(task_fd),
        context_(std::move(context)),
        worker_(std::move(worker)),
        peers_(static_cast<std::size_t>(options.rank_count)) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      peers_[rank].rank = Rank{static_cast<std::int32_t>(rank)};
    }
    thread_ = std::thread([this] { run(); });
  }

  ~UcxTransport() override {
    post([this] { stopping_ = true; });
    thread_.join();
    worker_.reset();  // before the buffers that UCX may still hold
    close(task_fd_);
  }

  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  std::string address() const override { return address_; }

  Result<void> connect(const std::vector<std::string>& addresses, Deadline deadline) override {
    MOTLEY_CHECK(addresses.size() == peers_.size(), "{} addresses for {} ranks", addresses.size(),
                 peers_.size());
    auto outcome = std::make_shared<std::promise<Result<void>>>();  // may outlive this wait
    auto created = outcome->get_future();
    post([this, addresses, outcome] { outcome->set_value(create_endpoints(addresses)); });
    if (created.wait_until(deadline.time()) != std::future_status::ready) {
      return Error{ErrorCode::kPeer, "cannot connect", "UCX did not answer in time",
                   "give it longer, or choose transport gloo"};
    }
    MOTLEY_TRY(created.get());
    return exchange_hellos(deadline);
  }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    MOTLEY_CHECK(tag < kTagsEnd, "tag {:#x}", tag);
    return submit(to, Direction::kSend, tag, std::move(buffer));
  }

  Pending recv(Rank from, Tag tag, Buffer buffer) override {
    MOTLEY_CHECK(tag < kTagsEnd, "tag {:#x}", tag);
    return submit(from, Direction::kReceive, tag, std::move(buffer));
  }

  void lose(Rank peer, const std::string& cause) override {
    post([this, peer, cause] { lose(peers_[peer.index()], cause); });
  }

 private:
  // --- any thread ---

  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(task_fd_, &one, sizeof one);  // full = awake
  }

  Pending submit(Rank rank, Direction direction, Tag tag, Buffer buffer) {
    MOTLEY_CHECK(rank != self_ && rank.value >= 0 && rank.index() < peers_.size(), "rank {}",
                 rank.value);
    auto operation = std::make_shared<Operation>(
        Operation{&peers_[rank.index()], direction, tag, std::move(buffer)});
    Pending pending(operation->completion);
    post([this, operation] { start(std::make_unique<Operation>(std::move(*operation))); });
    return pending;
  }

  // Proves both directions: an endpoint alone connects only when the first message wants to leave.
  Result<void> exchange_hellos(Deadline deadline) {
    std::vector<std::pair<Rank, Pending>> hellos;
    for (const Peer& peer : peers_) {
      if (peer.rank == self_) continue;
      Buffer hello(0);
      std::memset(hello.header().data(), 0, kFrameHeaderBytes);
      hellos.emplace_back(peer.rank, submit(peer.rank, Direction::kReceive, kHelloTag, Buffer(0)));
      hellos.emplace_back(peer.rank,
                          submit(peer.rank, Direction::kSend, kHelloTag, std::move(hello)));
    }
    for (auto& [rank, pending] : hellos) {
      auto heard = pending.wait(deadline, fmt::format("rank {} to connect", rank.value));
      if (!heard.ok()) {
        return peer_unreachable(rank,
                                fmt::format("{} ({})", heard.error().what, heard.error().cause));
      }
    }
    return {};
  }

  // --- the comm thread ---

  void run() {
    while (!stopping_) {
      const bool started = run_tasks();
      const bool moved = ucp_worker_progress(worker_.get()) != 0;
      drop_failed_peers();
      if (!started && !moved) sleep();
    }
    leave();
  }

  bool run_tasks() {
    std::deque<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
    return !tasks.empty();
  }

  void sleep() {
    const auto status = ucp_worker_arm(worker_.get());
    if (status == UCS_ERR_BUSY) return;
    MOTLEY_CHECK(status == UCS_OK, "ucp_worker_arm: {}", ucs_status_string(status));
    std::array<pollfd, 2> events = {pollfd{worker_fd_, POLLIN, 0}, pollfd{task_fd_, POLLIN, 0}};
    poll(events.data(), events.size(), kLongestSleep_ms);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = read(task_fd_, &count, sizeof count);  // non-blocking
  }

  Result<void> create_endpoints(const std::vector<std::string>& addresses) {
    for (Peer& peer : peers_) {
      if (peer.rank == self_) continue;
      const std::string& text = addresses[peer.rank.index()];
      if (!is_ucx_address(text)) {
        return peer_unreachable(peer.rank, "its address is not one of UCX");
      }
      const auto bytes = read_ucx_address(text);
      if (!bytes) return peer_unreachable(peer.rank, "its address is damaged");
      ucp_ep_params_t params{};
      params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER;
      params.address = reinterpret_cast<const ucp_address_t*>(bytes->data());
      params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
      params.err_handler = {on_endpoint_error, this};
      const auto status = ucp_ep_create(worker_.get(), &params, &peer.endpoint);
      if (status != UCS_OK) return peer_unreachable(peer.rank, ucs_status_string(status));
    }
    return {};
  }

  void start(std::unique_ptr<Operation> owned) {
    Peer& peer = *owned->peer;
    peer.under_way.push_front(std::move(owned));
    Operation& operation = *peer.under_way.front();
    operation.place = peer.under_way.begin();
    if (operation.direction == Direction::kSend) {
      start_send(operation);
    } else {
      start_receive(operation);
    }
  }

  void start_send(Operation& operation) {
    const Peer& peer = *operation.peer;
    if (peer.endpoint == nullptr) {
      answer(operation, peer_lost(peer.rank, peer.lost.empty() ? "not connected" : peer.lost));
      forget(operation);
      return;
    }
    ucp_request_param_t param = request_param(operation);
    param.cb.send = on_sent;
    const auto message = operation.buffer.message();
    const auto request = ucp_tag_send_nbx(peer.endpoint, message.data(), message.size(),
                                          wire_tag(self_, operation.tag), &param);
    if (UCS_PTR_IS_PTR(request)) {
      operation.request = request;
    } else {
      finish_send(operation, UCS_PTR_STATUS(request));
    }
  }

  void start_receive(Operation& operation) {
    // Without an immediate completion, which in UCX 1.13 does not tell the length. The callback may
    // then run, and the operation be gone, before the call returns.
    bool ended = false;
    operation.ended = &ended;
    ucp_request_param_t param = request_param(operation);
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.recv = on_received;
    const auto room = operation.buffer.message_room();
    const auto request =
        ucp_tag_recv_nbx(worker_.get(), room.data(), room.size(),
                         wire_tag(operation.peer->rank, operation.tag), ~ucp_tag_t{0}, &param);
    if (ended) return;
    operation.ended = nullptr;
    if (!UCS_PTR_IS_PTR(request)) {
      finish_receive(operation, UCS_PTR_STATUS(request), 0);
      return;
    }
    operation.request = request;
    // What a lost peer sent before it went was taken above; nothing else will come.
    if (!operation.peer->lost.empty()) abandon(operation);
  }

  static ucp_request_param_t request_param(Operation& operation) {
    ucp_request_param_t param{};
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.user_data = &operation;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    return param;
  }

  static void on_sent(void*, ucs_status_t status, void* operation) {
    finish_send(*static_cast<Operation*>(operation), status);
  }

  static void on_received(void* request,
                          ucs_status_t status,
                          const ucp_tag_recv_info_t* info,
                          void* user_data) {
    auto& operation = *static_cast<Operation*>(user_data);
    operation.request = request;
    finish_receive(operation, status, info->length);
  }

  static void finish_send(Operation& operation, ucs_status_t status) {
    if (status == UCS_OK) {
      if (!operation.answered) answer(operation, std::move(operation.buffer));
    } else {
      answer(operation, peer_lost(operation.peer->rank, ucs_status_string(status)));
    }
    forget(operation);
  }

  static void finish_receive(Operation& operation, ucs_status_t status, std::size_t bytes) {
    const Rank from = operation.peer->rank;
    if (operation.answered) {
      // abandoned; only the buffer had to wait for this
    } else if (status == UCS_OK) {
      answer(operation, received(from, std::move(operation.buffer), bytes));
    } else if (status == UCS_ERR_MESSAGE_TRUNCATED) {
      answer(operation, message_too_long(from, operation.buffer.message_room().size()));
    } else {
      answer(operation, peer_lost(from, ucs_status_string(status)));
    }
    forget(operation);
  }

  static void answer(Operation& operation, Result<Buffer> outcome) {
    if (std::exchange(operation.answered, true)) return;
    operation.completion->finish(std::move(outcome));
  }

  // UCX has let go of the operation's buffer.
  static void forget(Operation& operation) {
    if (operation.ended != nullptr) *operation.ended = true;
    if (operation.request != nullptr) ucp_request_free(operation.request);
    operation.peer->under_way.erase(operation.place);
  }

  // UCX never ends a posted receive of a lost peer by itself. Cancelling may end it at once.
  void abandon(Operation& operation) {
    answer(operation, peer_lost(operation.peer->rank, operation.peer->lost));
    if (operation.direction == Direction::kReceive && operation.request != nullptr) {
      ucp_request_cancel(worker_.get(), operation.request);
    }
  }

  // Called inside progress, where UCX does not want to be entered again.
  static void on_endpoint_error(void* transport, ucp_ep_h endpoint, ucs_status_t status) {
    static_cast<UcxTransport*>(transport)->failed_.emplace_back(endpoint, status);
  }

  void drop_failed_peers() {
    for (const auto& [endpoint, status] : std::exchange(failed_, {})) {
      for (Peer& peer : peers_) {
        if (peer.endpoint == endpoint) lose(peer, ucs_status_string(status));
      }
    }
  }

  // The first cause stays.
  void lose(Peer& peer, const std::string& cause) {
    if (!peer.lost.empty()) return;
    peer.lost = cause;
    if (peer.endpoint != nullptr) close_endpoint(std::exchange(peer.endpoint, nullptr));
    for (auto next = peer.under_way.begin(); next != peer.under_way.end();) {
      Operation& operation = **next++;  // may be erased by being abandoned
      abandon(operation);
    }
  }

  void close_endpoint(ucp_ep_h endpoint) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const auto request = ucp_ep_close_nbx(endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
  }

  // The end of the thread: everything under way is answered, and the endpoints are closed so that
  // the peers notice.
  void leave() {
    run_tasks();
    for (Peer& peer : peers_) lose(peer, "this rank left");
    const Deadline deadline = Deadline::after_s(kCloseTimeout_s);
    for (void* request : closing_) {
      while (ucp_request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) {
        ucp_worker_progress(worker_.get());
      }
      ucp_request_free(request);
    }
  }

  const Rank self_;
  const std::string address_;
  const int worker_fd_;  // the worker's own
  const int task_fd_;

  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_

  // The comm thread's alone.
  bool stopping_ = false;
  std::vector<std::pair<ucp_ep_h, ucs_status_t>> failed_;
  std::vector<void*> closing_;
  UcxContextPtr context_;
  UcxWorkerPtr worker_;
  std::vector<Peer> peers_;  // [Rank]; its size and ranks never change

  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<WatchableTransport>> make_ucx_transport(const TransportOptions& options) {
  std::string interface = options.interface;
  if (interface.empty()) {
    MOTLEY_ASSIGN(interface, interface_of(options.bind_address));
  }
  quiet_ucx();
  MOTLEY_ASSIGN(UcxContextPtr context, open_ucx_context(interface, options.rank_count));
  MOTLEY_ASSIGN(UcxWorkerPtr worker, open_ucx_worker(context.get(), interface));
  MOTLEY_ASSIGN(std::string address, ucx_address_text(worker.get()));
  int worker_fd = -1;
  if (const auto status = ucp_worker_get_efd(worker.get(), &worker_fd); status != UCS_OK) {
    return ucx_error(fmt::format("UCX cannot sleep on interface {}", interface), status);
  }
  const int task_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (task_fd < 0) {
    return Error{ErrorCode::kInternal, "cannot make an eventfd", std::strerror(errno), ""};
  }
  return std::unique_ptr<WatchableTransport>(std::make_unique<UcxTransport>(
      options, std::move(context), std::move(worker), std::move(address), worker_fd, task_fd));
}

}  // namespace motley
