// The server: owns a pool and serves it to clients.
#pragma once

// GCC 10 says 201709 for -std=c++20.
#if __cplusplus < 201709L
#error "Erda needs C++20: compile with -std=c++20 or later, in CMake with CMAKE_CXX_STANDARD 20"
#endif
#if __cplusplus >= 201709L

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "erda/activity.h"
#include "erda/export.h"
#include "erda/polling.h"
#include "erda/status.h"

namespace erda {

// How the values that clients write one-sidedly are made persistent. It matters on a power-safe pool only; on any other
// a placed value is as safe as it will ever be, and nothing is flushed.
enum class FlushChoice : uint8_t {
  kAuto = 0,         // Server flush.
  kServerFlush = 1,  // The shard writes the CPU's caches back, and answers. Right everywhere.
  // A Read behind the Write, without the server's CPU: fewer steps for a put. RIGHT ONLY where the Writes of the
  // server's NICs go past the CPU's caches (DDIO off, or non-allocating writes) and what has reached the memory
  // controller survives a power cut (ADR). Erda cannot find that out by itself: where it is not so, acknowledged puts
  // are lost with the power. Only for clients on a NIC; those of shm get server flush, since they write with a CPU.
  kReadAfterWrite = 2,
};

// Which users of the server's machine can open the sockets of its shm addresses (modes 0600, 0660 and 0666).
enum class ShmAccess : uint8_t { kOwner = 0, kGroup = 1, kEverybody = 2 };

// Which clients place large values in the pool themselves, and so could write anywhere into it. The others put them
// into memory of their own, from where the server copies them: no slower to answer, but at the cost of a copy by its
// CPU.
enum class PoolWrites : uint8_t {
  kNobody = 0,     // Then nobody but the server's process can write into the pool.
  kSameUser = 1,   // Over shm those of the server's own user. Over a NIC, where nobody knows users, none: each writes
                   // into the pieces of the log that it was given, and nowhere else, if the device can see to that.
  kEverybody = 2,  // Each client that may write.
};

struct ServerOptions {
  // Where the pool is: "/dev/daxX.Y", a file on a DAX file system, an ordinary file, or "dram:" (gone when the server
  // stops). A file that does not exist is created; an existing pool is opened, never created over.
  std::string pool{};
  uint64_t pool_size = 0;             // Bytes. Needed to create; 0 or the pool's own size to open.
  std::vector<std::string> listen{};  // "shm:/path/to/socket", "verbs://host:port"; one or more
  uint32_t shards = 1;  // Threads, each with its share of the keys. Fixed when the pool is created: 0 takes
                        // an existing pool's own number, and 1 for a new one.

  // Geometry, used when the pool is created; 0 chooses by the pool's size. docs/operations.md says how.
  uint64_t region_size = 0;    // Power of two, at most 256 MiB.
  uint64_t segment_size = 0;   // Power of two, at most the region size; bounds the largest value.
  uint64_t index_entries = 0;  // Slots of the index at first, 16 bytes each, over all shards. It grows by itself.
  // How large erda-pool resize can make the pool later, at the least. A new pool is cut for it; one that is there and
  // cannot become as large is refused. 0: by the pool's size (docs/operations.md, "Growing a pool").
  uint64_t grow_to = 0;

  // Limits
  uint32_t max_clients = 1024;              // Connections for each shard.
  uint32_t slots_per_client = 256;          // Requests in flight for each client and shard, at most 256.
  uint32_t slot_bytes = 16384;              // A request with its key and inline value; 2048 to 65536.
  uint32_t reservations_per_client = 1024;  // Reserved and not yet settled puts of one client on one shard.
  // Connections to each shard with one token; without a token file, of one client. So a token cannot use up
  // max_clients. A client that connects anew may need one more for a moment. 0: no limit of its own.
  uint32_t clients_per_token = 0;
  // Of one client that each shard serves, 100 and more. What comes faster waits its turn, and nobody else with it; so
  // many as in a tenth of a second may come at once. 0: no limit.
  uint32_t requests_per_second = 0;
  // With one token; without a token file, with none. What comes faster is refused by the thread of the address, so that
  // the shards have the time for those who are in; so many as in a second may come at once. 0: no limit.
  uint32_t connects_per_second = 0;

  // Who may connect: clients that prove in the handshake that they know one of the tokens in this file, one to a line;
  // `read-only` behind a token: they may read only. Empty: whoever can reach an address. The file belongs to the user
  // or to root, and nobody else may read it. A change counts within a second; clients whose token is gone are ended.
  // docs/security.md says what a token protects from, and what not.
  std::string token_file{};

  // docs/security.md says what these keep from whom.
  ShmAccess shm_access = ShmAccess::kOwner;
  PoolWrites pool_writes = PoolWrites::kSameUser;
  // The memory, for each client and shard, in which clients place values that may not write into the pool; at least a
  // segment is given. At most 1 GiB.
  uint64_t staging_bytes = 4 << 20;

  FlushChoice flush = FlushChoice::kAuto;

  // A pool in an ordinary file: while there are changes, a thread writes it to its disk this often. That bounds what a
  // power cut or a crash of the kernel takes; it promises nothing, since no answer waits for it. 0: never; at most a
  // day. Other pools need no sync. A sync that fails is told by on_event, once.
  std::chrono::milliseconds sync{1000};

  // Beside all else, stored values are verified one after the other, round and round: so many bytes in a second, over
  // all shards. 0: never. Damage is counted, and told by on_damage: with the key, or with nothing where that cannot be
  // known any more. Only a new put repairs it. on_damage is called on the threads of shards, and must not wait.
  uint64_t scrub_rate = 1 << 20;
  std::function<void(std::string_view key)> on_damage{};

  // Is told in a line, without its end, of each client that breaks the protocol, keeps others waiting, or is refused:
  // who, which shard, and what was wrong. The line is printable, and has no key, value or token. on_event is called on
  // the threads of shards and addresses, on several at once perhaps, and must not wait; limiting what it writes is its
  // matter.
  std::function<void(std::string_view line)> on_event{};

  // How idle shards wait. Waking a sleeping shard costs a put some microseconds.
  Polling polling = Polling::kAdaptive;
  // How long kAdaptive keeps looking before it sleeps: at first, and up to 20 times as long where requests come that
  // soon.
  std::chrono::microseconds spin{50};
  // Added to every NVM write-back, so that DRAM can stand in for NVM in experiments (the Erda paper uses 150).
  std::chrono::nanoseconds nvm_write_latency{0};
};

// The options that a running server can change (Server::Reload). They mean what they mean in ServerOptions.
struct ServerLimits {
  uint32_t clients_per_token = 0;
  uint32_t requests_per_second = 0;
  uint32_t connects_per_second = 0;
  std::string token_file{};  // Empty: the server keeps the file that it has.
};

// Sums over all shards since Start, but for those that begin with "Now".
struct ServerStats {
  // tools/statistics/generate: begin
  // Puts, all ways together.
  uint64_t puts = 0;
  // Puts whose value came with the request, or from the client's staging memory.
  uint64_t puts_inline = 0;
  // Of puts_inline, those whose value was in the client's staging memory.
  uint64_t puts_staged = 0;
  // Puts whose client reserved space and wrote the value there itself.
  uint64_t puts_reserved = 0;
  // Puts whose client wrote the value into a chunk of the log that it had.
  uint64_t puts_delegated = 0;
  // Commits of reserved puts.
  uint64_t commits = 0;
  // Deletes.
  uint64_t deletes = 0;
  // Requests answered with an error. A condition that does not hold and a key that is absent are no errors.
  uint64_t refused = 0;
  // Connections closed because the peer broke the protocol.
  uint64_t violations = 0;
  // Versions found whole and made persistent after they were published.
  uint64_t settled = 0;
  // Versions of vanished clients that never became whole.
  uint64_t taken_back = 0;
  // Bytes that the server wrote to NVM, without its cleaners. Clients count their own one-sided writes.
  uint64_t nvm_bytes_written = 0;
  // Now: shards of the pool.
  uint32_t shards = 0;
  // Now: connections: one for each client and shard.
  uint64_t clients = 0;
  // Now: used slots of the index. After a crash the server counts them beside its work, and the number grows meanwhile.
  uint64_t keys = 0;
  // Now: all slots of the index, which grows.
  uint64_t index_slots = 0;
  // Now: bytes reserved in the log, live or not.
  uint64_t log_bytes_used = 0;
  // Now: size of the log. The last free region of each shard is the cleaner's.
  uint64_t log_bytes_total = 0;
  // Now: versions reserved and not settled.
  uint64_t in_flight = 0;
  // Now: descriptors that the server's process has open, as of the last second.
  uint64_t descriptors = 0;
  // Now: memory that clients can reach or that RDMA devices know. A pool counts twice on each fabric, for reading and
  // for writing; so do control blocks, and the request slots and replies of each connection.
  uint64_t registered_bytes = 0;
  // Times that a shard went to sleep.
  uint64_t sleeps = 0;
  // Now: bytes of the log that index entries name, about. It is known once all keys are counted after the start.
  uint64_t log_bytes_live = 0;
  // Puts that waited until the cleaner had made room. Some mean that clients write faster than the cleaner works; many,
  // that the pool is nearly full.
  uint64_t puts_delayed = 0;
  // Regions that the cleaners emptied.
  uint64_t regions_cleaned = 0;
  // Bytes that the cleaners copied out of regions.
  uint64_t clean_bytes_copied = 0;
  // Bytes of the regions that the cleaners emptied.
  uint64_t clean_bytes_freed = 0;
  // Bytes that the cleaners wrote to NVM: copies and zeroes. nvm_bytes_written does not have them.
  uint64_t clean_nvm_bytes_written = 0;
  // Bytes of stored values that the scrubber verified.
  uint64_t scrub_bytes = 0;
  // Values that the scrubber found damaged, each time that it came by.
  uint64_t damaged_keys = 0;
  // Versions that the cleaners copied elsewhere.
  uint64_t clean_moves = 0;
  // Now: regions of the log that hold nothing.
  uint64_t free_regions = 0;
  // Now: shards that clean because they were asked to.
  uint64_t cleaning = 0;
  // Index entries of damaged objects that stood in the way of cleaning. They lead nowhere now.
  uint64_t set_aside = 0;
  // Versions that the cleaner freed after they had expired. Until then keys counts them.
  uint64_t expired = 0;
  // Now: chunks of the log that clients have, to fill them by delegated puts, also those whose loss a client does not
  // know yet.
  uint64_t chunks = 0;
  // Now: bytes of these chunks.
  uint64_t chunk_bytes = 0;
  // Connections closed because their client kept others waiting for too long. It had a chunk while a put waited for
  // room, or a value on its way while a condition on the same key waited.
  uint64_t overdue = 0;
  // Reports of clients that met a value which was not whole.
  uint64_t reports = 0;
  // Write-backs to NVM by the server, without its cleaners.
  uint64_t nvm_flushes = 0;
  // Waits for these write-backs.
  uint64_t nvm_fences = 0;
  // Writes of all of a pool's ordinary file to its disk, in the background.
  uint64_t syncs = 0;
  // Syncs that failed. If it is not 0, acknowledged puts may be lost, whatever later syncs say.
  uint64_t sync_failures = 0;
  // Now: unix time in milliseconds at which the last sync began that did not fail. 0: none did.
  uint64_t synced_at_ms = 0;
  // Flipped bits of index entries that the server found and undid.
  uint64_t flips_undone = 0;
  // tools/statistics/generate: end
};

// A fabric that a server is reached on: all its addresses of one device.
struct ServerFabric {
  std::string scheme;                         // "shm"
  std::string device;                         // the NIC's name; empty for shm
  std::string flush_method;                   // "none", "server-flush" or "read-after-write"
  std::chrono::nanoseconds registered_in{0};  // how long it took to register the pool there
};

// What the opening of a pool found and did that was not closed cleanly: its server died or lost power. Sums over all
// shards. An entry is a key's place in the index.
struct RecoveryReport {
  uint64_t objects = 0;           // Of the log, that were looked at: those that may have been in flight.
  uint64_t index_slots = 0;       // Looked through: all of a shard that has something damaged or cut off; else none.
  uint64_t unsettled = 0;         // Entries whose newest version was verified: all that was not known to be safe.
  uint64_t settled = 0;           // Of these: it was whole, and stands.
  uint64_t taken_back = 0;        // Of these: it was not, and an older version stands.
  uint64_t dropped = 0;           // Of these: no version ever was whole, and the key is absent.
  uint64_t deletes_finished = 0;  // Of these: a delete had taken effect, and was ended.
  uint64_t damaged = 0;       // Of these: what no crash leaves. A get of the key says kCorruption, a put repairs it.
  uint64_t moves_undone = 0;  // Entries that stood in two slots, in the middle of a move.
  uint64_t regions_unlinked = 0;  // Regions of the log that were linked, and not used yet.
  // Shards that were verified in full: the machine was started again since the pool was in use, and lost what was not
  // synced. Acknowledged puts may be missing then. Damage is told by on_damage. 0: no put is missing.
  uint64_t shards_verified = 0;
  std::chrono::nanoseconds time{0};  // That the looking and the repairing took.

  RecoveryReport& operator+=(const RecoveryReport& other) {
    objects += other.objects;
    index_slots += other.index_slots;
    unsettled += other.unsettled;
    settled += other.settled;
    taken_back += other.taken_back;
    dropped += other.dropped;
    deletes_finished += other.deletes_finished;
    damaged += other.damaged;
    moves_undone += other.moves_undone;
    regions_unlinked += other.regions_unlinked;
    shards_verified += other.shards_verified;
    time += other.time;
    return *this;
  }
};

// One thread at a time calls Start, Reload, Stop and the destructor, and not in a callback (docs/threads.md, "Misuse").
// Any thread may call the const functions.
class ERDA_EXPORT Server {
 public:
  // Takes the addresses, creates the pool, or opens it. A pool that was not closed cleanly, since its server died or
  // lost power, is recovered first; docs/guarantees.md says what is there then. Nothing is served before Start.
  // kInvalidArgument: an option, or a pool that does not fit it. kCorruption: not a pool, or a damaged one.
  // kUnavailable: another server has it open. kPermissionDenied: the file's rights. The pool is then untouched.
  static Result<std::unique_ptr<Server>> Open(ServerOptions options);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // stops

  Status Start();
  // Replaces the limits by these, all of them, and reads the token file, which may be another one. Each request and
  // each connection that comes after the return is under the new limits. Connections beyond a smaller clients_per_token
  // stay. Clients whose token is not in the file are ended. An error changes nothing. kInvalidArgument: a limit is out
  // of its bounds, a token file is named to a server that was opened without one, or the server was stopped. It and
  // kPermissionDenied: the token file is not there, is wrong, or must not be read.
  Status Reload(const ServerLimits& limits);
  // Closes every connection, settles what can be settled, closes the pool cleanly. A stopped server stays stopped.
  Status Stop();
  std::vector<std::string> addresses() const;  // what clients can connect to
  ServerStats stats() const;
  // What it did, by kind and outcome, and how long that took.
  Activity activity() const;
  std::vector<ServerFabric> fabrics() const;
  // Of this Open; nothing if the pool was new or had been closed cleanly.
  std::optional<RecoveryReport> recovery() const;
  // "power-safe", "process-safe" or "volatile": what the pool's medium survives.
  std::string durability() const;
  // How many bytes erda-pool resize can give the pool at most; of "dram:", nothing can.
  uint64_t growth_limit() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace erda

#endif  // C++20
