// The fabric contract: the guarantees of a reliable-connected RDMA queue pair, and no more. Engine code uses only this
// contract. fabric/shm, fabric/verbs and fabric/sim implement it, and one conformance suite (tests/fabric) tests all
// three.
//
// ORDER. Operations of one channel are executed in the order posted, except for Reads among themselves. A WriteImm or
// Send is delivered after everything posted before it on that channel has been placed. A Read takes its bytes after
// earlier Writes of that channel are placed, and before later ones are. A Read that is posted after a poll of an
// earlier Read's completion takes its bytes later. The completions of an end's operations come in the order posted.
// NOT PROMISED. There is no order among Reads that are in flight together, not even after one doorbell. A NIC starts
// them in the order posted, but its reads of the memory may then pass each other. Only Capabilities::reads_in_order
// promises an order. A Write may land in pieces and in any order of addresses. A Read need not see one instant of
// memory. But each aligned 8-byte word is read and written whole by a transfer that begins at a word in the remote
// memory. A completed Write need not be placed, persistent, or visible to another channel. There is no order between
// channels. FAILURE. A channel that fails never recovers. Its posted operations complete with an error (flushed), in
// order; then comes one kClosed. A flushed operation may or may not have been executed. A Write that had completed may
// not have been executed, either. A kClosed is no fence: only the destruction of the Channel, after Fence returned
// true, keeps the peer's late Writes out. LIFE. A queue outlives its channels. A region outlives the channels on which
// it is offered. THREADS. A completion queue and all its channels belong to one thread. Other threads may call only
// Wake(). Any thread may use a Fabric and register memory on it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_memory.h"
#include "erda/status.h"

namespace erda::fabric {

// The rights of a peer to a registered region. The owner may always use it as local memory. With kRemoteReadWindows,
// the peer reads all of it, and writes where a window is open to it (Channel::OpenWindow). The peer sees kRemoteRead.
enum class Access : uint8_t { kLocal = 0, kRemoteRead = 1, kRemoteReadWrite = 2, kRemoteReadWindows = 3 };

// Memory that the fabric knows. Local buffers of operations lie in a region, and a peer reaches the regions that were
// offered to it. Registering costs system calls, so do it once. The memory must outlive the region, and the region the
// channels on which it is offered.
class Region {
 public:
  Region() = default;
  virtual ~Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
  [[nodiscard]] virtual Access access() const = 0;
};

// A region that a peer offered on a channel. Its number is its index in the offer.
struct RemoteRegion {
  uint64_t size = 0;
  Access access = Access::kLocal;
};

struct RemoteAddress {
  uint32_t region = 0;
  uint64_t offset = 0;
  uint32_t window = 0;  // The key of an open window, for a Write. 0: the Write uses the right to the region itself.
};

enum class OpKind : uint8_t {
  kRead,      // One-sided: copies remote bytes into local ones.
  kWrite,     // One-sided: copies local bytes into remote ones.
  kWriteImm,  // A Write; then the peer gets kReceiveImm with the immediate. `local` may be empty.
  kSend,      // A message of at most kSendBytesMax bytes. The peer gets kReceive with its bytes.
  kReceiveImm,
  kReceive,
  kConnected,     // To both ends: the channel accepts posts now. peer_regions() and peer_data() are set.
  kClosed,        // The channel is gone: refused, failed, or closed by the peer. channel->error() has the reason.
  kWindowClosed,  // Completes a CloseWindow.
};

inline constexpr size_t kSendBytesMax = 256;
// The private data that each step of connecting can carry. The limits are those of rdma_cm: 56 bytes for a request and
// 148 for a refusal, of which the verbs fabric needs 8. An acceptance travels over the new queue pair.
inline constexpr size_t kConnectDataMax = 48;
inline constexpr size_t kAcceptDataMax = 196;
inline constexpr size_t kRejectDataMax = 140;
inline constexpr uint32_t kMessageDepthMax = 1024;
inline constexpr size_t kOfferedRegionsMax = 8;

struct WorkRequest {
  OpKind kind = OpKind::kRead;  // kRead, kWrite, kWriteImm or kSend.
  bool signaled = true;  // If false, there is a completion only if the operation fails. Reads are always signaled.
  uint32_t imm = 0;
  uint64_t id = 0;  // Returned in the completion.
  // Writes read from it, and Reads write to it. Must not change until the operation has completed.
  std::span<std::byte> local;
  RemoteAddress remote;
};

class Channel;

struct Completion {
  Channel* channel = nullptr;
  OpKind kind = OpKind::kRead;
  Code code = Code::kOk;
  uint32_t imm = 0;
  uint64_t id = 0;
  uint32_t bytes = 0;               // Of a Read, Write, WriteImm, ReceiveImm or message.
  std::span<const std::byte> data;  // Of kReceive. Valid until the next Poll, and not longer than the channel.
};

// One end of a reliable connection. The destructor closes it. If Fence returned true before, no operation of the peer
// is placed after the destructor. No later Poll returns a completion of a destroyed channel.
class Channel {
 public:
  Channel() = default;
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Posts all requests in order, with one doorbell. Requires: the channel is connected. An error of Post means that
  // nothing was posted.
  // Returns kInvalidArgument if a request breaks the contract on this side. Examples are a message that is too long,
  // and local bytes outside every region, where the fabric can tell. Returns kResourceExhausted if more messages than
  // the message depth would be unconsumed by the peer. This end may not know of the last messages that the peer
  // consumed, up to half the depth. Returns kUnavailable if the channel has failed. A remote address that is out of
  // bounds, or without the right, completes with kPermissionDenied and fails the channel.
  virtual Status Post(std::span<const WorkRequest> batch) = 0;
  // Reads without a completion, if the fabric need not wait for one: over shm it is a copy. The Read is executed after
  // everything posted before it. Returns false if the Read was not executed, or its bytes do not count. The caller then
  // posts the Read to learn the reason.
  virtual bool ReadNow(std::span<std::byte> /*local*/, RemoteAddress /*remote*/) { return false; }

  // Prepares a destruction after which the owner uses the channel's memory for something else. Returns true if
  // destroying the channel is a fence. Returns false while the peer places bytes. Nothing can stop that: over shm the
  // peer's processor copies. Then the caller must ask again. Meanwhile the channel has failed, and reports nothing
  // more.
  virtual bool Fence() = 0;

  // Opens a window, if the fabric has them (Capabilities::memory_windows). A window is a piece of this end's memory.
  // Only this peer may write into it, only on this channel, with the key that OpenWindow returns. Requires: the piece
  // lies in a region of kRemoteReadWindows that was offered on the channel, and overlaps no other window. The window is
  // open before the peer receives anything that is posted later. No two windows of a channel have the same key.
  virtual Result<uint32_t> OpenWindow(const Region& /*region*/, uint64_t /*offset*/, uint64_t /*bytes*/) {
    return Status(Code::kInvalidArgument, "this fabric has no memory windows");
  }
  // Closes a window. Completes as kWindowClosed with this id, in no order with other completions. After kOk, nothing is
  // placed through the window any more, and a Write that tries fails the channel. A failure, like the channel's
  // destruction, closes all windows. REQUIRES: OpenWindow returned the key, and the window was not closed.
  virtual Status CloseWindow(uint32_t /*key*/, uint64_t /*id*/) {
    return {Code::kInvalidArgument, "this fabric has no memory windows"};
  }

  [[nodiscard]] virtual bool connected() const = 0;
  // Returns true if the peer is known to be gone, without a system call; kClosed will come. Returns false if nothing is
  // known.
  [[nodiscard]] virtual bool lost() const { return false; }
  // Returns the regions that the peer offered. Empty until connected.
  [[nodiscard]] virtual std::span<const RemoteRegion> peer_regions() const = 0;
  // Returns the private data of the other end's Accept, Reject or Connect.
  [[nodiscard]] virtual std::span<const std::byte> peer_data() const = 0;
  // Returns the reason of a failure or refusal. Returns ok before that.
  [[nodiscard]] virtual const Status& error() const = 0;
  // Returns true if the channel failed because the peer broke a rule of the fabric, as far as this end can tell.
  [[nodiscard]] virtual bool peer_broke_rules() const { return false; }

  void* user = nullptr;  // For the owner. The fabric does not touch it.
};

// A queue in which completions of its channels appear.
class CompletionQueue {
 public:
  CompletionQueue() = default;
  virtual ~CompletionQueue() = default;
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Takes completions and messages that are there, up to out.size(), without waiting. Taking a message consumes it: the
  // peer may post another one.
  virtual size_t Poll(std::span<Completion> out) = 0;
  // Returns when Poll may have something, after Wake(), or after `timeout` at the latest. No wake-up is lost.
  virtual void Wait(std::chrono::nanoseconds timeout) = 0;

  // These three wait for several queues at once, in WaitAny. Arm returns false if Poll may have something already.
  // Otherwise the descriptor becomes readable as soon as Poll may have something, and after Wake(). Arm lowers
  // `at_most` to the longest time that the queue can sleep. Disarm ends the effect of Arm, whatever Arm returned.
  virtual bool Arm(std::chrono::nanoseconds* at_most) = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
  virtual void Disarm() = 0;
  // Ends the current or the next Wait. Any thread may call it.
  virtual void Wake() = 0;
};

// The part of one end in a new channel.
struct ChannelOptions {
  CompletionQueue* queue = nullptr;
  std::span<Region* const> offer;  // Regions that the peer may use, in an order on which both ends agreed.
  std::span<const std::byte> private_data;
  uint32_t message_depth = 64;  // WriteImms and Sends in each direction that the receiver has not polled yet.
};

// The user of a peer's process. A fabric knows it only on one machine.
enum class PeerUser : uint8_t { kUnknown, kSame, kOther };

// A peer that asks to connect.
class Incoming {
 public:
  Incoming() = default;
  virtual ~Incoming() = default;  // Refuses the peer if neither Accept nor Reject was called.
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;
  [[nodiscard]] virtual std::span<const std::byte> peer_data() const = 0;
  // Returns a description of the peer for people, as far as the fabric knows it: "shm, process 12 of user 0".
  [[nodiscard]] virtual std::string peer_name() const { return {}; }
  // Returns the user that the system reports, and not the peer.
  [[nodiscard]] virtual PeerUser peer_user() const { return PeerUser::kUnknown; }
  // Returns at once; kConnected or kClosed follows on the queue. The channel's peer_data() is set already. The
  // connecting end chose message_depth.
  virtual Result<std::unique_ptr<Channel>> Accept(const ChannelOptions& options) = 0;
  virtual void Reject(std::span<const std::byte> private_data) = 0;
};

// The users of this machine that may ask to connect, if the fabric knows users.
enum class Askers : uint8_t { kOwner, kGroup, kEverybody };

class Listener {
 public:
  Listener() = default;
  virtual ~Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] virtual const std::string& address() const = 0;
  // Sets the users that may ask. Before that, only the owner may.
  virtual Status LetAsk(Askers /*askers*/) { return {}; }
  virtual std::unique_ptr<Incoming> Poll() = 0;  // Returns null if no peer asks.
  virtual void Wait(std::chrono::nanoseconds timeout) = 0;
  virtual void Wake() = 0;  // Any thread may call it.
};

// The abilities of a device. The fabric asks the device, and assumes nothing.
struct Capabilities {
  std::string device;  // The device's name; empty if there is no device.
  bool immediate_data = true;
  bool atomics = false;
  bool memory_windows = false;  // Windows of type 2B.
  bool on_demand_paging = false;
  bool native_flush = false;
  bool knows_users = false;        // Incoming::peer_user never returns kUnknown.
  bool reads_in_order = false;     // Reads of one channel take their bytes in the order posted.
  bool nic_writes = false;         // A NIC places Writes, past this machine's CPU. A Read can flush them.
  uint32_t outstanding_reads = 0;  // The limit for one channel; 0: no limit.
};

class Fabric {
 public:
  Fabric() = default;
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  [[nodiscard]] virtual std::string_view scheme() const = 0;  // Such as "shm".
  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  // Returns a second fabric of the same device, for peers that may only read. It has separate regions, queues and
  // channels, and no key there opens a region that is registered here. A peer that asks at a listener of this fabric
  // may be accepted with a queue and regions of the second one. Returns null if keys open only regions that were
  // offered to the peer (shm, sim).
  virtual Result<std::shared_ptr<Fabric>> ForReaders() { return std::shared_ptr<Fabric>(); }
  virtual Result<std::unique_ptr<Region>> Register(const MemoryView& memory, Access access) = 0;
  virtual Result<std::unique_ptr<CompletionQueue>> CreateQueue() = 0;
  virtual Result<std::unique_ptr<Listener>> Listen(std::string_view address) = 0;
  // Returns at once; kConnected or kClosed follows on the queue. If no one listens at the address, shm fails at once,
  // and other fabrics report it by kClosed.
  virtual Result<std::unique_ptr<Channel>> Connect(std::string_view address, const ChannelOptions& options) = 0;
};

// Waits for all queues, as CompletionQueue::Wait does for one. A Wake of any queue ends the wait.
void WaitAny(std::span<CompletionQueue* const> queues, std::chrono::nanoseconds timeout);

// Opens the fabric that an address names, to listen there or to connect to it: "shm:/path", "verbs://host:port".
// Returns kInvalidArgument if no fabric has such addresses. Returns kUnavailable if the fabric's module or device does
// not exist.
enum class Role : uint8_t { kConnect, kListen };
Result<std::shared_ptr<Fabric>> OpenFabric(std::string_view address, Role role);

}  // namespace erda::fabric
