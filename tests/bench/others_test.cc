// The other systems as stores of the benchmark: the real servers and libraries.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/floors/temporary_folder.h"
#include "bench/others/open_store.h"
#include "paths.h"
#include "programs/process.h"

namespace {

std::atomic<uint64_t> syncs = 0;  // Of files of this process, by any library.

}  // namespace

// The libraries call these in place of the C library's.
extern "C" {
[[gnu::visibility("default")]] int fdatasync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
[[gnu::visibility("default")]] int msync(void* begin, size_t bytes, int flags) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_msync, begin, bytes, flags));
}
}

namespace erda::bench {
namespace {

using Words = std::vector<std::string>;

struct Kind {
  std::string_view name;
  std::string_view scheme;
  std::string_view options;  // Of the address.
  bool is_server;
  bool syncs = false;  // A put returns when the disk has it.
};
constexpr Kind kRedis = {"Redis", "redis:", "", true};
constexpr Kind kMemcached = {"Memcached", "memcached:", "", true};
constexpr Kind kLmdb = {"Lmdb", "lmdb:", "", false, true};
constexpr Kind kLmdbMapSync = {"LmdbMapSync", "lmdb:", ",writemap,size=64M", false, true};
constexpr Kind kLmdbNoSync = {"LmdbNoSync", "lmdb:", ",nosync", false};
constexpr Kind kLmdbWriteMap = {"LmdbWriteMap", "lmdb:", ",nosync,writemap,size=64M", false};
constexpr Kind kTkrzw = {"Tkrzw", "tkrzw:", "", false};
constexpr Kind kRocksdb = {"Rocksdb", "rocksdb:", "", false};
constexpr Kind kRocksdbSync = {"RocksdbSync", "rocksdb:", ",sync,cache=8M", false, true};

std::string Got(Store& store, std::string_view key) {
  std::string buffer(1 << 21, '\0');
  const auto size = store.Get(key, std::as_writable_bytes(std::span(buffer)));
  return size.ok() ? buffer.substr(0, *size) : size.status().ToString();
}

class OthersTest : public testing::TestWithParam<Kind> {
 protected:
  OthersTest() { EXPECT_NE(folder_.path(), ""); }

  [[nodiscard]] static bool IsRedis() { return GetParam().name == kRedis.name; }
  [[nodiscard]] std::string Path() const { return folder_.path() + "/socket"; }
  [[nodiscard]] std::string Address() const {
    return fmt::format("{}{}{}", GetParam().scheme, Path(), GetParam().options);
  }

  // Does nothing for a library. `full`: the server takes no put.
  void StartServer(const Words& more = {}, bool full = false) {
    if (!GetParam().is_server) return;
    Words command = IsRedis() ? Words{"/usr/bin/redis-server", "--port", "0", "--unixsocket", Path(), "--save", ""}
                              : Words{"/usr/bin/memcached", "-s", Path(), "-t", "2"};
    if (IsRedis()) {
      command.insert(command.end(), {"--dir", folder_.path()});
    } else if (geteuid() == 0) {
      command.insert(command.end(), {"-u", "root"});
    }
    command.insert(command.end(), more.begin(), more.end());
    server_ = std::make_unique<Process>(command);
    std::string said;
    const bool ready = WaitUntil([&] {
      auto store = OpenStore(Address(), {});
      if (!store.ok()) {
        said = store.status().ToString();
        return false;
      }
      const Status put = (*store)->Put("ready", "yes");
      said = put.ToString();
      return put.code() == (full ? Code::kResourceExhausted : Code::kOk) || !server_->Running();
    });
    EXPECT_TRUE(ready && server_->Running()) << said << server_->out() << server_->err();
  }
  void KillServer() {
    server_->Signal(SIGKILL);
    EXPECT_EQ(server_->Wait().code, 128 + SIGKILL);
  }

  [[nodiscard]] std::unique_ptr<Store> Open(uint32_t depth = 64) const {
    ClientOptions options;
    options.queue_depth = depth;
    auto store = OpenStore(Address(), options);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return store.ok() ? *std::move(store) : nullptr;
  }

  // Returns the number of times that Redis has read from its clients.
  [[nodiscard]] uint64_t RedisReads() const {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    EXPECT_LT(Path().copy(address.sun_path, sizeof(address.sun_path)), sizeof(address.sun_path));
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    constexpr std::string_view kQuestion = "INFO stats\r\n";
    EXPECT_EQ(::write(socket, kQuestion.data(), kQuestion.size()), static_cast<ssize_t>(kQuestion.size()));
    constexpr std::string_view kName = "total_reads_processed:";
    std::string said;
    size_t at = std::string::npos;
    for (char part[4096]; at == std::string::npos || said.find('\n', at) == std::string::npos; at = said.find(kName)) {
      const ssize_t size = ::read(socket, part, sizeof(part));
      if (size <= 0) break;
      said.append(part, static_cast<size_t>(size));
    }
    ::close(socket);
    EXPECT_NE(at, std::string::npos) << said;
    return at == std::string::npos ? 0 : std::stoull(said.substr(at + kName.size()));
  }

 private:
  const floors::TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
};

class OtherServersTest : public OthersTest {};
class OtherLibrariesTest : public OthersTest {};
class OtherLibrariesNoSanitizerTest : public OthersTest {};

std::string NameOfKind(const testing::TestParamInfo<Kind>& test) { return std::string(test.param.name); }
constexpr auto kServers = {kRedis, kMemcached};
constexpr auto kLibraries = {kLmdb, kLmdbMapSync, kLmdbNoSync, kLmdbWriteMap, kTkrzw, kRocksdb, kRocksdbSync};
INSTANTIATE_TEST_SUITE_P(Servers, OthersTest, testing::ValuesIn(kServers), NameOfKind);
INSTANTIATE_TEST_SUITE_P(Libraries, OthersTest, testing::ValuesIn(kLibraries), NameOfKind);
INSTANTIATE_TEST_SUITE_P(Servers, OtherServersTest, testing::ValuesIn(kServers), NameOfKind);
INSTANTIATE_TEST_SUITE_P(Libraries, OtherLibrariesTest, testing::ValuesIn(kLibraries), NameOfKind);
INSTANTIATE_TEST_SUITE_P(Libraries, OtherLibrariesNoSanitizerTest, testing::ValuesIn(kLibraries), NameOfKind);

TEST_P(OthersTest, GetReturnsThePutValue) {
  StartServer();
  const auto store = Open();
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i);
  for (const std::string& value : {std::string("value"), std::string(), std::string("a\r\nEND\r\n$3\r\n"), bytes}) {
    ASSERT_TRUE(store->Put("key", value).ok());
    EXPECT_EQ(Got(*store, "key"), value);
  }
  std::string small(4, 'x');
  ASSERT_TRUE(store->Put("key", "value").ok());
  EXPECT_EQ(store->Get("key", std::as_writable_bytes(std::span(small))).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(small, "xxxx");
  EXPECT_EQ(Got(*store, "another"), "not found");
}

TEST_P(OthersTest, EachOfManyGetsReturnsItsValue) {
  StartServer();
  constexpr int kCount = 64;
  const auto store = Open(kCount);
  int puts = 0;
  for (int i = 0; i < kCount; i += 2) {  // The odd keys are absent.
    const std::string value(static_cast<size_t>(i) * 300, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(
        store->PutAsync("key" + std::to_string(i), value, [&](const Status& status) { puts += status.ok(); }).ok());
  }
  while (puts < kCount / 2) ASSERT_GT(store->Poll(), 0U);
  std::vector<int> order;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(store
                    ->GetAsync("key" + std::to_string(i),
                               [&, i](const Result<std::string_view>& value) {
                                 order.push_back(i);
                                 if (i % 2 == 1) {
                                   EXPECT_EQ(value.status().code(), Code::kNotFound) << i;
                                   return;
                                 }
                                 ASSERT_TRUE(value.ok()) << i;
                                 EXPECT_EQ(*value,
                                           std::string(static_cast<size_t>(i) * 300, static_cast<char>('a' + i % 26)));
                               })
                    .ok());
  }
  while (order.size() < kCount) ASSERT_GT(store->Poll(), 0U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(store->Poll(), 0U);
}

TEST_P(OthersTest, BatchMayHaveOneKeyManyTimes) {
  StartServer();
  const auto store = Open();
  ASSERT_TRUE(store->Put("a", "1").ok());
  ASSERT_TRUE(store->Put("b", "2").ok());
  std::string found;
  for (const char* key : {"a", "b", "a", "none", "a", "none", "b"}) {
    ASSERT_TRUE(
        store
            ->GetAsync(key,
                       [&](const Result<std::string_view>& value) { found += value.ok() ? std::string(*value) : "-"; })
            .ok());
  }
  while (found.size() < 7) ASSERT_GT(store->Poll(), 0U);
  EXPECT_EQ(found, "121-1-2");
}

TEST_P(OthersTest, TakesNoMoreThanItsDepth) {
  StartServer();
  const auto store = Open(2);
  int done = 0;
  const auto count = [&done](const Status&) { ++done; };
  EXPECT_TRUE(store->PutAsync("a", "1", count).ok());
  EXPECT_TRUE(store->PutAsync("b", "1", count).ok());
  EXPECT_EQ(store->PutAsync("c", "1", count).code(), Code::kResourceExhausted);
  EXPECT_EQ(store->GetAsync("c", [](const Result<std::string_view>&) { FAIL(); }).code(), Code::kResourceExhausted);
  while (done < 2) ASSERT_GT(store->Poll(), 0U);
  EXPECT_TRUE(store->PutAsync("c", "1", count).ok());
  while (done < 3) ASSERT_GT(store->Poll(), 0U);
  EXPECT_EQ(Got(*store, "c"), "1");
}

// Each callback starts the next operation. Some values are larger than the libraries' buffers: they are half sent while
// the store waits for answers to others.
TEST_P(OthersTest, CallbacksMayStartOperations) {
  StartServer();
  constexpr int kDepth = 32;
  constexpr int kTotal = 6000;
  struct Loop {
    Store* store = nullptr;
    int started = 0;
    int done = 0;
    std::string value;

    void Next() {
      if (started == kTotal) return;
      const int number = started++;
      const std::string key = "key" + std::to_string(number % 50);
      const auto finish = [this](const Status& status) {
        EXPECT_TRUE(status.ok() || status.code() == Code::kNotFound) << status.ToString();
        ++done;
        Next();
      };
      const Status status =
          number % 4 == 3
              ? store->GetAsync(key, [finish](const Result<std::string_view>& got) { finish(got.status()); })
              : store->PutAsync(key, std::string_view(value).substr(0, static_cast<size_t>(number) * 37 % 9000),
                                finish);
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
  };
  const auto store = Open(kDepth);
  Loop loop{.store = store.get(), .value = std::string(9000, 'v')};
  for (int i = 0; i < kDepth; ++i) loop.Next();
  while (loop.done < kTotal) ASSERT_GT(store->Poll(), 0U);
}

TEST_P(OthersTest, MuchInFlightDoesNotBlockBothEnds) {
  StartServer();
  constexpr int kCount = 256;
  const auto store = Open(kCount);
  const std::string value(32 << 10, 'v');
  for (int round = 0; round < 3; ++round) {
    int done = 0;
    for (int i = 0; i < kCount; ++i) {
      const std::string key = "key" + std::to_string(i / 2);
      const Status status = i % 2 == 0 ? store->PutAsync(key, value, [&](const Status& put) { done += put.ok(); })
                                       : store->GetAsync(key, [&](const Result<std::string_view>& got) {
                                           ++done;
                                           EXPECT_EQ(got.ok() ? std::string(*got) : value, value);
                                         });
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    while (done < kCount) ASSERT_GT(store->Poll(), 0U);
  }
}

TEST_P(OtherServersTest, RefusedPutFailsAndTheOthersSucceed) {
  // Redis has no memory for any value. memcached takes no value of the second one's size.
  StartServer();
  const auto store = Open();
  std::string large(1 << 20, 'x');
  if (IsRedis()) {
    KillServer();
    StartServer({"--maxmemory", "1"}, /*full=*/true);
    EXPECT_EQ(Open()->Put("key", "value").code(), Code::kResourceExhausted);
    return;
  }
  large.resize(store->max_value_bytes(5));
  EXPECT_TRUE(store->Put("large", large).ok());
  EXPECT_EQ(Got(*store, "large"), large);
  large.append(1000, 'x');
  std::vector<Code> codes;
  for (const auto& [key, value] :
       {std::pair("before", "1"), std::pair("large", large.c_str()), std::pair("after", "2")}) {
    ASSERT_TRUE(store->PutAsync(key, value, [&](const Status& status) { codes.push_back(status.code()); }).ok());
  }
  while (codes.size() < 3) ASSERT_GT(store->Poll(), 0U);
  EXPECT_EQ(codes[0], Code::kOk);
  EXPECT_NE(codes[1], Code::kOk);
  EXPECT_EQ(codes[2], Code::kOk);
  EXPECT_EQ(Got(*store, "before") + Got(*store, "after"), "12");
  EXPECT_FALSE(store->Put("large", large).ok());
}

TEST_P(OtherServersTest, LostServerEndsOperationsInFlightAndLaterOnes) {
  StartServer();
  const auto store = Open();
  ASSERT_TRUE(store->Put("key", "value").ok());
  std::vector<Status> ended;
  ASSERT_TRUE(store->PutAsync("a", "1", [&](const Status& status) { ended.push_back(status); }).ok());
  ASSERT_TRUE(store->GetAsync("key", [&](const Result<std::string_view>& got) { ended.push_back(got.status()); }).ok());
  KillServer();
  while (ended.size() < 2) ASSERT_GT(store->Poll(), 0U);
  for (const Status& status : ended) EXPECT_EQ(status.code(), Code::kUnavailable) << status.ToString();
  EXPECT_EQ(store->Put("key", "value").code(), Code::kUnavailable);
  EXPECT_EQ(Got(*store, "key").substr(0, 11), "unavailable");
}

// The values have the size that hiredis reads at a time, so that each reply comes in parts.
TEST_P(OtherServersTest, OperationsInFlightTravelTogether) {
  if (!IsRedis()) return;  // memcached does not count the bytes that it receives.
  StartServer();
  constexpr uint64_t kDepth = 16;
  constexpr uint64_t kTotal = 100 * kDepth;
  const auto store = Open(kDepth);
  ASSERT_TRUE(store->Put("key", std::string(16 << 10, 'v')).ok());
  const uint64_t before = RedisReads();
  uint64_t started = 0;
  uint64_t done = 0;
  std::function<void()> next = [&] {
    if (started == kTotal) return;
    ++started;
    EXPECT_TRUE(store
                    ->GetAsync("key",
                               [&](const Result<std::string_view>& value) {
                                 EXPECT_TRUE(value.ok());
                                 ++done;
                                 next();
                               })
                    .ok());
  };
  for (uint64_t i = 0; i < kDepth; ++i) next();
  while (done < kTotal) ASSERT_GT(store->Poll(), 0U);
  EXPECT_LT(RedisReads() - before, kTotal / 4);
}

TEST_P(OtherServersTest, ConnectingWithoutAServerFails) {
  const auto store = OpenStore(Address(), {});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kUnavailable) << store.status().ToString();
}

TEST_P(OtherLibrariesTest, LargeValuesComeBackWhole) {
  const auto store = Open();
  for (const size_t size : {size_t{4096}, size_t{256} << 10, size_t{1} << 20}) {
    std::string value;
    for (size_t i = 0; i < size; ++i) value += static_cast<char>(i * 31 >> 3);
    const std::string key = "key" + std::to_string(size);
    ASSERT_TRUE(store->Put(key, value).ok());
    EXPECT_EQ(Got(*store, key), value);
    bool found = false;
    ASSERT_TRUE(
        store->GetAsync(key, [&](const Result<std::string_view>& got) { found = got.ok() && *got == value; }).ok());
    EXPECT_EQ(store->Poll(), 1U);
    EXPECT_TRUE(found);
  }
  EXPECT_GE(store->max_value_bytes(24), size_t{1} << 20);
}

TEST_P(OtherLibrariesTest, UpdatesReplaceValuesOfAnySize) {
  const auto store = Open();
  for (const size_t size : {100, 10, 1000, 0, 100'000, 100}) {
    const std::string value(size, static_cast<char>('a' + size % 26));
    ASSERT_TRUE(store->Put("key", value).ok());
    EXPECT_EQ(Got(*store, "key"), value);
  }
}

TEST_P(OtherLibrariesTest, StoresOfOneProcessShareTheirData) {
  const auto one = Open();
  const auto other = Open();
  ASSERT_TRUE(one->Put("key", "1").ok());
  EXPECT_EQ(Got(*other, "key"), "1");
  ASSERT_TRUE(other->Put("key", "2").ok());
  EXPECT_EQ(Got(*one, "key"), "2");
}

// The libraries have no sanitizer: it would not see how they order their threads.
TEST_P(OtherLibrariesNoSanitizerTest, ThreadsUseTheirStoresAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  std::vector<std::unique_ptr<Store>> stores;
  for (int i = 0; i < kThreads; ++i) stores.push_back(Open());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&store = *stores[static_cast<size_t>(i)], i] {
      for (int n = 0; n < kEach; ++n) {
        const std::string key = fmt::format("{}-{}", i, n % 10);
        EXPECT_TRUE(store.Put(key, std::to_string(n)).ok());
        EXPECT_EQ(Got(store, key), std::to_string(n));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(Got(*stores[0], fmt::format("{}-3", i)), "93");
}

TEST_P(OtherLibrariesTest, DataOutlivesItsStores) {
  ASSERT_TRUE(Open()->Put("key", "value").ok());
  EXPECT_EQ(Got(*Open(), "key"), "value");
}

// LMDB's file may be used by many processes, the others' by one.
TEST_P(OtherLibrariesTest, AnotherProcessSharesTheFileOrIsRefused) {
  const auto store = Open();
  ASSERT_TRUE(store->Put("key", "value").ok());
  const Words command = {BinDir() + "/erda-ycsb", "-a", Address(),  "-w",     "F", "--records", "10",
                         "--operations",          "20", "--verify", "--wait", "0s"};
  const auto ended = Process(command).Wait();
  if (GetParam().scheme == kLmdb.scheme) {
    EXPECT_EQ(ended.code, 0) << ended.err;
  } else {
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_NE(ended.err.find(Path()), std::string::npos) << ended.err;
  }
  EXPECT_EQ(Got(*store, "key"), "value");
}

TEST_P(OtherLibrariesTest, KilledProcessLeavesWholeRecords) {
  const auto ycsb = [this](const Words& more) {
    Words command = {BinDir() + "/erda-ycsb", "-a", Address(), "--records", "100", "--quiet"};
    command.insert(command.end(), more.begin(), more.end());
    return Process(command);
  };
  EXPECT_EQ(ycsb({"--load-only"}).Wait().code, 0);
  Process killed = ycsb({"-w", "update", "--no-load", "--seconds", "60"});
  EXPECT_TRUE(WaitUntil([&killed] { return killed.cpu_time() > std::chrono::milliseconds(100); }));
  killed.Signal(SIGKILL);
  EXPECT_EQ(killed.Wait().code, 128 + SIGKILL);
  const auto ended =
      ycsb({"-w", "C", "--no-load", "--distribution", "uniform", "--operations", "2000", "--verify"}).Wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out.find("found nothing"), std::string::npos) << ended.out;
}

TEST_P(OtherLibrariesTest, PathThatCannotBeOpenedFails) {
  const auto store = OpenStore(fmt::format("{}{}/none/such/data", GetParam().scheme, Path()), {});
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.status().message().find("none/such"), std::string_view::npos) << store.status().ToString();
}

TEST_P(OtherLibrariesTest, UnknownOptionsOfAnAddressAreRefused) {
  for (const std::string_view rest : {"", ",nosync", "/data,fast", "/data,size", "/data,size=", "/data,size=0",
                                      "/data,size=x", "/data,cache=-1", "/data,nosync=1", "/data,sync=1"}) {
    const auto store = OpenStore(fmt::format("{}{}", GetParam().scheme, rest), {});
    ASSERT_FALSE(store.ok()) << rest;
    EXPECT_EQ(store.status().code(), Code::kInvalidArgument) << rest;
  }
}

TEST_P(OtherLibrariesNoSanitizerTest, EachPutWaitsForTheDiskOrNoneDoes) {
  constexpr uint64_t kPuts = 10;
  const auto store = Open();
  ASSERT_TRUE(store->Put("first", "value").ok());
  for (uint64_t i = 0; i < kPuts; ++i) {
    const uint64_t before_put = syncs;
    ASSERT_TRUE(store->Put("key", std::to_string(i)).ok());
    EXPECT_EQ(syncs > before_put, GetParam().syncs) << i;
  }
}

// Puts in flight together share their sync, but for a second one of the library.
TEST_P(OtherLibrariesNoSanitizerTest, PutsInFlightShareASync) {
  constexpr uint64_t kPuts = 64;
  if (!GetParam().syncs) return;
  const auto store = Open(kPuts);
  ASSERT_TRUE(store->Put("first", "value").ok());
  const uint64_t before = syncs;
  uint64_t done = 0;
  for (uint64_t i = 0; i < kPuts; ++i) {
    const auto count = [&](const Status& status) { done += status.ok(); };
    ASSERT_TRUE(store->PutAsync("key" + std::to_string(i), "value", count).ok());
  }
  while (done < kPuts) ASSERT_GT(store->Poll(), 0U);
  EXPECT_GT(syncs, before);
  EXPECT_LE(syncs, before + 2);
}

// The full map refuses puts, also those that share the transaction of the one that did not fit. None counts as done.
TEST(LmdbStoreTest, FullMapRefusesPutsAndSaysWhatToDo) {
  const floors::TemporaryFolder folder;
  for (const std::string_view more : {"", ",writemap"}) {
    ClientOptions options;
    options.queue_depth = 8;
    const std::string path = fmt::format("{}/data{}", folder.path(), more.size());
    auto opened = OpenStore(fmt::format("lmdb:{},nosync,size=1M{}", path, more), options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    Store& store = **opened;
    ASSERT_TRUE(store.Put("first", "value").ok());
    std::string large(100'000, 'x');
    Status last;
    for (int i = 0; i < 20 && last.ok(); ++i) last = store.Put("key" + std::to_string(i), large);
    EXPECT_EQ(last.code(), Code::kResourceExhausted) << last.ToString();
    EXPECT_NE(last.message().find(fmt::format("lmdb:{},size=", path)), std::string_view::npos) << last.ToString();

    std::vector<Code> codes;
    const auto keep = [&codes](const Status& status) { codes.push_back(status.code()); };
    ASSERT_TRUE(store.PutAsync("small", "1", keep).ok());
    for (int i = 0; i < 7; ++i) ASSERT_TRUE(store.PutAsync("large" + std::to_string(i), large, keep).ok());
    EXPECT_EQ(store.Poll(), 8U);
    EXPECT_EQ(codes, std::vector<Code>(8, Code::kResourceExhausted));
    EXPECT_EQ(Got(store, "small"), "not found");
    EXPECT_EQ(Got(store, "first"), "value");
    EXPECT_EQ(Got(store, "key0"), large);
  }
}

TEST(OpenStore, AddressOfAnUnknownSchemeIsRefused) {
  const auto store = OpenStore("tape:/dev/st0", {});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kInvalidArgument);
  EXPECT_NE(store.status().message().find("tape:"), std::string_view::npos) << store.status().ToString();
}

}  // namespace
}  // namespace erda::bench
