// Values with a time to live, as users have them. The tests use real time, and nothing has to be quick.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/server_time.h"
#include "e2e/fixture.h"
#include "e2e/raw_peer.h"
#include "format/control_block.h"
#include "format/superblock.h"

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
  // Returns the time that a reader finds in the shard's control block.
  static uint64_t TimeToldTo(RawPeer& peer) {
    const auto bytes = peer.Read(format::kControlRegion, offsetof(format::ControlBlock, time), sizeof(uint64_t));
    EXPECT_TRUE(bytes);
    return bytes ? LoadAs<uint64_t>(AsBytes(*bytes)) : 0;
  }
};
INSTANTIATE_TEST_SUITE_P(E2e, Expiry, kEveryPool, PoolName);

TEST_P(Expiry, ValuesOfAllSizesStayUntilTheyExpireOnEveryPath) {
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

TEST_P(Expiry, ExpiredKeyIsAbsentForConditions) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("held", "mine", PutOptions{kAbsent, hours(1)}).ok());
  ExpectFails(client->Put("held", "yours", PutOptions{kAbsent, hours(1)}).status(), Code::kConflict, "version");
  const auto first = client->Put("lock", "mine", PutOptions{kAbsent, milliseconds(20)});
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(WaitUntil([&] { return client->Put("lock", "yours", PutOptions{kAbsent, hours(1)}).ok(); }));
  ExpectFails(client->Put("lock", "mine", PutOptions{*first, {}}).status(), Code::kConflict, "version");
  EXPECT_EQ(*client->Get("lock"), "yours");
}

TEST_P(Expiry, PutWithoutADeadlineStaysAndAnIncrementKeepsTheDeadline) {
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

TEST_P(Expiry, ServerFreesExpiredKeys) {
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
    ExpectFails(client->Put("key", "v", For(milliseconds(ttl))).status(), Code::kInvalidArgument, "ttl");
  }
  ASSERT_TRUE(client->Put("key", "v", For(milliseconds(int64_t{1} << 48))).ok());
  EXPECT_EQ(*client->Get("key"), "v");
  const std::string largest = Bytes(1, client->max_value_bytes(3) - 8);
  ASSERT_TRUE(client->Put("big", largest, For(hours(1))).ok());
  EXPECT_EQ(*client->Get("big"), largest);
  ExpectFails(client->Put("big", largest + "!", For(hours(1))).status(), Code::kInvalidArgument, "bytes");
}

// The deadline takes 8 bytes more. So each of these sizes ends differently in its granule, its request and its first
// Read.
TEST_P(Expiry, ValuesFillTheMemoryThatTheyAreReadInto) {
  ServerOptions options = Options();
  options.region_size = 4 << 20;
  options.segment_size = 2 << 20;
  const auto server = Serve(options);
  const auto writer = Connect({.put_path = PutPath::kReserve});
  for (const uint32_t cache : {0U, 1000U}) {
    const auto reader = Connect({.cache_entries = cache});
    for (const size_t key_size : {1, 24, 1024}) {
      for (const size_t size : {1, 4, 8, 20, 28, 64, 1000, 20 << 10, 300 << 10}) {
        SCOPED_TRACE(std::to_string(key_size) + ", " + std::to_string(size));
        const std::string key = Bytes(size, key_size);
        const std::string value = Bytes(key_size, size);
        ASSERT_TRUE(writer->Put(key, value, For(hours(1))).ok());
        auto buffer = reader->MakeBuffer(size);
        ASSERT_TRUE(buffer.ok());
        for (int i = 0; i < 3; ++i) {
          const auto got = reader->Get(key, *buffer);
          ASSERT_TRUE(got.ok()) << got.status().ToString();
          EXPECT_EQ(*got, size);
          EXPECT_TRUE(AsString(buffer->bytes()) == value);
        }
        std::vector<std::byte> out(size);
        EXPECT_EQ(*reader->Get(key, out), size);
        EXPECT_TRUE(AsString(out) == value);
        auto too_small = reader->MakeBuffer(size - 1);
        ASSERT_TRUE(too_small.ok());
        ExpectFails(reader->Get(key, *too_small).status(), Code::kInvalidArgument, std::to_string(size));
      }
    }
  }
}

TEST_P(Expiry, ManyPutsWithDeadlinesAreInFlight) {
  const auto server = Serve();
  const auto client = Connect();
  size_t done = 0;
  std::vector<std::string> names;
  for (size_t i = 0; i < 60; ++i) names.push_back("key" + std::to_string(i));
  for (size_t i = 0; i < 60; ++i) {
    const PutOptions options = i % 3 == 0 ? PutOptions() : For(i % 3 == 1 ? milliseconds(5) : milliseconds(hours(1)));
    ASSERT_TRUE(client
                    ->PutAsync(names[i], Bytes(i, i % 2 == 0 ? 100 : 20'000), options,
                               [&](const Result<uint64_t>& version) { done += version.ok() ? 1 : 0; })
                    .ok());
  }
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(done, 60U);
  const std::vector<std::string_view> keys(names.begin(), names.end());
  EXPECT_TRUE(WaitUntil([&] {
    const auto got = client->MultiGet(keys);
    return std::count_if(got.begin(), got.end(), [](const auto& value) { return value.ok(); }) == 40;
  }));
  const auto got = client->MultiGetVersioned(keys);
  for (size_t i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    if (i % 3 == 1) {
      EXPECT_EQ(got[i].status().code(), Code::kNotFound);
      continue;
    }
    ASSERT_TRUE(got[i].ok());
    EXPECT_TRUE(got[i]->value == Bytes(i, i % 2 == 0 ? 100 : 20'000));
    EXPECT_EQ(got[i]->expires.has_value(), i % 3 == 2);
  }
  size_t absent = 0;
  ASSERT_TRUE(client
                  ->GetVersionedAsync("key1",
                                      [&](const Result<VersionedView>& value) {
                                        absent += value.status().code() == Code::kNotFound ? 1 : 0;
                                      })
                  .ok());
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(absent, 1U);
}

TEST_P(Expiry, ExpiredKeyIsAbsentForDeletesAndIncrements) {
  const auto server = Serve();
  const auto client = Connect();
  const auto version = client->Put("gone", "v", For(milliseconds(1)));
  ASSERT_TRUE(version.ok());
  ASSERT_TRUE(client->Put("count", std::string(8, '\1'), For(milliseconds(1))).ok());
  EXPECT_TRUE(WaitUntil([&] { return IsAbsent(*client, "gone") && IsAbsent(*client, "count"); }));
  EXPECT_EQ(client->Delete("gone").code(), Code::kNotFound);
  ExpectFails(client->Delete("gone", DeleteOptions{*version}), Code::kConflict, "absent");
  EXPECT_EQ(*client->Increment("count", 7), 7);
  const auto count = client->GetVersioned("count");
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(count->expires, std::nullopt);
  const auto again = client->Put("gone", "back", PutOptions{kAbsent, {}});
  ASSERT_TRUE(again.ok());
  EXPECT_GT(*again, *version);
}

// A client that knows the place of an expired value does not take a new value there for the expired one.
TEST_P(Expiry, PutAfterExpiryIsSeenByClientsThatKnowTheExpiredVersion) {
  const auto server = Serve();
  const auto writer = Connect();
  const auto reader = Connect();
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(writer->Put("key", "brief", For(milliseconds(10))).ok());
    EXPECT_TRUE(WaitUntil([&] { return IsAbsent(*reader, "key"); }));
    if (round % 2 == 0) {  // the shard frees the entry first
      EXPECT_TRUE(WaitUntil([&] { return CountersOf(*reader)["keys"] == 0; }));
    }
    ASSERT_TRUE(writer->Put("key", "stays").ok());
    EXPECT_EQ(*reader->Get("key"), "stays");
    EXPECT_EQ(*reader->Get("key"), "stays");
  }
}

TEST_P(Expiry, AFullPoolHasRoomAgain) {
  ServerOptions options = Options();
  options.pool_size = 8 << 20;
  const auto server = Serve(options);
  const auto client = Connect();
  const std::string value = Bytes(1, 10'000);
  for (int i = 0; i < 3000; ++i) {  // more than the pool holds
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(WaitUntil([&] { return client->Put(key, value, For(milliseconds(50))).ok(); })) << i;
  }
  EXPECT_TRUE(WaitUntil([&] { return client->Put("stays", value).ok(); }));
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client)["keys"] == 1; })) << CountersOf(*client)["keys"];
  EXPECT_EQ(*client->Get("stays"), value);
}

TEST_P(Expiry, ServerTellsTheTime) {
  const auto server = Serve();
  const uint64_t before = ServerTime::WallMicros();
  RawPeer peer(Address());
  uint64_t last = peer.hello().time;
  EXPECT_GT(last, before - uint64_t{3'600'000'000});
  EXPECT_LT(last, before + uint64_t{3'600'000'000});
  for (uint32_t slot = 0; slot < 3; ++slot) {
    peer.PostImm(format::kAsksTime | slot);
    const auto reply = peer.Answer();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->code, static_cast<uint8_t>(Code::kOk));
    EXPECT_EQ(reply->id, 0U);
    EXPECT_GE(reply->number, last);
    last = reply->number;
  }
  EXPECT_LT(last, ServerTime::WallMicros() + uint64_t{3'600'000'000});
}

// A reader whose own clock is late sends no request, and relies on the time that the shard tells.
TEST_P(Expiry, ToldTimeGoesOnWithoutRequests) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "v", For(hours(1))).ok());
  RawPeer peer(Address());
  const uint64_t first = TimeToldTo(peer);
  EXPECT_GE(first, ServerTime::WallMicros() / 1000 - 3'600'000);
  for (uint64_t i = 1; i <= 3; ++i) EXPECT_TRUE(WaitUntil([&] { return TimeToldTo(peer) >= first + i * 50; }));
}

TEST_P(Expiry, ServerWithoutDeadlinesKeepsSleeping) {
  const auto server = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Put("key", "v").ok());
  (void)SettledCountersOf(*client);  // no sleeps are counted any more
  ASSERT_TRUE(client->Put("key", "v", For(milliseconds(1))).ok());
  const uint64_t before = CountersOf(*client)["sleeps"];
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client)["sleeps"] > before + 3; })) << "it wakes up for the time";
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client)["keys"] == 0; }));
  (void)SettledCountersOf(*client);
}

TEST_P(Expiry, RequestForTheTimeUpdatesTheToldTime) {
  const auto server = Serve();
  RawPeer peer(Address());
  EXPECT_TRUE(WaitUntil([&] {
    const uint64_t told = TimeToldTo(peer);
    std::this_thread::sleep_for(milliseconds(100));
    return TimeToldTo(peer) == told;
  })) << "it knows of no deadlines, and keeps no time by itself";
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(milliseconds(2));
    peer.PostImm(format::kAsksTime);
    const auto reply = peer.Answer();
    ASSERT_TRUE(reply);
    EXPECT_GE(TimeToldTo(peer), reply->number / 1000);
  }
}

TEST_P(Expiry, GetReadsTheTimeOnlyForAValueWithADeadline) {
  const auto server = Serve();
  const auto client = Connect();
  const auto reader = Connect({.cache_entries = 0});
  ASSERT_TRUE(client->Put("brief", "v", For(hours(1))).ok());
  ASSERT_TRUE(client->Put("stays", "v").ok());
  const auto reads_of = [](Client& from, const char* key) {
    const uint64_t before = from.stats().reads;
    EXPECT_EQ(*from.Get(key), "v");
    return from.stats().reads - before;
  };
  for (Client* each : {client.get(), reader.get()}) {  // the clients learn where the regions are
    EXPECT_TRUE(each->Get("brief").ok() && each->Get("stays").ok());
  }
  EXPECT_EQ(reads_of(*client, "brief"), 2U);
  EXPECT_EQ(reads_of(*client, "stays"), 1U);
  EXPECT_EQ(reads_of(*reader, "brief"), reads_of(*reader, "stays") + 1);
}

// One Read after the Read of a block tells the time for all values of that block.
TEST_P(Expiry, AScanReadsNoTimeForEachKey) {
  const auto server = Serve();
  const auto client = Connect();
  const auto reads_of_scan = [&] {
    const auto reader = Connect();
    const auto scan = [&reader] {
      size_t keys = 0;
      for (std::optional<uint64_t> cursor = 0; cursor;) {
        const auto page = reader->Scan({.cursor = *cursor});
        EXPECT_TRUE(page.ok());
        keys += page.ok() ? page->keys.size() : 0;
        cursor = page.ok() ? page->next : std::nullopt;
      }
      EXPECT_EQ(keys, 100U);
    };
    scan();  // the reader learns where the regions are
    const uint64_t before = reader->stats().reads;
    scan();
    return reader->stats().reads - before;
  };
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client->Put("key" + std::to_string(i), "v").ok());
  const uint64_t without = reads_of_scan();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client->Put("key" + std::to_string(i), "v", For(hours(1))).ok());
  EXPECT_EQ(reads_of_scan(), without);
}

TEST_P(Expiry, AValueThatLeavesNoRoomForItsDeadlineBreaksTheProtocol) {
  const auto server = Serve();
  const auto client = Connect();
  const auto most = static_cast<uint32_t>(client->max_value_bytes(3));
  for (const uint64_t ttl : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    RawPeer peer(Address());
    format::Request request = RawPeer::ReserveRequest("key", most, Ack::kPersisted);
    request.ttl = ttl;
    peer.Post(request, "key");
    const auto reply = peer.Answer();
    EXPECT_EQ(reply.has_value(), ttl == 0);
    if (reply) {
      EXPECT_EQ(reply->code, static_cast<uint8_t>(Code::kOk));
    }
  }
  RawPeer peer(Address());
  format::Request request = RawPeer::ReserveRequest("key", most - 8, Ack::kPersisted);
  request.ttl = UINT64_MAX;
  peer.Post(request, "key");
  const auto reply = peer.Answer();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->code, static_cast<uint8_t>(Code::kOk));
  EXPECT_TRUE(reply->header.expires());
}

class ExpiryRestart : public E2eTest {
 protected:
  // Stores the note of the time in the file of a pool with one shard.
  void NoteTime(format::CheckedWord time) const {
    std::fstream file(Path("pool"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(format::ShardRecordOffset(0) + offsetof(format::ShardRecord, time)));
    const uint64_t raw = time.raw();
    file.write(reinterpret_cast<const char*>(&raw), sizeof(raw));
    ASSERT_TRUE(file.good());
  }
  [[nodiscard]] format::CheckedWord NotedTime() const {
    std::ifstream file(Path("pool"), std::ios::binary);
    file.seekg(static_cast<std::streamoff>(format::ShardRecordOffset(0) + offsetof(format::ShardRecord, time)));
    uint64_t raw = 0;
    file.read(reinterpret_cast<char*>(&raw), sizeof(raw));
    return format::CheckedWord(raw);
  }
};

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

TEST_F(ExpiryRestart, DeadlinesAreKeptWhenTheServerDies) {
  auto server = Serve(PoolKind::kPowerSafe);
  {
    const auto client = Connect();
    for (int i = 0; i < 100; ++i) {
      const std::string number = std::to_string(i);
      ASSERT_TRUE(client->Put("goes" + number, Bytes(1, 100 + i * 300), For(milliseconds(1))).ok());
      ASSERT_TRUE(client->Put("stays" + number, Bytes(2, 100 + i * 300), For(hours(1))).ok());
    }
  }
  server->Signal(SIGKILL);
  server.reset();
  server = Serve(PoolKind::kPowerSafe);
  const auto client = Connect();
  const auto goes = [&](int i) { return client->Get("goes" + std::to_string(i)).status().code() == Code::kNotFound; };
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(WaitUntil([&] { return goes(i); }));
    const auto got = client->GetVersioned("stays" + std::to_string(i));
    ASSERT_TRUE(got.ok());
    EXPECT_TRUE(got->value == Bytes(2, 100 + i * 300));
    EXPECT_TRUE(got->expires);
  }
  EXPECT_TRUE(WaitUntil([&] { return CountersOf(*client)["keys"] == 100; })) << CountersOf(*client)["keys"];
}

// The pool keeps the latest told time, so that the next server does not begin earlier.
TEST_F(ExpiryRestart, PoolKeepsEachTimeThatADeadServerTold) {
  auto server = Serve(PoolKind::kFile);
  uint64_t told = 0;
  {
    const auto client = Connect();
    ASSERT_TRUE(client->Put("key", "v", For(hours(1))).ok());
    RawPeer peer(Address());
    const auto bytes = peer.Read(format::kControlRegion, offsetof(format::ControlBlock, time), sizeof(uint64_t));
    ASSERT_TRUE(bytes);
    told = LoadAs<uint64_t>(AsBytes(*bytes));
  }
  EXPECT_GE(told, ServerTime::WallMicros() / 1000 - 3'600'000);
  server->Signal(SIGKILL);
  server.reset();
  EXPECT_GE(NotedTime().number(), told);
}

// The machine's wall clock may be set back between two servers.
TEST_F(ExpiryRestart, ServerBeginsNoEarlierThanTheTimeInThePool) {
  auto server = Serve(PoolKind::kFile);
  std::optional<Deadline> expires;
  {
    const auto client = Connect();
    ASSERT_TRUE(client->Put("goes", "v", For(hours(1))).ok());
    ASSERT_TRUE(client->Put("stays", "v", For(hours(5))).ok());
    expires = client->GetVersioned("goes")->expires;
  }
  server->Stop();
  const uint64_t noted = NotedTime().number();
  EXPECT_GT(noted, ServerTime::WallMicros() / 1000 - 3'600'000);
  const auto deadline = static_cast<uint64_t>(expires->time_since_epoch().count());
  EXPECT_LT(noted, deadline);
  NoteTime(format::CheckedWord::Of(deadline));
  server = Serve(PoolKind::kFile);
  {
    const auto client = Connect();
    EXPECT_EQ(client->Get("goes").status().code(), Code::kNotFound);
    EXPECT_EQ(*client->Get("stays"), "v");
    ASSERT_TRUE(client->Put("next", "v", For(hours(1))).ok());
    EXPECT_GE(*client->GetVersioned("next")->expires, *expires + hours(1));
  }
  server->Stop();
  EXPECT_GE(NotedTime().number(), deadline);
}

TEST_F(ExpiryRestart, DamagedTimeInThePoolIsIgnored) {
  auto server = Serve(PoolKind::kFile);
  {
    const auto client = Connect();
    ASSERT_TRUE(client->Put("stays", "v", For(hours(1))).ok());
  }
  server->Stop();
  NoteTime(format::CheckedWord(NotedTime().raw() ^ uint64_t{1} << 60));
  server = Serve(PoolKind::kFile);
  const auto client = Connect();
  EXPECT_EQ(*client->Get("stays"), "v");
}

}  // namespace
}  // namespace erda
