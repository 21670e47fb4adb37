// memcached as a store of the benchmark, through libmemcached, over a Unix socket.
#pragma once

#include <libmemcached/memcached.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/ycsb/store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

// libmemcached has no asynchronous calls. This class does many operations with one request on its way.
//
// Gets: Poll asks for them together (memcached_mget), and fetches them one by one.
// Puts: they are set on a separate connection that buffers requests, in the binary protocol, where each request has an
// answer. Poll sends the buffer and fetches all answers. A put is done only when its answer has come. (In the text
// protocol the library drops the answers to buffered requests.)
//
// So one round trip carries all operations that started since the one before. The two connections make their round
// trips at the same time. Gets and puts of one key that are in flight together may take effect in any order. Poll waits
// for all answers.
class MemcachedStore : public Store {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Store>> Connect(const std::string& path, const ClientOptions& options);
  ~MemcachedStore() override;

  Result<size_t> Get(std::string_view key, std::span<std::byte> out) override;
  Status Put(std::string_view key, std::string_view value) override;
  Status GetAsync(std::string_view key, GetCallback done) override;
  Status PutAsync(std::string_view key, std::string_view value, DoneCallback done) override;
  size_t Poll() override;
  [[nodiscard]] size_t max_value_bytes(size_t key_bytes) const override;

 private:
  using Connection = std::unique_ptr<memcached_st, void (*)(memcached_st*)>;
  struct Get1 {
    size_t key_end;  // In Batch::keys, where the next key begins.
    GetCallback done;
  };
  // Operations that start before the next Poll.
  struct Batch {
    std::string keys;
    std::vector<Get1> gets;
    std::vector<DoneCallback> puts;
  };

  MemcachedStore(Connection direct, Connection buffered, size_t most_item_bytes, const ClientOptions& options);
  [[nodiscard]] static Result<Connection> Open(const std::string& path, const ClientOptions& options, bool buffered);

  [[nodiscard]] Status CanStart() const;
  [[nodiscard]] Status AskFor(const Batch& batch);
  void FinishGets(const Batch& batch, const Status& asked);
  void FetchAnswers(size_t count);
  void FinishPuts(const Batch& batch, const Status& sent);

  const Connection direct_;    // For synchronous calls, and gets.
  const Connection buffered_;  // For puts.
  memcached_result_st result_{};
  memcached_result_st answer_{};
  const size_t most_item_bytes_;
  const size_t queue_depth_;
  size_t in_flight_ = 0;
  Batch started_;
  Batch polled_;  // The batch of a running Poll, while callbacks start other operations.
  std::vector<const char*> key_data_;
  std::vector<size_t> key_sizes_;
  std::vector<Status> answers_;  // To the puts of a batch.
};

}  // namespace erda::bench
