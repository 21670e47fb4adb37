// The C API, for C99 and for whatever can call C. It has all that erda/client.h and erda/server.h have, which say more
// of what each call means: the name in brackets is the one there. What begins with erda_client_ is in
// liberda-client.so, what begins with erda_server_ in liberda-server.so; a program may use one of them, or both.
//
// Failures. What can fail returns an erda_code, ERDA_OK or why not; the library's own erda_client_error() or
// erda_server_error() has the message. Nothing throws. When a call fails, what it should have returned through a
// pointer is 0 or NULL, but where it says otherwise.
//
// Threads. An erda_client belongs to one thread at a time, and its buffers with it. An erda_server is started, stopped
// and closed by one thread at a time; until it is closed, any thread may ask it what it says of itself. Different ones
// are independent. docs/threads.md says more.
//
// Memory. What a call allocates is one piece, with all that it points to: give it to the free of its library,
// erda_client_free or erda_server_free, as long after the call as you like, on any thread. What you pass is yours, and
// copied before a call returns, but for the bytes of an erda_client_buffer.
//
// Growth. A structure that you fill in begins with its size, and the function _init sets it, and the defaults: so a
// program goes on with a newer library. One that the library returns stays as it is as long as the library's soname
// does; but those of an erda_activity, which are only pointed to, may get more fields at their ends, and longer arrays.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "erda/export.h"

// NOLINTBEGIN(readability-identifier-naming, modernize-*): C's names
#ifdef __cplusplus
#define ERDA_NOEXCEPT noexcept
extern "C" {
#else
#define ERDA_NOEXCEPT
#endif

// What the caller can do about it [Code]. The numbers stay.
typedef enum erda_code {
  ERDA_OK = 0,
  ERDA_NOT_FOUND = 1,           // The key has no value. Not a failure of the store.
  ERDA_INVALID_ARGUMENT = 2,    // The call can never succeed as it is: change what the message names.
  ERDA_CONFLICT = 3,            // A condition of the call did not hold: read again and decide.
  ERDA_RESOURCE_EXHAUSTED = 4,  // No room now, or no memory.
  ERDA_UNAVAILABLE = 5,         // The server cannot be reached, or went away: try again. The outcome of a put or
                                // delete that was under way is unknown.
  ERDA_TIMEOUT = 6,             // No answer in time: as ERDA_UNAVAILABLE.
  ERDA_PERMISSION_DENIED = 7,   // The peer, the token or the file's rights forbid it.
  ERDA_CORRUPTION = 8,          // Stored bytes are damaged.
  ERDA_INTERNAL = 9             // A bug in Erda, or a failure of the machine that has no better name.
} erda_code;

// When a put counts as done [Ack].
typedef enum erda_ack { ERDA_ACK_PLACED = 0, ERDA_ACK_PERSISTED = 1 } erda_ack;

// How a put travels [PutPath].
typedef enum erda_put_path {
  ERDA_PUT_AUTO = 0,
  ERDA_PUT_RESERVE = 1,
  ERDA_PUT_INLINE = 2,
  ERDA_PUT_DELEGATE = 3
} erda_put_path;

// How a thread waits [Polling].
typedef enum erda_polling { ERDA_POLL_ADAPTIVE = 0, ERDA_POLL_BUSY = 1, ERDA_POLL_SLEEP = 2 } erda_polling;

// --- What a server has done, of which its clients and itself can tell

// How long something took each time, counted in buckets [LatencyHistogram].
typedef struct erda_latency_histogram {
  const uint64_t* counts;           // Of bucket i: took at most upper_bounds_ns[i], and more than that of i - 1.
  const uint64_t* upper_bounds_ns;  // 256, each twice the one before; but the last is UINT64_MAX, since it has none.
  size_t buckets;
  uint64_t count;   // of all buckets
  uint64_t sum_ns;  // of all times together
} erda_latency_histogram;

// The requests of one kind [OperationStats, which says what is counted when].
typedef struct erda_operation_stats {
  const char* kind;          // "put_inline"; docs/operations.md says what each is.
  const uint64_t* outcomes;  // outcomes[ERDA_NOT_FOUND]: how many were answered with that code.
  size_t outcome_count;      // More than the largest code.
  uint64_t count;            // of all outcomes
  const erda_latency_histogram* time;
} erda_operation_stats;

// What came by one fabric [FabricStats].
typedef struct erda_fabric_stats {
  const char* scheme;    // "shm"
  const char* device;    // the NIC's name, at most 23 bytes of it; "" for shm
  uint64_t connections;  // now
  uint64_t requests;
  uint64_t refused;
  uint64_t violations;
} erda_fabric_stats;

// Sums over all shards since the start [Activity].
typedef struct erda_activity {
  const erda_operation_stats* const* operations;  // every kind, whether there were any or not
  size_t operation_count;
  const erda_fabric_stats* const* fabrics;
  size_t fabric_count;
  const erda_latency_histogram* persist;
  const erda_latency_histogram* clean_region;
} erda_activity;

// --- The client

typedef struct erda_client erda_client;
typedef struct erda_client_buffer erda_client_buffer;

// [ClientOptions]
typedef struct erda_client_options {
  size_t size;             // of this structure
  int ack;                 // an erda_ack: ERDA_ACK_PERSISTED
  int put_path;            // an erda_put_path: ERDA_PUT_AUTO
  int polling;             // an erda_polling: ERDA_POLL_ADAPTIVE
  uint32_t queue_depth;    // 64. Operations in flight, 1 to 256.
  uint32_t cache_entries;  // 65536. Keys whose places are remembered; 0: none, to 2^30.
  int64_t timeout_ms;      // 5000. For connecting and for each operation; 1 to 2^40.
  const char* token;       // NULL: none
  const char* token_file;  // NULL: none
} erda_client_options;

// As a version in a condition: the key is absent [kAbsent].
#define ERDA_ABSENT 0
// The longest time to live: some 9,000 years [kTtlMax].
#define ERDA_TTL_MAX_MS (INT64_C(1) << 48)

// [PutOptions]
typedef struct erda_put_options {
  size_t size;          // of this structure
  int conditional;      // 0. Else the put takes effect only if the key has the version if_version, or ERDA_CONFLICT.
  uint64_t if_version;  // ERDA_ABSENT: there is no value.
  int64_t ttl_ms;       // 0: stays. Else the value expires so long after the server has taken the put, 1 to
                        // ERDA_TTL_MAX_MS.
} erda_put_options;

// [DeleteOptions]
typedef struct erda_delete_options {
  size_t size;          // of this structure
  int conditional;      // as of a put
  uint64_t if_version;  // as of a put
} erda_delete_options;

// [ScanOptions]
typedef struct erda_scan_options {
  size_t size;      // of this structure
  uint64_t cursor;  // 0. Where to go on: `next` of the page before.
  size_t keys;      // 1000. A page ends behind about so many keys,
  size_t bytes;     // 4 MiB. or so many bytes of what it reads, but not before its first.
  int values;       // 1. 0: the keys alone.
} erda_scan_options;

// Bytes of the caller's, or of what they are in. NULL only if there are none.
typedef struct erda_bytes {
  const void* data;
  size_t size;
} erda_bytes;

// How one operation ended. What does not belong to it is 0.
typedef struct erda_result {
  erda_code code;
  const char* message;  // More about a failure, perhaps; never NULL.
  erda_bytes value;     // of a get
  uint64_t version;     // of a get or a put
  int64_t expires_ms;   // of a get: when it will be absent, by the server's clock, since 1970; 0: never
  int64_t sum;          // of an increment
} erda_result;

// [ScannedKey]
typedef struct erda_scanned_key {
  erda_bytes key;
  erda_bytes value;
  uint64_t version;
  int64_t expires_ms;  // as of a result
} erda_scanned_key;

// [ScanPage]
typedef struct erda_scan_page {
  const erda_scanned_key* keys;
  size_t count;      // May be 0, and more pages follow.
  int more;          // 0: this was the last one.
  uint64_t next;     // The cursor behind it, if there are more.
  double part;       // How much of the scan is done with it, up to 1.
  uint64_t damaged;  // Keys that are stored there and cannot be told.
} erda_scan_page;

// Counts since the client connected [ClientStats].
typedef struct erda_client_stats {
  size_t size;  // of this structure
  uint64_t gets;
  uint64_t puts;
  uint64_t deletes;
  uint64_t failures;
  uint64_t reads;
  uint64_t read_bytes;
  uint64_t requests;
  uint64_t nvm_bytes_written;
  uint64_t second_looks;
  uint64_t cache_hits;
  uint64_t cache_misled;
  uint64_t older_versions;
  uint64_t reconnects;
  uint64_t sleeps;
} erda_client_stats;

// What the server says of itself, in name and value pairs.
typedef struct erda_server_info {
  const char* const* names;
  const char* const* values;
  size_t count;
} erda_server_info;

// Is told how an asynchronous operation ended, on the client's thread. The result lives for the call only.
typedef void (*erda_done)(void* user, const erda_result* result);

// What the last call of this thread that failed said: "" if it said nothing more than its code. It stays until another
// call of this thread to this library fails. Longer messages than 1023 bytes are cut off.
ERDA_EXPORT const char* erda_client_error(void) ERDA_NOEXCEPT;
// "not found"; "unknown" for a number that is no code.
ERDA_EXPORT const char* erda_client_code_name(erda_code code) ERDA_NOEXCEPT;
// NULL does nothing.
ERDA_EXPORT void erda_client_free(void* allocated) ERDA_NOEXCEPT;

// The defaults. size: that of the structure, as the program was compiled: erda_client_put_options_init(&o, sizeof o).
// One that is shorter than any there was is left as it is.
ERDA_EXPORT void erda_client_options_init(erda_client_options* options, size_t size) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_client_put_options_init(erda_put_options* options, size_t size) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_client_delete_options_init(erda_delete_options* options, size_t size) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_client_scan_options_init(erda_scan_options* options, size_t size) ERDA_NOEXCEPT;

// address: "shm:/path/to/socket" or "verbs://host:port". options: NULL for the defaults. Waits up to the timeout for
// the server.
ERDA_EXPORT erda_code erda_client_connect(const char* address, const erda_client_options* options,
                                          erda_client** client) ERDA_NOEXCEPT;
// Abandons what is in flight, without calling its callbacks. In a callback it aborts with a message; after a fork it
// leaves all to the parent (docs/threads.md, "Misuse"). NULL does nothing.
ERDA_EXPORT void erda_client_close(erda_client* client) ERDA_NOEXCEPT;

// Into the caller's memory. If it is too short, ERDA_INVALID_ARGUMENT: nothing is written there then, and *value_size
// is what the value needs.
ERDA_EXPORT erda_code erda_client_get(erda_client* client, const void* key, size_t key_size, void* out, size_t out_size,
                                      size_t* value_size) ERDA_NOEXCEPT;
// Into allocated memory. result: with its version and deadline. Only if it succeeds there is one to be freed.
ERDA_EXPORT erda_code erda_client_get_alloc(erda_client* client, const void* key, size_t key_size,
                                            erda_result** result) ERDA_NOEXCEPT;
// options and version may be NULL.
ERDA_EXPORT erda_code erda_client_put(erda_client* client, const void* key, size_t key_size, const void* value,
                                      size_t value_size, const erda_put_options* options,
                                      uint64_t* version) ERDA_NOEXCEPT;
// options may be NULL. ERDA_NOT_FOUND if absent; with a condition ERDA_CONFLICT.
ERDA_EXPORT erda_code erda_client_delete(erda_client* client, const void* key, size_t key_size,
                                         const erda_delete_options* options) ERDA_NOEXCEPT;
// Adds to a value of 8 bytes, a signed number in little-endian order, in one step; an absent key counts as 0. sum may
// be NULL.
ERDA_EXPORT erda_code erda_client_increment(erda_client* client, const void* key, size_t key_size, int64_t delta,
                                            int64_t* sum) ERDA_NOEXCEPT;
// One result for each key, in their order: an array of `count`, one piece of memory. ERDA_OK also if some of them
// failed: each has its code. With no keys, *results is NULL.
ERDA_EXPORT erda_code erda_client_multi_get(erda_client* client, const erda_bytes* keys, size_t count,
                                            erda_result** results) ERDA_NOEXCEPT;
// The next keys of a scan of all. options: NULL for the first page, with the defaults.
ERDA_EXPORT erda_code erda_client_scan(erda_client* client, const erda_scan_options* options,
                                       erda_scan_page** page) ERDA_NOEXCEPT;

// Memory for one value that the NIC knows: values are read and sent without a copy on the client's side [Buffer]. For
// operations of this client, one at a time. It may be freed at any time, also after the client.
ERDA_EXPORT erda_code erda_client_buffer_make(erda_client* client, size_t value_bytes,
                                              erda_client_buffer** buffer) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_client_buffer_free(erda_client_buffer* buffer) ERDA_NOEXCEPT;
// Where its bytes are, and how many. While an operation has it, nobody else touches them. NULL and 0 of NULL.
ERDA_EXPORT void* erda_client_buffer_data(const erda_client_buffer* buffer) ERDA_NOEXCEPT;
ERDA_EXPORT size_t erda_client_buffer_size(const erda_client_buffer* buffer) ERDA_NOEXCEPT;
// Leaves the value at the beginning, and all other bytes undefined.
ERDA_EXPORT erda_code erda_client_get_buffer(erda_client* client, const void* key, size_t key_size,
                                             erda_client_buffer* into, size_t* value_size) ERDA_NOEXCEPT;
// Takes the first value_size bytes. options and version may be NULL.
ERDA_EXPORT erda_code erda_client_put_buffer(erda_client* client, const void* key, size_t key_size,
                                             erda_client_buffer* from, size_t value_size,
                                             const erda_put_options* options, uint64_t* version) ERDA_NOEXCEPT;

// Asynchronous: these return at once, and `done` is called later, in erda_client_poll or erda_client_drain, or in any
// other call that waits, of this client. It may start operations, but not poll, drain or wait, which is
// ERDA_INVALID_ARGUMENT, nor close. If the call
// itself fails, `done` is never called: ERDA_RESOURCE_EXHAUSTED if queue_depth operations are in flight. done may be
// NULL. Operations on one key take effect in the order started; those on different keys in any order.
ERDA_EXPORT erda_code erda_client_get_async(erda_client* client, const void* key, size_t key_size, erda_done done,
                                            void* user) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_client_put_async(erda_client* client, const void* key, size_t key_size, const void* value,
                                            size_t value_size, const erda_put_options* options, erda_done done,
                                            void* user) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_client_delete_async(erda_client* client, const void* key, size_t key_size,
                                               const erda_delete_options* options, erda_done done,
                                               void* user) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_client_increment_async(erda_client* client, const void* key, size_t key_size, int64_t delta,
                                                  erda_done done, void* user) ERDA_NOEXCEPT;
// The result's value is in the buffer; it has no version.
ERDA_EXPORT erda_code erda_client_get_buffer_async(erda_client* client, const void* key, size_t key_size,
                                                   erda_client_buffer* into, erda_done done, void* user) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_client_put_buffer_async(erda_client* client, const void* key, size_t key_size,
                                                   erda_client_buffer* from, size_t value_size,
                                                   const erda_put_options* options, erda_done done,
                                                   void* user) ERDA_NOEXCEPT;
// Makes progress without waiting. finished: how many operations ended; may be NULL.
ERDA_EXPORT erda_code erda_client_poll(erda_client* client, size_t* finished) ERDA_NOEXCEPT;
// Until none is in flight.
ERDA_EXPORT erda_code erda_client_drain(erda_client* client) ERDA_NOEXCEPT;

// Asks the server to clean the log of all shards, and returns when it has begun.
ERDA_EXPORT erda_code erda_client_clean(erda_client* client) ERDA_NOEXCEPT;
// stats->size says how much of it there is: set it before, to sizeof *stats.
ERDA_EXPORT erda_code erda_client_get_stats(const erda_client* client, erda_client_stats* stats) ERDA_NOEXCEPT;
// Waits; needs no operation in flight.
ERDA_EXPORT erda_code erda_client_get_server_info(erda_client* client, erda_server_info** info) ERDA_NOEXCEPT;
// What the server did since it started, and how long that took. As erda_client_get_server_info.
ERDA_EXPORT erda_code erda_client_get_activity(erda_client* client, erda_activity** activity) ERDA_NOEXCEPT;
// An estimate of the time that this share of all, 0 to 1, did not exceed [LatencyHistogram::Quantile]; 0 if there was
// nothing. counts, buckets: of a histogram, or what came to its counts since an earlier reading. 0 too if the library's
// histograms have another number of buckets.
ERDA_EXPORT uint64_t erda_client_quantile_ns(const uint64_t* counts, size_t buckets, double share) ERDA_NOEXCEPT;
// The largest value that this pool takes for a key of this size, if it does not expire. 0 of NULL.
ERDA_EXPORT size_t erda_client_max_value_bytes(const erda_client* client, size_t key_size) ERDA_NOEXCEPT;

// --- The server

// How values that clients write are made persistent, on a power-safe pool [FlushChoice]. Read there before you take the
// last one.
typedef enum erda_flush { ERDA_FLUSH_AUTO = 0, ERDA_FLUSH_SERVER = 1, ERDA_FLUSH_READ_AFTER_WRITE = 2 } erda_flush;

// Which users of the machine can open the sockets of shm addresses [ShmAccess].
typedef enum erda_shm_access { ERDA_SHM_OWNER = 0, ERDA_SHM_GROUP = 1, ERDA_SHM_EVERYBODY = 2 } erda_shm_access;

// Which clients place large values in the pool themselves [PoolWrites].
typedef enum erda_pool_writes {
  ERDA_POOL_WRITES_NOBODY = 0,
  ERDA_POOL_WRITES_SAME_USER = 1,
  ERDA_POOL_WRITES_EVERYBODY = 2
} erda_pool_writes;

typedef struct erda_server erda_server;

// Is told of a key whose stored value is damaged, or of none (NULL, 0) if that cannot be known any more. On threads
// of the server's, on several at once perhaps; must not wait.
typedef void (*erda_on_damage)(void* user, const void* key, size_t key_size);
// Is told in a line, ended by a zero, of each client that breaks the protocol, keeps others waiting, or is refused.
// Longer lines than 1023 bytes are cut off. On threads of the server's, on several at once perhaps; must not wait.
typedef void (*erda_on_event)(void* user, const char* line);

// [ServerOptions]
typedef struct erda_server_options {
  size_t size;                       // of this structure
  const char* pool;                  // Needed. "/dev/daxX.Y", a file, or "dram:".
  uint64_t pool_size;                // 0. Bytes. Needed to create the pool; 0 or its own size to open it.
  const char* const* listen;         // Needed. "shm:/path/to/socket", "verbs://host:port":
  size_t listen_count;               // one or more.
  uint32_t shards;                   // 1. 0: an existing pool's own number, and 1 for a new one.
  uint32_t max_clients;              // 1024. Connections for each shard.
  uint64_t region_size;              // 0, as the next two: chosen by the pool's size.
  uint64_t segment_size;             // Bounds the largest value.
  uint64_t index_entries;            // Slots at first, over all shards.
  uint32_t slots_per_client;         // 256. Requests in flight for each client and shard, at most 256.
  uint32_t slot_bytes;               // 16384. A request with its key and inline value; 2048 to 65536.
  uint32_t reservations_per_client;  // 1024
  uint32_t clients_per_token;        // 0: no limit, as the next two.
  uint32_t requests_per_second;
  uint32_t connects_per_second;
  const char* token_file;        // NULL: no token is demanded.
  int shm_access;                // an erda_shm_access: ERDA_SHM_OWNER
  int pool_writes;               // an erda_pool_writes: ERDA_POOL_WRITES_SAME_USER
  uint64_t staging_bytes;        // 4 MiB. For each client and shard that may not write into the pool.
  int flush;                     // an erda_flush: ERDA_FLUSH_AUTO
  int polling;                   // an erda_polling: ERDA_POLL_ADAPTIVE
  uint64_t scrub_rate;           // 1 MiB. Bytes that are verified in a second; 0: never.
  erda_on_damage on_damage;      // NULL: nobody wants to know.
  void* on_damage_user;          // Its first argument.
  erda_on_event on_event;        // NULL: nobody wants to know.
  void* on_event_user;           // Its first argument.
  int64_t spin_us;               // 50. How long ERDA_POLL_ADAPTIVE keeps looking at first.
  int64_t nvm_write_latency_ns;  // 0. For experiments: added to every NVM write-back.
  int64_t sync_ms;               // 1000. How often a pool in a file is written to its disk; 0: never.
  uint64_t grow_to;              // 0: by the pool's size. How large erda-pool resize can make the pool, at the least.
} erda_server_options;

// What erda_server_reload changes [ServerLimits]. Set all fields, the others to 0: {.size =
// sizeof(erda_server_limits)}.
typedef struct erda_server_limits {
  size_t size;                 // of this structure
  uint32_t clients_per_token;  // 0: no limit, as the next two.
  uint32_t requests_per_second;
  uint32_t connects_per_second;
  const char* token_file;  // NULL: the server keeps the file that it has.
} erda_server_limits;

// Sums over all shards since the start, but for those of "now" [ServerStats, which says what each counts].
typedef struct erda_server_stats {
  size_t size;  // of this structure
  // tools/statistics/generate: begin
  uint64_t puts;
  uint64_t puts_inline;
  uint64_t puts_staged;
  uint64_t puts_reserved;
  uint64_t puts_delegated;
  uint64_t commits;
  uint64_t deletes;
  uint64_t refused;
  uint64_t violations;
  uint64_t settled;
  uint64_t taken_back;
  uint64_t nvm_bytes_written;
  uint64_t shards;
  uint64_t clients;
  uint64_t keys;
  uint64_t index_slots;
  uint64_t log_bytes_used;
  uint64_t log_bytes_total;
  uint64_t in_flight;
  uint64_t descriptors;
  uint64_t registered_bytes;
  uint64_t sleeps;
  uint64_t log_bytes_live;
  uint64_t puts_delayed;
  uint64_t regions_cleaned;
  uint64_t clean_bytes_copied;
  uint64_t clean_bytes_freed;
  uint64_t clean_nvm_bytes_written;
  uint64_t scrub_bytes;
  uint64_t damaged_keys;
  uint64_t clean_moves;
  uint64_t free_regions;
  uint64_t cleaning;
  uint64_t set_aside;
  uint64_t expired;
  uint64_t chunks;
  uint64_t chunk_bytes;
  uint64_t overdue;
  uint64_t reports;
  uint64_t nvm_flushes;
  uint64_t nvm_fences;
  uint64_t syncs;
  uint64_t sync_failures;
  uint64_t synced_at_ms;
  uint64_t flips_undone;
  // tools/statistics/generate: end
} erda_server_stats;

// What the opening of a pool found and did that was not closed cleanly [RecoveryReport, which says what each counts].
typedef struct erda_recovery_report {
  size_t size;  // of this structure
  uint64_t objects;
  uint64_t index_slots;
  uint64_t unsettled;
  uint64_t settled;
  uint64_t taken_back;
  uint64_t dropped;
  uint64_t deletes_finished;
  uint64_t damaged;
  uint64_t moves_undone;
  uint64_t regions_unlinked;
  int64_t time_ns;
  uint64_t shards_verified;  // Not 0: acknowledged puts may be missing.
} erda_recovery_report;

typedef struct erda_server_addresses {
  const char* const* addresses;
  size_t count;
} erda_server_addresses;

// A fabric that a server is reached on [ServerFabric].
typedef struct erda_server_fabric {
  const char* scheme;        // "shm"
  const char* device;        // the NIC's name; "" for shm
  const char* flush_method;  // "none", "server-flush" or "read-after-write"
  int64_t registered_in_ns;  // how long it took to register the pool there
} erda_server_fabric;
typedef struct erda_server_fabrics {
  const erda_server_fabric* fabrics;
  size_t count;
} erda_server_fabrics;

// As erda_client_error, erda_client_code_name and erda_client_free, of this library.
ERDA_EXPORT const char* erda_server_error(void) ERDA_NOEXCEPT;
ERDA_EXPORT const char* erda_server_code_name(erda_code code) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_server_free(void* allocated) ERDA_NOEXCEPT;

// The defaults: erda_server_options_init(&o, sizeof o). As erda_client_options_init.
ERDA_EXPORT void erda_server_options_init(erda_server_options* options, size_t size) ERDA_NOEXCEPT;

// Takes the addresses, creates the pool, or opens it, and recovers it if it was not closed cleanly. Nothing is served
// before the start. The codes are those of Server::Open.
ERDA_EXPORT erda_code erda_server_open(const erda_server_options* options, erda_server** server) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_server_start(erda_server* server) ERDA_NOEXCEPT;
// Replaces the limits by these, all of them, and reads the token file, which may be another one [Server::Reload]. An
// error changes nothing. limits->size: sizeof *limits.
ERDA_EXPORT erda_code erda_server_reload(erda_server* server, const erda_server_limits* limits) ERDA_NOEXCEPT;
// Closes every connection, settles what can be settled, closes the pool cleanly. A stopped server stays stopped, and
// says what it counted until it is closed.
ERDA_EXPORT erda_code erda_server_stop(erda_server* server) ERDA_NOEXCEPT;
// Stops it, if it serves. Not in a callback. NULL does nothing.
ERDA_EXPORT void erda_server_close(erda_server* server) ERDA_NOEXCEPT;

// What clients can connect to.
ERDA_EXPORT erda_code erda_server_get_addresses(const erda_server* server,
                                                erda_server_addresses** addresses) ERDA_NOEXCEPT;
// stats->size says how much of it there is: set it before, to sizeof *stats.
ERDA_EXPORT erda_code erda_server_get_stats(const erda_server* server, erda_server_stats* stats) ERDA_NOEXCEPT;
// What it did, by kind and outcome, and how long that took.
ERDA_EXPORT erda_code erda_server_get_activity(const erda_server* server, erda_activity** activity) ERDA_NOEXCEPT;
// As erda_client_quantile_ns, of this library.
ERDA_EXPORT uint64_t erda_server_quantile_ns(const uint64_t* counts, size_t buckets, double share) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_server_get_fabrics(const erda_server* server, erda_server_fabrics** fabrics) ERDA_NOEXCEPT;
// report->size as that of the counts. ERDA_NOT_FOUND: the pool was new or had been closed cleanly.
ERDA_EXPORT erda_code erda_server_get_recovery(const erda_server* server, erda_recovery_report* report) ERDA_NOEXCEPT;
// "power-safe", "process-safe" or "volatile": what the pool's medium survives. Lives as long as the server. "" of NULL.
ERDA_EXPORT const char* erda_server_durability(const erda_server* server) ERDA_NOEXCEPT;
// How many bytes erda-pool resize can give the pool at most. 0 of NULL.
ERDA_EXPORT uint64_t erda_server_growth_limit(const erda_server* server) ERDA_NOEXCEPT;

#ifdef __cplusplus
}
#endif
// NOLINTEND(readability-identifier-naming, modernize-*)
