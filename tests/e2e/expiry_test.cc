// Values with a time to live, as users have them. Real time: nothing here has to be quick.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/server_time.h"
#include "e2e/fixture.h"

namespace erda {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

PutOptions For(milliseconds ttl) { return {.ttl = ttl}; }

class Expiry : public EveryPool {
 protected:
  static bool IsAbsent(Client& client, const std::string& key) {
    return client.Get(key).status().code() == Code::kNotFound;
  }
};
INSTANTIATE_TEST_SUITE_P(E2e, Expiry, kEveryPool, PoolName);

TEST_P(Expiry, ValuesOfAllSizesAreThereAndGoOnEveryPath) {
  const auto server = Serve();
  for (const PutPath path : {PutPath::kAuto, PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    SCOPED_TRACE("path " + std::to_string(static_cast<int>(path)));
    const auto writer = Connect({.put_path = path});
    const auto reader = Connect({.cache_entries = 0});
    auto buffer = writer->MakeBuffer(100'000);
    ASSERT_TRUE(buffer.ok());
    for (const size_t size : {size_t{0}, size_t{10}, size_t{5000}, size_t{90'000}}) {
      if (path == PutPath::kInline && size > 16000) continue;
      SCOPED_TRACE(size);
      const std::string value = Bytes(size, size);
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer->Put("stays", value, For(hours(1))).ok());
      for (Client* client : {writer.get(), reader.get()}) {
        EXPECT_EQ(*client->Get("stays"), value);
        const auto got = client->GetVersioned("stays");
        ASSERT_TRUE(got.ok() && got->expires);
        EXPECT_EQ(got->value, value);
        const auto now = std::chrono::system_clock::now();
        EXPECT_GT(*got->expires, now + std::chrono::minutes(30));
        EXPECT_LE(*got->expires, now + hours(1) + std::chrono::minutes(1));
      }
      const auto in_buffer = writer->Get("stays", *buffer);
      ASSERT_TRUE(in_buffer.ok()) << in_buffer.status().ToString();
      EXPECT_EQ(AsString(buffer->bytes().first(*in_buffer)), value);
      std::vector<std::byte> out(size);
      EXPECT_EQ(*writer->Get("stays", out), size);
      EXPECT_EQ(AsString(out), value);

      ASSERT_TRUE(writer->Put("goes", value, For(milliseconds(20))).ok());
      EXPECT_TRUE(WaitUntil([&] { return IsAbsent(*writer, "goes"); }));
      EXPECT_TRUE(IsAbsent(*reader, "goes")) << "absent for one, absent for all";
      EXPECT_EQ(writer->Get("goes", *buffer).status().code(), Code::kNotFound);
      EXPECT_EQ(writer->GetVersioned("goes").status().code(), Code::kNotFound);
      const std::string_view keys[] = {"goes", "stays"};
      const auto both = writer->MultiGet(keys);
      EXPECT_EQ(both[0].status().code(), Code::kNotFound);
      EXPECT_EQ(*both[1], value);
    }
  }
}

TEST_P(Expiry, WhatHasExpiredIsAbsentForConditions) {
  const auto server = Serve();
  const auto client = Connect();
  const auto first = client->Put("lock", "mine", PutOptions{kAbsent, milliseconds(200)});
  ASSERT_TRUE(first.ok());
  ExpectFails(client->Put("lock", "yours", PutOptions{kAbsent, hours(1)}).status(), Code::kConflict, "version");
  EXPECT_TRUE(WaitUntil([&] { return client->Put("lock", "yours", PutOptions{kAbsent, hours(1)}).ok(); }));
  ExpectFails(client->Put("lock", "mine", PutOptions{*first, {}}).status(), Code::kConflict, "version");
  EXPECT_EQ(*client->Get("lock"), "yours");
}

TEST_P(Expiry, APutWithoutOneStaysAndAnIncrementKeepsIt) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "v1", For(milliseconds(1))).ok());
  ASSERT_TRUE(client->Put("key", "v2").ok());
  ASSERT_TRUE(client->Put("count", std::string(8, '\0'), For(hours(1))).ok());
  const auto before = client->GetVersioned("count");
  EXPECT_EQ(*client->Increment("count", 3), 3);
  const auto after = client->GetVersioned("count");
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(after->expires, before->expires);
  EXPECT_NE(after->version, before->version);
  ASSERT_TRUE(client->Put("brief", "v", For(milliseconds(1))).ok());
  EXPECT_TRUE(WaitUntil([&] { return IsAbsent(*client, "brief"); }));
  EXPECT_EQ(*client->Get("key"), "v2");
  EXPECT_EQ(client->GetVersioned("key")->expires, std::nullopt);
}

TEST_P(Expiry, NobodyKeepsWhatHasExpired) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("stays", "v").ok());
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(client->Put("key" + std::to_string(i), Bytes(1, 100), For(milliseconds(1))).ok());
  }
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client)["expired"] == 500; })) << CountersOf(*client)["expired"];
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client)["keys"] == 1; })) << CountersOf(*client)["keys"];
  EXPECT_EQ(*client->Get("stays"), "v");
}

TEST_P(Expiry, ATimeToLiveIsWithinItsLimits) {
  const auto server = Serve();
  const auto client = Connect();
  for (const int64_t ttl : {int64_t{0}, int64_t{-1}, INT64_MAX, (int64_t{1} << 48) + 1}) {
    ExpectFails(client->Put("key", "v", For(milliseconds(ttl))).status(), Code::kInvalidArgument, "time to live");
  }
  ASSERT_TRUE(client->Put("key", "v", For(milliseconds(int64_t{1} << 48))).ok());
  EXPECT_EQ(*client->Get("key"), "v");
  const std::string largest = Bytes(1, client->max_value_bytes(3) - 8);
  ASSERT_TRUE(client->Put("big", largest, For(hours(1))).ok());
  EXPECT_EQ(*client->Get("big"), largest);
  ExpectFails(client->Put("big", largest + "!", For(hours(1))).status(), Code::kInvalidArgument, "bytes");
}

class ExpiryRestart : public E2eTest {};

TEST_F(ExpiryRestart, DeadlinesAreKept) {
  auto server = Serve(PoolKind::kFile);
  std::optional<Deadline> expires;
  {
    const auto client = Connect();
    ASSERT_TRUE(client->Put("goes", "v", For(milliseconds(1))).ok());
    ASSERT_TRUE(client->Put("stays", "v", For(hours(1))).ok());
    expires = client->GetVersioned("stays")->expires;
    EXPECT_TRUE(WaitUntil([&] { return client->Get("goes").status().code() == Code::kNotFound; }));
  }
  server->Stop();
  server = Serve(PoolKind::kFile);
  const auto client = Connect();
  EXPECT_EQ(client->Get("goes").status().code(), Code::kNotFound);
  const auto got = client->GetVersioned("stays");
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->expires, expires);
}

}  // namespace
}  // namespace erda
