#include "fabric/shm/socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"

namespace erda::fabric::shm {

namespace {

constexpr std::string_view kScheme = "shm:";
constexpr size_t kDescriptorsMax = 2 + kOfferedRegionsMax;
constexpr int kBacklog = 128;
constexpr int kRingsAtOnce = 64;
// The largest memory that a server maps for one client.
constexpr uint64_t kAskerBytesMax = uint64_t{1} << 32;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());  // PathOf checked the length.
  return address;
}

Result<UniqueFd> NewSocket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoStatus("cannot create a socket");
  return fd;
}

// Returns false only if the connection is refused. Any other error may hide a listener.
bool SomebodyListens(const std::string& path) {
  auto fd = NewSocket();
  if (!fd.ok()) return true;
  const sockaddr_un address = AddressOf(path);
  const int result = ::connect(fd->get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  return result == 0 || errno != ECONNREFUSED;
}

// A lock that a server holds from its look at a path's old socket until its new socket listens. If several servers
// start at once, the second one finds the first one listening. Without the lock both could find the old socket, and the
// slower server would remove the new socket of the other.
class StartLock {
 public:
  StartLock(const StartLock&) = delete;
  StartLock& operator=(const StartLock&) = delete;
  StartLock(StartLock&&) = default;
  StartLock& operator=(StartLock&&) = delete;
  // Removes the file while it holds the lock. A process that waits for the lock then notices that its file is no longer
  // the one at the path.
  ~StartLock() {
    if (fd_) ::unlink(path_.c_str());
  }

  static Result<StartLock> Take(const std::string& socket_path) {
    const std::string path = socket_path + ".lock";
    const Nanoseconds begin = SteadyClock::Instance().Now();
    do {
      UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (!fd) return ErrnoStatus("cannot listen on shm:" + socket_path + " (its lock " + path + ")");
      if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && IsThere(path, fd)) return StartLock(path, std::move(fd));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (SteadyClock::Instance().Now() - begin < kStartMost);
    return Status(Code::kUnavailable, "shm:" + socket_path + ": another server is starting there, and holds " + path);
  }

 private:
  StartLock(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  static bool IsThere(const std::string& path, const UniqueFd& fd) {
    struct stat named {};
    struct stat held {};
    return ::lstat(path.c_str(), &named) == 0 && ::fstat(fd.get(), &held) == 0 && named.st_dev == held.st_dev &&
           named.st_ino == held.st_ino;
  }

  std::string path_;
  UniqueFd fd_;
};

}  // namespace

Result<std::string> PathOf(std::string_view address) {
  if (!address.starts_with(kScheme) || address.size() == kScheme.size()) {
    return Status(Code::kInvalidArgument, std::string(address).append(": not an address like shm:/path/to/socket"));
  }
  std::string path(address.substr(kScheme.size()));
  constexpr size_t kPathMax = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kPathMax || path.find('\0') != std::string::npos) {
    return Status(Code::kInvalidArgument, std::string(address) + ": the path of a socket has at most " +
                                              std::to_string(kPathMax) + " bytes, and no zero byte");
  }
  return path;
}

Result<UniqueFd> ConnectTo(const std::string& path) {
  auto fd = NewSocket();
  if (!fd.ok()) return fd.status();
  const sockaddr_un address = AddressOf(path);
  if (::connect(fd->get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  const std::string at = "shm:" + path;
  if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR) {
    return Status(Code::kUnavailable, at + ": no server listens there (" + std::strerror(errno) + ")");
  }
  if (errno == EAGAIN) return Status(Code::kUnavailable, at + ": too many clients connect at the same time; try again");
  return ErrnoStatus("cannot connect to " + at);
}

Result<UniqueFd> ListenOn(const std::string& path) {
  const std::string at = "shm:" + path;
  auto lock = StartLock::Take(path);
  if (!lock.ok()) return lock.status();
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode))
      return Status(Code::kInvalidArgument,
                    at + ": a file of this name exists, and is not a socket; choose another name");
    if (SomebodyListens(path)) return Status(Code::kUnavailable, at + ": another server listens there");
    if (::unlink(path.c_str()) != 0) return ErrnoStatus("cannot remove the old socket of " + at);
  }
  auto fd = NewSocket();
  if (!fd.ok()) return fd.status();
  const sockaddr_un address = AddressOf(path);
  if (::bind(fd->get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrnoStatus("cannot listen on " + at);
  }
  // No client can connect before listen. So the mode restricts the socket to its owner before the first one comes.
  if (::chmod(path.c_str(), 0600) != 0 || ::listen(fd->get(), kBacklog) != 0) {
    const Status status = ErrnoStatus("cannot listen on " + at);
    ::unlink(path.c_str());
    return status;
  }
  return fd;
}

Status SetAskers(const std::string& path, Askers askers) {
  constexpr std::array<mode_t, 3> kModes = {0600, 0660, 0666};
  if (::chmod(path.c_str(), kModes.at(static_cast<size_t>(askers))) == 0) return {};
  return ErrnoStatus("cannot let others connect to shm:" + path);
}

PeerUser UserOf(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return PeerUser::kOther;
  return peer.uid == ::geteuid() ? PeerUser::kSame : PeerUser::kOther;
}

Status SendGreeting(int socket, const Greeting& greeting, std::span<const int> fds) {
  iovec part{const_cast<Greeting*>(&greeting), sizeof(greeting)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsMax)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(greeting))) return {};
  return ErrnoStatus("cannot send the greeting to the peer");
}

Status ReceiveGreeting(int socket, Greeting* greeting, std::vector<UniqueFd>* fds) {
  iovec part{greeting, sizeof(*greeting)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsMax)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Status(Code::kTimeout);
  if (n <= 0) return {Code::kUnavailable, "the peer closed the connection"};
  // Take the descriptors first: whatever is wrong with the rest, they must be closed.
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds->emplace_back(fd);
    }
  }
  const bool holds = n == static_cast<ssize_t>(sizeof(*greeting)) &&
                     (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && greeting->magic == Greeting::kMagic &&
                     greeting->regions <= kOfferedRegionsMax && greeting->data_bytes <= greeting->data.size();
  if (!holds) return {Code::kInvalidArgument, "the peer does not speak this version of the shm fabric"};
  uint64_t offered = 0;
  for (uint32_t i = 0; i < greeting->regions; ++i) {
    const uint32_t access = greeting->region_access[i];
    const bool usable = access == static_cast<uint32_t>(Access::kRemoteRead) ||
                        access == static_cast<uint32_t>(Access::kRemoteReadWrite);
    if (!usable || __builtin_add_overflow(offered, greeting->region_sizes[i], &offered)) {
      return {Code::kInvalidArgument, "the peer offers regions with wrong rights or sizes"};
    }
  }
  if (greeting->kind == Greeting::kAsk && offered > kAskerBytesMax) {
    return {Code::kInvalidArgument, "the peer offers more memory than a client may"};
  }
  return {};
}

bool RingDoorbell(int socket) {
  const std::byte ring{0};
  // Never blocks, and never raises a signal. A peer that is gone, or has not heard the last hundreds of rings, needs no
  // ring.
  const ssize_t n = ::send(socket, &ring, sizeof(ring), MSG_DONTWAIT | MSG_NOSIGNAL);
  return n >= 0 || (errno != ENOBUFS && errno != ENOMEM);
}

bool HearDoorbell(int socket, uint64_t* rings) {
  // The rest of the rings is heard the next time, so that a peer that rings without a pause gets no more attention than
  // others.
  for (int i = 0; i < kRingsAtOnce; ++i) {
    std::array<std::byte, 8> ring;
    const ssize_t n = ::recv(socket, ring.data(), ring.size(), MSG_DONTWAIT);
    if (n > 0 && rings != nullptr) ++*rings;
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  return true;
}

void HangUp(int socket) { ::shutdown(socket, SHUT_WR); }

}  // namespace erda::fabric::shm
