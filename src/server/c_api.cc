// The C API of the server. Each function calls one of erda::Server, and turns the C++ types that C does not have into
// plain ones.
#include "server/c_api.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/c_activity.h"
#include "base/c_api.h"
#include "format/counters.h"

struct erda_server {
  std::unique_ptr<erda::Server> server;
  std::string durability;
};

namespace erda::c_api {

erda_server_options DefaultServerOptions() noexcept {
  const ServerOptions defaults;
  erda_server_options options{};
  options.size = sizeof(options);
  options.pool_size = defaults.pool_size;
  options.shards = defaults.shards;
  options.max_clients = defaults.max_clients;
  options.region_size = defaults.region_size;
  options.segment_size = defaults.segment_size;
  options.index_entries = defaults.index_entries;
  options.grow_to = defaults.grow_to;
  options.populate = defaults.populate ? 1 : 0;
  options.slots_per_client = defaults.slots_per_client;
  options.slot_bytes = defaults.slot_bytes;
  options.reservations_per_client = defaults.reservations_per_client;
  options.clients_per_token = defaults.clients_per_token;
  options.requests_per_second = defaults.requests_per_second;
  options.connects_per_second = defaults.connects_per_second;
  options.shm_access = static_cast<int>(defaults.shm_access);
  options.pool_writes = static_cast<int>(defaults.pool_writes);
  options.staging_bytes = defaults.staging_bytes;
  options.flush = static_cast<int>(defaults.flush);
  options.polling = static_cast<int>(defaults.polling);
  options.scrub_rate = defaults.scrub_rate;
  options.spin_us = defaults.spin.count();
  options.nvm_write_latency_ns = defaults.nvm_write_latency.count();
  options.sync_ms = defaults.sync.count();
  options.journal_on_tmpfs = defaults.journal_on_tmpfs ? 1 : 0;
  options.journal_size = defaults.journal_size;
  options.journal_interval_ms = defaults.journal_interval.count();
  return options;
}

Result<ServerOptions> ToServerOptions(const erda_server_options& options) {
  ServerOptions to;
  if (options.pool == nullptr) return Missing("the pool");
  if (options.listen == nullptr && options.listen_count > 0) return Missing("the array of addresses");
  to.pool = options.pool;
  to.pool_size = options.pool_size;
  for (size_t i = 0; i < options.listen_count; ++i) {
    if (options.listen[i] == nullptr) return Missing("an address");
    to.listen.emplace_back(options.listen[i]);
  }
  to.shards = options.shards;
  to.region_size = options.region_size;
  to.segment_size = options.segment_size;
  to.index_entries = options.index_entries;
  to.grow_to = options.grow_to;
  to.populate = options.populate != 0;
  to.max_clients = options.max_clients;
  to.slots_per_client = options.slots_per_client;
  to.slot_bytes = options.slot_bytes;
  to.reservations_per_client = options.reservations_per_client;
  to.clients_per_token = options.clients_per_token;
  to.requests_per_second = options.requests_per_second;
  to.connects_per_second = options.connects_per_second;
  if (options.token_file != nullptr) to.token_file = options.token_file;
  to.shm_access = EnumOf<ShmAccess>(options.shm_access);
  to.pool_writes = EnumOf<PoolWrites>(options.pool_writes);
  to.staging_bytes = options.staging_bytes;
  to.flush = EnumOf<FlushChoice>(options.flush);
  to.scrub_rate = options.scrub_rate;
  if (options.on_damage != nullptr) {
    to.on_damage = [tell = options.on_damage, user = options.on_damage_user](std::string_view key) {
      tell(user, key.empty() ? nullptr : key.data(), key.size());
    };
  }
  if (options.on_event != nullptr) {
    to.on_event = [tell = options.on_event, user = options.on_event_user](std::string_view line) {
      ShortText text;
      CopyShort(line, &text);
      tell(user, text.data());
    };
  }
  to.polling = EnumOf<Polling>(options.polling);
  to.spin = std::chrono::microseconds(options.spin_us);
  to.nvm_write_latency = std::chrono::nanoseconds(options.nvm_write_latency_ns);
  to.sync = std::chrono::milliseconds(options.sync_ms);
  to.journal_on_tmpfs = options.journal_on_tmpfs != 0;
  if (options.journal != nullptr) to.journal = options.journal;
  to.journal_size = options.journal_size;
  to.journal_interval = std::chrono::milliseconds(options.journal_interval_ms);
  if (options.journal_memory != nullptr) to.journal_memory = options.journal_memory;
  if (options.journal_front != nullptr) to.journal_front = options.journal_front;
  if (options.archive != nullptr) to.archive = options.archive;
  return to;
}

ServerLimits ToServerLimits(const erda_server_limits& limits) {
  ServerLimits to;
  to.clients_per_token = limits.clients_per_token;
  to.requests_per_second = limits.requests_per_second;
  to.connects_per_second = limits.connects_per_second;
  if (limits.token_file != nullptr) to.token_file = limits.token_file;
  return to;
}

erda_server_stats StatsOf(const ServerStats& stats) noexcept {
  erda_server_stats to{};
  to.size = sizeof(to);
#define ERDA_COPY(field) to.field = stats.field;
  ERDA_STATISTICS(ERDA_COPY)
#undef ERDA_COPY
  return to;
}

erda_recovery_report ReportOf(const RecoveryReport& report) noexcept {
  erda_recovery_report to{};
  to.size = sizeof(to);
  to.objects = report.objects;
  to.index_slots = report.index_slots;
  to.unsettled = report.unsettled;
  to.settled = report.settled;
  to.taken_back = report.taken_back;
  to.dropped = report.dropped;
  to.deletes_finished = report.deletes_finished;
  to.damaged = report.damaged;
  to.moves_undone = report.moves_undone;
  to.regions_unlinked = report.regions_unlinked;
  to.time_ns = report.time.count();
  to.shards_verified = report.shards_verified;
  return to;
}

namespace {

// The sizes that these structures had in the first version of the API.
constexpr size_t kServerOptionsLeast = sizeof(erda_server_options);
constexpr size_t kServerLimitsLeast = sizeof(erda_server_limits);
constexpr size_t kServerStatsLeast = sizeof(erda_server_stats);
constexpr size_t kReportLeast = sizeof(erda_recovery_report);

Status CheckServer(const erda_server* server) { return server == nullptr ? Missing("the server") : Status(); }

erda_server_addresses* CopyAddresses(const std::vector<std::string>& from) {
  Piece piece;
  size_t bytes = 0;
  for (const auto& address : from) bytes += address.size() + 1;
  piece.Ask<erda_server_addresses>(1);
  const size_t texts_at = piece.Ask<const char*>(from.size());
  size_t at = piece.Ask<char>(bytes);
  piece.Make();
  auto* texts = piece.At<const char*>(texts_at);
  for (size_t i = 0; i < from.size(); ++i) texts[i] = piece.CopyText(&at, from[i]);
  *piece.At<erda_server_addresses>(0) = {texts, from.size()};
  return piece.Release<erda_server_addresses>();
}

erda_server_fabrics* CopyFabrics(const std::vector<ServerFabric>& from) {
  Piece piece;
  size_t bytes = 0;
  for (const auto& fabric : from) bytes += fabric.scheme.size() + fabric.device.size() + fabric.flush_method.size() + 3;
  piece.Ask<erda_server_fabrics>(1);
  const size_t fabrics_at = piece.Ask<erda_server_fabric>(from.size());
  size_t at = piece.Ask<char>(bytes);
  piece.Make();
  auto* fabrics = piece.At<erda_server_fabric>(fabrics_at);
  for (size_t i = 0; i < from.size(); ++i) {
    fabrics[i].scheme = piece.CopyText(&at, from[i].scheme);
    fabrics[i].device = piece.CopyText(&at, from[i].device);
    fabrics[i].flush_method = piece.CopyText(&at, from[i].flush_method);
    fabrics[i].registered_in_ns = from[i].registered_in.count();
  }
  *piece.At<erda_server_fabrics>(0) = {fabrics, from.size()};
  return piece.Release<erda_server_fabrics>();
}

// Copies the counts into a structure of the caller, which holds its own size.
template <class Counts>
Status Give(Counts* to, size_t least, const Counts& counts) {
  if (to->size < least) return {Code::kInvalidArgument, "the counts' size is not set"};
  SetDefaults(to, to->size, least, counts);
  return {};
}

// Sets *to to a copy that the caller frees, or to NULL if the server has nothing to copy.
template <class Pieces, class Copy>
erda_code GetCopy(const erda_server* server, Pieces** to, const char* place, const Copy& copy) {
  return Guarded([&]() -> Status {
    if (to == nullptr) return Missing(place);
    *to = nullptr;
    if (auto status = CheckServer(server); !status.ok()) return status;
    *to = copy();
    return {};
  });
}

}  // namespace
}  // namespace erda::c_api

// NOLINTBEGIN(readability-identifier-naming): C's names
using erda::Status;
using erda::c_api::Guarded;

const char* erda_server_error(void) noexcept { return erda::c_api::last_error.data(); }

const char* erda_server_code_name(erda_code code) noexcept {
  const int number = code;
  return erda::CodeName(erda::c_api::EnumOf<erda::Code>(number)).data();
}

void erda_server_free(void* allocated) noexcept { std::free(allocated); }

void erda_server_options_init(erda_server_options* options, size_t size) noexcept {
  erda::c_api::SetDefaults(options, size, erda::c_api::kServerOptionsLeast, erda::c_api::DefaultServerOptions());
}

erda_code erda_server_open(const erda_server_options* options, erda_server** server) noexcept {
  return Guarded([&]() -> Status {
    if (server == nullptr) return erda::c_api::Missing("the place for the server");
    *server = nullptr;
    if (options == nullptr) return erda::c_api::Missing("the options");
    auto known = erda::c_api::DefaultServerOptions();
    if (auto status = erda::c_api::ReadOptions(options, erda::c_api::kServerOptionsLeast, &known); !status.ok()) {
      return status;
    }
    auto how = erda::c_api::ToServerOptions(known);
    if (!how.ok()) return how.status();
    auto opened = erda::Server::Open(*std::move(how));
    if (!opened.ok()) return opened.status();
    std::string durability = (*opened)->durability();
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): Guarded catches it
    *server = new erda_server{*std::move(opened), std::move(durability)};
    return {};
  });
}

erda_code erda_server_start(erda_server* server) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::CheckServer(server); !status.ok()) return status;
    return server->server->Start();
  });
}

erda_code erda_server_reload(erda_server* server, const erda_server_limits* limits) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::CheckServer(server); !status.ok()) return status;
    if (limits == nullptr) return erda::c_api::Missing("the limits");
    erda_server_limits known{};
    if (auto status = erda::c_api::ReadOptions(limits, erda::c_api::kServerLimitsLeast, &known); !status.ok()) {
      return status;
    }
    return server->server->Reload(erda::c_api::ToServerLimits(known));
  });
}

erda_code erda_server_stop(erda_server* server) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::CheckServer(server); !status.ok()) return status;
    return server->server->Stop();
  });
}

void erda_server_close(erda_server* server) noexcept { delete server; }

erda_code erda_server_get_addresses(const erda_server* server, erda_server_addresses** addresses) noexcept {
  return erda::c_api::GetCopy(server, addresses, "the place for the addresses",
                              [&] { return erda::c_api::CopyAddresses(server->server->addresses()); });
}

erda_code erda_server_get_stats(const erda_server* server, erda_server_stats* stats) noexcept {
  return Guarded([&]() -> Status {
    if (stats == nullptr) return erda::c_api::Missing("the place for the counts");
    const erda::ServerStats now = server == nullptr ? erda::ServerStats() : server->server->stats();
    auto status = erda::c_api::Give(stats, erda::c_api::kServerStatsLeast, erda::c_api::StatsOf(now));
    return status.ok() ? erda::c_api::CheckServer(server) : status;
  });
}

erda_code erda_server_get_activity(const erda_server* server, erda_activity** activity) noexcept {
  return erda::c_api::GetCopy(server, activity, "the place for what the server did",
                              [&] { return erda::c_api::CopyActivity(server->server->activity()); });
}

uint64_t erda_server_quantile_ns(const uint64_t* counts, size_t buckets, double share) noexcept {
  return erda::c_api::QuantileNanos(counts, buckets, share);
}

erda_code erda_server_get_fabrics(const erda_server* server, erda_server_fabrics** fabrics) noexcept {
  return erda::c_api::GetCopy(server, fabrics, "the place for the fabrics",
                              [&] { return erda::c_api::CopyFabrics(server->server->fabrics()); });
}

erda_code erda_server_get_recovery(const erda_server* server, erda_recovery_report* report) noexcept {
  return Guarded([&]() -> Status {
    if (report == nullptr) return erda::c_api::Missing("the place for the report");
    const auto found = server == nullptr ? std::nullopt : server->server->recovery();
    const erda::RecoveryReport known = found.value_or(erda::RecoveryReport());
    auto status = erda::c_api::Give(report, erda::c_api::kReportLeast, erda::c_api::ReportOf(known));
    if (status.ok()) status = erda::c_api::CheckServer(server);
    return status.ok() && !found ? Status(erda::Code::kNotFound) : status;
  });
}

uint64_t erda_server_growth_limit(const erda_server* server) noexcept {
  return server == nullptr ? 0 : server->server->growth_limit();
}

erda_code erda_server_health(const erda_server* server) noexcept {
  return Guarded([&]() -> Status {
    if (auto status = erda::c_api::CheckServer(server); !status.ok()) return status;
    return server->server->health();
  });
}

const char* erda_server_durability(const erda_server* server) noexcept {
  return server == nullptr ? "" : server->durability.c_str();
}
// NOLINTEND(readability-identifier-naming)
