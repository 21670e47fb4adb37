// Pools that are overwritten many times.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "e2e/fixture.h"

namespace erda {
namespace {

constexpr uint64_t kPoolBytes = 2 << 20;
constexpr uint64_t kKeysOfAWriter = 250;
constexpr uint64_t kTimesOver = 20;
constexpr uint64_t kPutsAtATime = 16;

using Model = std::map<std::string, uint64_t>;  // the number of each key's value

// A value names its key and its number. The other bytes follow from the number.
std::string ValueOf(const std::string& key, uint64_t sequence) {
  return key + "=" + std::to_string(sequence) + "=" + Bytes(sequence, 500 + sequence * 7 % 1500);
}
// Returns 0 if nobody put this value under this key.
uint64_t SequenceOf(const std::string& key, const std::string& value) {
  if (!value.starts_with(key + "=")) return 0;
  const uint64_t sequence = std::strtoull(value.c_str() + key.size() + 1, nullptr, 10);
  return value == ValueOf(key, sequence) ? sequence : 0;
}
std::string Key(uint64_t writer, uint64_t i) { return std::to_string(writer) + "/" + std::to_string(i); }

class Cleaning : public EveryPool {
 protected:
  [[nodiscard]] std::unique_ptr<TestServer> Serve() const {
    ServerOptions options = Options();
    options.pool_size = kPoolBytes;
    options.region_size = 64 << 10;
    options.segment_size = 16 << 10;
    options.index_entries = 2048;
    return EveryPool::Serve(options);
  }
  // Puts `bytes` bytes in all, several values at a time.
  static void Write(Client& client, uint64_t writer, uint64_t bytes, Model* model, uint64_t* refused) {
    Random random(writer);
    for (uint64_t written = 0; written < bytes;) {
      const uint64_t first = random.Uniform(kKeysOfAWriter);
      for (uint64_t i = 0; i < kPutsAtATime; ++i) {
        const std::string key = Key(writer, (first + i) % kKeysOfAWriter);
        const uint64_t sequence = ++(*model)[key];
        const std::string value = ValueOf(key, sequence);
        written += value.size();
        const Status started =
            client.PutAsync(key, value, [refused](const Status& put) { *refused += put.ok() ? 0 : 1; });
        *refused += started.ok() ? 0 : 1;
      }
      *refused += client.Drain().ok() ? 0 : 1;
    }
  }
  static void ExpectAll(Client& client, const Model& model) {
    for (const auto& [key, sequence] : model) {
      const auto value = client.Get(key);
      ASSERT_TRUE(value.ok()) << key << ": " << value.status().ToString();
      ASSERT_EQ(SequenceOf(key, *value), sequence) << key;
    }
  }
};

TEST_P(Cleaning, EndlessWritesNeverHideTheNewestValueFromReaders) {
  const auto server = Serve();
  constexpr uint64_t kWriters = 3;
  std::vector<Model> models(kWriters);
  std::atomic<uint64_t> writing{kWriters};
  std::vector<uint64_t> refused(kWriters);
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> read{0};
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      const auto client = Connect({.ack = writer == 1 ? Ack::kPlaced : Ack::kPersisted,
                                   .put_path = writer == 0 ? PutPath::kInline : PutPath::kReserve});
      Write(*client, writer, kTimesOver * kPoolBytes / kWriters, &models[writer], &refused[writer]);
      --writing;
    });
  }
  for (uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader] {
      const auto client = Connect();
      Random random(reader + 100);
      std::map<std::string, uint64_t> seen;
      while (writing > 0) {
        std::this_thread::yield();
        const std::string key = Key(random.Uniform(kWriters), random.Uniform(kKeysOfAWriter));
        const auto value = client->Get(key);
        uint64_t& last = seen[key];
        if (value.status().code() == Code::kNotFound && last == 0) continue;
        const uint64_t sequence = value.ok() ? SequenceOf(key, *value) : 0;
        wrong += sequence == 0 || sequence < last ? 1 : 0;
        last = sequence;
        ++read;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, std::vector<uint64_t>(kWriters));
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_GT(read.load(), 0U);
  const auto client = Connect();
  for (const auto& model : models) ExpectAll(*client, model);
  const Counters counters = SettledCountersOf(*client);
  // The cleaner cleaned each region many times.
  EXPECT_GT(counters.at("clean_regions"), (kTimesOver - 2) * kPoolBytes / (64 << 10));
  EXPECT_GT(counters.at("clean_moves"), 0U);
  EXPECT_EQ(counters.at("violations"), 0U);
  EXPECT_EQ(counters.at("damaged_keys"), 0U);
}

// The knowledge of these clients about the regions is old.
TEST_P(Cleaning, ClientsThatSleptGetAndPutCorrectlyAtOnce) {
  const auto server = Serve();
  const auto gets = Connect();
  const auto places = Connect({.ack = Ack::kPlaced, .put_path = PutPath::kReserve});
  const auto persists = Connect({.put_path = PutPath::kReserve});
  const auto deletes = Connect();
  const std::vector<Client*> sleepers = {gets.get(), places.get(), persists.get(), deletes.get()};
  const auto writer = Connect();
  Model model;
  uint64_t refused = 0;
  Write(*writer, 1, kPoolBytes / 3, &model, &refused);
  for (const std::string key : {"kept", "placed", "persisted", "deleted"}) {
    ASSERT_TRUE(writer->Put(key, ValueOf(key, 1)).ok());
    model[key] = 1;
  }
  for (Client* sleeper : sleepers) ExpectAll(*sleeper, model);
  for (int round = 0; round < 3; ++round) {
    const uint64_t cleaned = CountersOf(*writer).at("clean_regions");
    Write(*writer, 1, 5 * kPoolBytes, &model, &refused);
    ASSERT_EQ(refused, 0U);
    EXPECT_GT(CountersOf(*writer).at("clean_regions"), cleaned + 4 * kPoolBytes / (64 << 10));

    ASSERT_TRUE(places->Put("placed", ValueOf("placed", 2)).ok());
    ASSERT_TRUE(persists->Put("persisted", ValueOf("persisted", 2)).ok());
    ASSERT_TRUE(deletes->Delete("deleted").ok());
    model["placed"] = model["persisted"] = 2;
    model.erase("deleted");
    ExpectAll(*gets, model);
    EXPECT_EQ(gets->Get("deleted").status().code(), Code::kNotFound);
    ASSERT_TRUE(deletes->Put("deleted", ValueOf("deleted", 3)).ok());
    model["deleted"] = 3;
    for (Client* sleeper : sleepers) ExpectAll(*sleeper, model);
  }
}

TEST_P(Cleaning, PutsWaitWhileTheCleanerMakesRoom) {
  const auto server = Serve();
  const auto client = Connect();
  constexpr uint64_t kFirst = 200;  // large values
  uint64_t keys = 0;
  Status put;
  while (put.ok()) {
    put = client->Put(Key(1, keys), ValueOf(Key(1, keys), kFirst));
    if (put.ok()) ++keys;
  }
  ExpectFails(put, Code::kResourceExhausted, "log");
  for (uint64_t i = 0; i < keys; i += 2) ASSERT_TRUE(client->Delete(Key(1, i)).ok());
  for (uint64_t round = kFirst + 1; round < kFirst + 5; ++round) {
    for (uint64_t i = 0; i < keys; i += 4) {
      const Status again = client->Put(Key(1, i), ValueOf(Key(1, i), round));
      ASSERT_TRUE(again.ok()) << i << ": " << again.ToString();
    }
  }
  EXPECT_GT(CountersOf(*client).at("puts_delayed"), 0U);
  Model model;
  for (uint64_t i = 1; i < keys; i += 2) model[Key(1, i)] = kFirst;
  for (uint64_t i = 0; i < keys; i += 4) model[Key(1, i)] = kFirst + 4;
  ExpectAll(*client, model);
}

// The pool must outlive the server.
class CleaningOfFiles : public Cleaning {};

TEST_P(CleaningOfFiles, CleaningContinuesAfterARestart) {
  Model model;
  uint64_t refused = 0;
  for (int round = 0; round < 3; ++round) {
    const auto server = Serve();
    const auto client = Connect();
    ExpectAll(*client, model);
    Write(*client, 1, 4 * kPoolBytes, &model, &refused);
    ExpectAll(*client, model);
    EXPECT_GT(CountersOf(*client).at("clean_regions"), 2 * kPoolBytes / (64 << 10));
  }
  EXPECT_EQ(refused, 0U);
}

INSTANTIATE_TEST_SUITE_P(E2e, Cleaning, kEveryPool, PoolName);
INSTANTIATE_TEST_SUITE_P(E2e, CleaningOfFiles,
                         testing::Values(PoolKind::kFile, PoolKind::kPowerSafe, PoolKind::kJournaled,
                                         PoolKind::kFronted),
                         PoolName);

}  // namespace
}  // namespace erda
