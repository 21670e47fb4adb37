// The C API of the client. Each call makes one call of erda::Client, and takes its result apart for C.
#include "base/c_api.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/c_activity.h"
#include "client/access.h"
#include "client/c_options.h"
#include "client/c_results.h"
#include "erda/client.h"
#include "erda/erda.h"

struct erda_client {
  std::unique_ptr<erda::Client> client;
};
struct erda_client_buffer {
  erda::Buffer buffer;
};

namespace erda::c_api {
namespace {

// The size that the structure had in the first version of the API.
constexpr size_t kStatsLeast = sizeof(erda_client_stats);

Status Check(const erda_client* client) { return client == nullptr ? Missing("the client") : Status(); }

Status CheckBytes(const void* data, size_t size, const char* what) {
  return data == nullptr && size > 0 ? Missing(what) : Status();
}

std::string_view View(const void* data, size_t size) { return {static_cast<const char*>(data), size}; }
erda_bytes BytesOf(std::string_view view) { return {view.data(), view.size()}; }

// Checks the arguments that each operation on a key needs.
Status Check(const erda_client* client, const void* key, size_t key_size) {
  if (auto status = Check(client); !status.ok()) return status;
  return CheckBytes(key, key_size, "the key");
}

// These copy the outcome of a C++ call into the result of a C callback.
void Fill(erda_result* /*result*/, const Status& /*ok*/) {}
void Fill(erda_result* result, const Result<VersionedView>& got) {
  result->value = BytesOf(got->value);
  result->version = got->version;
  result->expires_ms = ExpiresMs(got->expires);
}
void Fill(erda_result* result, const Result<std::string_view>& got) { result->value = BytesOf(*got); }
void Fill(erda_result* result, const Result<uint64_t>& version) { result->version = *version; }
void Fill(erda_result* result, const Result<int64_t>& sum) { result->sum = *sum; }

const Status& StatusOf(const Status& status) { return status; }
template <class T>
const Status& StatusOf(const Result<T>& result) {
  return result.status();
}

// Calls the C callback. It has two words, so that std::function does not allocate.
struct Teller {
  erda_done done;
  void* user;
  template <class Outcome>
  void operator()(const Outcome& outcome) const {
    if (done == nullptr) return;
    erda_result result{};
    result.message = "";
    if (outcome.ok()) {
      Fill(&result, outcome);
    } else {
      const Status& status = StatusOf(outcome);
      result.code = static_cast<erda_code>(status.code());
      result.message = status.message().data();  // It ends with a 0 byte.
    }
    done(user, &result);
  }
};

// Gets the value and its size. If the value does not fit, reads it once more to know the size.
Status GetInto(Client& client, std::string_view key, std::span<std::byte> out, size_t* size) {
  auto got = client.Get(key, out);
  if (got.ok()) {
    *size = *got;
    return {};
  }
  if (got.status().code() != Code::kInvalidArgument) return got.status();
  const auto value = client.Get(key);
  if (!value.ok()) return value.status();
  *size = value->size();
  if (value->size() > out.size()) return got.status();
  std::copy_n(reinterpret_cast<const std::byte*>(value->data()), value->size(), out.begin());
  return {};
}

}  // namespace
}  // namespace erda::c_api

// NOLINTBEGIN(readability-identifier-naming): C's names
using erda::Status;
using erda::c_api::Guarded;

const char* erda_client_error(void) noexcept { return erda::c_api::last_error.data(); }

const char* erda_client_code_name(erda_code code) noexcept {
  const int number = code;
  return erda::CodeName(erda::c_api::EnumOf<erda::Code>(number)).data();
}

void erda_client_free(void* allocated) noexcept { std::free(allocated); }

erda_code erda_client_connect(const char* address, const erda_client_options* options, erda_client** client) noexcept {
  return Guarded([&]() -> Status {
    if (client == nullptr) return erda::c_api::Missing("the place for the client");
    *client = nullptr;
    if (address == nullptr) return erda::c_api::Missing("the address");
    erda::ClientOptions how;
    if (auto status = erda::c_api::ToClientOptions(options, &how); !status.ok()) return status;
    auto connected = erda::Client::Connect(address, std::move(how));
    if (!connected.ok()) return connected.status();
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): Guarded catches it
    *client = new erda_client{*std::move(connected)};
    return {};
  });
}

void erda_client_close(erda_client* client) noexcept { delete client; }

erda_code erda_client_get(erda_client* client, const void* key, size_t key_size, void* out, size_t out_size,
                          size_t* value_size) noexcept {
  return Guarded([&]() -> Status {
    if (value_size == nullptr) return erda::c_api::Missing("the place for the value's size");
    *value_size = 0;
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    if (auto status = erda::c_api::CheckBytes(out, out_size, "the memory for the value"); !status.ok()) return status;
    return erda::c_api::GetInto(*client->client, erda::c_api::View(key, key_size),
                                {static_cast<std::byte*>(out), out_size}, value_size);
  });
}

erda_code erda_client_get_alloc(erda_client* client, const void* key, size_t key_size, erda_result** result) noexcept {
  return Guarded([&]() -> Status {
    if (result == nullptr) return erda::c_api::Missing("the place for the result");
    *result = nullptr;
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    std::vector<erda::Result<erda::Versioned>> one;
    one.push_back(client->client->GetVersioned(erda::c_api::View(key, key_size)));
    if (!one[0].ok()) return one[0].status();
    *result = erda::c_api::CopyResults(one);
    return {};
  });
}

erda_code erda_client_put(erda_client* client, const void* key, size_t key_size, const void* value, size_t value_size,
                          const erda_put_options* options, uint64_t* version) noexcept {
  return Guarded([&]() -> Status {
    if (version != nullptr) *version = 0;
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    if (auto status = erda::c_api::CheckBytes(value, value_size, "the value"); !status.ok()) return status;
    erda::PutOptions how;
    if (auto status = erda::c_api::ToPutOptions(options, &how); !status.ok()) return status;
    const auto put = client->client->Put(erda::c_api::View(key, key_size), erda::c_api::View(value, value_size), how);
    if (put.ok() && version != nullptr) *version = *put;
    return put.status();
  });
}

erda_code erda_client_delete(erda_client* client, const void* key, size_t key_size,
                             const erda_delete_options* options) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    erda::DeleteOptions how;
    if (auto status = erda::c_api::ToDeleteOptions(options, &how); !status.ok()) return status;
    return client->client->Delete(erda::c_api::View(key, key_size), how);
  });
}

erda_code erda_client_increment(erda_client* client, const void* key, size_t key_size, int64_t delta,
                                int64_t* sum) noexcept {
  return Guarded([&]() -> Status {
    if (sum != nullptr) *sum = 0;
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    const auto added = client->client->Increment(erda::c_api::View(key, key_size), delta);
    if (added.ok() && sum != nullptr) *sum = *added;
    return added.status();
  });
}

erda_code erda_client_multi_get(erda_client* client, const erda_bytes* keys, size_t count,
                                erda_result** results) noexcept {
  return Guarded([&]() -> Status {
    if (results == nullptr) return erda::c_api::Missing("the place for the results");
    *results = nullptr;
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    if (auto status = erda::c_api::CheckBytes(keys, count, "the array of keys"); !status.ok()) return status;
    std::vector<std::string_view> views;
    views.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      if (auto status = erda::c_api::CheckBytes(keys[i].data, keys[i].size, "a key"); !status.ok()) return status;
      views.push_back(erda::c_api::View(keys[i].data, keys[i].size));
    }
    if (count == 0) return {};
    const auto all = client->client->MultiGetVersioned(views);
    if (all.empty()) return Status(erda::Code::kResourceExhausted);
    *results = erda::c_api::CopyResults(all);
    return {};
  });
}

erda_code erda_client_multi_put(erda_client* client, const erda_bytes* keys, const erda_bytes* values,
                                const erda_put_options* const* options, size_t count, erda_result** results) noexcept {
  return Guarded([&]() -> Status {
    if (results == nullptr) return erda::c_api::Missing("the place for the results");
    *results = nullptr;
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    if (auto status = erda::c_api::CheckBytes(keys, count, "the array of keys"); !status.ok()) return status;
    if (auto status = erda::c_api::CheckBytes(values, count, "the array of values"); !status.ok()) return status;
    std::vector<erda::KeyValue> puts(count);
    for (size_t i = 0; i < count; ++i) {
      if (auto status = erda::c_api::CheckBytes(keys[i].data, keys[i].size, "a key"); !status.ok()) return status;
      if (auto status = erda::c_api::CheckBytes(values[i].data, values[i].size, "a value"); !status.ok()) return status;
      puts[i].key = erda::c_api::View(keys[i].data, keys[i].size);
      puts[i].value = erda::c_api::View(values[i].data, values[i].size);
      if (options == nullptr) continue;
      if (auto status = erda::c_api::ToPutOptions(options[i], &puts[i].options); !status.ok()) return status;
    }
    if (count == 0) return {};
    const auto all = client->client->MultiPut(puts);
    if (all.empty()) return Status(erda::Code::kResourceExhausted);
    *results = erda::c_api::CopyResults(all);
    return {};
  });
}

erda_code erda_client_scan(erda_client* client, const erda_scan_options* options, erda_scan_page** page) noexcept {
  return Guarded([&]() -> Status {
    if (page == nullptr) return erda::c_api::Missing("the place for the page");
    *page = nullptr;
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    erda::ScanOptions how;
    if (auto status = erda::c_api::ToScanOptions(options, &how); !status.ok()) return status;
    const auto read = client->client->Scan(how);
    if (!read.ok()) return read.status();
    *page = erda::c_api::CopyPage(*read);
    return {};
  });
}

erda_code erda_client_buffer_make(erda_client* client, size_t value_bytes, erda_client_buffer** buffer) noexcept {
  return Guarded([&]() -> Status {
    if (buffer == nullptr) return erda::c_api::Missing("the place for the buffer");
    *buffer = nullptr;
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    auto made = client->client->MakeBuffer(value_bytes);
    if (!made.ok()) return made.status();
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): Guarded catches it
    *buffer = new erda_client_buffer{*std::move(made)};
    return {};
  });
}

void erda_client_buffer_free(erda_client_buffer* buffer) noexcept { delete buffer; }

void* erda_client_buffer_data(const erda_client_buffer* buffer) noexcept {
  return buffer == nullptr ? nullptr : buffer->buffer.bytes().data();
}
size_t erda_client_buffer_size(const erda_client_buffer* buffer) noexcept {
  return buffer == nullptr ? 0 : buffer->buffer.bytes().size();
}

erda_code erda_client_get_buffer(erda_client* client, const void* key, size_t key_size, erda_client_buffer* into,
                                 size_t* value_size) noexcept {
  return Guarded([&]() -> Status {
    if (value_size == nullptr) return erda::c_api::Missing("the place for the value's size");
    *value_size = 0;
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    if (into == nullptr) return erda::c_api::Missing("the buffer");
    const auto size = client->client->Get(erda::c_api::View(key, key_size), into->buffer);
    if (size.ok()) *value_size = *size;
    return size.status();
  });
}

erda_code erda_client_put_buffer(erda_client* client, const void* key, size_t key_size, erda_client_buffer* from,
                                 size_t value_size, const erda_put_options* options, uint64_t* version) noexcept {
  return Guarded([&]() -> Status {
    if (version != nullptr) *version = 0;
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    if (from == nullptr) return erda::c_api::Missing("the buffer");
    erda::PutOptions how;
    if (auto status = erda::c_api::ToPutOptions(options, &how); !status.ok()) return status;
    const auto put = client->client->Put(erda::c_api::View(key, key_size), from->buffer, value_size, how);
    if (put.ok() && version != nullptr) *version = *put;
    return put.status();
  });
}

erda_code erda_client_get_async(erda_client* client, const void* key, size_t key_size, erda_done done,
                                void* user) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    return client->client->GetVersionedAsync(erda::c_api::View(key, key_size), erda::c_api::Teller{done, user});
  });
}

erda_code erda_client_put_async(erda_client* client, const void* key, size_t key_size, const void* value,
                                size_t value_size, const erda_put_options* options, erda_done done,
                                void* user) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    if (auto status = erda::c_api::CheckBytes(value, value_size, "the value"); !status.ok()) return status;
    erda::PutOptions how;
    if (auto status = erda::c_api::ToPutOptions(options, &how); !status.ok()) return status;
    return client->client->PutAsync(erda::c_api::View(key, key_size), erda::c_api::View(value, value_size), how,
                                    erda::c_api::Teller{done, user});
  });
}

erda_code erda_client_delete_async(erda_client* client, const void* key, size_t key_size,
                                   const erda_delete_options* options, erda_done done, void* user) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    erda::DeleteOptions how;
    if (auto status = erda::c_api::ToDeleteOptions(options, &how); !status.ok()) return status;
    return client->client->DeleteAsync(erda::c_api::View(key, key_size), how, erda::c_api::Teller{done, user});
  });
}

erda_code erda_client_increment_async(erda_client* client, const void* key, size_t key_size, int64_t delta,
                                      erda_done done, void* user) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    return client->client->IncrementAsync(erda::c_api::View(key, key_size), delta, erda::c_api::Teller{done, user});
  });
}

erda_code erda_client_get_buffer_async(erda_client* client, const void* key, size_t key_size, erda_client_buffer* into,
                                       erda_done done, void* user) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    if (into == nullptr) return erda::c_api::Missing("the buffer");
    return client->client->GetAsync(erda::c_api::View(key, key_size), into->buffer, erda::c_api::Teller{done, user});
  });
}

erda_code erda_client_put_buffer_async(erda_client* client, const void* key, size_t key_size, erda_client_buffer* from,
                                       size_t value_size, const erda_put_options* options, erda_done done,
                                       void* user) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::Check(client, key, key_size); !status.ok()) return status;
    if (from == nullptr) return erda::c_api::Missing("the buffer");
    erda::PutOptions how;
    if (auto status = erda::c_api::ToPutOptions(options, &how); !status.ok()) return status;
    return client->client->PutAsync(erda::c_api::View(key, key_size), from->buffer, value_size, how,
                                    erda::c_api::Teller{done, user});
  });
}

erda_code erda_client_poll(erda_client* client, size_t* finished) noexcept {
  return Guarded([&]() -> Status {
    if (finished != nullptr) *finished = 0;
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    size_t ended = 0;
    auto status = erda::Client::Access::Poll(*client->client, &ended);
    if (finished != nullptr) *finished = ended;
    return status;
  });
}

erda_code erda_client_wait(erda_client* client, int64_t timeout_ms, size_t at_least, size_t* finished) noexcept {
  return Guarded([&]() -> Status {
    if (finished != nullptr) *finished = 0;
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    constexpr int64_t kMost = int64_t{1} << 40;  // The largest timeout of a client.
    const std::chrono::milliseconds timeout(std::clamp<int64_t>(timeout_ms, 0, kMost));
    auto ended = client->client->Wait(timeout, at_least);
    if (!ended.ok()) return ended.status();
    if (finished != nullptr) *finished = *ended;
    return {};
  });
}

int erda_client_descriptor(const erda_client* client) noexcept {
  return client == nullptr ? -1 : client->client->descriptor();
}

erda_code erda_client_arm(erda_client* client, int64_t* sleep_ms) noexcept {
  return Guarded([&]() -> Status {
    if (sleep_ms == nullptr) return erda::c_api::Missing("the place for the time");
    *sleep_ms = 0;
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    const auto at_most = client->client->Arm();
    if (!at_most.ok()) return at_most.status();
    *sleep_ms = at_most->count();
    return {};
  });
}

erda_code erda_client_drain(erda_client* client) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    return client->client->Drain();
  });
}

erda_code erda_client_clean(erda_client* client) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    return client->client->Clean();
  });
}

erda_code erda_client_get_stats(const erda_client* client, erda_client_stats* stats) noexcept {
  return Guarded([&]() -> Status {
    if (stats == nullptr) return erda::c_api::Missing("the place for the counts");
    if (stats->size < erda::c_api::kStatsLeast) return {erda::Code::kInvalidArgument, "the counts' size is not set"};
    static_assert(sizeof(*stats) == sizeof(stats->size) + sizeof(erda::ClientStats), "one count for each");
    const erda::ClientStats now = client == nullptr ? erda::ClientStats() : client->client->stats();
    const size_t size = stats->size;
    erda::c_api::SetDefaults(stats, size, erda::c_api::kStatsLeast,
                             {size, now.gets, now.puts, now.deletes, now.failures, now.reads, now.read_bytes,
                              now.requests, now.nvm_bytes_written, now.second_looks, now.cache_hits, now.cache_misled,
                              now.older_versions, now.reconnects, now.sleeps});
    return erda::c_api::Check(client);
  });
}

erda_code erda_client_get_server_info(erda_client* client, erda_server_info** info) noexcept {
  return Guarded([&]() -> Status {
    if (info == nullptr) return erda::c_api::Missing("the place for the pairs");
    *info = nullptr;
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    const auto pairs = client->client->ServerInfo();
    if (!pairs.ok()) return pairs.status();
    *info = erda::c_api::CopyInfo(*pairs);
    return {};
  });
}

erda_code erda_client_get_activity(erda_client* client, erda_activity** activity) noexcept {
  return Guarded([&]() -> Status {
    if (activity == nullptr) return erda::c_api::Missing("the place for what the server did");
    *activity = nullptr;
    if (auto status = erda::c_api::Check(client); !status.ok()) return status;
    const auto did = client->client->ServerActivity();
    if (!did.ok()) return did.status();
    *activity = erda::c_api::CopyActivity(*did);
    return {};
  });
}

uint64_t erda_client_quantile_ns(const uint64_t* counts, size_t buckets, double share) noexcept {
  return erda::c_api::QuantileNanos(counts, buckets, share);
}

size_t erda_client_max_value_bytes(const erda_client* client, size_t key_size) noexcept {
  return client == nullptr ? 0 : client->client->max_value_bytes(key_size);
}
// NOLINTEND(readability-identifier-naming)
