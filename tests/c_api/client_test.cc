// The client's C API over shm: each function, and the message of each about bad arguments.
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/c_api.h"
#include "base/temporary_folder.h"
#include "c_api/user.h"
#include "erda/client.h"
#include "erda/erda.h"
#include "erda/server.h"

namespace erda {
namespace {

std::string_view ViewOf(const erda_bytes& bytes) { return {static_cast<const char*>(bytes.data), bytes.size}; }

// The arguments that name a key or a value.
#define BYTES(text) (text), std::strlen(text)

// The outcomes of asynchronous operations, in their order.
struct Ended {
  struct One {
    erda_code code;
    std::string message;
    std::string value;
    uint64_t version;
    int64_t expires_ms;
    int64_t sum;
  };
  std::vector<One> all;
  static void Tell(void* user, const erda_result* result) {
    static_cast<Ended*>(user)->all.push_back({result->code, result->message, std::string(ViewOf(result->value)),
                                              result->version, result->expires_ms, result->sum});
  }
};

class CClient : public testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.pool = "dram:";
    options.pool_size = uint64_t{64} << 20;
    options.listen = {address_};
    auto server = Server::Open(options);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    ASSERT_TRUE(server_->Start().ok());
    ASSERT_EQ(erda_client_connect(address_.c_str(), nullptr, &client_), ERDA_OK) << erda_client_error();
  }
  void TearDown() override { erda_client_close(client_); }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_EQ(erda_client_put(client_, key.data(), key.size(), value.data(), value.size(), nullptr, nullptr), ERDA_OK)
        << erda_client_error();
  }
  std::string Get(const std::string& key) {
    erda_result* result = nullptr;
    const erda_code code = erda_client_get_alloc(client_, key.data(), key.size(), &result);
    if (code != ERDA_OK) return erda_client_code_name(code);
    std::string value(ViewOf(result->value));
    erda_client_free(result);
    return value;
  }
  static erda_put_options PutOptionsOf(int conditional, uint64_t if_version, int64_t ttl_ms) {
    erda_put_options options;
    erda_client_put_options_init(&options, sizeof(options));
    options.conditional = conditional;
    options.if_version = if_version;
    options.ttl_ms = ttl_ms;
    return options;
  }
  static erda_delete_options DeleteIf(uint64_t version) {
    erda_delete_options options;
    erda_client_delete_options_init(&options, sizeof(options));
    options.conditional = 1;
    options.if_version = version;
    return options;
  }

  const TemporaryFolder folder_;
  const std::string address_ = "shm:" + (folder_ / "socket").string();
  std::unique_ptr<Server> server_;
  erda_client* client_ = nullptr;
};

// Expects that a call ends with this code, and that its message has these words.
void ExpectSaid(erda_code code, erda_code expected, std::string_view words) {
  EXPECT_EQ(code, expected) << erda_client_error();
  EXPECT_NE(std::string_view(erda_client_error()).find(words), std::string_view::npos) << erda_client_error();
}

TEST_F(CClient, ProgramInCUsesTheClient) { EXPECT_EQ(UseClientFromC(address_.c_str()), 0) << "line of user.c"; }

TEST_F(CClient, GetCopiesIntoTheCallersMemoryOrReportsTheSizeThatItNeeds) {
  Put("key", "value");
  char out[6] = "-----";
  size_t size = 99;
  EXPECT_EQ(erda_client_get(client_, BYTES("key"), out, 5, &size), ERDA_OK);
  EXPECT_EQ(size, 5U);
  EXPECT_STREQ(out, "value");
  std::strcpy(out, "-----");
  ExpectSaid(erda_client_get(client_, BYTES("key"), out, 4, &size), ERDA_INVALID_ARGUMENT, "5 bytes");
  EXPECT_EQ(size, 5U);
  EXPECT_STREQ(out, "-----");
  EXPECT_EQ(erda_client_get(client_, BYTES("key"), nullptr, 0, &size), ERDA_INVALID_ARGUMENT);
  EXPECT_EQ(size, 5U);
  EXPECT_EQ(erda_client_get(client_, BYTES("none"), out, 5, &size), ERDA_NOT_FOUND);
  EXPECT_EQ(size, 0U);
  EXPECT_STREQ(erda_client_error(), "");
  ExpectSaid(erda_client_get(client_, "", 0, out, 5, &size), ERDA_INVALID_ARGUMENT, "key");
  Put("empty", "");
  EXPECT_EQ(erda_client_get(client_, BYTES("empty"), nullptr, 0, &size), ERDA_OK);
  EXPECT_EQ(size, 0U);
}

TEST_F(CClient, GetAllocReturnsTheValueWithVersionAndDeadline) {
  const std::string value(100'000, 'x');
  const auto options = PutOptionsOf(0, 0, 3'600'000);
  uint64_t version = 0;
  ASSERT_EQ(erda_client_put(client_, BYTES("key"), value.data(), value.size(), &options, &version), ERDA_OK);
  erda_result* result = nullptr;
  ASSERT_EQ(erda_client_get_alloc(client_, BYTES("key"), &result), ERDA_OK);
  EXPECT_EQ(result->code, ERDA_OK);
  EXPECT_STREQ(result->message, "");
  EXPECT_EQ(ViewOf(result->value), value);
  EXPECT_EQ(result->version, version);
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  EXPECT_GT(result->expires_ms, now.time_since_epoch().count());
  erda_client_free(result);
  result = nullptr;
  Put("stays", "");
  ASSERT_EQ(erda_client_get_alloc(client_, BYTES("stays"), &result), ERDA_OK);
  EXPECT_EQ(result->expires_ms, 0);
  EXPECT_EQ(result->value.size, 0U);
  erda_client_free(result);
  EXPECT_EQ(erda_client_get_alloc(client_, BYTES("none"), &result), ERDA_NOT_FOUND);
  EXPECT_EQ(result, nullptr);
  erda_client_free(nullptr);
}

TEST_F(CClient, PutsAndDeletesKeepTheirConditions) {
  uint64_t first = 0;
  auto absent = PutOptionsOf(1, 0, 0);
  ASSERT_EQ(erda_client_put(client_, BYTES("key"), BYTES("v1"), &absent, &first), ERDA_OK);
  uint64_t version = 99;
  ExpectSaid(erda_client_put(client_, BYTES("key"), BYTES("v2"), &absent, &version), ERDA_CONFLICT, "version");
  EXPECT_EQ(version, 0U);
  auto is_first = PutOptionsOf(1, first, 0);
  ASSERT_EQ(erda_client_put(client_, BYTES("key"), BYTES("v2"), &is_first, &version), ERDA_OK);
  EXPECT_GT(version, first);
  EXPECT_EQ(Get("key"), "v2");
  auto delete_first = DeleteIf(first);
  EXPECT_EQ(erda_client_delete(client_, BYTES("key"), &delete_first), ERDA_CONFLICT);
  auto delete_second = DeleteIf(version);
  EXPECT_EQ(erda_client_delete(client_, BYTES("key"), &delete_second), ERDA_OK);
  EXPECT_EQ(erda_client_delete(client_, BYTES("key"), nullptr), ERDA_NOT_FOUND);
  EXPECT_EQ(erda_client_delete(client_, BYTES("key"), &delete_second), ERDA_CONFLICT);
  const auto negative = PutOptionsOf(0, 0, -1);
  ExpectSaid(erda_client_put(client_, BYTES("key"), BYTES("v"), &negative, nullptr), ERDA_INVALID_ARGUMENT, "ttl");
}

TEST_F(CClient, IncrementReturnsTheSum) {
  int64_t sum = 99;
  EXPECT_EQ(erda_client_increment(client_, BYTES("n"), 5, &sum), ERDA_OK);
  EXPECT_EQ(sum, 5);
  EXPECT_EQ(erda_client_increment(client_, BYTES("n"), -7, &sum), ERDA_OK);
  EXPECT_EQ(sum, -2);
  EXPECT_EQ(erda_client_increment(client_, BYTES("n"), 1, nullptr), ERDA_OK);
  Put("text", "text");
  EXPECT_EQ(erda_client_increment(client_, BYTES("text"), 1, &sum), ERDA_INVALID_ARGUMENT);
  EXPECT_EQ(sum, 0);
}

TEST_F(CClient, MultiGetAnswersEachKey) {
  Put("a", "1");
  Put("b", std::string("\0two", 4));
  const erda_bytes keys[] = {{"b", 1}, {"none", 4}, {"a", 1}, {"", 0}};
  erda_result* results = nullptr;
  ASSERT_EQ(erda_client_multi_get(client_, keys, std::size(keys), &results), ERDA_OK);
  EXPECT_EQ(results[0].code, ERDA_OK);
  EXPECT_EQ(ViewOf(results[0].value), std::string_view("\0two", 4));
  EXPECT_GT(results[0].version, 0U);
  EXPECT_EQ(results[1].code, ERDA_NOT_FOUND);
  EXPECT_STREQ(results[1].message, "");
  EXPECT_EQ(ViewOf(results[2].value), "1");
  EXPECT_EQ(results[3].code, ERDA_INVALID_ARGUMENT);
  EXPECT_NE(std::string_view(results[3].message).find("key"), std::string_view::npos);
  erda_client_free(results);
  EXPECT_EQ(erda_client_multi_get(client_, nullptr, 0, &results), ERDA_OK);
  EXPECT_EQ(results, nullptr);
}

TEST_F(CClient, MultiPutAnswersEachPut) {
  Put("old", "1");
  const std::string large(50'000, 'v');
  erda_put_options absent;
  erda_client_put_options_init(&absent, sizeof(absent));
  absent.conditional = 1;
  absent.if_version = ERDA_ABSENT;
  erda_put_options brief;
  erda_client_put_options_init(&brief, sizeof(brief));
  brief.ttl_ms = -1;
  erda_put_options lasting = brief;
  lasting.ttl_ms = 3'600'000;
  const erda_bytes keys[] = {{"new", 3}, {"old", 3}, {"", 0}, {"brief", 5}, {"large", 5}};
  const erda_bytes values[] = {{"\0two", 4}, {"2", 1}, {"v", 1}, {"v", 1}, {large.data(), large.size()}};
  const erda_put_options* options[] = {&absent, &absent, nullptr, &brief, &lasting};
  erda_result* results = nullptr;
  ASSERT_EQ(erda_client_multi_put(client_, keys, values, options, std::size(keys), &results), ERDA_OK);
  const erda_code codes[] = {ERDA_OK, ERDA_CONFLICT, ERDA_INVALID_ARGUMENT, ERDA_INVALID_ARGUMENT, ERDA_OK};
  const char* words[] = {"", "version", "key", "ttl", ""};
  for (size_t i = 0; i < std::size(codes); ++i) {
    EXPECT_EQ(results[i].code, codes[i]) << i;
    EXPECT_EQ(results[i].version != 0, codes[i] == ERDA_OK) << i;
    EXPECT_NE(std::string_view(results[i].message).find(words[i]), std::string_view::npos) << results[i].message;
  }
  for (const size_t i : {0, 4}) {
    erda_result* got = nullptr;
    ASSERT_EQ(erda_client_get_alloc(client_, keys[i].data, keys[i].size, &got), ERDA_OK) << erda_client_error();
    EXPECT_EQ(ViewOf(got->value), ViewOf(values[i]));
    EXPECT_EQ(got->version, results[i].version);
    EXPECT_EQ(got->expires_ms != 0, i == 4);
    erda_client_free(got);
  }
  erda_client_free(results);
  ASSERT_EQ(erda_client_multi_put(client_, keys, values, nullptr, 2, &results), ERDA_OK);
  EXPECT_EQ(results[1].code, ERDA_OK) << "without options there is no condition";
  erda_client_free(results);
  EXPECT_EQ(erda_client_multi_put(client_, nullptr, nullptr, nullptr, 0, &results), ERDA_OK);
  EXPECT_EQ(results, nullptr);
}

// The call checks all arguments before the first put.
TEST_F(CClient, MultiPutWithAnInvalidArgumentPutsNothing) {
  erda_put_options unset{};
  const erda_bytes keys[] = {{"a", 1}, {"b", 1}};
  const erda_bytes values[] = {{"1", 1}, {nullptr, 1}};
  const erda_put_options* options[] = {nullptr, &unset};
  erda_result* results = nullptr;
  ExpectSaid(erda_client_multi_put(client_, keys, values, nullptr, 2, &results), ERDA_INVALID_ARGUMENT, "a value");
  ExpectSaid(erda_client_multi_put(client_, keys, keys, options, 2, &results), ERDA_INVALID_ARGUMENT, "_init");
  EXPECT_EQ(results, nullptr);
  size_t size = 0;
  EXPECT_EQ(erda_client_get(client_, BYTES("a"), nullptr, 0, &size), ERDA_NOT_FOUND);
}

TEST_F(CClient, ScanReturnsAllKeysPageByPage) {
  std::map<std::string, std::string> stored;
  for (int i = 0; i < 300; ++i) stored["key" + std::to_string(i)] = std::string(static_cast<size_t>(i), 'v');
  for (const auto& [key, value] : stored) Put(key, value);
  erda_scan_options options;
  erda_client_scan_options_init(&options, sizeof(options));
  EXPECT_EQ(options.values, 1);
  options.keys = 50;
  std::map<std::string, std::string> found;
  int pages = 0;
  for (;; ++pages) {
    erda_scan_page* page = nullptr;
    ASSERT_EQ(erda_client_scan(client_, &options, &page), ERDA_OK) << erda_client_error();
    for (size_t i = 0; i < page->count; ++i) {
      const erda_scanned_key& key = page->keys[i];
      EXPECT_TRUE(found.emplace(ViewOf(key.key), ViewOf(key.value)).second);
      EXPECT_GT(key.version, 0U);
    }
    EXPECT_EQ(page->damaged, 0U);
    const bool more = page->more != 0;
    if (more) {
      options.cursor = page->next;
    } else {
      EXPECT_EQ(page->part, 1.0);
    }
    erda_client_free(page);
    if (!more) break;
  }
  EXPECT_EQ(found, stored);
  EXPECT_GT(pages, 1);
  erda_scan_page* page = nullptr;
  erda_client_scan_options_init(&options, sizeof(options));
  options.values = 0;
  ASSERT_EQ(erda_client_scan(client_, &options, &page), ERDA_OK);
  ASSERT_GT(page->count, 0U);
  EXPECT_EQ(page->keys[0].value.size, 0U);
  erda_client_free(page);
  options.cursor = UINT64_MAX;
  ExpectSaid(erda_client_scan(client_, &options, &page), ERDA_INVALID_ARGUMENT, "cursor");
  EXPECT_EQ(page, nullptr);
}

TEST_F(CClient, BuffersAreReadAndSentInPlace) {
  erda_client_buffer* buffer = nullptr;
  ASSERT_EQ(erda_client_buffer_make(client_, 1000, &buffer), ERDA_OK);
  ASSERT_GE(erda_client_buffer_size(buffer), 1000U);
  std::memcpy(erda_client_buffer_data(buffer), "in place", 8);
  uint64_t version = 0;
  EXPECT_EQ(erda_client_put_buffer(client_, BYTES("key"), buffer, 8, nullptr, &version), ERDA_OK);
  EXPECT_GT(version, 0U);
  EXPECT_EQ(Get("key"), "in place");
  Put("key", "another");
  size_t size = 0;
  EXPECT_EQ(erda_client_get_buffer(client_, BYTES("key"), buffer, &size), ERDA_OK);
  EXPECT_EQ(std::string_view(static_cast<char*>(erda_client_buffer_data(buffer)), size), "another");
  Put("large", std::string(5000, 'x'));
  ExpectSaid(erda_client_get_buffer(client_, BYTES("large"), buffer, &size), ERDA_INVALID_ARGUMENT, "5000");
  EXPECT_EQ(size, 0U);
  const auto absent = PutOptionsOf(1, 0, 0);
  EXPECT_EQ(erda_client_put_buffer(client_, BYTES("key"), buffer, 8, &absent, &version), ERDA_CONFLICT);
  EXPECT_EQ(version, 0U);

  Ended ended;
  std::memcpy(erda_client_buffer_data(buffer), "later", 5);
  EXPECT_EQ(erda_client_put_buffer_async(client_, BYTES("key"), buffer, 5, nullptr, Ended::Tell, &ended), ERDA_OK);
  EXPECT_EQ(erda_client_drain(client_), ERDA_OK);
  EXPECT_EQ(erda_client_get_buffer_async(client_, BYTES("key"), buffer, Ended::Tell, &ended), ERDA_OK);
  EXPECT_EQ(erda_client_drain(client_), ERDA_OK);
  ASSERT_EQ(ended.all.size(), 2U);
  EXPECT_GT(ended.all[0].version, version);
  EXPECT_EQ(ended.all[1].value, "later");
  erda_client_buffer_free(buffer);
  erda_client_buffer_free(nullptr);
}

TEST_F(CClient, CallbackGetsTheOutcomeOfAnAsynchronousOperation) {
  Ended ended;
  const auto options = PutOptionsOf(0, 0, 3'600'000);
  const auto conflict = DeleteIf(uint64_t{1} << 40);
  EXPECT_EQ(erda_client_put_async(client_, BYTES("k"), BYTES("v"), &options, Ended::Tell, &ended), ERDA_OK);
  EXPECT_EQ(erda_client_get_async(client_, BYTES("k"), Ended::Tell, &ended), ERDA_OK);
  EXPECT_EQ(erda_client_delete_async(client_, BYTES("k"), &conflict, Ended::Tell, &ended), ERDA_OK);
  EXPECT_EQ(erda_client_delete_async(client_, BYTES("k"), nullptr, Ended::Tell, &ended), ERDA_OK);
  EXPECT_EQ(erda_client_increment_async(client_, BYTES("k"), 3, Ended::Tell, &ended), ERDA_OK);
  EXPECT_EQ(erda_client_increment_async(client_, BYTES("k"), 4, nullptr, nullptr), ERDA_OK);
  size_t finished = 0;
  while (finished < 6) {
    size_t now = 0;
    ASSERT_EQ(erda_client_poll(client_, &now), ERDA_OK);
    finished += now;
  }
  EXPECT_EQ(erda_client_poll(client_, nullptr), ERDA_OK);
  ASSERT_EQ(ended.all.size(), 5U);
  EXPECT_GT(ended.all[0].version, 0U);
  EXPECT_EQ(ended.all[1].value, "v");
  EXPECT_EQ(ended.all[1].version, ended.all[0].version);
  EXPECT_GT(ended.all[1].expires_ms, 0);
  EXPECT_EQ(ended.all[2].code, ERDA_CONFLICT);
  EXPECT_NE(ended.all[2].message.find("version"), std::string::npos);
  EXPECT_EQ(ended.all[3].code, ERDA_OK);
  EXPECT_EQ(ended.all[4].sum, 3);
  int64_t sum = 0;
  EXPECT_EQ(erda_client_increment(client_, BYTES("k"), 0, &sum), ERDA_OK);
  EXPECT_EQ(sum, 7);
}

TEST_F(CClient, FullQueueRefusesAnOperation) {
  erda_client_options options;
  erda_client_options_init(&options, sizeof(options));
  options.queue_depth = 1;
  erda_client* client = nullptr;
  ASSERT_EQ(erda_client_connect(address_.c_str(), &options, &client), ERDA_OK);
  Ended ended;
  EXPECT_EQ(erda_client_put_async(client, BYTES("k"), BYTES("v"), nullptr, Ended::Tell, &ended), ERDA_OK);
  EXPECT_EQ(erda_client_put_async(client, BYTES("k"), BYTES("v"), nullptr, Ended::Tell, &ended),
            ERDA_RESOURCE_EXHAUSTED);
  EXPECT_EQ(erda_client_drain(client), ERDA_OK);
  EXPECT_EQ(ended.all.size(), 1U);
  erda_client_close(client);
}

TEST_F(CClient, WaitsForSomeOperations) {
  Ended ended;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(erda_client_put_async(client_, BYTES("k"), BYTES("v"), nullptr, Ended::Tell, &ended), ERDA_OK);
  }
  size_t finished = 0;
  EXPECT_EQ(erda_client_wait(client_, 60'000, 2, &finished), ERDA_OK);
  EXPECT_GE(finished, 2U);
  EXPECT_EQ(ended.all.size(), finished);
  EXPECT_EQ(erda_client_wait(client_, INT64_MAX, SIZE_MAX, nullptr), ERDA_OK);
  EXPECT_EQ(ended.all.size(), 4U);
  EXPECT_EQ(erda_client_wait(client_, INT64_MIN, 1, &finished), ERDA_OK);
  EXPECT_EQ(finished, 0U);
}

TEST_F(CClient, SleepsOnItsDescriptor) {
  Ended ended;
  EXPECT_GE(erda_client_descriptor(client_), 0);
  EXPECT_EQ(erda_client_descriptor(nullptr), -1);
  EXPECT_EQ(erda_client_put_async(client_, BYTES("k"), BYTES("v"), nullptr, Ended::Tell, &ended), ERDA_OK);
  while (ended.all.empty()) {
    int64_t sleep_ms = -1;
    EXPECT_EQ(erda_client_poll(client_, nullptr), ERDA_OK);
    ASSERT_EQ(erda_client_arm(client_, &sleep_ms), ERDA_OK);
    if (!ended.all.empty()) break;
    pollfd event{erda_client_descriptor(client_), POLLIN, 0};
    EXPECT_GE(::poll(&event, 1, static_cast<int>(sleep_ms)), 0);
  }
  EXPECT_EQ(ended.all[0].code, ERDA_OK);
  EXPECT_EQ(erda_client_arm(client_, nullptr), ERDA_INVALID_ARGUMENT);
}

TEST_F(CClient, WaitsForRoomIfTheOptionsSaySo) {
  erda_client_options options;
  erda_client_options_init(&options, sizeof(options));
  EXPECT_EQ(options.wait_for_room, 0);
  options.queue_depth = 1;
  options.wait_for_room = 1;
  erda_client* client = nullptr;
  ASSERT_EQ(erda_client_connect(address_.c_str(), &options, &client), ERDA_OK);
  Ended ended;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(erda_client_put_async(client, BYTES("k"), BYTES("v"), nullptr, Ended::Tell, &ended), ERDA_OK);
  }
  EXPECT_EQ(erda_client_drain(client), ERDA_OK);
  EXPECT_EQ(ended.all.size(), 10U);
  erda_client_close(client);
}

TEST_F(CClient, StatsAndServerInfoAreReturned) {
  Put("key", "value");
  Get("key");
  erda_client_stats stats;
  stats.size = sizeof(stats);
  EXPECT_EQ(erda_client_get_stats(client_, &stats), ERDA_OK);
  EXPECT_EQ(stats.size, sizeof(stats));
  EXPECT_EQ(stats.puts, 1U);
  EXPECT_EQ(stats.gets, 1U);
  EXPECT_GT(stats.requests, 0U);
  stats.size = 0;
  EXPECT_EQ(erda_client_get_stats(client_, &stats), ERDA_INVALID_ARGUMENT);
  EXPECT_GT(erda_client_max_value_bytes(client_, 3), 100'000U);
  EXPECT_GT(erda_client_max_value_bytes(client_, 3), erda_client_max_value_bytes(client_, 1000));
  erda_server_info* info = nullptr;
  ASSERT_EQ(erda_client_get_server_info(client_, &info), ERDA_OK);
  std::map<std::string, std::string> pairs;
  for (size_t i = 0; i < info->count; ++i) pairs[info->names[i]] = info->values[i];
  erda_client_free(info);
  EXPECT_EQ(pairs["durability"], "volatile");
  EXPECT_EQ(pairs["shards"], "1");
  EXPECT_EQ(erda_client_clean(client_), ERDA_OK) << erda_client_error();
}

TEST_F(CClient, ActivityCountsTheServersOperations) {
  Put("key", "value");
  EXPECT_EQ(erda_client_delete(client_, BYTES("none"), nullptr), ERDA_NOT_FOUND);
  erda_activity* activity = nullptr;
  ASSERT_EQ(erda_client_get_activity(client_, &activity), ERDA_OK) << erda_client_error();
  EXPECT_EQ(activity->operation_count, server_->activity().operations.size());
  const erda_operation_stats* const puts = OperationOfKind(activity, "put_inline");
  ASSERT_NE(puts, nullptr);
  EXPECT_EQ(puts->outcomes[ERDA_OK], 1U);
  EXPECT_EQ(puts->count, 1U);
  const erda_operation_stats* const deletes = OperationOfKind(activity, "delete");
  ASSERT_NE(deletes, nullptr);
  EXPECT_EQ(deletes->outcomes[ERDA_NOT_FOUND], 1U);
  ASSERT_EQ(activity->fabric_count, 1U);
  EXPECT_STREQ(activity->fabrics[0]->scheme, "shm");
  EXPECT_EQ(activity->fabrics[0]->connections, 1U);
  erda_client_free(activity);

  server_.reset();
  EXPECT_EQ(Get("key"), "unavailable");
  ExpectSaid(erda_client_get_activity(client_, &activity), ERDA_UNAVAILABLE, "no server listens");
  EXPECT_EQ(activity, nullptr);
}

// Lists all fields. If the structure gets another field, this does not compile any more.
TEST(CApiTest, OptionsOfAClientAndTheirDefaultsAreThoseOfCpp) {
  const ClientOptions client_defaults;
  const auto& [ack, put_path, queue_depth, cache_entries, polling, timeout, token, token_file, wait_for_room] =
      client_defaults;
  erda_client_options client;
  erda_client_options_init(&client, sizeof(client));
  const auto& [client_size, c_ack, c_put_path, c_polling, c_queue_depth, c_cache_entries, c_timeout_ms, c_token,
               c_token_file, c_wait_for_room] = client;
  EXPECT_EQ(client_size, sizeof(client));
  EXPECT_EQ(c_ack, static_cast<int>(ack));
  EXPECT_EQ(c_put_path, static_cast<int>(put_path));
  EXPECT_EQ(c_polling, static_cast<int>(polling));
  EXPECT_EQ(c_queue_depth, queue_depth);
  EXPECT_EQ(c_cache_entries, cache_entries);
  EXPECT_EQ(c_timeout_ms, timeout.count());
  EXPECT_EQ(c_token == nullptr, token.empty());
  EXPECT_EQ(c_token_file == nullptr, token_file.empty());
  EXPECT_EQ(c_wait_for_room, wait_for_room ? 1 : 0);

  const PutOptions put_defaults;
  const auto& [if_version, ttl] = put_defaults;
  erda_put_options put;
  erda_client_put_options_init(&put, sizeof(put));
  const auto& [put_size, c_conditional, c_if_version, c_ttl_ms] = put;
  EXPECT_EQ(put_size, sizeof(put));
  EXPECT_EQ(c_conditional != 0, if_version.has_value());
  EXPECT_EQ(c_if_version, ERDA_ABSENT);
  EXPECT_EQ(c_ttl_ms != 0, ttl.has_value());

  const DeleteOptions delete_defaults;
  const auto& [delete_if_version] = delete_defaults;
  erda_delete_options del;
  erda_client_delete_options_init(&del, sizeof(del));
  const auto& [delete_size, c_delete_conditional, c_delete_if_version] = del;
  EXPECT_EQ(delete_size, sizeof(del));
  EXPECT_EQ(c_delete_conditional != 0, delete_if_version.has_value());
  EXPECT_EQ(c_delete_if_version, ERDA_ABSENT);

  const ScanOptions scan_defaults;
  const auto& [cursor, keys, bytes, values] = scan_defaults;
  erda_scan_options scan;
  erda_client_scan_options_init(&scan, sizeof(scan));
  const auto& [scan_size, c_cursor, c_keys, c_bytes, c_values] = scan;
  EXPECT_EQ(scan_size, sizeof(scan));
  EXPECT_EQ(c_cursor, cursor);
  EXPECT_EQ(c_keys, keys);
  EXPECT_EQ(c_bytes, bytes);
  EXPECT_EQ(c_values != 0, values);

  static_assert(ERDA_ABSENT == kAbsent && ERDA_TTL_MAX_MS == kTtlMax.count());
}

TEST_F(CClient, OptionsAreAppliedAndMustBeInitialized) {
  erda_client_options options{};
  erda_client* client = client_;
  ExpectSaid(erda_client_connect(address_.c_str(), &options, &client), ERDA_INVALID_ARGUMENT, "not initialized");
  EXPECT_EQ(client, nullptr);
  constexpr size_t kFirst = offsetof(erda_client_options, wait_for_room);  // Its size in the first version of the API.
  erda_client_options_init(&options, kFirst - 1);  // No version of the API had a structure as short as that.
  EXPECT_EQ(options.size, 0U);
  erda_client_options_init(&options, kFirst);
  EXPECT_EQ(options.size, kFirst);
  erda_client* older = nullptr;
  EXPECT_EQ(erda_client_connect(address_.c_str(), &options, &older), ERDA_OK);
  erda_client_close(older);
  erda_client_options_init(&options, sizeof(options));
  EXPECT_EQ(options.size, sizeof(options));
  EXPECT_EQ(options.queue_depth, 64U);
  EXPECT_EQ(options.ack, ERDA_ACK_PERSISTED);
  for (int erda_client_options::*number :
       {&erda_client_options::ack, &erda_client_options::put_path, &erda_client_options::polling}) {
    for (const int wrong : {4, 256, -1}) {
      erda_client_options changed = options;
      changed.*number = wrong;
      EXPECT_EQ(erda_client_connect(address_.c_str(), &changed, &client), ERDA_INVALID_ARGUMENT) << wrong;
    }
  }
  options.queue_depth = 257;
  ExpectSaid(erda_client_connect(address_.c_str(), &options, &client), ERDA_INVALID_ARGUMENT, "queue_depth");
  options.queue_depth = 1;
  options.token = "a token that is long enough to be one";
  options.token_file = "/nowhere";
  ExpectSaid(erda_client_connect(address_.c_str(), &options, &client), ERDA_INVALID_ARGUMENT, "token");
  options.token = nullptr;
  options.token_file = nullptr;
  options.timeout_ms = 0;
  ExpectSaid(erda_client_connect(address_.c_str(), &options, &client), ERDA_INVALID_ARGUMENT, "timeout");

  // The program is newer than the library.
  struct Newer {
    erda_client_options known;
    uint64_t more;
  } newer;
  erda_client_options_init(&newer.known, sizeof(newer));
  ASSERT_EQ(newer.known.size, sizeof(newer));
  EXPECT_EQ(newer.more, 0U);
  ASSERT_EQ(erda_client_connect(address_.c_str(), &newer.known, &client), ERDA_OK) << erda_client_error();
  erda_client_close(client);
  newer.more = 1;
  ExpectSaid(erda_client_connect(address_.c_str(), &newer.known, &client), ERDA_INVALID_ARGUMENT, "does not know");
  const erda_put_options put{};
  ExpectSaid(erda_client_put(client_, BYTES("k"), BYTES("v"), &put, nullptr), ERDA_INVALID_ARGUMENT, "initialized");
  const erda_delete_options del{};
  ExpectSaid(erda_client_delete(client_, BYTES("k"), &del), ERDA_INVALID_ARGUMENT, "initialized");
  const erda_scan_options scan{};
  erda_scan_page* page = nullptr;
  ExpectSaid(erda_client_scan(client_, &scan, &page), ERDA_INVALID_ARGUMENT, "initialized");
}

TEST_F(CClient, NullClientOrAddressIsAnInvalidArgument) {
  size_t size = 0;
  char out[1];
  int64_t sum = 0;
  erda_result* result = nullptr;
  erda_client_buffer* buffer = nullptr;
  erda_scan_page* page = nullptr;
  erda_server_info* info = nullptr;
  erda_activity* activity = nullptr;
  erda_client_stats stats;
  stats.size = sizeof(stats);
  const erda_bytes no_key{nullptr, 1};
  ASSERT_EQ(erda_client_buffer_make(client_, 10, &buffer), ERDA_OK);
  erda_client_buffer* none = nullptr;
  const erda_code no_client[] = {
      erda_client_get(nullptr, "k", 1, out, 1, &size),
      erda_client_get_alloc(nullptr, "k", 1, &result),
      erda_client_put(nullptr, "k", 1, "v", 1, nullptr, nullptr),
      erda_client_delete(nullptr, "k", 1, nullptr),
      erda_client_increment(nullptr, "k", 1, 1, &sum),
      erda_client_multi_get(nullptr, &no_key, 0, &result),
      erda_client_multi_put(nullptr, &no_key, &no_key, nullptr, 0, &result),
      erda_client_scan(nullptr, nullptr, &page),
      erda_client_buffer_make(nullptr, 10, &none),
      erda_client_get_buffer(nullptr, "k", 1, buffer, &size),
      erda_client_put_buffer(nullptr, "k", 1, buffer, 1, nullptr, nullptr),
      erda_client_get_async(nullptr, "k", 1, nullptr, nullptr),
      erda_client_put_async(nullptr, "k", 1, "v", 1, nullptr, nullptr, nullptr),
      erda_client_delete_async(nullptr, "k", 1, nullptr, nullptr, nullptr),
      erda_client_increment_async(nullptr, "k", 1, 1, nullptr, nullptr),
      erda_client_get_buffer_async(nullptr, "k", 1, buffer, nullptr, nullptr),
      erda_client_put_buffer_async(nullptr, "k", 1, buffer, 1, nullptr, nullptr, nullptr),
      erda_client_poll(nullptr, &size),
      erda_client_wait(nullptr, 1, 1, &size),
      erda_client_arm(nullptr, &sum),
      erda_client_drain(nullptr),
      erda_client_clean(nullptr),
      erda_client_get_stats(nullptr, &stats),
      erda_client_get_server_info(nullptr, &info),
      erda_client_get_activity(nullptr, &activity),
  };
  for (size_t i = 0; i < std::size(no_client); ++i) EXPECT_EQ(no_client[i], ERDA_INVALID_ARGUMENT) << i;
  EXPECT_STREQ(erda_client_error(), "the client is NULL");
  erda_client* other = client_;
  const erda_code others[] = {
      erda_client_connect(nullptr, nullptr, &other),
      erda_client_connect("shm:/nowhere", nullptr, nullptr),
  };
  for (size_t i = 0; i < std::size(others); ++i) EXPECT_EQ(others[i], ERDA_INVALID_ARGUMENT) << i;
  EXPECT_EQ(other, nullptr);
  erda_client_buffer_free(buffer);
  EXPECT_EQ(erda_client_max_value_bytes(nullptr, 1), 0U);
  EXPECT_EQ(erda_client_buffer_data(nullptr), nullptr);
  EXPECT_EQ(erda_client_buffer_size(nullptr), 0U);
}

TEST_F(CClient, NullInACallOfAClientIsAnInvalidArgument) {
  size_t size = 0;
  char out[1];
  const erda_bytes no_key{nullptr, 1};
  erda_result* result = nullptr;
  const erda_code codes[] = {
      erda_client_get(client_, nullptr, 1, out, 1, &size),
      erda_client_get(client_, "k", 1, nullptr, 1, &size),
      erda_client_get(client_, "k", 1, out, 1, nullptr),
      erda_client_get_alloc(client_, "k", 1, nullptr),
      erda_client_put(client_, "k", 1, nullptr, 1, nullptr, nullptr),
      erda_client_put_async(client_, "k", 1, nullptr, 1, nullptr, nullptr, nullptr),
      erda_client_multi_get(client_, &no_key, 1, &result),
      erda_client_multi_get(client_, nullptr, 1, &result),
      erda_client_multi_get(client_, &no_key, 1, nullptr),
      erda_client_multi_put(client_, &no_key, &no_key, nullptr, 1, &result),
      erda_client_multi_put(client_, nullptr, &no_key, nullptr, 1, &result),
      erda_client_multi_put(client_, &no_key, nullptr, nullptr, 1, &result),
      erda_client_multi_put(client_, &no_key, &no_key, nullptr, 1, nullptr),
      erda_client_scan(client_, nullptr, nullptr),
      erda_client_buffer_make(client_, 10, nullptr),
      erda_client_get_buffer(client_, "k", 1, nullptr, &size),
      erda_client_put_buffer(client_, "k", 1, nullptr, 1, nullptr, nullptr),
      erda_client_get_buffer_async(client_, "k", 1, nullptr, nullptr, nullptr),
      erda_client_put_buffer_async(client_, "k", 1, nullptr, 1, nullptr, nullptr, nullptr),
      erda_client_get_stats(client_, nullptr),
      erda_client_get_server_info(client_, nullptr),
      erda_client_get_activity(client_, nullptr),
  };
  for (size_t i = 0; i < std::size(codes); ++i) EXPECT_EQ(codes[i], ERDA_INVALID_ARGUMENT) << i;
}

TEST_F(CClient, StoppedServerIsUnavailable) {
  ASSERT_TRUE(server_->Stop().ok());
  size_t size = 0;
  EXPECT_EQ(erda_client_get(client_, BYTES("k"), nullptr, 0, &size), ERDA_UNAVAILABLE);
  erda_client_options options;
  erda_client_options_init(&options, sizeof(options));
  options.timeout_ms = 50;
  erda_client* client = client_;
  const erda_code code = erda_client_connect(address_.c_str(), &options, &client);
  EXPECT_TRUE(code == ERDA_UNAVAILABLE || code == ERDA_TIMEOUT) << code;
  EXPECT_EQ(client, nullptr);
  EXPECT_STRNE(erda_client_error(), "");
}

TEST(CApiTest, CodesAreThoseOfCpp) {
  const std::pair<erda_code, Code> codes[] = {{ERDA_OK, Code::kOk},
                                              {ERDA_NOT_FOUND, Code::kNotFound},
                                              {ERDA_INVALID_ARGUMENT, Code::kInvalidArgument},
                                              {ERDA_CONFLICT, Code::kConflict},
                                              {ERDA_RESOURCE_EXHAUSTED, Code::kResourceExhausted},
                                              {ERDA_UNAVAILABLE, Code::kUnavailable},
                                              {ERDA_TIMEOUT, Code::kTimeout},
                                              {ERDA_PERMISSION_DENIED, Code::kPermissionDenied},
                                              {ERDA_CORRUPTION, Code::kCorruption},
                                              {ERDA_INTERNAL, Code::kInternal}};
  for (const auto& [c, cpp] : codes) {
    EXPECT_EQ(static_cast<int>(c), static_cast<int>(cpp));
    EXPECT_EQ(erda_client_code_name(c), CodeName(cpp));
  }
  EXPECT_STREQ(erda_client_code_name(static_cast<erda_code>(10)), "unknown");
}

TEST(CApiTest, ExceptionBecomesACode) {
  ExpectSaid(c_api::Guarded([]() -> Status { throw std::bad_alloc(); }), ERDA_RESOURCE_EXHAUSTED, "memory");
  ExpectSaid(c_api::Guarded([]() -> Status { throw std::length_error("too long"); }), ERDA_INTERNAL, "too long");
  ExpectSaid(c_api::Guarded([]() -> Status { throw 1; }), ERDA_INTERNAL, "exception");
  EXPECT_EQ(c_api::Guarded([] { return Status(Code::kConflict, std::string(5000, 'x')); }), ERDA_CONFLICT);
  EXPECT_EQ(std::string_view(erda_client_error()), std::string(1023, 'x'));
  EXPECT_EQ(c_api::Guarded([] { return Status(); }), ERDA_OK);
  EXPECT_EQ(std::string_view(erda_client_error()).size(), 1023U);  // A call that succeeds leaves the message.
}

}  // namespace
}  // namespace erda
