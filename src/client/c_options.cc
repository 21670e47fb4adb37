#include "client/c_options.h"

#include <chrono>
#include <cstddef>

#include "base/c_api.h"

namespace erda::c_api {

namespace {

// The sizes that these structures had in the first version of the API.
constexpr size_t kClientOptionsLeast = offsetof(erda_client_options, wait_for_room);
constexpr size_t kPutOptionsLeast = sizeof(erda_put_options);
constexpr size_t kDeleteOptionsLeast = sizeof(erda_delete_options);
constexpr size_t kScanOptionsLeast = sizeof(erda_scan_options);

erda_client_options DefaultClientOptions() noexcept {
  const ClientOptions defaults;
  erda_client_options options{};
  options.size = sizeof(options);
  options.ack = static_cast<int>(defaults.ack);
  options.put_path = static_cast<int>(defaults.put_path);
  options.polling = static_cast<int>(defaults.polling);
  options.queue_depth = defaults.queue_depth;
  options.cache_entries = defaults.cache_entries;
  options.timeout_ms = defaults.timeout.count();
  options.wait_for_room = defaults.wait_for_room ? 1 : 0;
  return options;
}
erda_scan_options DefaultScanOptions() noexcept {
  const ScanOptions defaults;
  return {sizeof(erda_scan_options), defaults.cursor, defaults.keys, defaults.bytes, defaults.values ? 1 : 0};
}

}  // namespace

Status ToClientOptions(const erda_client_options* options, ClientOptions* to) {
  auto known = DefaultClientOptions();
  if (auto status = ReadOptions(options, kClientOptionsLeast, &known); !status.ok()) {
    return status;
  }
  to->ack = EnumOf<Ack>(known.ack);
  to->put_path = EnumOf<PutPath>(known.put_path);
  to->polling = EnumOf<Polling>(known.polling);
  to->queue_depth = known.queue_depth;
  to->cache_entries = known.cache_entries;
  to->timeout = std::chrono::milliseconds(known.timeout_ms);
  if (known.token != nullptr) to->token = known.token;
  if (known.token_file != nullptr) to->token_file = known.token_file;
  to->wait_for_room = known.wait_for_room != 0;
  return {};
}

Status ToPutOptions(const erda_put_options* options, PutOptions* to) {
  erda_put_options known{};
  if (auto status = ReadOptions(options, kPutOptionsLeast, &known); !status.ok()) return status;
  if (known.conditional != 0) to->if_version = known.if_version;
  if (known.ttl_ms != 0) to->ttl = std::chrono::milliseconds(known.ttl_ms);
  return {};
}

Status ToDeleteOptions(const erda_delete_options* options, DeleteOptions* to) {
  erda_delete_options known{};
  if (auto status = ReadOptions(options, kDeleteOptionsLeast, &known); !status.ok()) return status;
  if (known.conditional != 0) to->if_version = known.if_version;
  return {};
}

Status ToScanOptions(const erda_scan_options* options, ScanOptions* to) {
  auto known = DefaultScanOptions();
  if (auto status = ReadOptions(options, kScanOptionsLeast, &known); !status.ok()) return status;
  *to = {.cursor = known.cursor, .keys = known.keys, .bytes = known.bytes, .values = known.values != 0};
  return {};
}

}  // namespace erda::c_api

// NOLINTBEGIN(readability-identifier-naming): C's names
void erda_client_options_init(erda_client_options* options, size_t size) noexcept {
  erda::c_api::SetDefaults(options, size, erda::c_api::kClientOptionsLeast, erda::c_api::DefaultClientOptions());
}
void erda_client_put_options_init(erda_put_options* options, size_t size) noexcept {
  erda::c_api::SetDefaults(options, size, erda::c_api::kPutOptionsLeast, {});
}
void erda_client_delete_options_init(erda_delete_options* options, size_t size) noexcept {
  erda::c_api::SetDefaults(options, size, erda::c_api::kDeleteOptionsLeast, {});
}
void erda_client_scan_options_init(erda_scan_options* options, size_t size) noexcept {
  erda::c_api::SetDefaults(options, size, erda::c_api::kScanOptionsLeast, erda::c_api::DefaultScanOptions());
}
// NOLINTEND(readability-identifier-naming)
