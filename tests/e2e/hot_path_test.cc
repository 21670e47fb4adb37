// The work of a warm client for each operation: no allocation on its thread. Sanitizers have their own operators, so
// the test does not run under them.
#ifndef ERDA_SANITIZED

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "e2e/fixture.h"

namespace {

thread_local uint64_t allocations = 0;  // the allocations of this thread

void* Allocate(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* AllocateAligned(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto to = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(to, (size + to - 1) / to * to)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return AllocateAligned(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return AllocateAligned(size, alignment); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}

namespace erda {
namespace {

class HotPath : public EveryPool {
 protected:
  static constexpr size_t kKeys = 200;

  HotPath() {
    for (size_t i = 0; i < kKeys; ++i) keys_.push_back("a key that is long enough " + std::to_string(i));
  }
  // Returns the allocations of `work` after it has run several times.
  template <class Work>
  static uint64_t AllocationsOf(Work&& work) {
    for (int i = 0; i < 5; ++i) work();
    const uint64_t before = allocations;
    for (int i = 0; i < 5; ++i) work();
    return allocations - before;
  }

  std::vector<std::string> keys_;
};

TEST_P(HotPath, AllocationsAreCounted) {
  EXPECT_EQ(AllocationsOf([this] { keys_.front() = std::string(100, 'x'); }), 5U);
}

TEST_P(HotPath, SynchronousCallsAllocateNothing) {
  const auto server = Serve();
  for (const PutPath path : {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    for (const uint32_t cache : {0U, 1024U}) {
      const auto client = Connect({.put_path = path, .cache_entries = cache});
      const std::string value(1000, 'v');
      std::array<std::byte, 2000> out;
      const uint64_t puts = AllocationsOf([&] {
        for (const std::string& key : keys_) ASSERT_TRUE(client->Put(key, value).ok());
      });
      EXPECT_EQ(puts, 0U);
      const uint64_t gets = AllocationsOf([&] {
        for (const std::string& key : keys_) ASSERT_EQ(client->Get(key, out).value(), value.size());
        ASSERT_EQ(client->Get("there is no such key", out).status().code(), Code::kNotFound);
      });
      EXPECT_EQ(gets, 0U) << "cache " << cache;
      auto buffer = client->MakeBuffer(2000);
      ASSERT_TRUE(buffer.ok());
      const uint64_t in_buffer = AllocationsOf([&] {
        for (const std::string& key : keys_) ASSERT_TRUE(client->Put(key, *buffer, 1000).ok());
        for (const std::string& key : keys_) ASSERT_EQ(client->Get(key, *buffer).value(), 1000U);
      });
      EXPECT_EQ(in_buffer, 0U);
    }
  }
}

// As many operations as possible are in flight, and callbacks start the next ones.
TEST_P(HotPath, AsynchronousCallsAllocateNothing) {
  const auto server = Serve();
  for (const PutPath path : {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    const auto client = Connect({.put_path = path});
    const std::string value(300, 'v');
    struct Run {
      Client& client;
      const std::vector<std::string>& keys;
      const std::string& value;
      size_t next = 0;
      size_t done = 0;
      void Start() {
        const size_t i = next++;
        const Status started =
            i % 2 == 0 ? client.PutAsync(keys[i % kKeys], value, [this](const Status& status) { End(status); })
                       : client.GetAsync(keys[(i - 1) % kKeys], [this](const auto& got) { End(got.status()); });
        ASSERT_TRUE(started.ok()) << started.ToString();
      }
      void End(const Status& status) {
        ASSERT_TRUE(status.ok()) << status.ToString();
        ++done;
        if (next < 4 * kKeys) Start();
      }
    };
    const uint64_t all = AllocationsOf([&] {
      Run run{*client, keys_, value};
      for (int i = 0; i < 64; ++i) run.Start();
      while (run.done < 4 * kKeys) client->Poll();
    });
    EXPECT_EQ(all, 0U);
  }
}

TEST_P(HotPath, MultiGetAllocatesOnlyItsResult) {
  const auto server = Serve();
  const auto client = Connect({.put_path = PutPath::kInline});
  const std::string value(1000, 'v');
  for (const std::string& key : keys_) ASSERT_TRUE(client->Put(key, value).ok());
  const std::vector<std::string_view> keys(keys_.begin(), keys_.end());
  const uint64_t all = AllocationsOf([&] {
    const auto results = client->MultiGet(keys);
    for (const auto& result : results) ASSERT_EQ(result.value(), value);
  });
  EXPECT_EQ(all, 5 * (kKeys + 1)) << "the vector, and a string for each key";
}

TEST_P(HotPath, MultiPutAllocatesOnlyItsResult) {
  const auto server = Serve();
  const std::string value(1000, 'v');
  std::vector<KeyValue> puts;
  for (const std::string& key : keys_) puts.push_back({key, value});
  for (const PutPath path : {PutPath::kInline, PutPath::kReserve, PutPath::kDelegate}) {
    const auto client = Connect({.put_path = path});
    const uint64_t all = AllocationsOf([&] {
      for (const auto& result : client->MultiPut(puts)) ASSERT_TRUE(result.ok()) << result.status().ToString();
    });
    EXPECT_EQ(all, 5U) << "the vector";
  }
}

INSTANTIATE_TEST_SUITE_P(E2e, HotPath, kEveryPool, PoolName);

}  // namespace
}  // namespace erda

#endif  // ERDA_SANITIZED
