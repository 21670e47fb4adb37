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

// When a put counts as done. docs/guarantees.md says what each level means on each kind of pool.
enum class Ack : uint8_t {
  kPlaced = 0,     // The value is whole in the server's memory. It survives the death of any process.
  kPersisted = 1,  // The value is also whole on the pool's medium. It survives a power cut if the pool is power-safe.
};

// How a put travels. docs/protocol.md draws each path.
enum class PutPath : uint8_t {
  kAuto = 0,  // Inline if the value fits into a request; otherwise delegated.
  // The paper's put. The client asks for space, then writes the value there one-sidedly. Two round trips, no copy.
  kReserve = 1,
  kInline = 2,  // The value travels in the request. One round trip. Only for values that fit into a request.
  // The client writes the value into its chunk of the log. One round trip, and the server copies nothing. Without a
  // chunk (at first, or if space is short) the put is inline or reserved.
  kDelegate = 3,
  // ServerOptions::pool_writes may forbid a client to write into the pool. It then writes large values into its staging
  // buffer at the server, and the server copies them into the log. That takes one round trip, also for puts with
  // conditions. Over a NIC such a client may still get chunks. It then stages only values for which it has no chunk.
  // Its puts with kReserve end with kPermissionDenied.
};

struct ClientOptions {
  Ack ack = Ack::kPersisted;
  PutPath put_path = PutPath::kAuto;
  uint32_t queue_depth = 64;  // Operations in flight, 1 to 256.
  // Keys whose locations the client remembers, for gets in one Read. 0 remembers none; at most 2^30.
  uint32_t cache_entries = 65536;
  Polling polling = Polling::kAdaptive;     // How calls that wait do so. Poll never waits.
  std::chrono::milliseconds timeout{5000};  // For connecting, and for each operation. 1 to 2^40 ms.
  // The token that the server demands, if it demands one. A client with a token talks only to a server that knows the
  // token.
  std::string token{};
  // A file whose first line is the token. The client reads it each time that a server asks for the token. Other users
  // must not be able to read the file.
  std::string token_file{};
  // If queue_depth operations are in flight, an asynchronous call waits until one has finished, and callbacks run
  // meanwhile. If false, the call fails with kResourceExhausted. So does a call inside a callback, which must not wait.
  bool wait_for_room = false;
};

// Each put that takes effect gives its key a version, which is never 0. The version is larger than all earlier ones of
// the key, also across restarts. So a key never has one version twice. `expires` is the moment from which the value is
// absent, by the server's clock. A value without it stays.
using Deadline = std::chrono::sys_time<std::chrono::milliseconds>;
struct Versioned {
  std::string value;
  uint64_t version = 0;
  std::optional<Deadline> expires{};
};
struct VersionedView {
  std::string_view value;  // Valid during the callback only.
  uint64_t version = 0;
  std::optional<Deadline> expires{};
};

// In a condition, stands for the version of an absent key.
inline constexpr uint64_t kAbsent = 0;

// The longest time to live: about 9,000 years.
inline constexpr std::chrono::milliseconds kTtlMax{int64_t{1} << 48};

struct PutOptions {
  // The put takes effect only if the key has this version just before it. kAbsent demands that the key has no value. If
  // the condition does not hold, the put ends with kConflict and changes nothing.
  std::optional<uint64_t> if_version{};
  // Time to live, 1 ms to kTtlMax. The key is absent once this time has passed since the server took the put. A later
  // put without a ttl makes the key stay. An increment keeps the deadline. The largest value with a ttl may be 8 bytes
  // smaller than max_value_bytes().
  std::optional<std::chrono::milliseconds> ttl{};
};
struct DeleteOptions {
  std::optional<uint64_t> if_version{};  // A condition, as in PutOptions.
};
// One put of a MultiPut.
struct KeyValue {
  std::string_view key;
  std::string_view value;
  PutOptions options{};
};

// One page of a scan. A scan goes through all keys, page by page, in no meaningful order.
struct ScanOptions {
  uint64_t cursor = 0;             // Where the page begins: 0, or `next` of the page before.
  size_t keys = 1000;              // The page ends after about this number of keys.
  size_t bytes = size_t{4} << 20;  // The page ends after about this number of bytes read, but not before its first key.
  bool values = true;  // If false, the scan returns keys alone. It then reads no values, and notices no damage in them.
};
struct ScannedKey {
  std::string key;
  std::string value;
  uint64_t version = 0;
  std::optional<Deadline> expires{};
};
struct ScanPage {
  std::vector<ScannedKey> keys;    // May be empty although more pages follow.
  std::optional<uint64_t> next{};  // The cursor of the next page. Empty after the last page.
  double part = 0;                 // The part of the scan that is done after this page, up to 1.
  uint64_t damaged = 0;            // Damaged keys in this page. The scan cannot return them.
};

// Counts since Connect.
struct ClientStats {
  uint64_t gets = 0;  // Finished gets, whatever their outcome. A scan counts one for each entry that it looks at.
  uint64_t puts = 0;  // Includes increments.
  uint64_t deletes = 0;
  uint64_t failures = 0;  // Finished operations with a code other than kOk, kNotFound and kConflict.
  uint64_t reads = 0;     // One-sided Reads posted.
  uint64_t read_bytes = 0;
  uint64_t requests = 0;           // Requests sent to the server.
  uint64_t nvm_bytes_written = 0;  // Bytes that this client wrote into the pool one-sidedly.
  uint64_t second_looks = 0;       // Gets that had to read an entry again.
  uint64_t cache_hits = 0;         // Gets that took one Read, at a remembered location.
  uint64_t cache_misled = 0;       // Gets that looked for the key at a remembered location which the key had left.
  uint64_t older_versions = 0;     // Gets answered with an older version, since the newest had not arrived.
  uint64_t reconnects = 0;
  uint64_t sleeps = 0;  // Times that a waiting call went to sleep.
};

// Registered memory for one value (Client::MakeBuffer). The NIC reads and writes the value there, without a copy on the
// client's side. While an operation uses the buffer, no other code may touch its bytes. The caller may destroy the
// buffer at any time: the memory stays as long as an operation needs it.
class ERDA_EXPORT Buffer {
 public:
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

  struct Memory;  // Internal.

 private:
  friend class Client;
  explicit Buffer(std::shared_ptr<Memory> memory);
  std::shared_ptr<Memory> memory_;
  std::span<std::byte> bytes_;
};

// A connection to a server.
//
// Threads: one thread at a time uses a Client. Different Clients are independent. These calls end with
// kInvalidArgument: a call while another thread is in a call, a call that waits inside a callback, and a call after a
// fork (docs/threads.md, "Misuse").
//
// Limits: a key has 1 to 1024 bytes. A value has 0 bytes up to the size that a segment of the pool holds
// (max_value_bytes()). Both may hold any bytes. A call outside these limits ends with kInvalidArgument, and the message
// names the limit. A call that gets no memory ends with kResourceExhausted; a put or delete may have taken effect even
// so.
//
// When the server goes away, operations in flight end with kUnavailable. A put or delete among them may or may not have
// taken effect. Later operations connect again by themselves; they end with kUnavailable at once if no server listens.
// Over verbs an idle client may notice the loss only by its next operation, which then also ends with kUnavailable.
class ERDA_EXPORT Client {
 public:
  // Connects to "shm:/path/to/socket" or "verbs://host:port". Waits up to options.timeout for the server.
  static Result<std::unique_ptr<Client>> Connect(std::string_view address, ClientOptions options = {});

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // Abandons the operations in flight without calling their callbacks. Call Drain() first to know their outcomes. In a
  // callback, or while another thread is in a call, aborts the process with a message. In a child of a fork, leaves
  // everything to the parent.
  ~Client();

  // Returns the value, or kNotFound. Never returns a value that is not the whole value of one put.
  Result<std::string> Get(std::string_view key);
  // Copies the value into `out` without an allocation, and returns its size. If `out` is too short, writes nothing and
  // returns kInvalidArgument; the message names the size that the value needs.
  Result<size_t> Get(std::string_view key, std::span<std::byte> out);
  Status Put(std::string_view key, std::string_view value);
  Status Delete(std::string_view key);  // Returns kNotFound if the key is absent.

  // Operations with versions. A put returns the version of its value.
  //
  // The shard judges a condition by the value that a get would return at that moment. While another client writes a
  // large value to the key, that value is undecided, and the operation waits. After some three seconds the server ends
  // the connection of each client that makes the operation wait, one after the other. The operation may end with
  // kTimeout if there are several such clients, or if others keep writing large values to the key. If the bytes
  // of a value are damaged, but not its header, its version is still known. A put on condition of it repairs the value.
  Result<Versioned> GetVersioned(std::string_view key);
  Result<uint64_t> Put(std::string_view key, std::string_view value, const PutOptions& options);
  Status Delete(std::string_view key, const DeleteOptions& options);  // Returns kConflict also if the key is absent.

  // Adds to a value of 8 bytes, a signed number in little-endian order, in one step. An absent key counts as 0. Returns
  // the sum. Returns kInvalidArgument and changes nothing if the value has another size, or the sum does not fit. After
  // kUnavailable or kTimeout, the addition may or may not have taken effect.
  Result<int64_t> Increment(std::string_view key, int64_t delta = 1);

  // Operations without a copy. Making a Buffer costs system calls, so keep one for many operations. A Buffer works only
  // with the Client that made it, for one operation at a time; otherwise the call returns kInvalidArgument.
  // A get stores the value at the beginning of the buffer, and leaves all other bytes undefined. If the value does not
  // fit, the get returns kInvalidArgument, and the message names the value's size. A put sends the first `size` bytes,
  // and does not change them.
  Result<Buffer> MakeBuffer(size_t value_bytes);
  Result<size_t> Get(std::string_view key, Buffer& into);
  Status Put(std::string_view key, Buffer& from, size_t size);
  Result<uint64_t> Put(std::string_view key, Buffer& from, size_t size, const PutOptions& options);

  // Asynchronous operations. Each call returns at once. The callback runs inside a later Poll(), Wait() or Drain(), or
  // inside a synchronous call of this Client.
  // A callback may start operations. It must not call Poll() or a call that waits; the Client refuses these.
  // It should not throw. If it does, the call that runs it first finishes all operations that it waits for. Then that
  // call throws the exception on.
  // The Client copies key and value before the call returns, but not the bytes of a Buffer. If the call itself fails,
  // the callback never runs. It fails with kInvalidArgument as above, and with kResourceExhausted if queue_depth
  // operations are in flight; then call Wait() and try again, or set ClientOptions::wait_for_room.
  // Operations on one key take effect in the order of their start. Operations on different keys take effect in any
  // order. Callbacks of puts may run in another order, also those of puts on one key.
  // An operation that starts while others are in flight may wait for the next Poll(), which sends all such operations
  // together.
  using GetCallback = std::function<void(Result<std::string_view>)>;  // The view is valid during the callback only.
  using DoneCallback = std::function<void(Status)>;
  using GetVersionedCallback = std::function<void(Result<VersionedView>)>;
  using PutCallback = std::function<void(Result<uint64_t>)>;
  using IncrementCallback = std::function<void(Result<int64_t>)>;
  Status GetAsync(std::string_view key, GetCallback done);
  Status PutAsync(std::string_view key, std::string_view value, DoneCallback done);
  Status DeleteAsync(std::string_view key, DoneCallback done);
  Status GetAsync(std::string_view key, Buffer& into, GetCallback done);  // The view points into the buffer.
  Status PutAsync(std::string_view key, Buffer& from, size_t size, DoneCallback done);
  Status GetVersionedAsync(std::string_view key, GetVersionedCallback done);
  Status PutAsync(std::string_view key, std::string_view value, const PutOptions& options, PutCallback done);
  Status PutAsync(std::string_view key, Buffer& from, size_t size, const PutOptions& options, PutCallback done);
  Status DeleteAsync(std::string_view key, const DeleteOptions& options, DoneCallback done);
  Status IncrementAsync(std::string_view key, int64_t delta, IncrementCallback done);
  // Makes progress without waiting. Returns the number of finished operations, and 0 if the Client refuses the call.
  size_t Poll();
  // Makes progress until `at_least` operations have finished, none is in flight, or `timeout` has passed. Returns the
  // number of finished operations. It looks for them and sleeps as ClientOptions::polling says. Call it in a loop that
  // waits for room or for some operations. A loop of Poll() would keep a processor that the server may need.
  Result<size_t> Wait(std::chrono::nanoseconds timeout, size_t at_least = 1);
  Status Drain();  // Waits until no operation is in flight.

  // For event loops (poll, epoll, asyncio). The descriptor stays the same as long as the Client lives, and belongs to
  // it: only wait for it to become readable.
  // Arm prepares the client for a sleep. Returns how long the caller may sleep at most: 0 if Poll() has work now.
  // Otherwise the descriptor becomes readable as soon as Poll() has work. The next call of the client ends the effect.
  // So an event loop calls Poll(), then Arm(), sleeps, and calls Poll() again.
  [[nodiscard]] int descriptor() const;
  Result<std::chrono::milliseconds> Arm();

  // Get several keys. Return one result for each key, in the order of `keys`. Return an empty vector if there is no
  // memory for the results.
  std::vector<Result<std::string>> MultiGet(std::span<const std::string_view> keys);
  std::vector<Result<Versioned>> MultiGetVersioned(std::span<const std::string_view> keys);
  // Puts several values. Returns one result for each put, in the order of `puts`: the version of its value, or the
  // reason why it failed. Each put has its own outcome, and no put stops another one. Puts on one key take effect in
  // the order of `puts`. Puts on different keys take effect in any order, and others may see some before the rest.
  // Up to queue_depth puts are in flight at once, and puts that a shard finds together share its fences. If the server
  // goes away, some puts may have succeeded, and each other one ends as a put alone would. Each put may take
  // options.timeout, so the call takes longer than that if it has more than queue_depth puts. Returns an empty vector,
  // and puts nothing, if there is no memory for the results.
  std::vector<Result<uint64_t>> MultiPut(std::span<const KeyValue> puts);

  // Returns the next page of a scan. A scan reads one-sidedly, as a get does, and stops no other operation.
  // A key that exists from the first page to the last is returned once, with a value that it had while its page was
  // read. A key that appears or disappears meanwhile may be returned or not. No key is returned twice.
  // A cursor is a number, and stays valid as long as the pool exists. Another client may continue with it, also after a
  // restart. If the call fails for a reason for which a get fails, call again with the same cursor. Returns
  // kInvalidArgument if the cursor does not belong to this pool, or if the server has another pool now.
  Result<ScanPage> Scan(const ScanOptions& options = {});

  // Asks the server to clean the log of all shards, as far as that gains space. The server also cleans by itself, but
  // only when space is short. Returns when the cleaning has begun. It is finished when "cleaning" of ServerInfo() is 0.
  Status Clean();

  ClientStats stats() const;
  // Returns facts and counts of the server in name and value pairs, read one-sidedly. Waits. It does not count in
  // queue_depth, so it works even if queue_depth operations are in flight.
  Result<std::vector<std::pair<std::string, std::string>>> ServerInfo();
  // Returns counts and durations of the server's work since it started, by kind and outcome. Reads and waits like
  // ServerInfo().
  Result<Activity> ServerActivity();
  // Returns the size of the largest value that this pool takes for a key of this size, if the value does not expire.
  size_t max_value_bytes(size_t key_bytes) const;

  struct Access;  // Internal.

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace erda

#endif  // C++20
