#include "bench/micro/shm_operations.h"

#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "bench/micro/fixed_pool.h"
#include "bench/micro/inputs.h"
#include "bench/micro/shm_store.h"

namespace erda::micro {

namespace {

// Enough rounds for any operation: each one is a Poll of the client and one of the shard.
constexpr int kRoundsMost = 100;
constexpr uint32_t kCachedKeys = 65536;  // The default of ClientOptions.

// Puts values of one size, some at a time.
class ShmPut {
 public:
  static Result<std::unique_ptr<ShmPut>> Make(size_t bytes, uint32_t at_once) {
    auto store = ShmStore::Make(kCachedKeys);
    if (!store.ok()) return store.status();
    return std::make_unique<ShmPut>(bytes, at_once, *std::move(store));
  }
  ShmPut(size_t bytes, uint32_t at_once, std::unique_ptr<ShmStore> store)
      : value_(ValueOf(bytes)), at_once_(at_once), store_(std::move(store)) {}

  // Does as a synchronous call, which polls until its operation has ended. Between two of its Polls the shard polls.
  void Run() {
    Client& client = store_->client();
    ended_ = 0;
    for (uint32_t i = 0; i < at_once_; ++i) {
      const Status started = client.PutAsync(keys_.Next(), value_, [this](const Status& status) {
        failures_ += status.ok() ? 0 : 1;
        ++ended_;
      });
      failures_ += started.ok() ? 0 : 1;
    }
    for (int rounds = 0; rounds < kRoundsMost; ++rounds) {
      client.Poll();
      if (ended_ == at_once_) return;
      store_->Serve();
    }
    ++failures_;
  }
  [[nodiscard]] Status Check() const {
    if (failures_ != 0) return WrongUnless(false);
    for (const std::string& key : keys_.all()) {
      const auto got = store_->client().Get(key);
      if (!got.ok()) return got.status();
      if (*got != value_) return WrongUnless(false);
    }
    return {};
  }
  [[nodiscard]] std::unique_ptr<ShmStore> TakeStore() && { return std::move(store_); }

 private:
  const std::string value_;
  const uint32_t at_once_;
  Keys keys_;
  std::unique_ptr<ShmStore> store_;
  uint32_t ended_ = 0;
  uint64_t failures_ = 0;
};

// Gets values of one size, whose locations the client knows or not.
class ShmGet {
 public:
  static Result<std::unique_ptr<ShmGet>> Make(size_t bytes, uint32_t cache_entries) {
    auto store = ShmStore::Make(cache_entries);
    if (!store.ok()) return store.status();
    ShmPut put(bytes, 1, *std::move(store));
    for (size_t i = 0; i < Keys::kNumber; ++i) put.Run();
    if (auto status = put.Check(); !status.ok()) return status;
    return std::make_unique<ShmGet>(bytes, std::move(put).TakeStore());
  }
  ShmGet(size_t bytes, std::unique_ptr<ShmStore> store)
      : value_(ValueOf(bytes)), got_(bytes, '\0'), store_(std::move(store)) {}

  void Run() {
    const auto size = store_->client().Get(keys_.Next(), std::as_writable_bytes(std::span(got_)));
    failures_ += size.ok() && *size == value_.size() ? 0 : 1;
  }
  [[nodiscard]] Status Check() const { return WrongUnless(failures_ == 0 && got_ == value_); }

 private:
  const std::string value_;
  std::string got_;
  Keys keys_;
  const std::unique_ptr<ShmStore> store_;
  uint64_t failures_ = 0;
};

}  // namespace

void AddShmOperations(Suite& suite) {
  constexpr uint32_t kTogether = 8;
  for (const size_t bytes : kSizes) {
    suite.Add(NameOf("shm_put", bytes), PutsMost(bytes), [bytes] { return ShmPut::Make(bytes, 1); });
  }
  suite.Add(NameOf("shm_8_puts", kSizes[0]), PutsMost(kSizes[0], kTogether),
            [] { return ShmPut::Make(kSizes[0], kTogether); });
  for (const size_t bytes : kSizes) {
    suite.Add(NameOf("shm_get", bytes), 0, [bytes] { return ShmGet::Make(bytes, kCachedKeys); });
  }
  // A client that remembers no location reads the index first.
  suite.Add(NameOf("shm_get_by_index", kSizes[0]), 0, [] { return ShmGet::Make(kSizes[0], 0); });
}

}  // namespace erda::micro
