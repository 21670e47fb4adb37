#include "server/check_options.h"

#include <string>

#include "base/option_bounds.h"

namespace erda::server {

namespace {

// of: ServerOptions or ServerLimits.
template <class Options>
void CheckLimitsOf(const Options& of, Bounds* bounds) {
  bounds->Check(kServerBounds.clients_per_token, of.clients_per_token);
  bounds->Check(kServerBounds.requests_per_second, of.requests_per_second);
  bounds->Check(kServerBounds.connects_per_second, of.connects_per_second);
}

}  // namespace

Status CheckOptions(const ServerOptions& options) {
  if (options.listen.empty()) return {Code::kInvalidArgument, "a server needs an address to listen on"};
  Bounds bounds;
  bounds.Check(kServerBounds.pool_size, options.pool_size);
  bounds.Check(kServerBounds.shards, options.shards);
  bounds.Check(kServerBounds.region_size, options.region_size);
  bounds.Check(kServerBounds.segment_size, options.segment_size);
  bounds.Check(kServerBounds.index_entries, options.index_entries);
  bounds.Check(kServerBounds.grow_to, options.grow_to);
  bounds.Check(kServerBounds.max_clients, options.max_clients);
  bounds.Check(kServerBounds.slots_per_client, options.slots_per_client);
  bounds.Check(kServerBounds.slot_bytes, options.slot_bytes);
  if (options.slot_bytes % 64 != 0) bounds.Refuse(kServerBounds.slot_bytes, std::to_string(options.slot_bytes));
  bounds.Check(kServerBounds.reservations_per_client, options.reservations_per_client);
  CheckLimitsOf(options, &bounds);
  bounds.Check(kServerBounds.shm_access, static_cast<uint8_t>(options.shm_access));
  bounds.Check(kServerBounds.pool_writes, static_cast<uint8_t>(options.pool_writes));
  bounds.Check(kServerBounds.staging_bytes, options.staging_bytes);
  bounds.Check(kServerBounds.flush, static_cast<uint8_t>(options.flush));
  bounds.Check(kServerBounds.sync, options.sync.count());
  bounds.Check(kServerBounds.journal_size, options.journal_size);
  bounds.Check(kServerBounds.journal_interval, options.journal_interval.count());
  bounds.Check(kServerBounds.scrub_rate, options.scrub_rate);
  bounds.Check(kServerBounds.polling, static_cast<uint8_t>(options.polling));
  bounds.Check(kServerBounds.spin, options.spin.count());
  bounds.Check(kServerBounds.nvm_write_latency, options.nvm_write_latency.count());
  return bounds.status();
}

Status CheckLimits(const ServerLimits& limits) {
  Bounds bounds;
  CheckLimitsOf(limits, &bounds);
  return bounds.status();
}

}  // namespace erda::server
