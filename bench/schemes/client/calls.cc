// The synchronous calls, and their waiting.
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/relax.h"
#include "bench/schemes/client/scheme_client.h"

namespace erda::schemes {

namespace {

// How long a call looks before it sleeps, and the number of looks between two looks at the clock. They are those of
// Erda's client (src/client/client.cc).
constexpr std::chrono::microseconds kSpin{50};
constexpr uint32_t kLooksPerClock = 64;
constexpr std::chrono::milliseconds kSleep{10};

}  // namespace

template <class Done>
void SchemeClient::WaitFor(Done&& done) {
  Relax relax;
  Nanoseconds idle_since{0};
  while (!done()) {
    if (Poll() > 0) {
      relax.Reset();
      idle_since = Nanoseconds(0);
      continue;
    }
    if (options_.polling == Polling::kBusy) {
      Relax::Pause();
      continue;
    }
    if (options_.polling == Polling::kAdaptive) {
      relax.Step();
      if (relax.steps() % kLooksPerClock != 0) continue;
      const Nanoseconds now = SteadyClock::Instance().Now();
      if (idle_since.count() == 0) idle_since = now;
      if (now - idle_since <= kSpin) continue;
    }
    queue_->Wait(kSleep);
    polls_ = UINT32_MAX;  // Time has passed, so the next Poll looks at the clock.
  }
}

template <class Start>
Status SchemeClient::RunToEnd(Outcome& outcome, Start&& start) {
  const auto has_room = [this] { return in_flight_ < options_.queue_depth; };
  if (!has_room()) WaitFor(has_room);
  if (auto status = start(); !status.ok()) return status;
  WaitFor([&outcome] { return outcome.finished; });
  return std::move(outcome.status);
}

Result<size_t> SchemeClient::Get(std::string_view key, std::span<std::byte> out) {
  struct GetOutcome : Outcome {
    std::span<std::byte> out;
    size_t size = 0;
  } get;
  get.out = out;
  const auto take = [&get](const Result<std::string_view>& value) {
    if (!value.ok()) return get.Set(value.status());
    if (value->size() > get.out.size()) return get.Set({Code::kInvalidArgument, "the buffer is too short"});
    get.size = value->size();
    if (!value->empty()) std::memcpy(get.out.data(), value->data(), value->size());
    get.Set(Status());
  };
  if (auto status = RunToEnd(get, [&] { return GetAsync(key, take); }); !status.ok()) return status;
  return get.size;
}

Status SchemeClient::Put(std::string_view key, std::string_view value) {
  Outcome outcome;
  const auto end = [&outcome](Status status) { outcome.Set(std::move(status)); };
  return RunToEnd(outcome, [&] { return PutAsync(key, value, end); });
}

Status SchemeClient::Delete(std::string_view key) {
  Outcome outcome;
  const auto end = [&outcome](Status status) { outcome.Set(std::move(status)); };
  return RunToEnd(outcome, [&] { return DeleteAsync(key, end); });
}

Result<Counters> SchemeClient::ServerCounters() {
  Outcome outcome;
  Counters counters{};
  const auto take = [&outcome, &counters](const Result<std::string_view>& value) {
    if (!value.ok()) return outcome.Set(value.status());
    if (value->size() < sizeof(counters)) return outcome.Set({Code::kInternal, "the server's counters are cut off"});
    counters = LoadAs<Counters>(AsBytes(*value));
    outcome.Set(Status());
  };
  Status status = RunToEnd(outcome, [&] {
    auto op = NewOperation(RequestOp::kCounters, "", 0);
    if (!op.ok()) return op.status();
    (*op)->get_done = take;
    Begin(**op);
    return Status();
  });
  if (!status.ok()) return status;
  return counters;
}

Result<uint64_t> SchemeClient::ServerNvmBytes() {
  const auto counters = ServerCounters();
  if (!counters.ok()) return counters.status();
  return counters->nvm_bytes;
}

}  // namespace erda::schemes
