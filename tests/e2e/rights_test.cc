// The rights of a process of another user over a socket that everybody may open. It uses the server's descriptors
// without the rules of the fabric. The test must run as root, to change its user.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"
#include "fabric/shm/ring.h"
#include "fabric/shm/socket.h"
#include "format/proof.h"

namespace erda {
namespace {

using fabric::Access;
using fabric::shm::Greeting;
using format::Placing;

constexpr uint32_t kDepth = 64;

// The things that a client of shm gets from the server, below the library.
struct Spoils {
  Greeting answer;
  std::vector<UniqueFd> fds;  // a beacon, then one for each region
  format::HelloReply hello{};
  UniqueFd socket;  // the session lives as long as this socket
  SharedMemory rings;
};

// Connects. Returns false if the server does not let it in. The refusal is then in the answer.
bool Plunder(const std::string& path, const format::HelloRequest& hello, Spoils* spoils) {
  auto socket = fabric::shm::ConnectTo(path);
  if (!socket.ok()) return false;
  spoils->socket = *std::move(socket);
  auto rings = SharedMemory::Create("rings", 1 << 20);
  auto replies = SharedMemory::Create("replies", 1 << 20);
  Greeting ask;
  ask.kind = Greeting::kAsk;
  ask.message_depth = kDepth;
  ask.regions = 1;
  ask.region_sizes[0] = 1 << 20;
  ask.region_access[0] = static_cast<uint32_t>(Access::kRemoteReadWrite);
  ask.data_bytes = sizeof(hello);
  std::memcpy(ask.data.data(), &hello, sizeof(hello));
  spoils->rings = *std::move(rings);
  const int fds[] = {spoils->rings.view().fd, replies->view().fd};
  if (!fabric::shm::SendGreeting(spoils->socket.get(), ask, fds).ok()) return false;
  pollfd ready{spoils->socket.get(), POLLIN, 0};
  if (poll(&ready, 1, 60'000) != 1) return false;
  const Status status = fabric::shm::ReceiveGreeting(spoils->socket.get(), &spoils->answer, &spoils->fds);
  if (!status.ok() || spoils->answer.kind != Greeting::kAccept) return false;
  spoils->hello = LoadAs<format::HelloReply>(spoils->answer.private_data());
  return spoils->fds.size() == 1 + spoils->answer.regions;
}

// Connects to a server that asks for a token.
bool PlunderWith(const std::string& token, const std::string& path, Spoils* spoils) {
  format::HelloRequest hello = RawPeer::Hello();
  if (Plunder(path, hello, spoils)) return false;
  const auto challenge = LoadAs<format::HelloChallenge>(spoils->answer.private_data());
  hello.challenge = challenge.challenge;
  hello.proof = format::ClientProof(token, challenge.nonce, hello);
  spoils->fds.clear();
  return Plunder(path, hello, spoils);
}

std::string LinkTo(const UniqueFd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

// Tries each way to write through a descriptor. Returns the names of those that work.
std::string WaysToWrite(const UniqueFd& fd, size_t size) {
  std::string ways;
  const auto map = [&](int descriptor, int protection) {
    return mmap(nullptr, size, protection, MAP_SHARED, descriptor, 0);
  };
  if (map(fd.get(), PROT_READ | PROT_WRITE) != MAP_FAILED) ways += " mmap";
  void* const readable = map(fd.get(), PROT_READ);
  if (readable == MAP_FAILED) return ways + " (and cannot be read)";
  if (mprotect(readable, size, PROT_READ | PROT_WRITE) == 0) ways += " mprotect";
  munmap(readable, size);
  const char byte = 'x';
  if (pwrite(fd.get(), &byte, 1, 0) == 1) ways += " pwrite";
  if (ftruncate(fd.get(), 0) == 0) ways += " ftruncate";
  if (fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0) ways += " fallocate";
  if (fchmod(fd.get(), 0666) == 0) ways += " fchmod";
  for (const int how : {O_RDWR, O_WRONLY, O_RDWR | O_TRUNC}) {
    const UniqueFd anew(open(LinkTo(fd).c_str(), how | O_CLOEXEC));
    if (!anew) continue;
    if (map(anew.get(), PROT_READ | PROT_WRITE) != MAP_FAILED || pwrite(anew.get(), &byte, 1, 0) == 1) {
      ways += " /proc/self/fd";
    }
  }
  return ways;
}

// A process of another user. Requires: this process has one thread when it is made. Its body returns a text about what
// it found, or nothing if all was well.
class OtherUser {
 public:
  static constexpr uid_t kNobody = 65534;

  // Runs the body when Run is called.
  explicit OtherUser(const std::function<std::string()>& body) {
    EXPECT_EQ(pipe2(go_, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(said_, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ != 0) return;
    char go = 0;
    std::string said = "it was not told to go on";
    if (read(go_[0], &go, 1) == 1) {
      const bool changed = setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0;
      // Otherwise /proc/self would belong to root, and the process could not try.
      said = changed && prctl(PR_SET_DUMPABLE, 1) == 0 ? body() : "the user cannot be changed";
    }
    (void)!write(said_[1], said.data(), std::min<size_t>(said.size(), 4000));
    _exit(0);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
  ~OtherUser() {
    close(go_[0]);
    close(go_[1]);
    waitpid(pid_, nullptr, 0);
    close(said_[0]);
    close(said_[1]);
  }
  // Starts the body, and returns its text.
  std::string Run() {
    (void)!write(go_[1], "g", 1);
    waitpid(pid_, nullptr, 0);
    close(said_[1]);
    said_[1] = -1;
    std::string said(4096, '\0');
    const ssize_t n = read(said_[0], said.data(), said.size());
    said.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return said;
  }

 private:
  int go_[2] = {-1, -1};
  int said_[2] = {-1, -1};
  pid_t pid_ = -1;
};

class Rights : public EveryPool {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    ASSERT_EQ(chmod(Path(".").c_str(), 0755), 0);  // mkdtemp makes the folder for its owner alone
  }
  [[nodiscard]] ServerOptions Options() const {
    ServerOptions options = EveryPool::Options();
    options.shm_access = ShmAccess::kEverybody;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(E2e, Rights, kEveryPool, PoolName);

TEST_P(Rights, AnotherUserCannotWriteIntoThePoolByAnyDescriptor) {
  const std::string socket = Path("socket");
  OtherUser other([&]() -> std::string {
    // The ways that are tried below work if nothing prevents them.
    const UniqueFd own(memfd_create("own", MFD_CLOEXEC));
    if (ftruncate(own.get(), 8192) != 0) return "it cannot make memory";
    const UniqueFd read_only(open(LinkTo(own).c_str(), O_RDONLY | O_CLOEXEC));
    if (WaysToWrite(read_only, 8192).find("/proc/self/fd") == std::string::npos)
      return "nothing can be opened again for writing";

    Spoils spoils;
    if (!Plunder(socket, RawPeer::Hello(), &spoils)) return "it was not let in";
    if (spoils.hello.placing != static_cast<uint8_t>(Placing::kStaging)) return "it does not stage";
    if (spoils.answer.regions != 4) return "it has other regions";
    if (const auto ways = WaysToWrite(spoils.fds[0], 4096); !ways.empty()) return "the beacon:" + ways;
    for (const uint32_t region : {format::kPoolRegion, format::kControlRegion}) {
      if (spoils.answer.region_access[region] != static_cast<uint32_t>(Access::kRemoteRead)) return "more is offered";
      const auto ways = WaysToWrite(spoils.fds[1 + region], spoils.answer.region_sizes[region]);
      if (!ways.empty()) return "region " + std::to_string(region) + ":" + ways;
    }
    // The server's open descriptors are not reachable either.
    if (open(("/proc/" + std::to_string(getppid()) + "/fd").c_str(), O_RDONLY | O_DIRECTORY) >= 0) {
      return "the server's descriptors are open to it";
    }
    return "";
  });
  const auto server = Serve(Options());
  const auto settled = Connect({.put_path = PutPath::kReserve});
  const auto delegating = Connect({.put_path = PutPath::kDelegate});
  const std::string value = Bytes(1, 50'000);
  ASSERT_TRUE(settled->Put("settled", value).ok());
  for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(delegating->Put("chunk" + std::to_string(i), Bytes(i, 20'000)).ok());
  EXPECT_EQ(other.Run(), "");
  EXPECT_EQ(*settled->Get("settled") == value, true);
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(delegating->Put("more" + std::to_string(i), Bytes(i, 20'000)).ok()) << "its chunk is its own";
    EXPECT_EQ(*settled->Get("chunk" + std::to_string(i)) == Bytes(i, 20'000), true);
    EXPECT_EQ(*settled->Get("more" + std::to_string(i)) == Bytes(i, 20'000), true);
  }
  EXPECT_EQ(settled->stats().reconnects, 0U);
  EXPECT_EQ(delegating->stats().reconnects, 0U);
}

TEST_P(Rights, AnotherUserPutsAndGets) {
  const std::string address = Address();
  OtherUser other([&]() -> std::string {
    auto client = Client::Connect(address);
    if (!client.ok()) return client.status().ToString();
    for (const size_t size : {size_t{10}, size_t{20'000}, (*client)->max_value_bytes(5)}) {
      const Status put = (*client)->Put("other", Bytes(size, size));
      if (!put.ok()) return put.ToString();
      const auto got = (*client)->Get("other");
      if (!got.ok() || *got != Bytes(size, size)) return "it does not get what it put";
    }
    if ((*client)->Put("large", Bytes(2, 30'000), {.if_version = kAbsent}).status().code() != Code::kConflict) {
      return "its condition does not count";
    }
    return (*client)->Delete("large").ToString() == Status().ToString() ? "" : "it cannot delete";
  });
  const auto server = Serve(Options());
  const auto client = Connect();
  ASSERT_TRUE(client->Put("large", Bytes(1, 30'000)).ok());
  EXPECT_EQ(InfoOf(*client).at("placing"), "pool");
  EXPECT_EQ(other.Run(), "");
  EXPECT_EQ(client->Get("large").status().code(), Code::kNotFound);
  EXPECT_EQ(client->Get("other")->size(), client->max_value_bytes(5));
  EXPECT_EQ(CountersOf(*client).at("puts_staged"), 2U);
  EXPECT_EQ(CountersOf(*client).at("violations"), 0U);
}

TEST_P(Rights, SocketIsOpenToTheUsersThatTheServerNames) {
  for (const ShmAccess access : {ShmAccess::kOwner, ShmAccess::kGroup, ShmAccess::kEverybody}) {
    const std::string socket = Path("socket");
    OtherUser other([&]() -> std::string {
      Spoils spoils;
      return Plunder(socket, RawPeer::Hello(), &spoils) ? "in" : "out";
    });
    ServerOptions options = Options();
    options.shm_access = access;
    const auto server = Serve(options);
    struct stat info {};
    ASSERT_EQ(stat(socket.c_str(), &info), 0);
    constexpr std::array<mode_t, 3> kModes = {0600, 0660, 0666};
    EXPECT_EQ(info.st_mode & 0777, kModes.at(static_cast<size_t>(access)));
    EXPECT_EQ(other.Run(), access == ShmAccess::kEverybody ? "in" : "out");
  }
}

// The server's option pool_writes lets everybody write.
TEST_P(Rights, EverybodyWritesIntoThePoolIfTheOperatorAllowsIt) {
  const std::string socket = Path("socket");
  OtherUser other([&]() -> std::string {
    Spoils spoils;
    if (!Plunder(socket, RawPeer::Hello(), &spoils)) return "it was not let in";
    if (spoils.hello.placing != static_cast<uint8_t>(Placing::kPool)) return "it does not write into the pool";
    const int fd = spoils.fds[1 + format::kPoolWriteRegion].get();
    return mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? "it cannot" : "it can";
  });
  ServerOptions options = Options();
  options.pool_writes = PoolWrites::kEverybody;
  const auto server = Serve(options);
  EXPECT_EQ(other.Run(), "it can");
}

// A client with a token for reading gets no memory for writing, of whatever user it is.
TEST_P(Rights, AReaderOfAnotherUserCannotWriteAnything) {
  const std::string socket = Path("socket");
  const std::string token = "a-token-of-somebody-who-reads";
  const std::string tokens = Path("tokens");
  const UniqueFd file(open(tokens.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const std::string line = token + " read-only\n";
  ASSERT_EQ(write(file.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  OtherUser other([&]() -> std::string {
    Spoils spoils;
    if (!PlunderWith(token, socket, &spoils)) return "it was not let in";
    if (spoils.hello.placing != static_cast<uint8_t>(Placing::kNone)) return "it places values";
    if (spoils.answer.regions != 2) return "it has other regions";
    for (uint32_t region = 0; region < 2; ++region) {
      const auto ways = WaysToWrite(spoils.fds[1 + region], spoils.answer.region_sizes[region]);
      if (!ways.empty()) return "region " + std::to_string(region) + ":" + ways;
    }
    return "";
  });
  ServerOptions options = Options();
  options.token_file = tokens;
  const auto server = Serve(options);
  EXPECT_EQ(other.Run(), "");
}

// --- The server's own user

class OwnUser : public EveryPool {};
INSTANTIATE_TEST_SUITE_P(E2e, OwnUser, kEveryPool, PoolName);

// If nobody may write into it, a pool in memory is sealed. Then not even root can open it again for writing.
TEST_P(OwnUser, PoolInMemoryIsSealedIfNobodyMayWrite) {
  ServerOptions options = Options();
  options.pool_writes = PoolWrites::kNobody;
  const auto server = Serve(options);
  Spoils spoils;
  ASSERT_TRUE(Plunder(Path("socket"), RawPeer::Hello(), &spoils));
  EXPECT_EQ(spoils.hello.placing, static_cast<uint8_t>(Placing::kStaging));
  const uint32_t region = GetParam() == PoolKind::kDram ? format::kPoolRegion : format::kControlRegion;
  const std::string ways = WaysToWrite(spoils.fds[1 + region], spoils.answer.region_sizes[region]);
  EXPECT_TRUE(ways.empty() || ways == " fchmod") << ways;
  // The descriptor itself does not allow writing, for any kind of pool.
  const auto size = static_cast<size_t>(spoils.answer.region_sizes[format::kPoolRegion]);
  EXPECT_EQ(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, spoils.fds[1].get(), 0), MAP_FAILED);
}

// A write that never ends could only go into the client's own staging buffer.
TEST_P(OwnUser, EndlessWriteKeepsNoSessionOpenWithoutPoolWrites) {
  ServerOptions options = Options();
  options.pool_writes = PoolWrites::kNobody;
  const auto server = Serve(options);
  const auto client = Connect();
  for (uint64_t i = 1; i <= 3; ++i) {
    Spoils spoils;
    ASSERT_TRUE(Plunder(Path("socket"), RawPeer::Hello(), &spoils));
    EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("clients") == 2; }));
    fabric::shm::Ring ring(spoils.rings.bytes().data(), kDepth);
    ASSERT_TRUE(ring.BeginPlacing());
    ring.Push({static_cast<uint32_t>(fabric::OpKind::kReceive), 0, 0, 0}, {});  // this message breaks the protocol
    if (ring.Publish()) fabric::shm::RingDoorbell(spoils.socket.get());
    EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client).at("clients") == 1; }));
    EXPECT_EQ(CountersOf(*client).at("violations"), i);
  }
}

}  // namespace
}  // namespace erda
