// Several clients, each in a separate thread.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "base/random.h"
#include "e2e/fixture.h"

namespace erda {
namespace {

// A value begins with its writer and the number of the writer's put. The other bytes follow from both.
struct Stamp {
  uint32_t writer = 0;
  uint32_t crc = 0;  // the checksum of everything after it
  uint64_t sequence = 0;
};

std::string Stamped(uint32_t writer, uint64_t sequence, size_t filler) {
  Stamp stamp{writer, 0, sequence};
  std::string value = std::string(sizeof(stamp), '\0') + Bytes(sequence * 31 + writer, filler);
  std::memcpy(value.data(), &stamp, sizeof(stamp));
  stamp.crc = Crc32c(writer, std::as_bytes(std::span(value)).subspan(8));
  std::memcpy(value.data(), &stamp, sizeof(stamp));
  return value;
}

// Returns false if no writer wrote this value.
bool ReadStamp(std::string_view value, Stamp* stamp) {
  if (value.size() < sizeof(Stamp)) return false;
  std::memcpy(stamp, value.data(), sizeof(Stamp));
  return stamp->crc == Crc32c(stamp->writer, std::as_bytes(std::span(value)).subspan(8));
}

class Concurrency : public E2eTest, public testing::WithParamInterface<std::tuple<PoolKind, uint32_t>> {
 protected:
  std::unique_ptr<TestServer> Serve() const {
    ServerOptions options = Options(std::get<0>(GetParam()));
    options.shards = std::get<1>(GetParam());
    options.pool_size = 128 << 20;
    return E2eTest::Serve(std::get<0>(GetParam()), options);
  }
};

TEST_P(Concurrency, ClientsWithSeparateKeysDoNotAffectEachOther) {
  const auto server = Serve();
  std::atomic<uint64_t> wrong{0};
  AtOnce(4, [&](uint32_t number) {
    const auto client = Connect({.put_path = number % 2 == 0 ? PutPath::kAuto : PutPath::kReserve});
    Random random(number);
    std::map<std::string, std::string> model;
    for (int i = 0; i < 600; ++i) {
      const std::string key = std::to_string(number) + "/" + std::to_string(random.Uniform(20));
      const uint64_t dice = random.Uniform(10);
      if (dice < 5) {
        const auto value = client->Get(key);
        const auto found = model.find(key);
        const bool as_expected =
            found == model.end() ? value.status().code() == Code::kNotFound : value.ok() && *value == found->second;
        wrong += as_expected ? 0 : 1;
      } else if (dice < 9) {
        model[key] = Bytes(random.Next(), random.Uniform(3000));
        wrong += client->Put(key, model[key]).ok() ? 0 : 1;
      } else {
        const Code expected = model.erase(key) > 0 ? Code::kOk : Code::kNotFound;
        wrong += client->Delete(key).code() == expected ? 0 : 1;
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0U);
}

TEST_P(Concurrency, ReadersOfSharedKeysGetWholeValuesAndNoWriterGoesBack) {
  constexpr uint32_t kWriters = 3;
  constexpr uint32_t kReaders = 2;
  constexpr uint32_t kKeys = 4;
  const auto server = Serve();
  std::atomic<uint32_t> writing{kWriters};
  std::atomic<uint64_t> broken{0};
  std::atomic<uint64_t> went_back{0};
  std::atomic<uint64_t> failed{0};
  std::vector<std::thread> threads;
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      const auto client = Connect({.ack = writer % 2 == 0 ? Ack::kPersisted : Ack::kPlaced,
                                   .put_path = writer % 3 == 0 ? PutPath::kAuto : PutPath::kReserve});
      Random random(writer + 100);
      for (uint64_t sequence = 1; sequence <= 300; ++sequence) {
        const std::string key = "shared" + std::to_string(random.Uniform(kKeys));
        failed += client->Put(key, Stamped(writer, sequence, random.Uniform(5000))).ok() ? 0 : 1;
      }
      --writing;
    });
  }
  for (uint32_t reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([&, reader] {
      const auto client = Connect();
      // By key and writer: after a reader has seen a put, no earlier put of that writer shows again.
      std::array<std::array<uint64_t, kWriters>, kKeys> seen{};
      Random random(reader + 200);
      for (uint32_t after = 0; after < 20;) {
        if (writing == 0) ++after;
        std::this_thread::yield();
        const auto key = static_cast<uint32_t>(random.Uniform(kKeys));
        const auto value = client->Get("shared" + std::to_string(key));
        if (value.status().code() == Code::kNotFound && seen[key] == std::array<uint64_t, kWriters>{}) continue;
        Stamp stamp;
        if (!value.ok() || !ReadStamp(*value, &stamp) || stamp.writer >= kWriters) {
          ++broken;
          continue;
        }
        uint64_t& last = seen[key][stamp.writer];
        if (stamp.sequence < last) ++went_back;
        last = std::max(last, stamp.sequence);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken.load(), 0U);
  EXPECT_EQ(went_back.load(), 0U);
  EXPECT_EQ(failed.load(), 0U);
  const auto client = Connect();
  EXPECT_EQ(SettledCountersOf(*client).at("violations"), 0U);
}

TEST_P(Concurrency, DeletesAndPutsOfOneKeyLeaveItWholeOrAbsent) {
  const auto server = Serve();
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> deleted{0};
  AtOnce(3, [&](uint32_t number) {
    const auto client = Connect({.put_path = number == 0 ? PutPath::kReserve : PutPath::kAuto});
    Random random(number + 300);
    for (uint64_t i = 1; i <= 500; ++i) {
      Stamp stamp;
      const uint64_t dice = random.Uniform(3);
      if (dice == 0) {
        wrong += client->Put("key", Stamped(number, i, random.Uniform(2000))).ok() ? 0 : 1;
      } else if (dice == 1) {
        const Code code = client->Delete("key").code();
        deleted += code == Code::kOk ? 1 : 0;
        wrong += code == Code::kOk || code == Code::kNotFound ? 0 : 1;
      } else {
        const auto value = client->Get("key");
        const bool holds = value.ok() ? ReadStamp(*value, &stamp) : value.status().code() == Code::kNotFound;
        wrong += holds ? 0 : 1;
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0U);
  const auto client = Connect();
  EXPECT_EQ(SettledCountersOf(*client).at("deletes"), deleted.load());
}

INSTANTIATE_TEST_SUITE_P(
    E2e, Concurrency,
    testing::Values(std::tuple(PoolKind::kDram, 1U), std::tuple(PoolKind::kDram, 4U), std::tuple(PoolKind::kFile, 2U),
                    std::tuple(PoolKind::kPowerSafe, 1U), std::tuple(PoolKind::kPowerSafe, 3U),
                    std::tuple(PoolKind::kJournaled, 2U), std::tuple(PoolKind::kFronted, 2U)),
    [](const auto& tested) {
      return PoolName({std::get<0>(tested.param), 0}) + std::to_string(std::get<1>(tested.param)) + "Shards";
    });

}  // namespace
}  // namespace erda
