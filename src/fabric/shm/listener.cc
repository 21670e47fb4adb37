#include "fabric/shm/listener.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.h"
#include "fabric/shm/channel.h"
#include "fabric/shm/peer_memory.h"
#include "fabric/shm/queue.h"
#include "fabric/shm/ring_memory.h"

namespace erda::fabric::shm {

namespace {

// The largest number of connections that have not asked yet. The listener drops the oldest beyond that.
constexpr size_t kSilentMax = 64;
// How long a listener without a spare descriptor leaves waiting peers alone.
constexpr std::chrono::milliseconds kExhaustedWait{50};

uint64_t InodeOf(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

class ShmIncoming final : public Incoming {
 public:
  ShmIncoming(MemoryMaps* maps, std::shared_ptr<Beacon> beacon, UniqueFd socket, const Greeting& ask,
              std::vector<UniqueFd> fds)
      : maps_(maps), beacon_(std::move(beacon)), socket_(std::move(socket)), ask_(ask), fds_(std::move(fds)) {}

  [[nodiscard]] std::span<const std::byte> peer_data() const override { return ask_.private_data(); }
  [[nodiscard]] PeerUser peer_user() const override { return UserOf(socket_.get()); }

  [[nodiscard]] std::string peer_name() const override {
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (!socket_ || ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return "shm";
    return "shm, process " + std::to_string(peer.pid) + " of user " + std::to_string(peer.uid);
  }

  Result<std::unique_ptr<Channel>> Accept(const ChannelOptions& options) override {
    auto* queue = dynamic_cast<ShmQueue*>(options.queue);
    if (queue == nullptr || !socket_)
      return Status(Code::kInvalidArgument, "a channel needs a completion queue of the same fabric");
    const bool holds =
        ask_.message_depth >= 1 && ask_.message_depth <= kMessageDepthMax && fds_.size() == 1 + ask_.regions;
    if (!holds)
      return Status(Code::kInvalidArgument,
                    "the client asks for a channel with a wrong message depth or number of regions");
    auto rings = maps_->Map(fds_[0], RingMemory::Bytes(ask_.message_depth), true, MemoryMaps::Trust::kPeerMayNotHarm);
    if (!rings.ok()) return rings.status();
    auto memory = PeerMemory::Map(ask_, std::span(fds_).subspan(1), maps_, MemoryMaps::Trust::kPeerMayNotHarm);
    if (!memory.ok()) return memory.status();

    Greeting answer;
    answer.kind = Greeting::kAccept;
    std::vector<int> fds = {beacon_->fd()};
    if (auto status = FillGreeting(options, kAcceptDataMax, &answer, &fds); !status.ok()) return status;
    fds_.clear();  // All is mapped. A client that has its answer no longer costs them.
    if (auto status = SendGreeting(socket_.get(), answer, fds); !status.ok()) return status;
    auto channel =
        std::make_unique<ShmChannel>(queue, std::move(socket_), ask_, RingMemory(*std::move(rings), ask_.message_depth),
                                     *std::move(memory), beacon_);
    if (auto status = queue->Add(channel.get()); !status.ok()) return status;
    queue->CompleteConnected(channel.get());
    return std::unique_ptr<Channel>(std::move(channel));
  }

  void Reject(std::span<const std::byte> private_data) override {
    if (!socket_) return;
    Greeting answer;
    answer.kind = Greeting::kReject;
    ChannelOptions options;
    options.private_data = private_data.first(std::min(private_data.size(), kRejectDataMax));
    std::vector<int> fds;
    // A peer that is gone already need not receive the answer.
    if (FillGreeting(options, kRejectDataMax, &answer, &fds).ok()) (void)SendGreeting(socket_.get(), answer, fds);
    socket_.reset();
  }

 private:
  MemoryMaps* const maps_;
  const std::shared_ptr<Beacon> beacon_;
  UniqueFd socket_;
  Greeting ask_;
  std::vector<UniqueFd> fds_;
};

}  // namespace

Result<std::unique_ptr<Listener>> ShmListener::Create(std::string_view address, MemoryMaps* maps, const Clock& clock) {
  auto path = PathOf(address);
  if (!path.ok()) return path.status();
  EventFd doorbell;
  if (!doorbell.Create()) return ErrnoStatus("cannot listen on " + std::string(address));
  auto beacon = Beacon::Light();
  if (!beacon.ok()) return beacon.status();
  auto socket = ListenOn(*path);
  if (!socket.ok()) return socket.status();
  return std::unique_ptr<Listener>(new ShmListener(std::string(address), *std::move(path), *std::move(socket),
                                                   std::move(doorbell), maps, *std::move(beacon), clock));
}

ShmListener::ShmListener(std::string address, std::string path, UniqueFd socket, EventFd doorbell, MemoryMaps* maps,
                         std::shared_ptr<Beacon> beacon, const Clock& clock)
    : address_(std::move(address)),
      path_(std::move(path)),
      inode_(InodeOf(path_)),
      socket_(std::move(socket)),
      doorbell_(std::move(doorbell)),
      maps_(maps),
      beacon_(std::move(beacon)),
      clock_(clock) {}

ShmListener::~ShmListener() {
  // Keeps the socket if another server has put a new one in its place.
  if (inode_ != 0 && InodeOf(path_) == inode_) ::unlink(path_.c_str());
}

Status ShmListener::LetAsk(Askers askers) { return SetAskers(path_, askers); }

void ShmListener::AcceptSockets() {
  for (;;) {
    UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // There are no descriptors left. Peers must wait until some are free; the socket stays readable meanwhile.
      exhausted_ = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
      return;
    }
    silent_.push_back({std::move(socket), clock_.Now()});
    if (silent_.size() > kSilentMax) silent_.pop_front();
  }
}

std::unique_ptr<Incoming> ShmListener::Poll() {
  AcceptSockets();
  const Nanoseconds now = silent_.empty() ? Nanoseconds(0) : clock_.Now();
  for (auto it = silent_.begin(); it != silent_.end();) {
    Greeting ask;
    std::vector<UniqueFd> fds;
    const Status status = ReceiveGreeting(it->socket.get(), &ask, &fds);
    if (status.code() == Code::kTimeout && now - it->since < kSilentMost) {
      ++it;
      continue;
    }
    UniqueFd socket = std::move(it->socket);
    it = silent_.erase(it);
    // The peer is no client of Erda, or was silent for too long: hang up.
    if (!status.ok() || ask.kind != Greeting::kAsk) continue;
    return std::make_unique<ShmIncoming>(maps_, beacon_, std::move(socket), ask, std::move(fds));
  }
  return nullptr;
}

void ShmListener::Wait(std::chrono::nanoseconds timeout) {
  std::vector<pollfd> watched = {{doorbell_.get(), POLLIN, 0}};
  if (!exhausted_) watched.push_back({socket_.get(), POLLIN, 0});
  for (const Silent& silent : silent_) watched.push_back({silent.socket.get(), POLLIN, 0});
  timeout = SilentFor(timeout);
  if (exhausted_) timeout = std::min<std::chrono::nanoseconds>(timeout, kExhaustedWait);
  ::poll(watched.data(), watched.size(), PollMilliseconds(timeout));
  doorbell_.Drain();
}

std::chrono::nanoseconds ShmListener::SilentFor(std::chrono::nanoseconds timeout) const {
  if (silent_.empty()) return timeout;
  const Nanoseconds left = silent_.front().since + kSilentMost - clock_.Now();
  return std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0), timeout);
}

void ShmListener::Wake() { doorbell_.Ring(); }

}  // namespace erda::fabric::shm
