// The C API, for C99 and every language that can call C. It offers all that erda/client.h and erda/server.h offer. A
// name in brackets is the C++ name, and its comment there has the details. Names that begin with erda_client_ are in
// liberda-client.so, and names that begin with erda_server_ are in liberda-server.so. A program may use one library or
// both.
//
// Failures. A function that can fail returns an erda_code: ERDA_OK, or the reason of the failure. erda_client_error()
// and erda_server_error() return the message. No function throws. A failed call stores 0 or NULL where it would have
// stored a result, unless its comment says otherwise.
//
// Threads. One thread at a time uses an erda_client and its buffers. One thread at a time starts, stops and closes an
// erda_server. Any thread may call the functions that read a server's state, until the server is closed. Different
// clients and servers are independent. docs/threads.md says more.
//
// Memory. A result that a call allocates is one piece of memory, with everything that it points to. Give it to the free
// function of the same library, erda_client_free or erda_server_free, at any later time, on any thread. The caller
// keeps the memory of its arguments: the library copies them before the call returns. It does not copy the bytes of an
// erda_client_buffer.
//
// Growth. A structure that the caller fills in begins with its size. The matching _init function sets the size and the
// defaults, so that a program works with a newer library, too. Structures that the library returns do not change as
// long as the library's soname stays the same. The exception is an erda_activity: the structures that it points to may
// get more fields at their ends, and longer arrays.
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

// The outcome of a call, by which the caller can act [Code]. The numbers never change.
typedef enum erda_code {
  ERDA_OK = 0,
  ERDA_NOT_FOUND = 1,           // The key has no value. This is no failure of the store.
  ERDA_INVALID_ARGUMENT = 2,    // The call can never succeed in this form. Change the thing that the message names.
  ERDA_CONFLICT = 3,            // A condition of the call did not hold. Read again and decide.
  ERDA_RESOURCE_EXHAUSTED = 4,  // There is no room now, or no memory.
  // The server cannot be reached, or went away. Try again. A put or delete that was in flight may or may not have taken
  // effect.
  ERDA_UNAVAILABLE = 5,
  ERDA_TIMEOUT = 6,            // No answer came in time. Proceed as with ERDA_UNAVAILABLE.
  ERDA_PERMISSION_DENIED = 7,  // The peer, the token or the file's rights forbid the call.
  ERDA_CORRUPTION = 8,         // Stored bytes are damaged.
  ERDA_INTERNAL = 9            // A bug in Erda, or a failure of the machine for which no other code fits.
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

// --- The work of a server, as its clients and the server itself report it

// Durations of events of one kind, counted in buckets [LatencyHistogram].
typedef struct erda_latency_histogram {
  // counts[i] is the number of events that took at most upper_bounds_ns[i], and more than upper_bounds_ns[i - 1].
  const uint64_t* counts;
  // 256, then each bound is twice the one before. The last is UINT64_MAX: that bucket has no bound.
  const uint64_t* upper_bounds_ns;
  size_t buckets;
  uint64_t count;   // Sum of all buckets.
  uint64_t sum_ns;  // Sum of all durations.
} erda_latency_histogram;

// Requests of one kind. [OperationStats] says when the shard counts one.
typedef struct erda_operation_stats {
  const char* kind;          // Such as "put_inline". docs/operations.md describes each kind.
  const uint64_t* outcomes;  // outcomes[ERDA_NOT_FOUND] is the number of answers with that code.
  size_t outcome_count;      // Larger than the largest code.
  uint64_t count;            // Sum of all outcomes.
  const erda_latency_histogram* time;
} erda_operation_stats;

// Connections and requests of one fabric [FabricStats].
typedef struct erda_fabric_stats {
  const char* scheme;    // "shm"
  const char* device;    // The NIC's name, at most 23 bytes of it; "" for shm.
  uint64_t connections;  // Connections now.
  uint64_t requests;
  uint64_t refused;
  uint64_t violations;
} erda_fabric_stats;

// Sums over all shards since the start [Activity].
typedef struct erda_activity {
  const erda_operation_stats* const* operations;  // Every kind, also those without requests.
  size_t operation_count;
  const erda_fabric_stats* const* fabrics;
  size_t fabric_count;
  const erda_latency_histogram* persist;
  const erda_latency_histogram* clean_region;
  const erda_latency_histogram* hold;
} erda_activity;

// --- The client

typedef struct erda_client erda_client;
typedef struct erda_client_buffer erda_client_buffer;

// [ClientOptions]
typedef struct erda_client_options {
  size_t size;             // Size of this structure.
  int ack;                 // An erda_ack. Default: ERDA_ACK_PERSISTED.
  int put_path;            // An erda_put_path. Default: ERDA_PUT_AUTO.
  int polling;             // An erda_polling. Default: ERDA_POLL_ADAPTIVE.
  uint32_t queue_depth;    // Operations in flight, 1 to 256. Default: 64.
  uint32_t cache_entries;  // Keys whose locations the client remembers, 0 to 2^30. Default: 65536.
  int64_t timeout_ms;      // For connecting, and for each operation; 1 to 2^40. Default: 5000.
  const char* token;       // NULL: no token.
  const char* token_file;  // NULL: no file.
  int wait_for_room;       // 1: an asynchronous call waits while queue_depth operations are in flight. Default: 0.
} erda_client_options;

// In a condition, stands for the version of an absent key [kAbsent].
#define ERDA_ABSENT 0
// The longest time to live: about 9,000 years [kTtlMax].
#define ERDA_TTL_MAX_MS (INT64_C(1) << 48)

// [PutOptions]
typedef struct erda_put_options {
  size_t size;  // Size of this structure.
  // If not 0, the put takes effect only if the key has the version if_version. If that does not hold, the put ends with
  // ERDA_CONFLICT. Default: 0.
  int conditional;
  uint64_t if_version;  // ERDA_ABSENT demands that the key has no value.
  // The value expires when this time has passed since the server took the put; 1 to ERDA_TTL_MAX_MS. 0: the value
  // stays.
  int64_t ttl_ms;
} erda_put_options;

// [DeleteOptions]
typedef struct erda_delete_options {
  size_t size;          // Size of this structure.
  int conditional;      // As in erda_put_options.
  uint64_t if_version;  // As in erda_put_options.
} erda_delete_options;

// [ScanOptions]
typedef struct erda_scan_options {
  size_t size;      // Size of this structure.
  uint64_t cursor;  // Where the page begins: 0, or `next` of the page before. Default: 0.
  size_t keys;      // The page ends after about this number of keys. Default: 1000.
  size_t bytes;  // The page ends after about this number of bytes read, but not before its first key. Default: 4 MiB.
  int values;    // 0: the scan returns keys alone. Default: 1.
} erda_scan_options;

// Bytes that belong to the caller, or to the structure that contains this one. `data` is NULL only if `size` is 0.
typedef struct erda_bytes {
  const void* data;
  size_t size;
} erda_bytes;

// The outcome of one operation. Fields that the operation does not set are 0.
typedef struct erda_result {
  erda_code code;
  const char* message;  // Details of a failure, if there are any. Never NULL.
  erda_bytes value;     // Set by a get.
  uint64_t version;     // Set by a get and a put.
  // Set by a get: the moment from which the value is absent, by the server's clock, since 1970. 0: never.
  int64_t expires_ms;
  int64_t sum;  // Set by an increment.
} erda_result;

// [ScannedKey]
typedef struct erda_scanned_key {
  erda_bytes key;
  erda_bytes value;
  uint64_t version;
  int64_t expires_ms;  // As in erda_result.
} erda_scanned_key;

// [ScanPage]
typedef struct erda_scan_page {
  const erda_scanned_key* keys;
  size_t count;      // May be 0 although more pages follow.
  int more;          // 0 in the last page.
  uint64_t next;     // The cursor of the next page, if `more` is not 0.
  double part;       // The part of the scan that is done after this page, up to 1.
  uint64_t damaged;  // Damaged keys in this page. The scan cannot return them.
} erda_scan_page;

// Counts since the client connected [ClientStats].
typedef struct erda_client_stats {
  size_t size;  // Size of this structure.
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

// Facts and counts of the server, in name and value pairs.
typedef struct erda_server_info {
  const char* const* names;
  const char* const* values;
  size_t count;
} erda_server_info;

// Receives the outcome of an asynchronous operation, on the client's thread. The result is valid during the call only.
typedef void (*erda_done)(void* user, const erda_result* result);

// Returns the message of the last call of this thread to this library that failed. Returns "" if the failure had no
// message. The text stays until another call of this thread to this library fails. It ends after 1023 bytes.
ERDA_EXPORT const char* erda_client_error(void) ERDA_NOEXCEPT;
// Returns the name of a code, such as "not found". Returns "unknown" for a number that is no code.
ERDA_EXPORT const char* erda_client_code_name(erda_code code) ERDA_NOEXCEPT;
// Frees a result of a call. Does nothing with NULL.
ERDA_EXPORT void erda_client_free(void* allocated) ERDA_NOEXCEPT;

// Set the defaults. `size` is the size of the structure that the program was compiled with:
// erda_client_put_options_init(&o, sizeof o). They do nothing if that size is smaller than that of the structure's
// first version.
ERDA_EXPORT void erda_client_options_init(erda_client_options* options, size_t size) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_client_put_options_init(erda_put_options* options, size_t size) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_client_delete_options_init(erda_delete_options* options, size_t size) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_client_scan_options_init(erda_scan_options* options, size_t size) ERDA_NOEXCEPT;

// Connects to "shm:/path/to/socket" or "verbs://host:port". NULL as options means the defaults. Waits up to the timeout
// for the server.
ERDA_EXPORT erda_code erda_client_connect(const char* address, const erda_client_options* options,
                                          erda_client** client) ERDA_NOEXCEPT;
// Abandons the operations in flight without calling their callbacks, and frees the client. In a callback, aborts the
// process with a message. In a child of a fork, leaves everything to the parent (docs/threads.md, "Misuse"). Does
// nothing with NULL.
ERDA_EXPORT void erda_client_close(erda_client* client) ERDA_NOEXCEPT;

// Copies the value into `out`. If `out` is too short, writes nothing there, stores the value's size in *value_size, and
// returns ERDA_INVALID_ARGUMENT.
ERDA_EXPORT erda_code erda_client_get(erda_client* client, const void* key, size_t key_size, void* out, size_t out_size,
                                      size_t* value_size) ERDA_NOEXCEPT;
// Allocates a result with the value, its version and its deadline. The caller frees the result if the call succeeds. A
// failed call allocates nothing.
ERDA_EXPORT erda_code erda_client_get_alloc(erda_client* client, const void* key, size_t key_size,
                                            erda_result** result) ERDA_NOEXCEPT;
// `options` and `version` may be NULL.
ERDA_EXPORT erda_code erda_client_put(erda_client* client, const void* key, size_t key_size, const void* value,
                                      size_t value_size, const erda_put_options* options,
                                      uint64_t* version) ERDA_NOEXCEPT;
// `options` may be NULL. If the key is absent, returns ERDA_NOT_FOUND; with a condition, ERDA_CONFLICT.
ERDA_EXPORT erda_code erda_client_delete(erda_client* client, const void* key, size_t key_size,
                                         const erda_delete_options* options) ERDA_NOEXCEPT;
// Adds to a value of 8 bytes, a signed number in little-endian order, in one step. An absent key counts as 0. `sum` may
// be NULL.
ERDA_EXPORT erda_code erda_client_increment(erda_client* client, const void* key, size_t key_size, int64_t delta,
                                            int64_t* sum) ERDA_NOEXCEPT;
// Gets several keys. Allocates an array of `count` results in one piece, in the order of the keys. Returns ERDA_OK also
// if some keys failed: each result has its code. With no keys, stores NULL.
ERDA_EXPORT erda_code erda_client_multi_get(erda_client* client, const erda_bytes* keys, size_t count,
                                            erda_result** results) ERDA_NOEXCEPT;
// Puts several values. Allocates an array of `count` results in one piece, in the order of the puts. Returns ERDA_OK
// also if some puts failed: each result has its code, and the version of a put that succeeded. If the call itself fails
// with ERDA_INVALID_ARGUMENT, it puts nothing. With ERDA_RESOURCE_EXHAUSTED, some puts may have taken effect. `options`
// may be NULL, and so may each pointer in it. With no puts, stores NULL [MultiPut].
ERDA_EXPORT erda_code erda_client_multi_put(erda_client* client, const erda_bytes* keys, const erda_bytes* values,
                                            const erda_put_options* const* options, size_t count,
                                            erda_result** results) ERDA_NOEXCEPT;
// Returns the next page of a scan through all keys. NULL as options means the first page, with the defaults.
ERDA_EXPORT erda_code erda_client_scan(erda_client* client, const erda_scan_options* options,
                                       erda_scan_page** page) ERDA_NOEXCEPT;

// Makes registered memory for one value. The NIC reads and writes the value there, without a copy on the client's side
// [Buffer]. The buffer works with this client only, for one operation at a time. The caller may free it at any time,
// also after the client.
ERDA_EXPORT erda_code erda_client_buffer_make(erda_client* client, size_t value_bytes,
                                              erda_client_buffer** buffer) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_client_buffer_free(erda_client_buffer* buffer) ERDA_NOEXCEPT;
// Return the address of the buffer's bytes, and their number. While an operation uses the buffer, no other code may
// touch the bytes. Return NULL and 0 for NULL.
ERDA_EXPORT void* erda_client_buffer_data(const erda_client_buffer* buffer) ERDA_NOEXCEPT;
ERDA_EXPORT size_t erda_client_buffer_size(const erda_client_buffer* buffer) ERDA_NOEXCEPT;
// Stores the value at the beginning of the buffer, and leaves all other bytes undefined.
ERDA_EXPORT erda_code erda_client_get_buffer(erda_client* client, const void* key, size_t key_size,
                                             erda_client_buffer* into, size_t* value_size) ERDA_NOEXCEPT;
// Sends the first value_size bytes of the buffer. `options` and `version` may be NULL.
ERDA_EXPORT erda_code erda_client_put_buffer(erda_client* client, const void* key, size_t key_size,
                                             erda_client_buffer* from, size_t value_size,
                                             const erda_put_options* options, uint64_t* version) ERDA_NOEXCEPT;

// Asynchronous operations. Each call returns at once. The client calls `done` later: in erda_client_poll,
// erda_client_wait or erda_client_drain, or in any call of this client that waits. `done` may be NULL. If the call
// itself fails, `done` is never called. It fails with ERDA_RESOURCE_EXHAUSTED if queue_depth operations are in flight;
// then call erda_client_wait and try again, or set wait_for_room.
// `done` may start operations. It must not poll, drain or wait: those calls return ERDA_INVALID_ARGUMENT. It must not
// close the client.
// Operations on one key take effect in the order of their start. Operations on different keys take effect in any order.
// Callbacks of puts may run in another order, also those of puts on one key.
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
// The value of the result points into the buffer. The result has no version.
ERDA_EXPORT erda_code erda_client_get_buffer_async(erda_client* client, const void* key, size_t key_size,
                                                   erda_client_buffer* into, erda_done done, void* user) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_client_put_buffer_async(erda_client* client, const void* key, size_t key_size,
                                                   erda_client_buffer* from, size_t value_size,
                                                   const erda_put_options* options, erda_done done,
                                                   void* user) ERDA_NOEXCEPT;
// Makes progress without waiting. Stores the number of finished operations in *finished, which may be NULL.
ERDA_EXPORT erda_code erda_client_poll(erda_client* client, size_t* finished) ERDA_NOEXCEPT;
// Makes progress until at_least operations have finished, none is in flight, or the time has passed. Stores the number
// of finished operations in *finished, which may be NULL.
ERDA_EXPORT erda_code erda_client_wait(erda_client* client, int64_t timeout_ms, size_t at_least,
                                       size_t* finished) ERDA_NOEXCEPT;
// For event loops. The descriptor stays the same as long as the client lives, and belongs to it. Returns -1 without a
// client. erda_client_arm prepares the client for a sleep. It stores how long the caller may sleep at most: 0 if
// erda_client_poll has work now. Otherwise the descriptor becomes readable as soon as erda_client_poll has work. The
// next call of the client ends the effect.
ERDA_EXPORT int erda_client_descriptor(const erda_client* client) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_client_arm(erda_client* client, int64_t* sleep_ms) ERDA_NOEXCEPT;
// Waits until no operation is in flight.
ERDA_EXPORT erda_code erda_client_drain(erda_client* client) ERDA_NOEXCEPT;

// Asks the server to clean the log of all shards, and returns when the cleaning has begun.
ERDA_EXPORT erda_code erda_client_clean(erda_client* client) ERDA_NOEXCEPT;
// Fills in *stats. Requires: stats->size is sizeof *stats.
ERDA_EXPORT erda_code erda_client_get_stats(const erda_client* client, erda_client_stats* stats) ERDA_NOEXCEPT;
// Allocates facts and counts of the server. Waits. It does not count in queue_depth, so it works even if queue_depth
// operations are in flight.
ERDA_EXPORT erda_code erda_client_get_server_info(erda_client* client, erda_server_info** info) ERDA_NOEXCEPT;
// Allocates counts and durations of the server's work since it started. Waits like erda_client_get_server_info.
ERDA_EXPORT erda_code erda_client_get_activity(erda_client* client, erda_activity** activity) ERDA_NOEXCEPT;
// Returns an estimate of a quantile: the duration that this share of the events (0 to 1) did not exceed
// [LatencyHistogram::Quantile]. `counts` are those of a histogram, or their growth since an earlier reading. Returns 0
// if no event was counted, or if `buckets` differs from the number of buckets of this library's histograms.
ERDA_EXPORT uint64_t erda_client_quantile_ns(const uint64_t* counts, size_t buckets, double share) ERDA_NOEXCEPT;
// Returns the size of the largest value that this pool takes for a key of this size, if the value does not expire.
// Returns 0 for NULL.
ERDA_EXPORT size_t erda_client_max_value_bytes(const erda_client* client, size_t key_size) ERDA_NOEXCEPT;

// --- The server

// How the server makes values persistent that clients write, on a power-safe pool. Read [FlushChoice] before you choose
// the last one.
typedef enum erda_flush { ERDA_FLUSH_AUTO = 0, ERDA_FLUSH_SERVER = 1, ERDA_FLUSH_READ_AFTER_WRITE = 2 } erda_flush;

// The users of the machine that can open the sockets of shm addresses [ShmAccess].
typedef enum erda_shm_access { ERDA_SHM_OWNER = 0, ERDA_SHM_GROUP = 1, ERDA_SHM_EVERYBODY = 2 } erda_shm_access;

// The clients that write large values into the pool themselves [PoolWrites].
typedef enum erda_pool_writes {
  ERDA_POOL_WRITES_NOBODY = 0,
  ERDA_POOL_WRITES_SAME_USER = 1,
  ERDA_POOL_WRITES_EVERYBODY = 2
} erda_pool_writes;

typedef struct erda_server erda_server;

// Receives the key of each stored value that is damaged; NULL and 0 if the key is unknown. Threads of the server call
// it, perhaps several at once. It must not wait.
typedef void (*erda_on_damage)(void* user, const void* key, size_t key_size);
// Receives a line about each client that breaks the protocol, keeps other clients waiting, or is refused. The line ends
// with a zero, and after 1023 bytes. Threads of the server call it, perhaps several at once. It must not wait.
typedef void (*erda_on_event)(void* user, const char* line);

// [ServerOptions]
typedef struct erda_server_options {
  size_t size;                // Size of this structure.
  const char* pool;           // Needed. "/dev/daxX.Y", a file, or "dram:".
  uint64_t pool_size;         // Bytes. Needed to create a pool. To open one: 0, or the pool's size.
  const char* const* listen;  // Needed. One or more of "shm:/path/to/socket" and "verbs://host:port".
  size_t listen_count;
  uint32_t shards;                   // 0 takes the number of an existing pool, and 1 for a new one. Default: 1.
  uint32_t max_clients;              // Connections to each shard. Default: 1024.
  uint64_t region_size;              // 0, here and in the next two fields: chosen by the pool's size.
  uint64_t segment_size;             // Bounds the largest value.
  uint64_t index_entries;            // Index slots at first, over all shards.
  uint32_t slots_per_client;         // Requests in flight for each client and shard, at most 256. Default: 256.
  uint32_t slot_bytes;               // Bytes of a request with its key and inline value; 2048 to 65536. Default: 16384.
  uint32_t reservations_per_client;  // Default: 1024.
  uint32_t clients_per_token;        // 0, here and in the next two fields: no limit.
  uint32_t requests_per_second;
  uint32_t connects_per_second;
  const char* token_file;        // NULL: the server demands no token.
  int shm_access;                // An erda_shm_access. Default: ERDA_SHM_OWNER.
  int pool_writes;               // An erda_pool_writes. Default: ERDA_POOL_WRITES_SAME_USER.
  uint64_t staging_bytes;        // For each client and shard without write access. Default: 4 MiB.
  int flush;                     // An erda_flush. Default: ERDA_FLUSH_AUTO.
  int polling;                   // An erda_polling. Default: ERDA_POLL_ADAPTIVE.
  uint64_t scrub_rate;           // Bytes that the scrubber verifies in a second; 0: never. Default: 1 MiB.
  erda_on_damage on_damage;      // NULL: no callback.
  void* on_damage_user;          // First argument of on_damage.
  erda_on_event on_event;        // NULL: no callback.
  void* on_event_user;           // First argument of on_event.
  int64_t spin_us;               // How long ERDA_POLL_ADAPTIVE looks at first. Default: 50.
  int64_t nvm_write_latency_ns;  // For experiments: an additional delay of each write-back to NVM. Default: 0.
  int64_t sync_ms;       // How often the server writes a pool in an ordinary file to its disk; 0: never. Default: 1000.
  uint64_t grow_to;      // A size to which erda-pool resize must be able to grow the pool. 0: by the pool's size.
  int populate;          // 1: erda_server_open makes all pages of the pool, so that no put waits for one. Default: 0.
  int journal_on_tmpfs;  // 1: a journal that is in memory is accepted. For tests. Default: 0.
  const char* journal;   // The file of a journal, so that the pool survives a power cut. NULL: none.
  uint64_t journal_size;        // Bytes of a new journal. 0: 1 GiB.
  int64_t journal_interval_ms;  // 0: each answer waits for the disk. Otherwise how often the journal is written.
  const char* journal_memory;   // A folder in a tmpfs where the server works. NULL: /dev/shm.
  const char* journal_front;    // A small NVM in front of the journal, as in ServerOptions. NULL: none.
  const char* archive;          // The folder of an archive, for a pool with a journal. NULL: none.
} erda_server_options;

// The limits that erda_server_reload changes [ServerLimits]. Set all fields, and the others to 0: {.size =
// sizeof(erda_server_limits)}.
typedef struct erda_server_limits {
  size_t size;                 // Size of this structure.
  uint32_t clients_per_token;  // 0, here and in the next two fields: no limit.
  uint32_t requests_per_second;
  uint32_t connects_per_second;
  const char* token_file;  // NULL: the server keeps its token file.
} erda_server_limits;

// Sums over all shards since the start, or values of now. [ServerStats] describes each.
typedef struct erda_server_stats {
  size_t size;  // Size of this structure.
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
  uint64_t journal_stream_bytes;
  uint64_t journal_held_bytes;
  uint64_t journal_bytes_written;
  uint64_t journal_flushes;
  uint64_t journal_ring_bytes;
  uint64_t journal_ring_used;
  uint64_t journal_checkpoints;
  uint64_t journal_checkpoint_at_ms;
  uint64_t journal_interval_ms;
  uint64_t journal_full_times;
  uint64_t journals_failed;
  uint64_t archive_bytes_written;
  uint64_t archive_waiting_bytes;
  uint64_t archives_failing;
  uint64_t archive_gaps;
  uint64_t journal_front_bytes;
  uint64_t journal_front_used;
  uint64_t journal_front_full_times;
  uint64_t journal_error_number;
  // tools/statistics/generate: end
} erda_server_stats;

// Findings and repairs of the opening of a pool that was not closed cleanly. [RecoveryReport] describes each.
typedef struct erda_recovery_report {
  size_t size;  // Size of this structure.
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
  uint64_t shards_verified;  // If not 0, acknowledged puts may be missing.
} erda_recovery_report;

typedef struct erda_server_addresses {
  const char* const* addresses;
  size_t count;
} erda_server_addresses;

// A fabric on which clients reach a server [ServerFabric].
typedef struct erda_server_fabric {
  const char* scheme;        // "shm"
  const char* device;        // The NIC's name; "" for shm.
  const char* flush_method;  // "none", "server-flush" or "read-after-write"
  int64_t registered_in_ns;  // Time that the registration of the pool there took.
} erda_server_fabric;
typedef struct erda_server_fabrics {
  const erda_server_fabric* fabrics;
  size_t count;
} erda_server_fabrics;

// The server's library has these three, too. They work like erda_client_error, erda_client_code_name and
// erda_client_free.
ERDA_EXPORT const char* erda_server_error(void) ERDA_NOEXCEPT;
ERDA_EXPORT const char* erda_server_code_name(erda_code code) ERDA_NOEXCEPT;
ERDA_EXPORT void erda_server_free(void* allocated) ERDA_NOEXCEPT;

// Sets the defaults: erda_server_options_init(&o, sizeof o). Works like erda_client_options_init.
ERDA_EXPORT void erda_server_options_init(erda_server_options* options, size_t size) ERDA_NOEXCEPT;

// Takes the addresses, and creates the pool or opens it. Recovers a pool that was not closed cleanly. Serves nothing
// before erda_server_start. Returns the codes of [Server::Open].
ERDA_EXPORT erda_code erda_server_open(const erda_server_options* options, erda_server** server) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_server_start(erda_server* server) ERDA_NOEXCEPT;
// Replaces all these limits, and reads the token file, which may be another one [Server::Reload]. An error changes
// nothing. Requires: limits->size is sizeof *limits.
ERDA_EXPORT erda_code erda_server_reload(erda_server* server, const erda_server_limits* limits) ERDA_NOEXCEPT;
// Closes every connection, settles all versions that can be settled, and closes the pool cleanly. A stopped server
// cannot start again. It still reports its counts until it is closed.
ERDA_EXPORT erda_code erda_server_stop(erda_server* server) ERDA_NOEXCEPT;
// Stops the server if it serves, and frees it. Must not be called in a callback. Does nothing with NULL.
ERDA_EXPORT void erda_server_close(erda_server* server) ERDA_NOEXCEPT;

// Allocates the addresses to which clients can connect.
ERDA_EXPORT erda_code erda_server_get_addresses(const erda_server* server,
                                                erda_server_addresses** addresses) ERDA_NOEXCEPT;
// Fills in *stats. Requires: stats->size is sizeof *stats.
ERDA_EXPORT erda_code erda_server_get_stats(const erda_server* server, erda_server_stats* stats) ERDA_NOEXCEPT;
// Allocates counts and durations of the server's work, by kind and outcome.
ERDA_EXPORT erda_code erda_server_get_activity(const erda_server* server, erda_activity** activity) ERDA_NOEXCEPT;
// Works like erda_client_quantile_ns.
ERDA_EXPORT uint64_t erda_server_quantile_ns(const uint64_t* counts, size_t buckets, double share) ERDA_NOEXCEPT;
ERDA_EXPORT erda_code erda_server_get_fabrics(const erda_server* server, erda_server_fabrics** fabrics) ERDA_NOEXCEPT;
// Fills in *report. Requires: report->size is sizeof *report. Returns ERDA_NOT_FOUND if the pool was new or had been
// closed cleanly.
ERDA_EXPORT erda_code erda_server_get_recovery(const erda_server* server, erda_recovery_report* report) ERDA_NOEXCEPT;
// Returns the kind of failure that the pool's medium survives: "power-safe", "process-safe" or "volatile". The text is
// valid as long as the server. Returns "" for NULL.
ERDA_EXPORT const char* erda_server_durability(const erda_server* server) ERDA_NOEXCEPT;
// Returns ERDA_OK, or the error for which the server acknowledges no put any more: the disk of its journal has failed.
ERDA_EXPORT erda_code erda_server_health(const erda_server* server) ERDA_NOEXCEPT;
// Returns the number of bytes that erda-pool resize can give the pool at most. Returns 0 for NULL.
ERDA_EXPORT uint64_t erda_server_growth_limit(const erda_server* server) ERDA_NOEXCEPT;

#ifdef __cplusplus
}
#endif
// NOLINTEND(readability-identifier-naming, modernize-*)
