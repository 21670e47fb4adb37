#include "server/server_shards.h"

#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/descriptors.h"
#include "server/shard.h"

namespace erda::server {

using format::Counter;

namespace {

// How long EndSessions waits for clients that are in the middle of a Write.
constexpr std::chrono::seconds kPatience{1};

uint64_t RandomServerId() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

ShardOptions OptionsOfShards(const ServerOptions& options, const ServerTime* time) {
  ShardOptions of;
  of.max_clients = options.max_clients;
  of.slots_per_client = options.slots_per_client;
  of.slot_bytes = options.slot_bytes;
  of.reservations_per_client = options.reservations_per_client;
  of.clients_per_token = options.clients_per_token;
  of.requests_per_second = options.requests_per_second;
  of.pool_writes = options.pool_writes;
  of.staging_bytes = options.staging_bytes;
  of.server_id = RandomServerId();
  of.time = time;
  return of;
}

}  // namespace

ServerShards::~ServerShards() {
  for (uint32_t number = 0; number < threads_.size(); ++number) pool_->OnHeld(number, {});
}

Status ServerShards::Make(FormattedPool& pool, const ServerFabrics& fabrics, const ServerOptions& options,
                          const Gate* gate) {
  time_.emplace(
      ServerTime::From(SteadyClock::Instance(), ServerTime::WallMicros(), pool.time(), ExpiryClock::kNoteAhead * 1000));
  pool_ = &pool.pool();
  const ShardOptions of_shards = OptionsOfShards(options, &*time_);
  const uint32_t shards = pool.geometry().shards;
  for (uint32_t number = 0; number < shards; ++number) {
    auto queues = fabrics.CreateQueues();
    if (!queues.ok()) return queues.status();
    auto thread = std::make_unique<ShardThread>(*std::move(queues), options.polling, options.spin,
                                                options.scrub_rate / shards, gate);
    auto shard = Shard::Create(pool, number, fabrics.PortsOf(*thread), of_shards);
    if (!shard.ok()) return shard.status();
    if (options.on_damage) (*shard)->data().OnDamage(options.on_damage);
    (*shard)->OnEvent(options.on_event);
    thread->set_shard(*std::move(shard));
    threads_.push_back(std::move(thread));
    pool_->OnHeld(number, [woken = threads_.back().get()](const nvm::JournalCounts& counts) {
      woken->shard().control().CountJournal(counts);
      woken->Wake();
    });
  }
  return {};
}

Status ServerShards::TakeUp(const FormattedPool& pool, const TellDamage& tell, std::optional<RecoveryReport>* report) {
  const Nanoseconds begin = SteadyClock::Instance().Now();
  for (const auto& thread : threads_) {
    if (auto status = thread->shard().data().TakeUp(); !status.ok()) return status;
  }
  if (pool.needs_recovery()) {
    if (auto status = Recover(pool, tell, report); !status.ok()) return status;
    (*report)->time = SteadyClock::Instance().Now() - begin;
    threads_.front()->shard().control().CountRecovery(**report);
  }
  for (const auto& thread : threads_) thread->shard().data().BeginCleaning();
  return {};
}

Status ServerShards::Recover(const FormattedPool& pool, const TellDamage& tell, std::optional<RecoveryReport>* report) {
  report->emplace();
  for (const auto& thread : threads_) {
    RecoveryReport one;
    if (!pool.needs_verification()) {
      one = thread->shard().data().Repair();
    } else {
      const TellDamage told = tell ? tell : [](std::string_view /*key*/) {};
      if (auto status = thread->shard().data().Verify(told, &one); !status.ok()) return status;
    }
    **report += one;
  }
  return {};
}

Status ServerShards::Start() {
  for (const auto& thread : threads_) {
    if (auto status = thread->Start(); !status.ok()) return status;
  }
  return {};
}

void ServerShards::Stop() {
  for (const auto& thread : threads_) thread->Stop();
}

void ServerShards::EndSessions() {
  const Nanoseconds begin = SteadyClock::Instance().Now();
  for (;;) {
    bool ended = true;
    for (const auto& thread : threads_) ended &= thread->shard().EndSessions();
    if (ended || SteadyClock::Instance().Now() - begin >= kPatience) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void ServerShards::Close() {
  for (const auto& thread : threads_) thread->Close();
}

void ServerShards::SetLimits(const ServerLimits& limits) {
  for (const auto& thread : threads_) thread->shard().SetLimits(limits.clients_per_token, limits.requests_per_second);
}

void ServerShards::TokensChanged() {
  for (const auto& thread : threads_) thread->TokensChanged();
}

uint64_t ServerShards::WrittenBytes() const {
  uint64_t bytes = 0;
  for (const auto& thread : threads_) {
    bytes += thread->shard().counters().Get(Counter::kNvmBytes);
    bytes += thread->shard().counters().Get(Counter::kCleanNvmBytes);
  }
  return bytes;
}

ServerStats ServerShards::Stats() const {
  ServerStats stats;
  stats.shards = static_cast<uint32_t>(threads_.size());
  for (const auto& thread : threads_) {
    const auto& counters = thread->shard().counters();
#define ERDA_ADD(field, counter) stats.field += counters.Get(Counter::counter);
    ERDA_SUMMED_STATISTICS(ERDA_ADD)
#undef ERDA_ADD
  }
  stats.descriptors = CountDescriptors();
  stats.puts = stats.puts_inline + stats.puts_reserved + stats.puts_delegated;
  return stats;
}

Activity ServerShards::WhatWasDone() const {
  Activity activity;
  for (const auto& thread : threads_) thread->shard().control().AddActivity(&activity);
  return activity;
}

}  // namespace erda::server
