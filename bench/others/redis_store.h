// Redis as a store of the benchmark, through hiredis, over a Unix socket.
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

// SET and GET. Operations that start go into hiredis's buffer. Poll sends all of them with one write, and reads replies
// to the end of one. So all commands in flight travel together. The store passes replies on from hiredis's reading
// buffer, without an object for each. Poll waits for the first reply: an idle thread leaves its processor to the
// server.  A connection that failed stays so. Operations in flight and later ones end with kUnavailable or kTimeout.
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

  // hiredis calls these for each reply.
  static void* OnText(const redisReadTask* task, char* text, size_t size);
  static void* OnNil(const redisReadTask* task);
  void Finish(int type, std::string_view text);

  [[nodiscard]] Status CanStart() const;
  void Append(std::string_view bytes);
  void Add(Pending pending);
  Pending Take();
  // Sends the buffered commands.
  bool Flush();
  void ReadReplies();
  [[nodiscard]] bool HasPartOfReply() const;
  // Ends all operations in flight: the connection is useless from now on.
  void Fail(Status status);

  const Context context_;
  Status failed_;  // Ok as long as the connection works.
  // The operations in flight. The oldest is at first_.
  std::vector<Pending> ring_;
  size_t first_ = 0;
  size_t in_flight_ = 0;
  size_t finished_ = 0;  // Since Connect.
  std::string head_;     // The bytes of a command before its value.
};

}  // namespace erda::bench
