#include "bench/others/redis_store.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <utility>

namespace erda::bench {
namespace {

timeval ToTimeval(std::chrono::milliseconds time) {
  return {.tv_sec = time.count() / 1000, .tv_usec = time.count() % 1000 * 1000};
}

// Requires: errno is that of the failed call.
Status Describe(const redisContext& context) {
  if (context.err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return {Code::kTimeout, "Redis did not answer in time"};
  }
  return {Code::kUnavailable, fmt::format("Redis: {}", context.errstr)};
}

// The first word of an error reply names its kind.
Status Describe(std::string_view error) {
  const auto is = [error](std::string_view kind) { return error.starts_with(kind); };
  Code code = Code::kInternal;
  if (is("OOM ")) code = Code::kResourceExhausted;
  if (is("LOADING ") || is("MISCONF ") || is("READONLY ")) code = Code::kUnavailable;
  if (is("NOAUTH ") || is("NOPERM ")) code = Code::kPermissionDenied;
  return {code, fmt::format("Redis: {}", error)};
}

}  // namespace

Result<std::unique_ptr<Store>> RedisStore::Connect(const std::string& path, const ClientOptions& options) {
  // hiredis writes to its socket with write(2). Without this, a server that went away would end the program by a
  // signal.
  std::signal(SIGPIPE, SIG_IGN);
  const timeval timeout = ToTimeval(options.timeout);
  Context context(redisConnectUnixWithTimeout(path.c_str(), timeout), &redisFree);
  if (!context) return Status(Code::kInternal, "hiredis has no memory for a connection");
  if (context->err != 0) return Describe(*context);
  if (redisSetTimeout(context.get(), timeout) != REDIS_OK) return Describe(*context);
  return std::unique_ptr<Store>(new RedisStore(std::move(context), options));
}

RedisStore::RedisStore(Context context, const ClientOptions& options)
    : context_(std::move(context)), ring_(std::max<size_t>(options.queue_depth, 1)) {
  // Makes no object for a reply. All replies here are texts or nil; hiredis skips replies without a function.
  static redisReplyObjectFunctions functions = {.createString = &RedisStore::OnText,
                                                .createArray = nullptr,
                                                .createInteger = nullptr,
                                                .createNil = &RedisStore::OnNil,
                                                .freeObject = nullptr};
  context_->reader->fn = &functions;
  context_->reader->privdata = this;
  context_->reader->maxbuf = 0;  // Keeps the reading buffer, however large it has grown.
}

RedisStore::~RedisStore() = default;

size_t RedisStore::max_value_bytes(size_t) const { return size_t{512} << 20; }  // The default of proto-max-bulk-len.

Status RedisStore::CanStart() const {
  if (!failed_.ok()) return failed_;
  if (in_flight_ == ring_.size())
    return Status(Code::kResourceExhausted, "the most operations are outstanding; wait for some of them");
  return {};
}

void RedisStore::Append(std::string_view bytes) {
  // The name says "command", but the function takes any bytes and only appends them. So a value is copied once.
  if (redisAppendFormattedCommand(context_.get(), bytes.data(), bytes.size()) != REDIS_OK && failed_.ok()) {
    failed_ = Status(Code::kInternal, "hiredis has no memory for a command");
  }
}

void RedisStore::Add(Pending pending) { ring_[(first_ + in_flight_++) % ring_.size()] = std::move(pending); }

RedisStore::Pending RedisStore::Take() {
  Pending pending = std::exchange(ring_[first_], {});
  first_ = (first_ + 1) % ring_.size();
  --in_flight_;
  ++finished_;
  return pending;
}

Status RedisStore::GetAsync(std::string_view key, GetCallback done) {
  if (Status status = CanStart(); !status.ok()) return status;
  head_.clear();
  fmt::format_to(std::back_inserter(head_), "*2\r\n$3\r\nGET\r\n${}\r\n{}\r\n", key.size(), key);
  Append(head_);
  if (!failed_.ok()) return failed_;
  Add({.get = std::move(done), .put = nullptr});
  return {};
}

Status RedisStore::PutAsync(std::string_view key, std::string_view value, DoneCallback done) {
  if (Status status = CanStart(); !status.ok()) return status;
  head_.clear();
  fmt::format_to(std::back_inserter(head_), "*3\r\n$3\r\nSET\r\n${}\r\n{}\r\n${}\r\n", key.size(), key, value.size());
  Append(head_);
  Append(value);
  Append("\r\n");
  if (!failed_.ok()) return failed_;
  Add({.get = nullptr, .put = std::move(done)});
  return {};
}

Result<size_t> RedisStore::Get(std::string_view key, std::span<std::byte> out) {
  struct Call {
    std::span<std::byte> out;
    Result<size_t> result;
    bool done = false;
  } call{out, Status(Code::kInternal)};
  const auto copy = [&call](const Result<std::string_view>& value) {
    call.done = true;
    if (!value.ok()) {
      call.result = value.status();
    } else if (value->size() > call.out.size()) {
      call.result = Status(Code::kInvalidArgument, fmt::format("the value has {} bytes", value->size()));
    } else {
      std::memcpy(call.out.data(), value->data(), value->size());
      call.result = value->size();
    }
  };
  if (Status status = GetAsync(key, copy); !status.ok()) return status;
  while (!call.done) Poll();
  return call.result;
}

Status RedisStore::Put(std::string_view key, std::string_view value) {
  struct Call {
    Status status;
    bool done = false;
  } call;
  const auto keep = [&call](Status status) {
    call.status = std::move(status);
    call.done = true;
  };
  if (Status status = PutAsync(key, value, keep); !status.ok()) return status;
  while (!call.done) Poll();
  return call.status;
}

size_t RedisStore::Poll() {
  const size_t before = finished_;
  if (in_flight_ == 0) return 0;
  if (Flush()) {
    // hiredis reads 16 KiB at a time. This reads a partial reply to its end, so that the operations that all callbacks
    // start go out together.
    while (failed_.ok() && (finished_ == before || HasPartOfReply())) ReadReplies();
  }
  return finished_ - before;
}

bool RedisStore::HasPartOfReply() const { return context_->reader->pos < context_->reader->len; }

bool RedisStore::Flush() {
  int all_sent = 0;
  while (all_sent == 0) {
    if (redisBufferWrite(context_.get(), &all_sent) == REDIS_OK) continue;
    Fail(Describe(*context_));
    return false;
  }
  return true;
}

void RedisStore::ReadReplies() {
  if (redisBufferRead(context_.get()) != REDIS_OK) return Fail(Describe(*context_));
  void* reply = nullptr;
  do {
    reply = nullptr;
    const size_t before = finished_;
    if (redisReaderGetReply(context_->reader, &reply) != REDIS_OK) {
      return Fail(Status(Code::kInternal, fmt::format("Redis: {}", context_->reader->errstr)));
    }
    if (reply != nullptr && finished_ == before) return Fail(Status(Code::kInternal, "Redis: a reply of another type"));
  } while (reply != nullptr && failed_.ok());
}

void* RedisStore::OnText(const redisReadTask* task, char* text, size_t size) {
  auto* store = static_cast<RedisStore*>(task->privdata);
  store->Finish(task->type, {text, size});
  return store;  // Any pointer: it says that there was a reply.
}

void* RedisStore::OnNil(const redisReadTask* task) {
  auto* store = static_cast<RedisStore*>(task->privdata);
  store->Finish(REDIS_REPLY_NIL, {});
  return store;
}

void RedisStore::Finish(int type, std::string_view text) {
  if (in_flight_ == 0) return;  // ReadReplies sees that no operation finished.
  const Pending pending = Take();
  if (type == REDIS_REPLY_ERROR) {
    const Status status = Describe(text);
    pending.get ? pending.get(status) : pending.put(status);
  } else if (pending.get) {
    type == REDIS_REPLY_NIL ? pending.get(Status(Code::kNotFound)) : pending.get(text);
  } else {
    pending.put(type == REDIS_REPLY_STATUS ? Status() : Status(Code::kInternal, "Redis: it did not carry out a SET"));
  }
}

void RedisStore::Fail(Status status) {
  failed_ = std::move(status);
  while (in_flight_ > 0) {
    const Pending pending = Take();
    pending.get ? pending.get(failed_) : pending.put(failed_);
  }
}

}  // namespace erda::bench
