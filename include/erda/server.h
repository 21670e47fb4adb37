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

// How the server makes the values persistent that clients write one-sidedly. This matters on a power-safe pool only. On
// any other pool a flush would make no value safer, and the server flushes nothing.
enum class FlushChoice : uint8_t {
  kAuto = 0,         // The same as kServerFlush.
  kServerFlush = 1,  // The shard writes the CPU's caches back, then answers. Right on every machine.
  // The client sends a Read after its Write, and the server's CPU does nothing. A put takes fewer steps. RIGHT ONLY on
  // machines where two things hold. The Writes of the server's NICs go past the CPU's caches (DDIO off, or
  // non-allocating writes). All that has reached the memory controller survives a power cut (ADR). Erda cannot check
  // either. On other machines a power cut loses acknowledged puts. Clients over shm write with a CPU, so they get
  // kServerFlush even then.
  kReadAfterWrite = 2,
};

// The users of the server's machine that can open the sockets of its shm addresses (modes 0600, 0660 and 0666).
enum class ShmAccess : uint8_t { kOwner = 0, kGroup = 1, kEverybody = 2 };

// The clients that write large values into the pool themselves, and so could write anywhere into it. Each other client
// writes them into its staging buffer, and the server copies them from there. Staged puts take no longer, but each
// costs the server's CPU a copy.
enum class PoolWrites : uint8_t {
  kNobody = 0,  // Only the server's process can write into the pool.
  // Over shm: clients of the server's user. Over a NIC the server knows no users: a client writes only into the chunks
  // that the shard gave it. If the device cannot confine a client to its chunks, the client stages its values.
  kSameUser = 1,
  kEverybody = 2,  // Every client that may write.
};

struct ServerOptions {
  // The place of the pool: "/dev/daxX.Y", a file on a DAX file system, an ordinary file, or "dram:", which is gone when
  // the server stops. The server creates a file that does not exist. It opens an existing pool and never creates a new
  // one over it.
  std::string pool{};
  uint64_t pool_size = 0;             // Bytes. Needed to create a pool. To open one: 0, or the pool's size.
  std::vector<std::string> listen{};  // One or more addresses: "shm:/path/to/socket", "verbs://host:port".
  // Threads, each with a share of the keys. Fixed when the pool is created. 0 takes the number of an existing pool, and
  // 1 for a new one.
  uint32_t shards = 1;

  // Geometry, used when the pool is created. 0 lets the server choose by the pool's size, as docs/operations.md
  // describes.
  uint64_t region_size = 0;    // A power of two, at most 256 MiB.
  uint64_t segment_size = 0;   // A power of two, at most the region size. Bounds the largest value.
  uint64_t index_entries = 0;  // Index slots at first, 16 bytes each, over all shards. The index grows by itself.
  // A size to which erda-pool resize must be able to grow the pool later. The server chooses the geometry of a new pool
  // for it, and refuses an existing pool that cannot become as large. 0: by the pool's size (docs/operations.md,
  // "Growing a pool").
  uint64_t grow_to = 0;

  // Makes all pages of the pool in Open, so that no put waits for the kernel to make one. Open takes up to a second
  // more for each GiB. Open returns kResourceExhausted if the machine's memory has no room for all of the pool.
  bool populate = false;

  // Limits.
  uint32_t max_clients = 1024;              // Connections to each shard.
  uint32_t slots_per_client = 256;          // Requests in flight for each client and shard, at most 256.
  uint32_t slot_bytes = 16384;              // Bytes of a request with its key and inline value; 2048 to 65536.
  uint32_t reservations_per_client = 1024;  // Reserved puts of one client that one shard has not settled yet.
  // Connections to each shard with one token; without a token file, connections of one client. This keeps one token
  // from using up max_clients. A client that reconnects may need one more connection for a moment. 0: no separate
  // limit.
  uint32_t clients_per_token = 0;
  // Requests that each shard serves for one client in a second; at least 100. Requests beyond that wait, without
  // delaying other clients. A client may send the requests of a tenth of a second at once. 0: no limit.
  uint32_t requests_per_second = 0;
  // Connections in a second with one token; without a token file, connections without one. The thread of the address
  // refuses connections beyond that, so that the shards' time belongs to connected clients. The connections of one
  // second may come at once. 0: no limit.
  uint32_t connects_per_second = 0;

  // A file of tokens, one in each line. Only clients that prove in the handshake that they know one of them may
  // connect. The word `read-only` after a token restricts its clients to reading. A token with the word `mirror` is for
  // mirrors alone. Empty: every client that can reach an address may connect.
  // The file must belong to the server's user or to root, and no other user may be able to read it. A change takes
  // effect within a second. Then the server ends the connections of clients whose token is gone. docs/security.md
  // describes the limits of this protection.
  std::string token_file{};

  // docs/security.md describes the attacks against which these options protect.
  ShmAccess shm_access = ShmAccess::kOwner;
  PoolWrites pool_writes = PoolWrites::kSameUser;
  // Bytes of the staging buffer that each client without write access gets on each shard. The server gives at least the
  // size of a segment, and at most 1 GiB.
  uint64_t staging_bytes = 4 << 20;

  FlushChoice flush = FlushChoice::kAuto;

  // For a pool in an ordinary file: a thread writes changes to the disk at this interval. This bounds the loss of a
  // power cut or a crash of the kernel. It promises nothing, since no answer waits for it. 0: never; at most a day.
  // Other pools need no sync. The server reports the first failed sync to on_event.
  std::chrono::milliseconds sync{1000};

  // The file of a journal. With it, a pool in an ordinary file survives a power cut (docs/journal.md). Changes go to
  // the journal before the server answers, and to the pool later. The server then works in memory, which needs room for
  // all of the pool. It makes the journal together with the pool. A pool that has a journal does not open without it.
  std::string journal{};
  uint64_t journal_size = 0;  // Bytes of a new journal. 0: 1 GiB.
  // 0: each answer waits until the disk has what it tells, and the pool is power-safe. Otherwise no answer waits, and
  // the journal is written at this interval: a power cut loses what was put since. At most a day.
  std::chrono::milliseconds journal_interval{0};
  // The folder for the memory in which the server works. It must be in a tmpfs. A server that is killed leaves the
  // memory there, and the next one goes on with it.
  std::string journal_memory{"/dev/shm"};
  // With a journal: a small NVM in front of it (docs/journal.md). It survives a power cut, so answers do not wait for
  // the disk. The address is /dev/daxX.Y or a file on a DAX file system. It can also be pmr:PATH, with the PCI resource
  // of an NVMe disk's persistent memory region. Empty: none.
  std::string journal_front{};
  // Accepts a journal and a pool that are in memory, and so survive no power cut. For tests.
  bool journal_on_tmpfs = false;
  // The folder of an archive, for a pool with a journal. All that the journal holds goes to files there, within a
  // minute. With a base copy, erda-pool restore makes the pool as it was at some time (docs/operations.md). Empty:
  // there is no archive.
  std::string archive{};

  // Bytes of stored values that the scrubber verifies in a second, over all shards, in endless rounds. 0: never. The
  // server counts damage and reports it to on_damage with the key; the key is empty if it is unknown. Only a new put
  // repairs the value. Threads of shards call on_damage; it must not wait.
  uint64_t scrub_rate = 1 << 20;
  std::function<void(std::string_view key)> on_damage{};

  // The server reports to on_event each client that breaks the protocol, keeps other clients waiting, or is refused.
  // The report is one line without its end. It names the client, the shard and the fault. The line is printable, and
  // contains no key, value or token. Threads of shards and addresses call on_event, perhaps several at once; it must
  // not wait. The callback itself must limit the lines that it writes.
  std::function<void(std::string_view line)> on_event{};

  // How idle shards wait. A put to a sleeping shard takes some microseconds more.
  Polling polling = Polling::kAdaptive;
  // How long kAdaptive looks for work before it sleeps, at first. Where requests come soon after that, it looks longer,
  // up to 20 times as long.
  std::chrono::microseconds spin{50};
  // A delay that each write-back to NVM takes in addition, so that DRAM can stand in for NVM in experiments. The Erda
  // paper uses 150 ns.
  std::chrono::nanoseconds nvm_write_latency{0};
};

// The options that Server::Reload changes in a running server. ServerOptions describes them.
struct ServerLimits {
  uint32_t clients_per_token = 0;
  uint32_t requests_per_second = 0;
  uint32_t connects_per_second = 0;
  std::string token_file{};  // Empty: the server keeps its token file.
};

// Sums over all shards since Start. Fields that begin with "Now" hold the present value.
struct ServerStats {
  // tools/statistics/generate: begin
  // Puts on all paths.
  uint64_t puts = 0;
  // Puts whose value came with the request, or from the client's staging buffer.
  uint64_t puts_inline = 0;
  // Puts whose value was in the client's staging buffer. puts_inline counts them, too.
  uint64_t puts_staged = 0;
  // Puts whose client reserved space and wrote the value there itself.
  uint64_t puts_reserved = 0;
  // Puts whose client wrote the value into its chunk of the log.
  uint64_t puts_delegated = 0;
  // Commits of reserved puts.
  uint64_t commits = 0;
  // Deletes.
  uint64_t deletes = 0;
  // Requests that the server answered with an error. A conflict and an absent key are no errors.
  uint64_t refused = 0;
  // Connections that the server closed because the peer broke the protocol.
  uint64_t violations = 0;
  // Versions that the shard found whole and made persistent after it had published them.
  uint64_t settled = 0;
  // Versions that the shard took back. Their clients vanished, and the values never became whole.
  uint64_t taken_back = 0;
  // Bytes that the server wrote to NVM, without its cleaners. Clients count their own one-sided writes.
  uint64_t nvm_bytes_written = 0;
  // Now: shards of the pool.
  uint32_t shards = 0;
  // Now: connections: one for each client and shard.
  uint64_t clients = 0;
  // Now: used index slots. After a crash the server counts them beside its work, and the number grows meanwhile.
  uint64_t keys = 0;
  // Now: all index slots. The index grows.
  uint64_t index_slots = 0;
  // Now: bytes reserved in the log, live or not.
  uint64_t log_bytes_used = 0;
  // Now: size of the log. Each shard keeps its last free region for the cleaner.
  uint64_t log_bytes_total = 0;
  // Now: versions that are reserved and not settled.
  uint64_t in_flight = 0;
  // Now: descriptors that the server's process has open, as of the last second.
  uint64_t descriptors = 0;
  // Now: memory that clients can reach or that RDMA devices know. A pool counts twice on each fabric, for reading and
  // for writing. Control blocks count, too, and the request slots and replies of each connection.
  uint64_t registered_bytes = 0;
  // Times that a shard went to sleep.
  uint64_t sleeps = 0;
  // Now: about the bytes of the log that index entries name. After a start, it needs a count of all keys.
  uint64_t log_bytes_live = 0;
  // Puts that waited until the cleaner had made room. A few mean that clients write faster than the cleaner works. Many
  // mean that the pool is nearly full.
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
  // Reports of damage. The scrubber reports a damaged value each time that it comes by. A shard reports an index entry
  // with several changed bits, and an index that changed while no server ran.
  uint64_t damaged_keys = 0;
  // Versions that the cleaners moved.
  uint64_t clean_moves = 0;
  // Now: regions of the log that hold nothing.
  uint64_t free_regions = 0;
  // Now: shards that clean because a client asked for it.
  uint64_t cleaning = 0;
  // Index entries of damaged objects that the shard set aside, so that it could clean their regions.
  uint64_t set_aside = 0;
  // Versions that the cleaner freed after they had expired. Until then keys counts them.
  uint64_t expired = 0;
  // Now: chunks of the log that clients have for delegated puts. Revoked chunks count until their clients give them
  // back.
  uint64_t chunks = 0;
  // Now: bytes of the chunks that clients have.
  uint64_t chunk_bytes = 0;
  // Connections that the server closed because their client kept others waiting for too long. It had a chunk while a
  // put waited for room, or a value in flight while a condition on the same key waited.
  uint64_t overdue = 0;
  // Reports of clients that met a value which was not whole.
  uint64_t reports = 0;
  // Write-backs to NVM by the server, without its cleaners.
  uint64_t nvm_flushes = 0;
  // Waits of the server for its write-backs to NVM, without its cleaners.
  uint64_t nvm_fences = 0;
  // Writes of all of a pool's ordinary file to its disk, in the background.
  uint64_t syncs = 0;
  // Failed syncs. If it is not 0, acknowledged puts may be lost, even if later syncs succeed.
  uint64_t sync_failures = 0;
  // Now: unix time in milliseconds at which the last successful sync began. 0: no sync has succeeded.
  uint64_t synced_at_ms = 0;
  // Flipped bits of index entries that the server found and undid.
  uint64_t flips_undone = 0;
  // Bytes that the streams of the journal have had in the life of the pool. Without a journal this and all numbers of
  // the journal are 0.
  uint64_t journal_stream_bytes = 0;
  // Now: how many of journal_stream_bytes the disk holds. A power cut cannot take them.
  uint64_t journal_held_bytes = 0;
  // Bytes that the server wrote to the journal: records, and marks of checkpoints.
  uint64_t journal_bytes_written = 0;
  // Times that the server had the disk make the journal durable.
  uint64_t journal_flushes = 0;
  // Now: size of the journal's rings.
  uint64_t journal_ring_bytes = 0;
  // Now: bytes of the rings that wait for a checkpoint. If they are near journal_ring_bytes, puts wait for checkpoints.
  uint64_t journal_ring_used = 0;
  // Checkpoints. Each brings the pool file up to a place that the disk holds. Much at once is done by several.
  uint64_t journal_checkpoints = 0;
  // Now: unix time in milliseconds at which the last checkpoint began. 0: there was none since the start.
  uint64_t journal_checkpoint_at_ms = 0;
  // Now: milliseconds after which the journal is written, if no answer waits for it. 0: each answer waits, or there is
  // no journal.
  uint64_t journal_interval_ms = 0;
  // Times that a write of the journal had to wait for a checkpoint, because the ring was full. Many mean that the disk
  // takes the pool more slowly than clients put; a larger journal helps in peaks.
  uint64_t journal_full_times = 0;
  // Now: shards whose journal's disk has failed. If it is not 0, no put is acknowledged any more.
  uint64_t journals_failed = 0;
  // Bytes that the server wrote to the archive since its start. Without an archive this and all numbers of the archive
  // are 0.
  uint64_t archive_bytes_written = 0;
  // Now: bytes that the disk of the journal holds and the archive does not have yet.
  uint64_t archive_waiting_bytes = 0;
  // Now: shards whose archive has an error at the moment. The server tries again. If that lasts until the journal is
  // full, the archive gets a gap.
  uint64_t archives_failing = 0;
  // Gaps that the server left in the archive since its start. Only a new base copy can be restored beyond one.
  uint64_t archive_gaps = 0;
  // Now: size of the small NVM in front of the journal. 0: the journal has no front.
  uint64_t journal_front_bytes = 0;
  // Now: bytes that the small NVM in front of the journal holds and the disk does not.
  uint64_t journal_front_used = 0;
  // Times that the small NVM in front of the journal had no room, so that answers had to wait for the disk. Many mean
  // that the disk is slower than the puts; a larger front helps in peaks.
  uint64_t journal_front_full_times = 0;
  // Now: error number (errno) of the first failure of the journal's disk, such as 5 for EIO. 0: the disk has not
  // failed, or the number is unknown.
  uint64_t journal_error_number = 0;
  // tools/statistics/generate: end
};

// A fabric on which clients reach a server: all its addresses on one device.
struct ServerFabric {
  std::string scheme;                         // "shm"
  std::string device;                         // The NIC's name; empty for shm.
  std::string flush_method;                   // "none", "server-flush" or "read-after-write"
  std::chrono::nanoseconds registered_in{0};  // Time that the registration of the pool there took.
};

// Findings and repairs of Open in a pool that was not closed cleanly: its server died, or the machine lost power. Sums
// over all shards. An entry is the place of a key in the index.
struct RecoveryReport {
  uint64_t objects = 0;  // Objects in the log that recovery looked at: those that may have been in flight.
  // Index slots that recovery looked through: all slots of each shard with damage or a torn log end; otherwise 0.
  uint64_t index_slots = 0;
  uint64_t unsettled = 0;         // Entries whose newest version recovery verified, since it was not known to be safe.
  uint64_t settled = 0;           // Unsettled entries whose newest version was whole and stands.
  uint64_t taken_back = 0;        // Unsettled entries whose newest version was not whole; an older one stands.
  uint64_t dropped = 0;           // Unsettled entries without any whole version; the key is absent.
  uint64_t deletes_finished = 0;  // Unsettled entries whose delete had taken effect; recovery completed it.
  // Unsettled entries in a state that no crash leaves. A get of the key returns kCorruption, and a put repairs it.
  uint64_t damaged = 0;
  uint64_t moves_undone = 0;      // Entries that stood in two slots, in the middle of a move.
  uint64_t regions_unlinked = 0;  // Regions of the log that were linked and not yet used.
  // Shards that were verified in full. That happens if the machine was restarted while the pool was in use, so that
  // unsynced data was lost. Acknowledged puts may then be missing; the server reports damage to on_damage. If this is
  // 0, no put is missing.
  uint64_t shards_verified = 0;
  std::chrono::nanoseconds time{0};  // Time that recovery took.

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

// A server with its threads.
//
// Threads: one thread at a time calls Start, Reload, Stop and the destructor, and not inside a callback
// (docs/threads.md, "Misuse"). Any thread may call the const functions.
class ERDA_EXPORT Server {
 public:
  // Takes the addresses, and creates the pool or opens it. Recovers a pool that was not closed cleanly;
  // docs/guarantees.md lists the values that exist after that. Serves nothing before Start.
  // If it fails, the pool is unchanged. Returns kInvalidArgument if an option is wrong, or does not fit the pool.
  // kCorruption: the file is no pool, or a damaged one. kUnavailable: another server has the pool open.
  // kPermissionDenied: the file's rights forbid it.
  static Result<std::unique_ptr<Server>> Open(ServerOptions options);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // Stops the server.

  Status Start();
  // Replaces all these limits, and reads the token file, which may be another one. Requests and connections that arrive
  // after the return are under the new limits. Connections beyond a smaller clients_per_token stay. The server ends the
  // connections of clients whose token is not in the file.
  // An error changes nothing. Returns kInvalidArgument if a limit is out of its bounds, or if the server is stopped.
  // Returns it also if `limits` names a token file and the server was opened without one. Returns kInvalidArgument or
  // kPermissionDenied if the token file does not exist, is wrong, or must not be read.
  Status Reload(const ServerLimits& limits);
  // Closes every connection, settles all versions that can be settled, and closes the pool cleanly. A stopped server
  // cannot start again.
  Status Stop();
  std::vector<std::string> addresses() const;  // The addresses to which clients can connect.
  ServerStats stats() const;
  // Returns counts and durations of the server's work, by kind and outcome.
  Activity activity() const;
  std::vector<ServerFabric> fabrics() const;
  // Returns the report of this Open. Returns nothing if the pool was new or had been closed cleanly.
  std::optional<RecoveryReport> recovery() const;
  // Returns the kind of failure that the pool's medium survives: "power-safe", "process-safe" or "volatile".
  std::string durability() const;
  // Returns ok, or why the server acknowledges no put any more: the disk of its journal has failed. Then gets go on,
  // and a new server goes on with what the disk has.
  Status health() const;
  // Returns the number of bytes that erda-pool resize can give the pool at most. 0 for "dram:".
  uint64_t growth_limit() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace erda

#endif  // C++20
