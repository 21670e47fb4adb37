// Values in registered memory of the caller: the same values as without it, and no copy.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "e2e/fixture.h"

namespace erda {
namespace {

class Buffers : public EveryPool {
 protected:
  static Buffer Make(Client& client, size_t bytes) {
    auto buffer = client.MakeBuffer(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status().ToString();
    return *std::move(buffer);
  }
  static std::string_view View(const Buffer& buffer, size_t size) {
    return {reinterpret_cast<const char*>(buffer.bytes().data()), size};
  }
  static void Fill(const Buffer& buffer, std::string_view value) {
    std::transform(value.begin(), value.end(), buffer.bytes().begin(), [](char c) { return std::byte(c); });
  }
};

TEST_P(Buffers, KeepEverySizeOnEveryPath) {
  const auto server = Serve();
  const auto reader = Connect();
  for (const PutPath path : {PutPath::kAuto, PutPath::kReserve, PutPath::kDelegate}) {
    for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
      for (const uint32_t cache : {0U, 100U}) {
        const auto client = Connect({.ack = ack, .put_path = path, .cache_entries = cache});
        Buffer from = Make(*client, 100'000);
        Buffer into = Make(*client, 100'000);
        for (const size_t key_size : {1, 24, 1024}) {
          const std::string key = Bytes(key_size, key_size);
          for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{1000}, size_t{16'300}, size_t{100'000}}) {
            const std::string value = Bytes(size + key_size, size);
            Fill(from, value);
            ASSERT_TRUE(client->Put(key, from, size).ok());
            EXPECT_EQ(View(from, size), value);
            for (int i = 0; i < 2; ++i) {
              ASSERT_EQ(client->Get(key, into).value(), size);
              ASSERT_EQ(View(into, size), value);
            }
            ASSERT_EQ(*reader->Get(key), value);
          }
        }
      }
    }
  }
}

TEST_P(Buffers, PutsFromBuffersEqualOtherPuts) {
  const auto server = Serve();
  const auto reader = Connect({.cache_entries = 0});
  const PutOptions hour{.ttl = std::chrono::hours(1)};
  for (const PutPath path : {PutPath::kAuto, PutPath::kReserve, PutPath::kDelegate}) {
    for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
      const auto client = Connect({.ack = ack, .put_path = path});
      Buffer buffer = Make(*client, 100'000);
      for (const size_t key_size : {1, 24, 1024}) {
        const std::string key = Bytes(key_size, key_size);
        for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{1000}, size_t{16'300}, size_t{100'000}}) {
          SCOPED_TRACE(std::to_string(static_cast<int>(path)) + ", " + std::to_string(key_size) + ", " +
                       std::to_string(size));
          const std::string value = Bytes(size + key_size, size);
          Fill(buffer, value);
          const auto version = client->Put(key, buffer, size, hour);
          ASSERT_TRUE(version.ok()) << version.status().ToString();
          EXPECT_EQ(View(buffer, size), value);
          const auto got = reader->GetVersioned(key);
          ASSERT_TRUE(got.ok()) << got.status().ToString();
          EXPECT_EQ(got->version, *version);
          EXPECT_TRUE(got->expires);
          EXPECT_TRUE(got->value == value);

          ExpectFails(client->Put(key, buffer, size, {.if_version = kAbsent}).status(), Code::kConflict, "version");
          const auto next = client->Put(key, buffer, size, {.if_version = *version});
          ASSERT_TRUE(next.ok()) << next.status().ToString();
          EXPECT_GT(*next, *version);
          EXPECT_EQ(reader->GetVersioned(key)->expires, std::nullopt);
        }
      }
      Fill(buffer, "brief");
      ASSERT_TRUE(client->Put("goes", buffer, 5, {.ttl = std::chrono::milliseconds(1)}).ok());
      EXPECT_TRUE(WaitUntil([&] { return reader->Get("goes").status().code() == Code::kNotFound; }));
      ExpectFails(client->Put("key", buffer, 5, {.ttl = std::chrono::milliseconds(0)}).status(), Code::kInvalidArgument,
                  "ttl");

      uint64_t told = 0;
      const auto tell = [&](const Result<uint64_t>& version) { told = version.ok() ? *version : 0; };
      ASSERT_TRUE(client->PutAsync("async", buffer, 5, hour, tell).ok());
      ExpectFails(client->PutAsync("async", buffer, 5, hour, tell), Code::kInvalidArgument, "in use");
      ASSERT_TRUE(client->Drain().ok());
      EXPECT_EQ(reader->GetVersioned("async")->version, told);
    }
  }
}

TEST_P(Buffers, ManyPutsAndGetsWithBuffersAreInFlight) {
  const auto server = Serve();
  const auto client = Connect();
  constexpr size_t kCount = 32;
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < kCount; ++i) buffers.push_back(Make(*client, 3000));
  size_t done = 0;
  for (size_t i = 0; i < kCount; ++i) {
    Fill(buffers[i], Bytes(i, 2000 + i));
    ASSERT_TRUE(client
                    ->PutAsync("key" + std::to_string(i), buffers[i], 2000 + i,
                               [&](const Status& status) { done += status.ok() ? 1 : 0; })
                    .ok());
  }
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(done, kCount);
  for (size_t i = 0; i < kCount; ++i) {
    Buffer& into = buffers[kCount - 1 - i];
    ASSERT_TRUE(client
                    ->GetAsync("key" + std::to_string(i), into,
                               [&, i](const Result<std::string_view>& value) {
                                 ASSERT_TRUE(value.ok());
                                 EXPECT_EQ(*value, Bytes(i, 2000 + i));
                                 EXPECT_EQ(value->data(), View(into, 0).data());
                                 ++done;
                               })
                    .ok());
  }
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(done, 2 * kCount);
}

TEST_P(Buffers, ImpossibleUsesAreRefused) {
  const auto server = Serve();
  const auto client = Connect();
  const auto other = Connect();
  Buffer buffer = Make(*client, 100);
  Buffer others = Make(*other, 100);
  EXPECT_EQ(client->Put("key", buffer, 101).code(), Code::kInvalidArgument);
  EXPECT_EQ(client->Put("key", others, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(client->Put("", buffer, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(client->Get(std::string(1025, 'k'), buffer).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(client->Get("key", buffer).status().code(), Code::kNotFound);
  ASSERT_TRUE(client->Put("key", std::string(101, 'v')).ok());
  const auto too_small = client->Get("key", buffer);
  EXPECT_EQ(too_small.status().code(), Code::kInvalidArgument);
  EXPECT_NE(too_small.status().message().find("101 bytes"), std::string_view::npos);
  EXPECT_EQ(client->MakeBuffer(size_t{1} << 40).status().code(), Code::kInvalidArgument);

  Buffer moved = Make(*client, 5);
  moved = std::move(buffer);
  EXPECT_EQ(client->Get("key", buffer).status().code(), Code::kInvalidArgument);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(buffer.bytes().empty());                                            // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.bytes().size(), 100U);
  EXPECT_TRUE(client->Put("key", moved, 100).ok());
}

TEST_P(Buffers, MayBeDestroyedBeforeTheOperationEndsAndAfterTheClient) {
  const auto server = Serve();
  auto client = Connect();
  std::optional<Buffer> buffer(Make(*client, 1000));
  Fill(*buffer, std::string(1000, 'x'));
  ASSERT_TRUE(client->PutAsync("key", *buffer, 1000, [](const Status&) {}).ok());
  buffer.reset();
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(*client->Get("key"), std::string(1000, 'x'));

  Buffer last = Make(*client, 1000);
  ASSERT_TRUE(client->GetAsync("key", last, [](const auto&) {}).ok());
  client.reset();
  Fill(last, "still the caller's");
}

TEST_P(Buffers, BuffersAreFreeAgainWhenTheServerGoes) {
  auto server = Serve();
  const auto client = Connect();
  Buffer buffer = Make(*client, 1000);
  ASSERT_TRUE(client->Put("key", buffer, 1000).ok());
  server->Stop();
  EXPECT_EQ(client->Get("key", buffer).status().code(), Code::kUnavailable);
  EXPECT_EQ(client->Put("key", buffer, 10).code(), Code::kUnavailable);
  server = nullptr;
  server = Serve();
  Fill(buffer, "again");
  EXPECT_TRUE(client->Put("key", buffer, 5).ok());
  EXPECT_EQ(*client->Get("key"), "again");
}

INSTANTIATE_TEST_SUITE_P(E2e, Buffers, kEveryPool, PoolName);

}  // namespace
}  // namespace erda
