// The shm fabric: rings, queues, descriptors, and clients that write anything into them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "base/shared_memory.h"
#include "fabric/shm/ring.h"
#include "fabric/shm/shm_fabric.h"
#include "fabric/shm/socket.h"
#include "format/hello.h"
#include "regression/fixture.h"
#include "regression/intruder.h"

namespace erda {
namespace {

using fabric::Access;
using fabric::OpKind;
using fabric::shm::Descriptor;
using fabric::shm::Greeting;
using fabric::shm::Ring;

// --- Rings and queues

// The first look stored the tail as known, and the next look took it for messages.
TEST(RingTest, TailTooFarAheadIsNonsenseAtEachLook) {
  constexpr uint32_t kDepth = 4;
  for (const uint64_t tail : {uint64_t{kDepth + 1}, uint64_t{1} << 40, UINT64_MAX}) {
    alignas(kCacheLine) std::array<std::byte, Ring::Bytes(kDepth)> memory{};
    std::memcpy(memory.data(), &tail, sizeof(tail));  // the tail is the first word of a ring
    Ring ring(memory.data(), kDepth);
    Descriptor descriptor{};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ring.Peek(&descriptor), Ring::Look::kNonsense) << tail << ", look " << i;
  }
}

// Each 256th Poll looks at the sockets, and consumed the doorbell of Wake. The next Wait then slept for its whole time.
TEST(QueueTest, WakeIsNotLostByManyPolls) {
  fabric::shm::ShmFabric fabric;
  const auto queue = *fabric.CreateQueue();
  std::array<fabric::Completion, 4> completions;
  queue->Wake();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(queue->Poll(completions), 0U);
  const auto begin = std::chrono::steady_clock::now();
  queue->Wait(std::chrono::seconds(8));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(7));
}

// --- Memory that only its owner may write

// Returns true if a process that has the descriptor can map the memory for writing, or write into it.
bool CanBeWritten(int fd, size_t size) {
  const UniqueFd again(open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC));
  for (const int each : {fd, again.get()}) {
    if (each < 0) continue;
    void* writable = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, each, 0);
    if (writable != MAP_FAILED) {
      munmap(writable, size);
      return true;
    }
    void* readable = mmap(nullptr, size, PROT_READ, MAP_SHARED, each, 0);
    if (readable != MAP_FAILED) {
      const bool changed = mprotect(readable, size, PROT_READ | PROT_WRITE) == 0;
      munmap(readable, size);
      if (changed) return true;
    }
    if (pwrite(each, "x", 1, 0) == 1) return true;
  }
  return false;
}

// A process can open a descriptor again for writing through /proc/self/fd, also one that was opened for reading.
TEST(SharedMemoryTest, MemoryOfAnOwnerCannotBeMappedForWritingByReopeningADescriptor) {
  const auto memory = SharedMemory::Create("test", 4096, SharedMemory::Writers::kOwner);
  ASSERT_TRUE(memory.ok()) << memory.status().ToString();
  EXPECT_FALSE(CanBeWritten(memory->view().fd_read_only, 4096));
  EXPECT_FALSE(CanBeWritten(memory->view().fd, 4096));
  memory->bytes()[0] = std::byte{1};  // the owner still writes
  EXPECT_EQ(memory->bytes()[0], std::byte{1});
}

// --- A client that speaks the greetings of the fabric itself

class IntruderTest : public RegressionTest {
 protected:
  IntruderTest() : server_(Serve(DramOptions())), steady_(Connect()) {}

  void ExpectServing() {
    EXPECT_TRUE(steady_->Put("steady", "value").ok());
    EXPECT_EQ(*steady_->Get("steady"), "value");
    EXPECT_EQ(steady_->stats().reconnects, 0U);
    EXPECT_TRUE(Connect()->Put("steady", "value").ok());
  }
  [[nodiscard]] std::string Socket() const { return Path("socket"); }

  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> steady_;
};

// A value that was no Access passed for more than kRemoteReadWrite. The server mapped the memory for reading, wrote its
// reply there, and died.
TEST_F(IntruderTest, RegionWithAnInvalidAccessIsRefused) {
  for (const uint32_t access : {3U, 0x102U, 0U, UINT32_MAX}) {
    Intruder intruder(Socket(), access);
    EXPECT_FALSE(intruder.connected()) << access;
    if (intruder.connected()) intruder.Ask();
    ExpectServing();
  }
  Intruder read_only(Socket(), static_cast<uint32_t>(Access::kRemoteRead));
  if (read_only.connected()) read_only.Ask();
  ExpectServing();
}

// The client gave the server the descriptor of the doorbell. The server wrote into it to wake the client, and blocked
// when the pipe was full.
TEST_F(IntruderTest, ClientThatNeverReadsItsDoorbellDoesNotBlockTheServer) {
  Intruder intruder(Socket());
  ASSERT_TRUE(intruder.connected());
  for (int i = 0; i < 1000; ++i) {
    intruder.Ask();
    ASSERT_TRUE(intruder.TakeAnswer()) << i;
  }
  ExpectServing();
}

// The server got SIGPIPE when it wrote into a pipe that nobody read any more.
TEST_F(IntruderTest, ClientThatClosesItsDoorbellDoesNotEndTheServer) {
  Intruder intruder(Socket());
  ASSERT_TRUE(intruder.connected());
  ASSERT_EQ(shutdown(intruder.socket(), SHUT_RD), 0);
  for (int i = 0; i < 10; ++i) {
    intruder.Ask();
    ASSERT_TRUE(intruder.TakeAnswer()) << i;
  }
  ExpectServing();
}

TEST_F(IntruderTest, AClientThatLeavesBeforeItsAnswerDoesNotEndTheServer) {
  for (int i = 0; i < 50; ++i) {
    Intruder intruder(Socket());
    ASSERT_TRUE(intruder.connected());
    for (uint32_t slot = 0; slot < Intruder::kSlots; ++slot) intruder.Ask();
  }
  ExpectServing();
}

// The server looked for messages before it slept. That look stored the tail as known, nonsense or not.
TEST_F(IntruderTest, AClientWhoseRingHoldsNonsenseIsClosed) {
  Intruder intruder(Socket());
  ASSERT_TRUE(intruder.connected());
  intruder.Ask();
  ASSERT_TRUE(intruder.TakeAnswer());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the shard sleeps now, usually
  const uint64_t tail = uint64_t{1} << 40;
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(intruder.rings())).store(tail);
  fabric::shm::RingDoorbell(intruder.socket());
  EXPECT_TRUE(WaitUntil([&] { return !fabric::shm::HearDoorbell(intruder.socket()); }));
  EXPECT_TRUE(WaitUntil([&] { return server_->stats().clients == 1; }));
  EXPECT_EQ(server_->stats().puts, 0U);
  ExpectServing();
}

// A queue reads the doorbells of its clients between requests, so doorbells without messages cost the other clients
// time.
TEST_F(IntruderTest, ClientThatRingsWithoutMessagesIsClosed) {
  Intruder intruder(Socket());
  ASSERT_TRUE(intruder.connected());
  EXPECT_TRUE(WaitUntil([&] {
    for (uint32_t i = 0; i < 2 * Intruder::kSlots; ++i) fabric::shm::RingDoorbell(intruder.socket());
    return !fabric::shm::HearDoorbell(intruder.socket());
  }));
  EXPECT_TRUE(WaitUntil([&] { return server_->stats().clients == 1; }));
  ExpectServing();
}

// Each client could write the memory that all clients read and trust.
TEST_F(IntruderTest, NoClientCanWriteTheControlBlockOrTheBeacon) {
  Intruder intruder(Socket());
  ASSERT_TRUE(intruder.connected());
  EXPECT_FALSE(CanBeWritten(intruder.beacon(), 4096));
  const uint64_t size = intruder.answer().region_sizes[format::kControlRegion];
  EXPECT_FALSE(CanBeWritten(intruder.region(format::kControlRegion), size));
  ExpectServing();
}

// --- Descriptors

// The server kept each descriptor that a client sent, and opened several more for each client.
TEST_F(RegressionTest, AServerKeepsAboutOneDescriptorForEachConnection) {
  constexpr size_t kClients = 20;
  const ServerProcess server(Address());
  const auto first = Connect();  // the server has now opened all that it opens only once
  ASSERT_TRUE(first->Put("key", "value").ok());
  const size_t before = server.Descriptors();
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(clients.back()->Put("key" + std::to_string(i), "value").ok());
  }
  const auto limit = std::chrono::seconds(10);
  EXPECT_TRUE(WaitUntil([&] { return server.Descriptors() <= before + kClients + 4; }, limit))
      << before << " before, " << server.Descriptors() << " with " << kClients << " clients";
  clients.clear();
  EXPECT_TRUE(WaitUntil([&] { return server.Descriptors() <= before; }, limit)) << "they are not closed";
}

}  // namespace
}  // namespace erda
