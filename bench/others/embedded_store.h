// The common part of stores that are libraries in this process. They have no asynchronous calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/ycsb/store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

// Poll does all operations that started since the last Poll: first the puts, together, then the gets one by one. So
// puts that are in flight together share what the library does once for many puts. A get of a key may find the value of
// a put that started later.
class EmbeddedStore : public Store {
 public:
  Result<size_t> Get(std::string_view key, std::span<std::byte> out) final;
  Status Put(std::string_view key, std::string_view value) final;
  Status GetAsync(std::string_view key, GetCallback done) final;
  Status PutAsync(std::string_view key, std::string_view value, DoneCallback done) final;
  size_t Poll() final;
  // No library here has a smaller limit.
  [[nodiscard]] size_t max_value_bytes(size_t /*key_bytes*/) const final { return size_t{1} << 30; }

 protected:
  struct Record {
    std::string_view key;
    std::string_view value;
  };

  explicit EmbeddedStore(const ClientOptions& options);

  // Returns the size of the key's value, and copies the value to `out` if it fits. Otherwise `out` is unchanged.
  virtual Result<size_t> Read(std::string_view key, std::span<std::byte> out) = 0;
  // Stores all records. After an error any of them may be missing.
  virtual Status Write(std::span<const Record> records) = 0;

 private:
  // A get has no value. One of the callbacks is set.
  struct Operation {
    size_t key_bytes;
    size_t value_bytes;
    GetCallback get;
    DoneCallback put;
  };
  // Operations that start before the next Poll. `bytes` has their keys and values, one after the other.
  struct Batch {
    std::string bytes;
    std::vector<Operation> operations;
  };

  Status Start(std::string_view key, std::string_view value, Operation operation);
  Result<std::string_view> ReadWhole(std::string_view key);

  const size_t queue_depth_;
  size_t in_flight_ = 0;
  Batch started_;
  Batch polled_;
  std::vector<Record> records_;   // The puts that Poll writes.
  std::vector<std::byte> value_;  // The value that Poll has read.
};

// Objects that all threads of this process share by their names, while one of them uses the object. These libraries
// allow one process to open a file once. Any number of threads may use it.
template <class Object>
class SharedObjects {
 public:
  // Returns the object with this name. If it does not exist, `open` makes it, and returns a
  // Result<std::shared_ptr<Object>>.
  template <class Open>
  Result<std::shared_ptr<Object>> Find(const std::string& name, const Open& open) {
    const std::lock_guard lock(mutex_);
    if (auto object = objects_[name].lock()) return object;
    Result<std::shared_ptr<Object>> opened = open();
    if (opened.ok()) objects_[name] = *opened;
    return opened;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Object>> objects_;
};

}  // namespace erda::bench
