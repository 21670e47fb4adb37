// The server's C API: each function, the message of each about bad arguments, and each field of erda/server.h.
#include "server/c_api.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "c_api/user.h"
#include "erda/client.h"
#include "erda/erda.h"
#include "erda/server.h"
#include "format/counters.h"

namespace erda {
namespace {

// Lists all fields, to compare them. If a structure gets another field, this does not compile any more. For a function
// it has whether the function is set.
auto FieldsOf(const ServerOptions& options) {
  const auto& [pool, pool_size, listen, shards, region_size, segment_size, index_entries, grow_to, populate,
               max_clients, slots_per_client, slot_bytes, reservations_per_client, clients_per_token,
               requests_per_second, connects_per_second, token_file, shm_access, pool_writes, staging_bytes, flush,
               sync, journal, journal_size, journal_interval, journal_memory, journal_front, journal_on_tmpfs, archive,
               scrub_rate, on_damage, on_event, polling, spin, nvm_write_latency] = options;
  return std::tuple(pool, pool_size, listen, shards, region_size, segment_size, index_entries, grow_to, populate,
                    max_clients, slots_per_client, slot_bytes, reservations_per_client, clients_per_token,
                    requests_per_second, connects_per_second, token_file, shm_access, pool_writes, staging_bytes, flush,
                    sync, journal, journal_size, journal_interval, journal_memory, journal_front, journal_on_tmpfs,
                    archive, scrub_rate, static_cast<bool>(on_damage), static_cast<bool>(on_event), polling, spin,
                    nvm_write_latency);
}

// Returns the numbers of all fields, after each was set to another one. (A field of 4 bytes has 4 bytes of padding.)
std::vector<uint64_t> Number(ServerStats* stats) {
  uint64_t number = 100;
  std::vector<uint64_t> all;
#define ERDA_NUMBER(field)                                    \
  stats->field = static_cast<decltype(stats->field)>(number); \
  all.push_back(number++);
  ERDA_STATISTICS(ERDA_NUMBER)
#undef ERDA_NUMBER
  EXPECT_EQ(sizeof(ServerStats), all.size() * sizeof(uint64_t)) << "a field is not in the table";
  return all;
}

std::vector<uint64_t> Number(RecoveryReport* report) {
  auto& [objects, index_slots, unsettled, settled, taken_back, dropped, deletes_finished, damaged, moves_undone,
         regions_unlinked, shards_verified, time] = *report;
  uint64_t number = 100;
  std::vector<uint64_t> all;
  for (uint64_t* field : {&objects, &index_slots, &unsettled, &settled, &taken_back, &dropped, &deletes_finished,
                          &damaged, &moves_undone, &regions_unlinked, &shards_verified}) {
    all.push_back(*field = number++);
  }
  time = std::chrono::nanoseconds(number);
  all.push_back(number);
  return all;
}

// Returns the numbers of a C structure that has a size and then only numbers of 8 bytes.
template <class Counts>
std::vector<uint64_t> NumbersOf(const Counts& counts) {
  static_assert(sizeof(Counts) % sizeof(uint64_t) == 0 && alignof(Counts) == sizeof(uint64_t));
  std::vector<uint64_t> numbers(sizeof(Counts) / sizeof(uint64_t));
  std::memcpy(numbers.data(), &counts, sizeof(counts));
  numbers.erase(numbers.begin());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void IgnoreDamage(void* /*user*/, const void* /*key*/, size_t /*size*/) {}
void IgnoreEvent(void* /*user*/, const char* /*line*/) {}

// The events that callbacks were told, on any thread.
class Told {
 public:
  static void Damage(void* user, const void* key, size_t size) {
    static_cast<Told*>(user)->Add(key == nullptr ? "nothing" : std::string(static_cast<const char*>(key), size));
  }
  static void Event(void* user, const char* line) { static_cast<Told*>(user)->Add(line); }
  void Add(std::string text) {
    const std::scoped_lock lock(mutex_);
    all_.push_back(std::move(text));
  }
  // Returns the first event, once there is one. Returns nothing after a minute.
  std::string First() {
    for (int i = 0; i < 6000; ++i) {
      {
        const std::scoped_lock lock(mutex_);
        if (!all_.empty()) return all_.front();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return "";
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

void ExpectServerSaid(erda_code code, erda_code expected, std::string_view words) {
  EXPECT_EQ(code, expected) << erda_server_error();
  EXPECT_NE(std::string_view(erda_server_error()).find(words), std::string_view::npos) << erda_server_error();
}

class CServer : public testing::Test {
 protected:
  CServer() {
    erda_server_options_init(&options_, sizeof(options_));
    options_.pool = "dram:";
    options_.pool_size = uint64_t{64} << 20;
    options_.listen = listen_;
    options_.listen_count = 1;
  }
  void TearDown() override { erda_server_close(server_); }

  [[nodiscard]] std::string Path(const char* name) const { return (folder_ / name).string(); }
  void Serve() {
    ASSERT_EQ(erda_server_open(&options_, &server_), ERDA_OK) << erda_server_error();
    ASSERT_EQ(erda_server_start(server_), ERDA_OK) << erda_server_error();
  }
  void ExpectRefused(const erda_server_options& options, std::string_view words) {
    erda_server* server = server_;
    ExpectServerSaid(erda_server_open(&options, &server), ERDA_INVALID_ARGUMENT, words);
    EXPECT_EQ(server, nullptr);
  }
  [[nodiscard]] static std::unique_ptr<Client> ClientAt(const std::string& address) {
    auto client = Client::Connect(address);
    EXPECT_TRUE(client.ok()) << client.status().ToString();
    return client.ok() ? *std::move(client) : nullptr;
  }

  const TemporaryFolder folder_;
  const std::string address_ = "shm:" + Path("socket");
  const std::string other_address_ = "shm:" + Path("other");
  const char* const listen_[2] = {address_.c_str(), other_address_.c_str()};
  erda_server_options options_{};
  Told told_;  // Must live as long as the server has threads.
  erda_server* server_ = nullptr;
};

TEST_F(CServer, ProgramInCUsesTheServer) { EXPECT_EQ(UseServerFromC(address_.c_str()), 0) << "line of user.c"; }

TEST(CServerOptions, DefaultsAreThoseOfCpp) {
  erda_server_options options;
  erda_server_options_init(&options, sizeof(options));
  EXPECT_EQ(options.size, sizeof(options));
  options.pool = "";
  const auto converted = c_api::ToServerOptions(options);
  ASSERT_TRUE(converted.ok()) << converted.status().ToString();
  EXPECT_EQ(FieldsOf(*converted), FieldsOf(ServerOptions()));
}

TEST(CServerOptions, EachOptionIsPassedOn) {
  const char* const listen[] = {"shm:/a", "shm:/b"};
  erda_server_options options;
  erda_server_options_init(&options, sizeof(options));
  ServerOptions expected;
  options.pool = "/a/pool";
  expected.pool = "/a/pool";
  options.pool_size = expected.pool_size = 1001;
  options.listen = listen;
  options.listen_count = 2;
  expected.listen = {"shm:/a", "shm:/b"};
  options.shards = expected.shards = 1002;
  options.region_size = expected.region_size = 1003;
  options.segment_size = expected.segment_size = 1004;
  options.index_entries = expected.index_entries = 1005;
  options.grow_to = expected.grow_to = 1017;
  options.populate = 1;
  expected.populate = true;
  options.max_clients = expected.max_clients = 1006;
  options.slots_per_client = expected.slots_per_client = 1007;
  options.slot_bytes = expected.slot_bytes = 1008;
  options.reservations_per_client = expected.reservations_per_client = 1009;
  options.clients_per_token = expected.clients_per_token = 1010;
  options.requests_per_second = expected.requests_per_second = 1011;
  options.connects_per_second = expected.connects_per_second = 1012;
  options.token_file = "/a/file";
  expected.token_file = "/a/file";
  options.shm_access = ERDA_SHM_EVERYBODY;
  expected.shm_access = ShmAccess::kEverybody;
  options.pool_writes = ERDA_POOL_WRITES_NOBODY;
  expected.pool_writes = PoolWrites::kNobody;
  options.staging_bytes = expected.staging_bytes = 1013;
  options.flush = ERDA_FLUSH_READ_AFTER_WRITE;
  expected.flush = FlushChoice::kReadAfterWrite;
  options.polling = ERDA_POLL_SLEEP;
  expected.polling = Polling::kSleep;
  options.scrub_rate = expected.scrub_rate = 1014;
  options.on_damage = IgnoreDamage;
  expected.on_damage = [](std::string_view) {};
  options.on_event = IgnoreEvent;
  expected.on_event = [](std::string_view) {};
  options.spin_us = 1015;
  expected.spin = std::chrono::microseconds(1015);
  options.sync_ms = 1017;
  expected.sync = std::chrono::milliseconds(1017);
  options.journal = "/a/journal";
  expected.journal = "/a/journal";
  options.journal_size = expected.journal_size = 1018;
  options.journal_interval_ms = 1019;
  expected.journal_interval = std::chrono::milliseconds(1019);
  options.journal_memory = "/a/folder";
  expected.journal_memory = "/a/folder";
  options.journal_front = "/dev/dax1.0";
  expected.journal_front = "/dev/dax1.0";
  options.journal_on_tmpfs = 1;
  expected.journal_on_tmpfs = true;
  options.archive = "/an/archive";
  expected.archive = "/an/archive";
  options.nvm_write_latency_ns = 1016;
  expected.nvm_write_latency = std::chrono::nanoseconds(1016);

  const auto converted = c_api::ToServerOptions(options);
  ASSERT_TRUE(converted.ok()) << converted.status().ToString();
  EXPECT_EQ(FieldsOf(*converted), FieldsOf(expected));
  // A field that the list above forgot still has its first value.
  const auto differs = [](const auto&... defaults) {
    return [&](const auto&... fields) {
      size_t same = 0;
      ((same += fields == defaults ? 1 : 0), ...);
      return same;
    };
  };
  EXPECT_EQ(std::apply(std::apply(differs, FieldsOf(ServerOptions())), FieldsOf(*converted)), 0U);
}

TEST(CServerOptions, EnumeratorsHaveTheNumbersOfCpp) {
  EXPECT_EQ(static_cast<int>(FlushChoice::kAuto), ERDA_FLUSH_AUTO);
  EXPECT_EQ(static_cast<int>(FlushChoice::kServerFlush), ERDA_FLUSH_SERVER);
  EXPECT_EQ(static_cast<int>(FlushChoice::kReadAfterWrite), ERDA_FLUSH_READ_AFTER_WRITE);
  EXPECT_EQ(static_cast<int>(ShmAccess::kOwner), ERDA_SHM_OWNER);
  EXPECT_EQ(static_cast<int>(ShmAccess::kGroup), ERDA_SHM_GROUP);
  EXPECT_EQ(static_cast<int>(ShmAccess::kEverybody), ERDA_SHM_EVERYBODY);
  EXPECT_EQ(static_cast<int>(PoolWrites::kNobody), ERDA_POOL_WRITES_NOBODY);
  EXPECT_EQ(static_cast<int>(PoolWrites::kSameUser), ERDA_POOL_WRITES_SAME_USER);
  EXPECT_EQ(static_cast<int>(PoolWrites::kEverybody), ERDA_POOL_WRITES_EVERYBODY);
  EXPECT_STREQ(erda_server_code_name(ERDA_UNAVAILABLE), "unavailable");
  EXPECT_STREQ(erda_server_code_name(static_cast<erda_code>(10)), "unknown");
}

TEST(CServerCounts, EachCountIsPassedOn) {
  ServerStats stats;
  EXPECT_EQ(NumbersOf(c_api::StatsOf(stats)), std::vector<uint64_t>(NumbersOf(c_api::StatsOf(stats)).size()));
  auto numbers = Number(&stats);
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(NumbersOf(c_api::StatsOf(stats)), numbers);
  RecoveryReport report;
  numbers = Number(&report);
  EXPECT_EQ(NumbersOf(c_api::ReportOf(report)), numbers);
}

TEST(CServerOptions, LongEventIsCutOffAndUnknownKeyIsNull) {
  Told told;
  erda_server_options options;
  erda_server_options_init(&options, sizeof(options));
  options.pool = "";
  options.on_event = Told::Event;
  options.on_event_user = &told;
  c_api::ToServerOptions(options)->on_event(std::string(5000, 'x'));
  EXPECT_EQ(told.First(), std::string(1023, 'x'));
  Told damage;
  options.on_damage = Told::Damage;
  options.on_damage_user = &damage;
  c_api::ToServerOptions(options)->on_damage("");
  EXPECT_EQ(damage.First(), "nothing");
}

TEST_F(CServer, ServerAnswersCallsUntilItIsClosed) {
  options_.listen_count = 2;
  options_.shards = 2;
  Serve();
  erda_server_addresses* addresses = nullptr;
  ASSERT_EQ(erda_server_get_addresses(server_, &addresses), ERDA_OK);
  ASSERT_EQ(addresses->count, 2U);
  EXPECT_EQ(addresses->addresses[0], address_);
  EXPECT_EQ(addresses->addresses[1], other_address_);
  erda_server_free(addresses);
  erda_server_fabrics* fabrics = nullptr;
  ASSERT_EQ(erda_server_get_fabrics(server_, &fabrics), ERDA_OK);
  ASSERT_EQ(fabrics->count, 1U);
  EXPECT_STREQ(fabrics->fabrics[0].scheme, "shm");
  EXPECT_STREQ(fabrics->fabrics[0].device, "");
  EXPECT_STREQ(fabrics->fabrics[0].flush_method, "none");
  EXPECT_GT(fabrics->fabrics[0].registered_in_ns, 0);
  erda_server_free(fabrics);
  EXPECT_STREQ(erda_server_durability(server_), "volatile");
  EXPECT_EQ(erda_server_health(server_), ERDA_OK);
  EXPECT_GE(erda_server_growth_limit(server_), uint64_t{16} * (64 << 20));

  ASSERT_TRUE(ClientAt(address_)->Put("key", "value").ok());
  EXPECT_EQ(*ClientAt(other_address_)->Get("key"), "value");
  erda_server_stats stats;
  for (const bool stopped : {false, true}) {
    stats.size = sizeof(stats);
    EXPECT_EQ(erda_server_get_stats(server_, &stats), ERDA_OK);
    EXPECT_EQ(stats.size, sizeof(stats));
    EXPECT_EQ(stats.shards, 2U);
    EXPECT_EQ(stats.puts_inline, 1U);
    EXPECT_EQ(stats.keys, 1U);
    EXPECT_GT(stats.log_bytes_total, uint64_t{1} << 20);
    erda_activity* activity = nullptr;
    ASSERT_EQ(erda_server_get_activity(server_, &activity), ERDA_OK) << erda_server_error();
    ASSERT_NE(OperationOfKind(activity, "put_inline"), nullptr);
    EXPECT_EQ(OperationOfKind(activity, "put_inline")->outcomes[ERDA_OK], 1U);
    ASSERT_EQ(activity->fabric_count, 1U);
    EXPECT_STREQ(activity->fabrics[0]->scheme, "shm");
    EXPECT_EQ(activity->fabrics[0]->requests, 1U);
    erda_server_free(activity);
    if (stopped) break;
    ExpectServerSaid(erda_server_start(server_), ERDA_INVALID_ARGUMENT, "once");
    EXPECT_EQ(erda_server_stop(server_), ERDA_OK);
    EXPECT_EQ(erda_server_stop(server_), ERDA_OK);
  }
  ExpectServerSaid(erda_server_start(server_), ERDA_INVALID_ARGUMENT, "once");
  EXPECT_EQ(erda_server_get_addresses(server_, &addresses), ERDA_OK);
  erda_server_free(addresses);
  stats.size = 0;
  ExpectServerSaid(erda_server_get_stats(server_, &stats), ERDA_INVALID_ARGUMENT, "size");

  // The program is newer than the library.
  struct Newer {
    erda_server_stats known;
    uint64_t more;
  } newer;
  newer.known.size = sizeof(newer);
  newer.more = 99;
  EXPECT_EQ(erda_server_get_stats(server_, &newer.known), ERDA_OK);
  EXPECT_EQ(newer.known.size, sizeof(newer));
  EXPECT_EQ(newer.known.puts, 1U);
  EXPECT_EQ(newer.more, 0U);
}

TEST(CServerLimits, EachLimitIsPassedOn) {
  const erda_server_limits limits = {sizeof(limits), 1001, 1002, 1003, "/a/file"};
  const auto& [clients_per_token, requests_per_second, connects_per_second, token_file] = c_api::ToServerLimits(limits);
  EXPECT_EQ(std::tuple(clients_per_token, requests_per_second, connects_per_second, token_file),
            std::tuple(1001U, 1002U, 1003U, std::string("/a/file")));
  const erda_server_limits none = {sizeof(none), 0, 0, 0, nullptr};
  EXPECT_EQ(c_api::ToServerLimits(none).token_file, "");
}

TEST_F(CServer, ReloadChangesTheLimits) {
  ExpectServerSaid(erda_server_reload(nullptr, nullptr), ERDA_INVALID_ARGUMENT, "server");
  Serve();
  ExpectServerSaid(erda_server_reload(server_, nullptr), ERDA_INVALID_ARGUMENT, "limits");
  erda_server_limits limits = {0, 0, 0, 1, nullptr};
  ExpectServerSaid(erda_server_reload(server_, &limits), ERDA_INVALID_ARGUMENT, "initialized");
  limits.size = sizeof(limits);
  limits.requests_per_second = 99;
  ExpectServerSaid(erda_server_reload(server_, &limits), ERDA_INVALID_ARGUMENT, "requests_per_second");
  limits.requests_per_second = 0;
  ASSERT_EQ(erda_server_reload(server_, &limits), ERDA_OK) << erda_server_error();
  int refused = 0;
  for (int i = 0; i < 1000 && refused < 2; ++i) refused += Client::Connect(address_).ok() ? 0 : 1;
  EXPECT_EQ(refused, 2) << "one connection each second";
  limits.connects_per_second = 0;
  ASSERT_EQ(erda_server_reload(server_, &limits), ERDA_OK);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Client::Connect(address_).ok());
}

TEST_F(CServer, ServerThatWasNotStartedCanBeClosed) {
  ASSERT_EQ(erda_server_open(&options_, &server_), ERDA_OK);
  erda_server_close(server_);
  ASSERT_EQ(erda_server_open(&options_, &server_), ERDA_OK) << erda_server_error();
}

TEST_F(CServer, RecoveryIsReported) {
  const std::string pool = Path("pool");
  const std::string copy = Path("copy");
  options_.pool = pool.c_str();
  Serve();
  const auto client = ClientAt(address_);
  ASSERT_TRUE(client->Put("key", "value").ok());
  erda_recovery_report report;
  report.size = sizeof(report);
  report.objects = 99;
  EXPECT_EQ(erda_server_get_recovery(server_, &report), ERDA_NOT_FOUND);
  EXPECT_EQ(report.objects, 0U);
  EXPECT_STREQ(erda_server_durability(server_), "process-safe");
  erda_server* other = nullptr;
  const auto open_copy = [&] {
    erda_server_options options = options_;
    options.pool = copy.c_str();
    options.pool_size = 0;
    options.listen = &listen_[1];
    EXPECT_EQ(erda_server_open(&options, &other), ERDA_OK) << erda_server_error();
  };
  std::filesystem::copy_file(pool, copy);  // The copy is as a crash of the server leaves the pool.
  open_copy();
  EXPECT_EQ(erda_server_get_recovery(other, &report), ERDA_OK);
  EXPECT_EQ(report.size, sizeof(report));
  EXPECT_GT(report.objects, 0U);
  EXPECT_GT(report.time_ns, 0);
  report.size = 0;
  ExpectServerSaid(erda_server_get_recovery(other, &report), ERDA_INVALID_ARGUMENT, "size");
  report.size = sizeof(report);
  // The server tells events of its opening after its start, too. It does not tell those of the next opening.
  EXPECT_EQ(erda_server_start(other), ERDA_OK);
  EXPECT_EQ(*ClientAt(other_address_)->Get("key"), "value");
  EXPECT_EQ(erda_server_get_recovery(other, &report), ERDA_OK);
  erda_server_close(other);
  open_copy();
  EXPECT_EQ(erda_server_get_recovery(other, &report), ERDA_NOT_FOUND);
  erda_server_close(other);
}

TEST_F(CServer, RefusedClientIsReportedAsAnEvent) {
  const std::string tokens = Path("tokens");
  std::ofstream(tokens) << "a-token-that-is-long-enough-to-be-one\n";
  ASSERT_EQ(::chmod(tokens.c_str(), 0600), 0);
  options_.token_file = tokens.c_str();
  options_.on_event = Told::Event;
  options_.on_event_user = &told_;
  ASSERT_NO_FATAL_FAILURE(Serve());
  ClientOptions stranger;
  stranger.token = "another-token-than-the-one-of-the-file";
  EXPECT_EQ(Client::Connect(address_, stranger).status().code(), Code::kPermissionDenied);
  const std::string line = told_.First();
  EXPECT_NE(line.find("does not know this token"), std::string::npos) << line;
}

TEST_F(CServer, DamageIsReportedByKey) {
  const std::string pool = Path("pool");
  options_.pool = pool.c_str();
  options_.scrub_rate = uint64_t{1} << 30;
  options_.on_damage = Told::Damage;
  options_.on_damage_user = &told_;
  ASSERT_NO_FATAL_FAILURE(Serve());
  const std::string value = "a value that is nowhere else in the pool";
  const auto client = ClientAt(address_);
  ASSERT_TRUE(client->Put("the key", value).ok());
  std::fstream file(pool, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes(options_.pool_size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const size_t at = bytes.find(value);
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at)).put('A').flush();
  ASSERT_TRUE(file.good());
  EXPECT_EQ(told_.First(), "the key");
}

TEST_F(CServer, TwoServersServeAtOnce) {
  Serve();
  erda_server_options options = options_;
  options.listen = &listen_[1];
  erda_server* other = nullptr;
  ASSERT_EQ(erda_server_open(&options, &other), ERDA_OK);
  ASSERT_EQ(erda_server_start(other), ERDA_OK);
  ASSERT_TRUE(ClientAt(address_)->Put("key", "one").ok());
  ASSERT_TRUE(ClientAt(other_address_)->Put("key", "other").ok());
  EXPECT_EQ(*ClientAt(address_)->Get("key"), "one");
  erda_server_close(other);
  EXPECT_EQ(*ClientAt(address_)->Get("key"), "one");
}

TEST_F(CServer, PoolOfAnotherServerIsUnavailable) {
  const std::string pool = Path("pool");
  options_.pool = pool.c_str();
  Serve();
  erda_server* other = server_;
  erda_server_options options = options_;
  options.listen = &listen_[1];
  ExpectServerSaid(erda_server_open(&options, &other), ERDA_UNAVAILABLE, "pool");
  EXPECT_EQ(other, nullptr);
}

TEST_F(CServer, InvalidOptionsAreRefused) {
  ExpectRefused({}, "not initialized");
  erda_server_options options{};
  erda_server_options_init(&options, sizeof(options) - 1);  // No version of the API had a structure as short as that.
  EXPECT_EQ(options.size, 0U);
  options = options_;
  options.pool = nullptr;
  ExpectRefused(options, "the pool is NULL");
  options = options_;
  options.listen_count = 0;
  ExpectRefused(options, "address");
  options.listen_count = 1;
  options.listen = nullptr;
  ExpectRefused(options, "the array of addresses is NULL");
  const char* const none = nullptr;
  options.listen = &none;
  ExpectRefused(options, "an address is NULL");
  const std::pair<int erda_server_options::*, std::string_view> numbers[] = {
      {&erda_server_options::shm_access, "shm_access"},
      {&erda_server_options::pool_writes, "pool_writes"},
      {&erda_server_options::flush, "flush"},
      {&erda_server_options::polling, "polling"},
  };
  for (const auto& [number, name] : numbers) {
    for (const int wrong : {3, 256, -1}) {
      options = options_;
      options.*number = wrong;
      ExpectRefused(options, name);
    }
  }
  options = options_;
  options.spin_us = -1;
  ExpectRefused(options, "spin (in us) must be 0 to");

  struct Newer {
    erda_server_options known;
    uint64_t more;
  } newer{options_, 0};
  newer.known.size = sizeof(newer);
  ASSERT_EQ(erda_server_open(&newer.known, &server_), ERDA_OK) << erda_server_error();
  newer.more = 1;
  ExpectRefused(newer.known, "does not know");
}

TEST_F(CServer, NullInACallOfAServerIsAnInvalidArgument) {
  Serve();
  erda_server* other = server_;
  erda_server_addresses* addresses = nullptr;
  erda_server_fabrics* fabrics = nullptr;
  erda_activity* activity = nullptr;
  erda_server_stats stats;
  stats.size = sizeof(stats);
  erda_recovery_report report;
  report.size = sizeof(report);
  const erda_code no_server[] = {
      erda_server_start(nullptr),
      erda_server_stop(nullptr),
      erda_server_get_addresses(nullptr, &addresses),
      erda_server_get_stats(nullptr, &stats),
      erda_server_get_activity(nullptr, &activity),
      erda_server_get_fabrics(nullptr, &fabrics),
      erda_server_get_recovery(nullptr, &report),
  };
  for (size_t i = 0; i < std::size(no_server); ++i) EXPECT_EQ(no_server[i], ERDA_INVALID_ARGUMENT) << i;
  EXPECT_STREQ(erda_server_error(), "the server is NULL");
  const erda_code others[] = {
      erda_server_open(nullptr, &other),           erda_server_open(&options_, nullptr),
      erda_server_get_addresses(server_, nullptr), erda_server_get_stats(server_, nullptr),
      erda_server_get_fabrics(server_, nullptr),   erda_server_get_recovery(server_, nullptr),
      erda_server_get_activity(server_, nullptr),
  };
  for (size_t i = 0; i < std::size(others); ++i) EXPECT_EQ(others[i], ERDA_INVALID_ARGUMENT) << i;
  EXPECT_EQ(other, nullptr);
  EXPECT_STREQ(erda_server_durability(nullptr), "");
  EXPECT_EQ(erda_server_health(nullptr), ERDA_INVALID_ARGUMENT);
  EXPECT_EQ(erda_server_growth_limit(nullptr), 0U);
  erda_server_options_init(nullptr, sizeof(options_));
  erda_server_free(nullptr);
  erda_server_close(nullptr);
}

}  // namespace
}  // namespace erda
