// The object that the driver measures: one connection to a store, for one thread. Erda's client is one. The compared
// schemes and other systems are others.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

// The calls have the meaning of the calls of erda::Client with the same names.
class Store {
 public:
  using GetCallback = std::function<void(Result<std::string_view>)>;
  using DoneCallback = std::function<void(Status)>;

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  virtual Result<size_t> Get(std::string_view key, std::span<std::byte> out) = 0;
  virtual Status Put(std::string_view key, std::string_view value) = 0;
  // Many in flight. Return kResourceExhausted if as many are in flight as the store was opened for. The callbacks run
  // in Poll, and may start operations.
  virtual Status GetAsync(std::string_view key, GetCallback done) = 0;
  virtual Status PutAsync(std::string_view key, std::string_view value, DoneCallback done) = 0;
  virtual size_t Poll() = 0;  // Returns the number of operations finished. A store may wait for those in flight.
  [[nodiscard]] virtual size_t max_value_bytes(size_t key_bytes) const = 0;
};

// A store in NVM.
class NvmStore : public Store {
 public:
  virtual Status Delete(std::string_view key) = 0;
  virtual Status DeleteAsync(std::string_view key, DoneCallback done) = 0;
  // Returns the bytes that the server stored into NVM since its start, including later work for earlier puts. Waits.
  // Requires: no operation is in flight in any store of that server.
  virtual Result<uint64_t> ServerNvmBytes() = 0;
  // Returns the bytes that this store wrote there itself.
  [[nodiscard]] virtual uint64_t ClientNvmBytes() const = 0;
};

class ErdaStore : public NvmStore {
 public:
  explicit ErdaStore(std::unique_ptr<Client> client) : client_(std::move(client)) {}
  Result<size_t> Get(std::string_view key, std::span<std::byte> out) override { return client_->Get(key, out); }
  Status Put(std::string_view key, std::string_view value) override { return client_->Put(key, value); }
  Status GetAsync(std::string_view key, GetCallback done) override { return client_->GetAsync(key, std::move(done)); }
  Status PutAsync(std::string_view key, std::string_view value, DoneCallback done) override {
    return client_->PutAsync(key, value, std::move(done));
  }
  Status Delete(std::string_view key) override { return client_->Delete(key); }
  Status DeleteAsync(std::string_view key, DoneCallback done) override {
    return client_->DeleteAsync(key, std::move(done));
  }
  size_t Poll() override {
    const auto finished = client_->Wait(kPatience);
    return finished.ok() ? *finished : 0;
  }
  [[nodiscard]] size_t max_value_bytes(size_t key_bytes) const override { return client_->max_value_bytes(key_bytes); }
  Result<uint64_t> ServerNvmBytes() override;
  [[nodiscard]] uint64_t ClientNvmBytes() const override { return client_->stats().nvm_bytes_written; }

 private:
  // A worker then looks whether another one has failed.
  static constexpr std::chrono::milliseconds kPatience{100};

  const std::unique_ptr<Client> client_;
};

}  // namespace erda::bench
