// The client: put, get and delete on a server's pool. Gets read the pool one-sidedly, without the server's CPU.
#pragma once

// GCC 10 says 201709 for -std=c++20.
#if __cplusplus < 201709L
#error "Erda needs C++20: compile with -std=c++20 or later, in CMake with CMAKE_CXX_STANDARD 20"
#endif
#if __cplusplus >= 201709L

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "erda/activity.h"
#include "erda/export.h"
#include "erda/polling.h"
#include "erda/status.h"

namespace erda {

// When a put counts as done. docs/guarantees.md says what each one means on each kind of pool.
enum class Ack : uint8_t {
  kPlaced = 0,     // Whole in the server's memory: survives the death of any process.
  kPersisted = 1,  // Whole on the pool's medium as well: survives a power cut if the pool is power-safe.
};

// How a put travels. docs/protocol.md draws each path.
enum class PutPath : uint8_t {
  kAuto = 0,      // Inline for what fits into a request, else delegate.
  kReserve = 1,   // The paper's: ask for space, then write the value there one-sidedly. Two round trips, no copy.
  kInline = 2,    // The value travels in the request. One round trip. For values that fit into a request.
  kDelegate = 3,  // Into a piece of the log that the client was given ahead. One round trip, no copy by the server.
                  // Without one (at first, or if space is short) inline or by a reservation.
  // A client that the server lets not write into the pool (ServerOptions::pool_writes) puts what others delegate, or
  // what does not fit into a request, into memory of its own at the server, which copies it into the log: one round
  // trip, also with conditions. Over a NIC it may delegate all the same, and only what has no such piece goes that way.
  // kReserve is kPermissionDenied then.
};

struct ClientOptions {
  Ack ack = Ack::kPersisted;
  PutPath put_path = PutPath::kAuto;
  uint32_t queue_depth = 64;                // Operations in flight, 1 to 256.
  uint32_t cache_entries = 65536;           // Keys whose places are remembered, for gets in one Read; 0: none, to 2^30.
  Polling polling = Polling::kAdaptive;     // How synchronous calls and Drain wait; Poll never waits.
  std::chrono::milliseconds timeout{5000};  // For connecting and for each operation; 1 to 2^40 ms.
  // What the server asks for, if it demands a token. With one the client speaks to no server that does not know it.
  std::string token{};
  // The same from a file, its first line; read each time it is asked for. Nobody else may be able to read it.
  std::string token_file{};
};

// Every put that takes effect gives its key a version: a number that this key never had before and never has again,
// also across restarts. It is larger than those before it, and never 0.
// expires: when it will be absent, by the server's clock; none: never.
using Deadline = std::chrono::sys_time<std::chrono::milliseconds>;
struct Versioned {
  std::string value;
  uint64_t version = 0;
  std::optional<Deadline> expires{};
};
struct VersionedView {
  std::string_view value;  // lives for the call only
  uint64_t version = 0;
  std::optional<Deadline> expires{};
};

// As a version in a condition: the key is absent.
inline constexpr uint64_t kAbsent = 0;

// The longest time to live: some 9,000 years.
inline constexpr std::chrono::milliseconds kTtlMax{int64_t{1} << 48};

struct PutOptions {
  // The put takes effect only if the key has this version just before it; kAbsent: only if there is no value. Else
  // kConflict, and nothing changes.
  std::optional<uint64_t> if_version{};
  // The value expires: so long after the server has taken the put, 1 ms to kTtlMax, the key is absent. A later put
  // without it stays; an increment leaves the deadline as it is. The value may have 8 bytes less (max_value_bytes).
  std::optional<std::chrono::milliseconds> ttl{};
};
struct DeleteOptions {
  std::optional<uint64_t> if_version{};  // as of a put
};

// A scan goes through all keys, page by page, in no order that means anything.
struct ScanOptions {
  uint64_t cursor = 0;             // Where to go on: 0, or `next` of the page before.
  size_t keys = 1000;              // A page ends behind about so many keys,
  size_t bytes = size_t{4} << 20;  // or so many bytes of what it reads, but not before its first.
  bool values = true;              // Else the keys alone: values are not read, nor their damage noticed.
};
struct ScannedKey {
  std::string key;
  std::string value;
  uint64_t version = 0;
  std::optional<Deadline> expires{};
};
struct ScanPage {
  std::vector<ScannedKey> keys;    // May be none, and more pages follow.
  std::optional<uint64_t> next{};  // The cursor behind it; none: this was the last one.
  double part = 0;                 // How much of the scan is done with it, up to 1.
  uint64_t damaged = 0;            // Keys that are stored there and cannot be told, since they are damaged.
};

// Counts since Connect.
struct ClientStats {
  uint64_t gets = 0;  // Finished gets, whatever their outcome; one for each entry that a scan looks at.
  uint64_t puts = 0;  // Increments included.
  uint64_t deletes = 0;
  uint64_t failures = 0;  // Finished operations with a code other than kOk, kNotFound and kConflict.
  uint64_t reads = 0;     // One-sided Reads posted.
  uint64_t read_bytes = 0;
  uint64_t requests = 0;           // Requests sent to the server.
  uint64_t nvm_bytes_written = 0;  // Bytes this client wrote to the pool one-sidedly.
  uint64_t second_looks = 0;       // Gets that had to read an entry again.
  uint64_t cache_hits = 0;         // Gets that were one Read, of a place that was remembered.
  uint64_t cache_misled = 0;       // Gets that looked for the key where it was not any more.
  uint64_t older_versions = 0;     // Gets answered with an older version, since the newest was not there yet.
  uint64_t reconnects = 0;
  uint64_t sleeps = 0;  // How often a waiting call went to sleep.
};

// Memory for one value that the NIC knows (Client::MakeBuffer): a value is read straight into it, and sent straight
// from it, without a copy on the client's side. While an operation has it, nobody else touches its bytes. It may be
// destroyed at any time; the memory stays as long as an operation needs it.
class ERDA_EXPORT Buffer {
 public:
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

  struct Memory;  // The library's own.

 private:
  friend class Client;
  explicit Buffer(std::shared_ptr<Memory> memory);
  std::shared_ptr<Memory> memory_;
  std::span<std::byte> bytes_;
};

// One Client belongs to one thread at a time. Different Clients are independent. These end with kInvalidArgument: a
// call while another thread is in one, a call that waits inside a callback, a call after a fork (docs/threads.md,
// "Misuse"). Without memory a call is kResourceExhausted; whether a put or delete took effect is unknown then.
//
// A key is 1 to 1024 bytes; a value is 0 bytes up to what a segment of the pool holds (max_value_bytes()). Both may
// hold any bytes. Outside these limits: kInvalidArgument, and the message names the limit.
//
// When the server goes away, operations under way end with kUnavailable: whether a put or delete among them took effect
// is unknown. Later operations connect again by themselves, or end with kUnavailable at once if nobody listens. (Over
// verbs a client that has nothing under way may learn it by its next operation, which ends with kUnavailable, too.)
class ERDA_EXPORT Client {
 public:
  // address: "shm:/path/to/socket" or "verbs://host:port". Waits up to options.timeout for the server.
  static Result<std::unique_ptr<Client>> Connect(std::string_view address, ClientOptions options = {});

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // Abandons what is in flight without calling its callbacks. Drain() first to know the outcomes. In a callback, or
  // while another thread is in a call: aborts with a message. After a fork: leaves all to the parent.
  ~Client();

  // The value, or kNotFound. Never a value that one put did not write as a whole.
  Result<std::string> Get(std::string_view key);
  // Into the caller's memory, without an allocation; the value's size. kInvalidArgument if out is too short: nothing is
  // written then, and the message names the size that is needed.
  Result<size_t> Get(std::string_view key, std::span<std::byte> out);
  Status Put(std::string_view key, std::string_view value);
  Status Delete(std::string_view key);  // kNotFound if absent

  // With versions. A put returns that of its value.
  //
  // A condition is judged by what a get would return at that moment. While another client writes the key (a large value
  // on its way), that is not decided: then the operation waits for it. The server ends that client's connection after
  // some three seconds, and so for each that keeps the operation waiting in turn; where there are several, or others
  // write large values to the key all the time, it may end with kTimeout. A value that is damaged behind a whole header
  // has its version still: a put with that version repairs it.
  Result<Versioned> GetVersioned(std::string_view key);
  Result<uint64_t> Put(std::string_view key, std::string_view value, const PutOptions& options);
  Status Delete(std::string_view key, const DeleteOptions& options);  // kConflict also if absent

  // Adds to a value of 8 bytes, a signed number in little-endian order, in one step; an absent key counts as 0. The
  // sum. kInvalidArgument: the value has another size, or the sum does not fit; nothing changes then. With kUnavailable
  // or kTimeout it is unknown whether it was added.
  Result<int64_t> Increment(std::string_view key, int64_t delta = 1);

  // Without a copy. Making a Buffer costs system calls: keep it for many operations, of this Client, one at a time
  // (kInvalidArgument otherwise). A get leaves the value at the beginning of the buffer, and all other bytes of it
  // undefined; if the value does not fit, kInvalidArgument, and the message names its size. A put takes the first
  // `size` bytes, and leaves them as they are.
  Result<Buffer> MakeBuffer(size_t value_bytes);
  Result<size_t> Get(std::string_view key, Buffer& into);
  Status Put(std::string_view key, Buffer& from, size_t size);
  Result<uint64_t> Put(std::string_view key, Buffer& from, size_t size, const PutOptions& options);

  // Asynchronous: returns at once, the callback runs inside a later Poll() or Drain(), or inside a synchronous call of
  // this Client. A callback may start operations, but must not call Poll(), Drain() or a synchronous call, which are
  // refused, and should not throw: the call that runs it throws that on, when all that it waits for is done.
  // Key and value are copied before the call returns, but for a Buffer's. If the call itself fails, the callback never
  // runs: kInvalidArgument as above, kResourceExhausted if queue_depth operations are in flight (Poll and try again).
  // Operations on one key take effect in the order started; those on different keys in any order.
  // What is started while others are in flight is sent in the next Poll() at the latest, together with what else there
  // is.
  using GetCallback = std::function<void(Result<std::string_view>)>;  // the view lives for the call only
  using DoneCallback = std::function<void(Status)>;
  using GetVersionedCallback = std::function<void(Result<VersionedView>)>;
  using PutCallback = std::function<void(Result<uint64_t>)>;
  using IncrementCallback = std::function<void(Result<int64_t>)>;
  Status GetAsync(std::string_view key, GetCallback done);
  Status PutAsync(std::string_view key, std::string_view value, DoneCallback done);
  Status DeleteAsync(std::string_view key, DoneCallback done);
  Status GetAsync(std::string_view key, Buffer& into, GetCallback done);  // the view is of the buffer
  Status PutAsync(std::string_view key, Buffer& from, size_t size, DoneCallback done);
  Status GetVersionedAsync(std::string_view key, GetVersionedCallback done);
  Status PutAsync(std::string_view key, std::string_view value, const PutOptions& options, PutCallback done);
  Status PutAsync(std::string_view key, Buffer& from, size_t size, const PutOptions& options, PutCallback done);
  Status DeleteAsync(std::string_view key, const DeleteOptions& options, DoneCallback done);
  Status IncrementAsync(std::string_view key, int64_t delta, IncrementCallback done);
  size_t Poll();   // Makes progress without waiting; the number of operations finished. 0 where it is refused.
  Status Drain();  // Until none is in flight.

  // One result for each key, in their order. None at all without memory for them.
  std::vector<Result<std::string>> MultiGet(std::span<const std::string_view> keys);
  std::vector<Result<Versioned>> MultiGetVersioned(std::span<const std::string_view> keys);

  // The next keys of a scan. It reads one-sidedly, stops nothing, and needs the server no more than a get does. A key
  // that is there all the time from the first page to the last is told once, with a value that it had while its
  // page was read; one that comes or goes meanwhile may be told or not; none is told twice. A cursor is a number, good
  // for as long as the pool is: another client may go on with it, also after a restart. Fails as a get does; then the
  // same cursor goes on where it was. kInvalidArgument: it is none of this pool, or the server has another one now.
  Result<ScanPage> Scan(const ScanOptions& options = {});

  // Asks the server to clean the log of all shards as far as that gains something, beyond what it does by itself when
  // space is short. Returns when it has begun; "cleaning" of ServerInfo() is 0 when it is done.
  Status Clean();

  ClientStats stats() const;
  // What the server says of itself, in name and value pairs, read one-sidedly. Waits; needs no operation in flight.
  Result<std::vector<std::pair<std::string, std::string>>> ServerInfo();
  // What the server did since it started, by kind and outcome, and how long that took. As ServerInfo.
  Result<Activity> ServerActivity();
  // The largest value that this pool takes for a key of this size, if it does not expire.
  size_t max_value_bytes(size_t key_bytes) const;

  struct Access;  // The library's own.

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace erda

#endif  // C++20
