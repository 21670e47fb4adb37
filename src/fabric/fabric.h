// The fabric contract: what a reliable-connected RDMA queue pair gives, and no more. Engine code is written against
// this alone; fabric/shm, fabric/verbs and fabric/sim implement it, and one conformance suite (tests/fabric) holds them
// to it.
//
// ORDER. Operations of one channel are executed in the order posted, except for Reads among themselves. A WriteImm or
// Send is delivered after everything posted before it on that channel has been placed. A Read takes its bytes after
// earlier Writes of that channel are placed, and before later ones are. A Read that is posted after the completion of
// an earlier one was polled takes its bytes later. Completions of own operations come in the order posted.
// NOT PROMISED. Any order among Reads that are in flight together, also behind one doorbell, unless
// Capabilities::reads_in_order says so: a NIC takes them up in the order posted, and then its reads of the memory may
// pass each other. That a Write lands all at once or in address order; that a Read sees one instant of memory, except
// that each aligned 8-byte word is read and written whole by a transfer that begins at one in the remote memory; that a
// completed Write is placed, persistent, or visible to another channel; any order between channels.
// FAILURE. A channel that fails, fails for good. What was posted completes with an error (flushed), in order, and then
// comes one kClosed. A flushed operation may or may not have been executed, a Write too that had completed before.
// kClosed is no fence: only destroying the Channel keeps the peer's late Writes out, once Fence said so.
// LIFE. A queue outlives its channels, a region the channels it is offered to.
// THREADS. A completion queue and all its channels belong to one thread; only Wake() may be called from others. A
// Fabric, and Register on it, may be used from any thread.
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

// What a peer may do with a registered region. The owner itself may always use it as local memory.
// kRemoteReadWindows: it reads all of it, and writes where a window is open to it (Channel::OpenWindow); it is told of
// kRemoteRead.
enum class Access : uint8_t { kLocal = 0, kRemoteRead = 1, kRemoteReadWrite = 2, kRemoteReadWindows = 3 };

// Memory that the fabric knows: local buffers of operations lie in one, and a peer reaches what was offered to it.
// Registering costs system calls; do it once. The memory must outlive the region, the region the channels it is offered
// to.
class Region {
 public:
  Region() = default;
  virtual ~Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
  [[nodiscard]] virtual Access access() const = 0;
};

// What a peer offered on a channel: its number is the index in the offer.
struct RemoteRegion {
  uint64_t size = 0;
  Access access = Access::kLocal;
};

struct RemoteAddress {
  uint32_t region = 0;
  uint64_t offset = 0;
  uint32_t window = 0;  // the key of an open one, for a Write; 0: by the right to the region itself
};

enum class OpKind : uint8_t {
  kRead,      // one-sided: remote bytes into local ones
  kWrite,     // one-sided: local bytes into remote ones
  kWriteImm,  // a Write, then the peer gets kReceiveImm with the immediate; local may be empty
  kSend,      // a message of at most kSendBytesMax bytes; the peer gets kReceive with its bytes
  kReceiveImm,
  kReceive,
  kConnected,     // to both ends: the channel can be posted to; peer_regions() and peer_data() are there
  kClosed,        // the channel is gone: refused, failed, or the peer closed it; channel->error() says why
  kWindowClosed,  // of CloseWindow
};

inline constexpr size_t kSendBytesMax = 256;
// The private data that each step of connecting can carry. (rdma_cm has 56 bytes for a request and 148 for a refusal,
// of which the verbs fabric needs 8; an acceptance travels over the new queue pair.)
inline constexpr size_t kConnectDataMax = 48;
inline constexpr size_t kAcceptDataMax = 196;
inline constexpr size_t kRejectDataMax = 140;
inline constexpr uint32_t kMessageDepthMax = 1024;
inline constexpr size_t kOfferedRegionsMax = 8;

struct WorkRequest {
  OpKind kind = OpKind::kRead;  // kRead, kWrite, kWriteImm or kSend
  bool signaled = true;         // without: no completion, unless it fails. Reads are always signaled.
  uint32_t imm = 0;
  uint64_t id = 0;             // comes back in the completion
  std::span<std::byte> local;  // read from by writes, written to by Reads; stable until the operation completed
  RemoteAddress remote;
};

class Channel;

struct Completion {
  Channel* channel = nullptr;
  OpKind kind = OpKind::kRead;
  Code code = Code::kOk;
  uint32_t imm = 0;
  uint64_t id = 0;
  uint32_t bytes = 0;               // of a Read, Write, WriteImm, ReceiveImm or message
  std::span<const std::byte> data;  // of kReceive; lives until the next Poll, or as long as its channel
};

// One end of a reliable connection. Destroying it closes it: after the destructor no operation of the peer that was not
// placed yet will be, if Fence said true before. No completion of a destroyed channel is returned by a later Poll.
class Channel {
 public:
  Channel() = default;
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Posts all, in order, behind one doorbell. May be called when connected. Returns kInvalidArgument and posts nothing
  // if a request breaks the contract on this side (a message too long, local bytes outside every region of the fabric
  // where that can be told); kResourceExhausted and posts nothing if more than the message depth would be unconsumed by
  // the peer, as far as this end knows: up to half the depth may be consumed and not reported yet; kUnavailable if the
  // channel has failed. A remote address out of bounds, or without the right, completes with kPermissionDenied and
  // fails the channel.
  virtual Status Post(std::span<const WorkRequest> batch) = 0;
  // A Read without a completion, where none has to be waited for (shm: it is a copy): executed behind all that was
  // posted before. False: it was not, or does not count, for whatever reason; posting it tells.
  virtual bool ReadNow(std::span<std::byte> /*local*/, RemoteAddress /*remote*/) { return false; }

  // For an owner who is about to destroy the channel, and uses memory that the peer could write into for something
  // else then. True: destroying it is a fence. False: the peer is placing something at this moment, which nothing can
  // stop (shm: its processor copies); ask again. Meanwhile the channel has failed, and says nothing more.
  virtual bool Fence() = 0;

  // Windows, where the fabric has them (Capabilities::memory_windows): pieces of this end's memory that this peer alone
  // may write to, on this channel alone, by the key that OpenWindow returns. They lie in a region of kRemoteReadWindows
  // that was offered on it, each byte in one at most. A window is open before the peer hears of anything that is posted
  // later; no two of a channel have the same key.
  virtual Result<uint32_t> OpenWindow(const Region& /*region*/, uint64_t /*offset*/, uint64_t /*bytes*/) {
    return Status(Code::kInvalidArgument, "this fabric has no memory windows");
  }
  // Completes as kWindowClosed with this id, in no order with others: from kOk on nothing is placed through it any
  // more, and a Write that tries to fails the channel. If it fails, or the channel is destroyed, that closes all of
  // them. REQUIRES: OpenWindow gave the key, and it was not closed.
  virtual Status CloseWindow(uint32_t /*key*/, uint64_t /*id*/) {
    return {Code::kInvalidArgument, "this fabric has no memory windows"};
  }

  [[nodiscard]] virtual bool connected() const = 0;
  // The peer is gone, as far as can be told without a system call: kClosed will come. False: nothing is known.
  [[nodiscard]] virtual bool lost() const { return false; }
  // What the peer offered; empty until connected.
  [[nodiscard]] virtual std::span<const RemoteRegion> peer_regions() const = 0;
  // The private data of the other end's Accept (also of its Reject), or of its Connect.
  [[nodiscard]] virtual std::span<const std::byte> peer_data() const = 0;
  // Why it failed or was refused; ok while it has not.
  [[nodiscard]] virtual const Status& error() const = 0;
  // It failed since the peer did what the fabric does not allow, as far as this end can tell.
  [[nodiscard]] virtual bool peer_broke_rules() const { return false; }

  void* user = nullptr;  // the owner's, untouched by the fabric
};

// Where completions of its channels appear.
class CompletionQueue {
 public:
  CompletionQueue() = default;
  virtual ~CompletionQueue() = default;
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Takes what has completed or arrived, up to out.size(), without waiting. Messages that were received are consumed:
  // the peer may post as many again.
  virtual size_t Poll(std::span<Completion> out) = 0;
  // Returns when Poll may have something, after Wake(), or at the latest after `timeout`. No wake-up is lost.
  virtual void Wait(std::chrono::nanoseconds timeout) = 0;

  // Waiting for several queues at once: WaitAny. Arm is false if Poll may have something already; otherwise the
  // descriptor becomes readable as soon as Poll may have something, and after Wake(). Disarm ends what Arm began,
  // whatever it returned. `at_most` is lowered to what the queue can sleep at a stretch.
  virtual bool Arm(std::chrono::nanoseconds* at_most) = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
  virtual void Disarm() = 0;
  // From any thread: the current or the next Wait returns.
  virtual void Wake() = 0;
};

// What an end brings to a new channel.
struct ChannelOptions {
  CompletionQueue* queue = nullptr;
  std::span<Region* const> offer;  // regions the peer may use, in the order that both ends agreed on
  std::span<const std::byte> private_data;
  uint32_t message_depth = 64;  // WriteImms and Sends in each direction that the receiver has not polled yet
};

// Whose process a peer is, where the fabric knows users: on one machine.
enum class PeerUser : uint8_t { kUnknown, kSame, kOther };

// A peer that asks to connect.
class Incoming {
 public:
  Incoming() = default;
  virtual ~Incoming() = default;  // refuses, if neither was called
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;
  [[nodiscard]] virtual std::span<const std::byte> peer_data() const = 0;
  // Who it is, as far as the fabric knows by itself, for people: "shm, process 12 of user 0".
  [[nodiscard]] virtual std::string peer_name() const { return {}; }
  // By what the system says, not the peer.
  [[nodiscard]] virtual PeerUser peer_user() const { return PeerUser::kUnknown; }
  // Returns at once; kConnected or kClosed follows on the queue. The channel's peer_data() is there already.
  // message_depth is the connecting end's.
  virtual Result<std::unique_ptr<Channel>> Accept(const ChannelOptions& options) = 0;
  virtual void Reject(std::span<const std::byte> private_data) = 0;
};

// Which users of this machine may ask, where the fabric knows users.
enum class Askers : uint8_t { kOwner, kGroup, kEverybody };

class Listener {
 public:
  Listener() = default;
  virtual ~Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] virtual const std::string& address() const = 0;
  // At first only the owner may ask.
  virtual Status LetAsk(Askers /*askers*/) { return {}; }
  virtual std::unique_ptr<Incoming> Poll() = 0;  // null if nobody asks
  virtual void Wait(std::chrono::nanoseconds timeout) = 0;
  virtual void Wake() = 0;  // from any thread
};

// What the device can do; asked of it, never assumed.
struct Capabilities {
  std::string device;  // its name; empty if there is none
  bool immediate_data = true;
  bool atomics = false;
  bool memory_windows = false;  // of type 2B
  bool on_demand_paging = false;
  bool native_flush = false;
  bool knows_users = false;        // Incoming::peer_user is never kUnknown
  bool reads_in_order = false;     // Reads of one channel take their bytes in the order posted
  bool nic_writes = false;         // Writes are placed by a NIC, past this machine's CPU: a Read can flush them
  uint32_t outstanding_reads = 0;  // of one channel; 0: no limit
};

class Fabric {
 public:
  Fabric() = default;
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  [[nodiscard]] virtual std::string_view scheme() const = 0;  // "shm"
  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  // The same device for peers that may only read: a fabric of its own for their regions, queues and channels, where no
  // key opens what is registered here. Who asks at a listener of this one is accepted with a queue and regions of that
  // one. Null where a key opens nothing anyway that was not offered to the peer (shm, sim).
  virtual Result<std::shared_ptr<Fabric>> ForReaders() { return std::shared_ptr<Fabric>(); }
  virtual Result<std::unique_ptr<Region>> Register(const MemoryView& memory, Access access) = 0;
  virtual Result<std::unique_ptr<CompletionQueue>> CreateQueue() = 0;
  virtual Result<std::unique_ptr<Listener>> Listen(std::string_view address) = 0;
  // Returns at once; kConnected or kClosed follows on the queue. If nobody listens there, it fails at once where that
  // can be told (shm), else kClosed says so.
  virtual Result<std::unique_ptr<Channel>> Connect(std::string_view address, const ChannelOptions& options) = 0;
};

// Waits for all of them, as CompletionQueue::Wait does for one: a Wake of any ends it.
void WaitAny(std::span<CompletionQueue* const> queues, std::chrono::nanoseconds timeout);

// The fabric that an address names, for one who listens there or connects to it: "shm:/path", "verbs://host:port".
// kInvalidArgument for an address of no known fabric; kUnavailable if the fabric's module or device is not there.
enum class Role : uint8_t { kConnect, kListen };
Result<std::shared_ptr<Fabric>> OpenFabric(std::string_view address, Role role);

}  // namespace erda::fabric
