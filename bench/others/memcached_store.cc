#include "bench/others/memcached_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace erda::bench {
namespace {

Status Describe(memcached_return_t code) {
  Code what = Code::kInternal;
  switch (code) {
    case MEMCACHED_SUCCESS:
    case MEMCACHED_STORED:
      return {};
    case MEMCACHED_NOTFOUND:
      return Status(Code::kNotFound);
    case MEMCACHED_TIMEOUT:
      what = Code::kTimeout;
      break;
    case MEMCACHED_CONNECTION_FAILURE:
    case MEMCACHED_ERRNO:
    case MEMCACHED_FAIL_UNIX_SOCKET:
    case MEMCACHED_NO_SERVERS:
    case MEMCACHED_READ_FAILURE:
    case MEMCACHED_SERVER_MARKED_DEAD:
    case MEMCACHED_SERVER_TEMPORARILY_DISABLED:
    case MEMCACHED_SOME_ERRORS:
    case MEMCACHED_UNKNOWN_READ_FAILURE:
    case MEMCACHED_WRITE_FAILURE:
      what = Code::kUnavailable;
      break;
    case MEMCACHED_BAD_KEY_PROVIDED:
    case MEMCACHED_E2BIG:
    case MEMCACHED_KEY_TOO_BIG:
      what = Code::kInvalidArgument;
      break;
    case MEMCACHED_MEMORY_ALLOCATION_FAILURE:
    case MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE:
      what = Code::kResourceExhausted;
      break;
    default:
      break;
  }
  return {what, fmt::format("memcached: {}", memcached_strerror(nullptr, code))};
}

// Called for each setting of the server. Keeps the size of its largest item.
memcached_return_t KeepItemSize(const memcached_instance_st*, const char* name, size_t name_size, const char* value,
                                size_t value_size, void* most) {
  if (std::string_view(name, name_size) == "item_size_max") {
    std::from_chars(value, value + value_size, *static_cast<size_t*>(most));
  }
  return MEMCACHED_SUCCESS;
}

}  // namespace

Result<MemcachedStore::Connection> MemcachedStore::Open(const std::string& path, const ClientOptions& options,
                                                        bool buffered) {
  Connection connection(memcached_create(nullptr), &memcached_free);
  if (!connection) return Status(Code::kInternal, "libmemcached has no memory for a connection");
  const auto set = [&connection](memcached_behavior_t behavior, uint64_t value) {
    return memcached_behavior_set(connection.get(), behavior, value) == MEMCACHED_SUCCESS;
  };
  const auto timeout = static_cast<uint64_t>(options.timeout.count());
  // Above a watermark the library would read and drop the answers to buffered requests.
  constexpr uint64_t kNoWatermark = std::numeric_limits<uint32_t>::max();
  if (!set(MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1) || !set(MEMCACHED_BEHAVIOR_POLL_TIMEOUT, timeout) ||
      !set(MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, timeout) || !set(MEMCACHED_BEHAVIOR_IO_MSG_WATERMARK, kNoWatermark) ||
      !set(MEMCACHED_BEHAVIOR_IO_BYTES_WATERMARK, kNoWatermark) ||
      !set(MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, buffered ? 1 : 0)) {
    return Status(Code::kInternal, "this version of libmemcached does not know a setting that erda-ycsb needs");
  }
  if (const auto added = memcached_server_add_unix_socket(connection.get(), path.c_str()); added != MEMCACHED_SUCCESS) {
    return Describe(added);
  }
  if (const auto version = memcached_version(connection.get()); version != MEMCACHED_SUCCESS) return Describe(version);
  return connection;
}

Result<std::unique_ptr<Store>> MemcachedStore::Connect(const std::string& path, const ClientOptions& options) {
  auto direct = Open(path, options, /*buffered=*/false);
  if (!direct.ok()) return direct.status();
  auto buffered = Open(path, options, /*buffered=*/true);
  if (!buffered.ok()) return buffered.status();
  size_t most_item_bytes = 0;
  const auto asked = memcached_stat_execute(direct->get(), "settings", &KeepItemSize, &most_item_bytes);
  if (asked != MEMCACHED_SUCCESS) return Describe(asked);
  if (most_item_bytes == 0) return Status(Code::kInternal, "memcached does not say what the largest item is");
  return std::unique_ptr<Store>(new MemcachedStore(*std::move(direct), *std::move(buffered), most_item_bytes, options));
}

MemcachedStore::MemcachedStore(Connection direct, Connection buffered, size_t most_item_bytes,
                               const ClientOptions& options)
    : direct_(std::move(direct)),
      buffered_(std::move(buffered)),
      most_item_bytes_(most_item_bytes),
      queue_depth_(options.queue_depth) {
  memcached_result_create(direct_.get(), &result_);
  memcached_result_create(buffered_.get(), &answer_);
}

MemcachedStore::~MemcachedStore() {
  memcached_result_free(&result_);
  memcached_result_free(&answer_);
}

size_t MemcachedStore::max_value_bytes(size_t key_bytes) const {
  constexpr size_t kItemHeader = 512;  // More than the header's size, in one chunk or several.
  const size_t other = key_bytes + kItemHeader;
  return most_item_bytes_ > other ? most_item_bytes_ - other : 0;
}

// --- One at a time

Result<size_t> MemcachedStore::Get(std::string_view key, std::span<std::byte> out) {
  size_t size = 0;
  uint32_t flags = 0;
  memcached_return_t code{};
  char* value = memcached_get(direct_.get(), key.data(), key.size(), &size, &flags, &code);
  const std::unique_ptr<char, void (*)(void*)> owner(value, &std::free);
  if (code != MEMCACHED_SUCCESS) return Describe(code);
  if (size > out.size()) return Status(Code::kInvalidArgument, fmt::format("the value has {} bytes", size));
  if (size > 0) std::memcpy(out.data(), value, size);
  return size;
}

Status MemcachedStore::Put(std::string_view key, std::string_view value) {
  return Describe(memcached_set(direct_.get(), key.data(), key.size(), value.data(), value.size(), 0, 0));
}

// --- Many at a time

Status MemcachedStore::CanStart() const {
  if (in_flight_ < queue_depth_) return {};
  return {Code::kResourceExhausted, "the most operations are outstanding; wait for some of them"};
}

Status MemcachedStore::GetAsync(std::string_view key, GetCallback done) {
  if (Status status = CanStart(); !status.ok()) return status;
  started_.keys.append(key);
  started_.gets.push_back({started_.keys.size(), std::move(done)});
  ++in_flight_;
  return {};
}

Status MemcachedStore::PutAsync(std::string_view key, std::string_view value, DoneCallback done) {
  if (Status status = CanStart(); !status.ok()) return status;
  // Writes into the library's buffer. The library sends it when it is full, or when Poll asks for that.
  const auto code = memcached_set(buffered_.get(), key.data(), key.size(), value.data(), value.size(), 0, 0);
  if (code != MEMCACHED_BUFFERED) {
    return code == MEMCACHED_SUCCESS ? Status(Code::kInternal, "memcached: a set was not buffered") : Describe(code);
  }
  started_.puts.push_back(std::move(done));
  ++in_flight_;
  return {};
}

size_t MemcachedStore::Poll() {
  if (in_flight_ == 0) return 0;
  std::swap(started_, polled_);
  // Sends both requests before it waits for an answer.
  const Status asked = polled_.gets.empty() ? Status() : AskFor(polled_);
  const Status sent = polled_.puts.empty() ? Status() : Describe(memcached_flush_buffers(buffered_.get()));
  // Takes all answers before any callback. A put that a callback starts may leave half of its request with the server,
  // which then holds back earlier answers.
  if (sent.ok()) FetchAnswers(polled_.puts.size());
  FinishGets(polled_, asked);
  FinishPuts(polled_, sent);
  const size_t finished = polled_.gets.size() + polled_.puts.size();
  polled_.keys.clear();
  polled_.gets.clear();
  polled_.puts.clear();
  return finished;
}

Status MemcachedStore::AskFor(const Batch& batch) {
  key_data_.clear();
  key_sizes_.clear();
  size_t begin = 0;
  for (const Get1& get : batch.gets) {
    key_data_.push_back(batch.keys.data() + begin);
    key_sizes_.push_back(get.key_end - begin);
    begin = get.key_end;
  }
  return Describe(memcached_mget(direct_.get(), key_data_.data(), key_sizes_.data(), key_data_.size()));
}

// Values come in the order of the keys, and only for keys that exist.
void MemcachedStore::FinishGets(const Batch& batch, const Status& asked) {
  size_t next = 0;
  const auto finish = [&batch, &next, this](const Result<std::string_view>& value) {
    --in_flight_;
    batch.gets[next++].done(value);
  };
  Status rest = asked;
  if (asked.ok() && !batch.gets.empty()) {
    memcached_return_t code{};
    while (memcached_fetch_result(direct_.get(), &result_, &code) != nullptr) {
      const std::string_view key(memcached_result_key_value(&result_), memcached_result_key_length(&result_));
      while (next < batch.gets.size() && key != std::string_view(key_data_[next], key_sizes_[next])) {
        finish(Status(Code::kNotFound));
      }
      if (next == batch.gets.size()) continue;  // A key that was not asked for: fetch the rest, to stay in step.
      finish(std::string_view(memcached_result_value(&result_), memcached_result_length(&result_)));
    }
    rest = code == MEMCACHED_END || code == MEMCACHED_NOTFOUND ? Status(Code::kNotFound) : Describe(code);
  }
  while (next < batch.gets.size()) finish(rest);
}

void MemcachedStore::FetchAnswers(size_t count) {
  answers_.clear();
  while (answers_.size() < count) {
    memcached_return_t code{};
    const bool stored = memcached_fetch_result(buffered_.get(), &answer_, &code) != nullptr;
    if (stored) {
      answers_.emplace_back();
    } else if (code == MEMCACHED_NOTFOUND) {  // The library reports any refusal so.
      answers_.emplace_back(Code::kResourceExhausted, "memcached: a set was refused");
    } else {
      answers_.push_back(Describe(code));
    }
  }
}

void MemcachedStore::FinishPuts(const Batch& batch, const Status& sent) {
  for (size_t i = 0; i < batch.puts.size(); ++i) {
    --in_flight_;
    batch.puts[i](sent.ok() ? answers_[i] : sent);
  }
}

}  // namespace erda::bench
