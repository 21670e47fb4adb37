// Redis as a store of the benchmark's, through hiredis, over a Unix socket.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/ycsb/store.h"
#include "erda/client.h"
#include "erda/status.h"

struct redisContext;
struct redisReadTask;

namespace erda::bench {

// SET and GET. What is started goes into hiredis's buffer; Poll sends all of it with one write and reads what has come
// back, to the end of a reply, so that as many commands as are in flight travel together. Replies are handed on out of
// hiredis's reading buffer, without an object for each. Poll waits for the first reply if none is there: a thread that
// has nothing to do leaves its processor to the server.
//
// A connection that failed stays so: what is in flight and what comes later ends with kUnavailable, or kTimeout.
class RedisStore : public Store {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Store>> Connect(const std::string& path, const ClientOptions& options);
  ~RedisStore() override;

  Result<size_t> Get(std::string_view key, std::span<std::byte> out) override;
  Status Put(std::string_view key, std::string_view value) override;
  Status GetAsync(std::string_view key, GetCallback done) override;
  Status PutAsync(std::string_view key, std::string_view value, DoneCallback done) override;
  size_t Poll() override;
  [[nodiscard]] size_t max_value_bytes(size_t key_bytes) const override;

 private:
  // One of the two is set.
  struct Pending {
    GetCallback get;
    DoneCallback put;
  };
  using Context = std::unique_ptr<redisContext, void (*)(redisContext*)>;

  RedisStore(Context context, const ClientOptions& options);

  // What hiredis calls for each reply.
  static void* OnText(const redisReadTask* task, char* text, size_t size);
  static void* OnNil(const redisReadTask* task);
  void Finish(int type, std::string_view text);

  [[nodiscard]] Status CanStart() const;
  void Append(std::string_view bytes);
  void Add(Pending pending);
  Pending Take();
  // Sends what is buffered.
  bool Flush();
  void ReadReplies();
  [[nodiscard]] bool HasPartOfReply() const;
  // The connection is of no use any more: ends all that is in flight.
  void Fail(Status status);

  const Context context_;
  Status failed_;  // ok while the connection is
  // The operations in flight, the oldest at first_.
  std::vector<Pending> ring_;
  size_t first_ = 0;
  size_t in_flight_ = 0;
  size_t finished_ = 0;  // since Connect
  std::string head_;     // of a command, before its value
};

}  // namespace erda::bench
