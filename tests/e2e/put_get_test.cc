// One operation after the other: all paths, all sizes, all limits.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "e2e/fixture.h"

namespace erda {
namespace {

constexpr uint64_t kSegment = 2 << 20;

std::string KeyOf(size_t size, uint64_t seed) { return Bytes(seed * 1000 + size, size); }

// Returns the largest value of an inline put, with the default options of a server.
size_t InlineMax(size_t key_size) { return 16384 - 56 - key_size - 4; }

class PutGetDelete : public EveryPool {
 protected:
  ServerOptions WithLargeSegments() const {
    ServerOptions options = Options();
    options.region_size = 4 << 20;
    options.segment_size = kSegment;
    return options;
  }
};

TEST_P(PutGetDelete, KeepsEverySizeOnEveryPath) {
  const auto server = Serve(WithLargeSegments());
  const auto reader = Connect();
  for (const PutPath path : {PutPath::kAuto, PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
      const auto client = Connect({.ack = ack, .put_path = path});
      for (const size_t key_size : {1, 8, 24, 255, 1024}) {
        const std::string key = KeyOf(key_size, static_cast<uint64_t>(path));
        const size_t limit = InlineMax(key_size);
        for (const size_t size : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{64}, size_t{1000}, size_t{4096},
                                  limit - 1, limit, limit + 1, size_t{16384}, size_t{100} << 10}) {
          SCOPED_TRACE("path " + std::to_string(static_cast<int>(path)) + ", ack " +
                       std::to_string(static_cast<int>(ack)) + ", key " + std::to_string(key_size) + ", value " +
                       std::to_string(size));
          if (path == PutPath::kInline && size > limit) continue;
          const std::string value = Bytes(size + key_size, size);
          const Status put = client->Put(key, value);
          ASSERT_TRUE(put.ok()) << put.ToString();
          ASSERT_EQ(*client->Get(key), value);
          ASSERT_EQ(*reader->Get(key), value);
        }
        ASSERT_TRUE(client->Delete(key).ok());
        ASSERT_EQ(reader->Get(key).status().code(), Code::kNotFound);
        ASSERT_EQ(client->Delete(key).code(), Code::kNotFound);
      }
    }
  }
  const Counters counters = SettledCountersOf(*reader);
  EXPECT_EQ(counters.at("violations"), 0U);
  EXPECT_EQ(counters.at("keys"), 0U);
}

TEST_P(PutGetDelete, KeepsTheLargestValueThatASegmentHolds) {
  const auto server = Serve(WithLargeSegments());
  for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
    const auto client = Connect({.ack = ack});
    for (const size_t key_size : {1, 1024}) {
      const size_t most = client->max_value_bytes(key_size);
      EXPECT_GT(most, kSegment - 4096);
      EXPECT_LT(most, kSegment);
      const std::string key = KeyOf(key_size, 1);
      for (const size_t size : {size_t{1} << 20, most - 1, most}) {
        const std::string value = Bytes(size, size);
        const Status put = client->Put(key, value);
        ASSERT_TRUE(put.ok()) << put.ToString();
        ASSERT_EQ(*client->Get(key) == value, true) << size;
      }
      ExpectFails(client->Put(key, std::string(most + 1, 'x')), Code::kInvalidArgument, std::to_string(most));
      EXPECT_EQ(client->Get(key)->size(), most);
    }
  }
}

TEST_P(PutGetDelete, TakesAnyBytesAsKeysAndValues) {
  const auto server = Serve();
  const auto client = Connect();
  std::vector<std::string> keys = {
      std::string(1, '\0'),      std::string(2, '\0'), std::string("a\0b", 3), "a", "\n", "\xff",
      std::string(1024, '\xff'), "k\xc3\xa4se"};
  for (int byte = 0; byte < 256; ++byte) keys.push_back("byte" + std::string(1, static_cast<char>(byte)));
  for (const std::string& key : keys) ASSERT_TRUE(client->Put(key, key + std::string(3, '\0') + key).ok());
  for (const std::string& key : keys) ASSERT_EQ(*client->Get(key), key + std::string(3, '\0') + key);
  EXPECT_EQ(CountersOf(*client).at("keys"), keys.size());
}

TEST_P(PutGetDelete, TakesAnEmptyValueWithoutAnAddress) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "before").ok());
  ASSERT_TRUE(client->Put("key", std::string_view()).ok());
  EXPECT_EQ(*client->Get("key"), "");
  const KeyValue puts[] = {{.key = "key", .value = "again"}, {.key = "other", .value = {}}};
  for (const auto& result : client->MultiPut(puts)) EXPECT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(*client->Get("key"), "again");
  EXPECT_EQ(*client->Get("other"), "");
}

TEST_P(PutGetDelete, OverwritesWithLargerAndSmallerValues) {
  const auto server = Serve();
  const auto client = Connect();
  const auto other = Connect({.put_path = PutPath::kReserve});
  for (const size_t size : {100, 100'000, 0, 20'000, 5, 50'000, 1}) {
    Client& writer = size % 2 == 0 ? *client : *other;
    ASSERT_TRUE(writer.Put("key", Bytes(size, size)).ok());
    ASSERT_EQ(*client->Get("key"), Bytes(size, size));
    ASSERT_EQ(*other->Get("key"), Bytes(size, size));
  }
}

TEST_P(PutGetDelete, WritesTheWholeValueIntoTheCallersMemoryOrNothing) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "0123456789").ok());
  ASSERT_TRUE(client->Put("empty", "").ok());
  std::vector<std::byte> buffer(12, std::byte{0xaa});
  const auto exact = std::span(buffer).first(10);
  ASSERT_EQ(*client->Get("key", exact), 10U);
  EXPECT_EQ(std::memcmp(buffer.data(), "0123456789", 10), 0);
  EXPECT_EQ(buffer[10], std::byte{0xaa});
  ASSERT_EQ(*client->Get("key", buffer), 10U);
  EXPECT_EQ(*client->Get("empty", {}), 0U);

  std::fill(buffer.begin(), buffer.end(), std::byte{0xaa});
  ExpectFails(client->Get("key", std::span(buffer).first(9)).status(), Code::kInvalidArgument, "10");
  ExpectFails(client->Get("key", {}).status(), Code::kInvalidArgument, "10");
  EXPECT_EQ(buffer, std::vector<std::byte>(12, std::byte{0xaa}));
  EXPECT_EQ(client->Get("none", buffer).status().code(), Code::kNotFound);
}

TEST_P(PutGetDelete, RefusesInvalidKeys) {
  const auto server = Serve();
  const auto client = Connect();
  const std::string long_key(1025, 'k');
  for (const std::string& key : {std::string(), long_key}) {
    ExpectFails(client->Put(key, "value"), Code::kInvalidArgument, "1024");
    ExpectFails(client->Get(key).status(), Code::kInvalidArgument, "1024");
    ExpectFails(client->Delete(key), Code::kInvalidArgument, "1024");
    std::byte byte{};
    ExpectFails(client->Get(key, {&byte, 1}).status(), Code::kInvalidArgument, "1024");
    ExpectFails(client->GetAsync(key, [](auto) { FAIL(); }), Code::kInvalidArgument, "1024");
    ExpectFails(client->PutAsync(key, "value", [](auto) { FAIL(); }), Code::kInvalidArgument, "1024");
    ExpectFails(client->DeleteAsync(key, [](auto) { FAIL(); }), Code::kInvalidArgument, "1024");
    const std::string_view keys[] = {"good", key};
    const auto results = client->MultiGet(keys);
    EXPECT_EQ(results[0].status().code(), Code::kNotFound);
    ExpectFails(results[1].status(), Code::kInvalidArgument, "1024");
  }
  EXPECT_TRUE(client->Drain().ok());
  EXPECT_EQ(CountersOf(*client).at("keys"), 0U);
}

TEST_P(PutGetDelete, RefusesInlinePutsThatDoNotFitIntoARequest) {
  const auto server = Serve();
  const auto client = Connect({.put_path = PutPath::kInline});
  for (const size_t key_size : {1, 1024}) {
    const std::string key = KeyOf(key_size, 5);
    const size_t most = InlineMax(key_size);
    ExpectFails(client->Put(key, std::string(most + 1, 'v')), Code::kInvalidArgument, std::to_string(most));
    EXPECT_EQ(client->Get(key).status().code(), Code::kNotFound);
    EXPECT_TRUE(client->Put(key, std::string(most, 'v')).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(E2e, PutGetDelete, kEveryPool, PoolName);

class Limits : public E2eTest {};

TEST_F(Limits, InvalidClientOptionsAreRefused) {
  const auto server = Serve(PoolKind::kDram);
  const auto refused = [&](const How& how, std::string_view words) {
    ExpectFails(Client::Connect(Address(), how.options()).status(), Code::kInvalidArgument, words);
  };
  refused({.queue_depth = 0}, "queue_depth must be 1 to 256");
  refused({.queue_depth = 257}, "queue_depth must be 1 to 256");
  refused({.put_path = PutPath{9}}, "put_path");
  refused({.ack = Ack{2}}, "ack");
  refused({.timeout = std::chrono::milliseconds(0)}, "timeout");
  refused({.timeout = std::chrono::milliseconds(-1)}, "timeout");
  refused({.token = "secret"}, "token");
  EXPECT_NE(Connect({.queue_depth = 1}), nullptr);
  EXPECT_NE(Connect({.queue_depth = 256}), nullptr);
}

TEST_F(Limits, InvalidAddressesAreRefused) {
  const std::string long_path = "shm:/" + std::string(200, 'x');
  for (const std::string& address : {std::string(), std::string("shm:"), std::string("nothing:/x"), long_path}) {
    const auto client = Client::Connect(address);
    EXPECT_EQ(client.status().code(), Code::kInvalidArgument) << address << ": " << client.status().ToString();
    EXPECT_FALSE(client.status().message().empty());
  }
  const auto nobody = Client::Connect(Address());
  ExpectFails(nobody.status(), Code::kUnavailable, Address());
}

}  // namespace
}  // namespace erda
