#include "server/threads.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/relax.h"
#include "base/shortage.h"
#include "base/start_thread.h"
#include "server/spin_time.h"
#include "server/tidy_timer.h"

namespace erda::server {

namespace {

constexpr std::chrono::hours kForever{1};
// How often a doorman looks for a change of the token file.
constexpr std::chrono::seconds kLookAtTokens{1};
// After this number of Polls, a shard that is never idle lets other threads on its processor run. Otherwise clients on
// that processor, whose requests it has answered, would wait until its time slice ends. Meanwhile it would serve the
// clients on other processors. Between two breaks, a client on the same processor gets one answer, and a client
// elsewhere gets one for each Poll. In a crowd, clients on the same processor are a large part of all, so the breaks
// come sooner. With few clients, such breaks would only cost time.
constexpr uint32_t kBusyPollsPerBreak = 64;
constexpr uint32_t kPollsPerBreakInCrowd = 16;
constexpr uint64_t kCrowd = 32;
// How often the cleaner scrubs and looks for expired values.
constexpr uint64_t kTicksPerSecond = 10;
// The cleaner counts descriptors once in this many ticks.
constexpr uint64_t kTicksPerCount = 10;
// Looks for work between two looks at the clock.
constexpr uint32_t kLooksPerClock = 16;
// Polls of a busy shard between two looks at the clock, while requests await writers. The shard is told of that time in
// steps of kAwaitedStep.
constexpr uint32_t kPollsPerClock = 64;
constexpr Nanoseconds kAwaitedStep = std::chrono::milliseconds(5);
// The longest sleep while requests await writers. If the thread did not run for longer than this, the writers perhaps
// did not run either.
constexpr Nanoseconds kAwaitedSleep = std::chrono::milliseconds(250);
// As many clients as the rate allows in this time may come at once: those of a program that starts, or all after a
// restart.
constexpr uint64_t kConnectBurstMicros = 1'000'000;

}  // namespace

// --- ShardThread

ShardThread::ShardThread(std::vector<std::unique_ptr<fabric::CompletionQueue>> queues, Polling polling,
                         std::chrono::nanoseconds spin, uint64_t scrub_rate, const Gate* gate)
    : queues_(std::move(queues)),
      polling_(polling),
      spin_(polling == Polling::kSleep ? Nanoseconds(0) : spin),
      scrub_rate_(scrub_rate),
      gate_(gate) {}

ShardThread::~ShardThread() { Stop(); }

Status ShardThread::Start() {
  if (!cleaner_event_.Create())
    return {Code::kResourceExhausted,
            "cannot create an event descriptor: the process or the machine has too many open files"};
  shard_->data().clean_queues().bell.wake = [this] { cleaner_event_.Ring(); };
  const std::string number = std::to_string(shard_->number());
  const Status status = StartThread(
      "erda-clean" + number, [this] { Clean(); }, &cleaner_thread_);
  return status.ok() ? StartThread(
                           "erda-shard" + number, [this] { Run(); }, &thread_)
                     : status;
}

void ShardThread::Stop() {
  stop_.store(true, std::memory_order_release);  // pairs with the acquire in Run and in Clean
  Wake();
  if (shard_) shard_->data().clean_queues().bell.Ring();
  if (cleaner_thread_.joinable()) cleaner_thread_.join();
  if (thread_.joinable()) thread_.join();
  newcomers_.clear();  // this refuses them
}

void ShardThread::Admit(Newcomer newcomer) {
  {
    const std::scoped_lock lock(mutex_);
    newcomers_.push_back(std::move(newcomer));
  }
  Tell();
}

void ShardThread::Tell() {
  was_told_.store(true, std::memory_order_release);  // pairs with the exchange in AdmitNewcomers
  Wake();
}

void ShardThread::Run() {
  std::vector<fabric::CompletionQueue*> queues;
  for (const auto& queue : queues_) queues.push_back(queue.get());
  if (mirror::Links* const links = shard_->links(); links != nullptr) {
    queues.insert(queues.end(), links->queues().begin(), links->queues().end());
    links->OnWait([this] { AdmitMirrors(); });
  }
  WaitSteps steps;
  TidyTimer tidy;
  SpinTime spin(spin_);
  Shortage shortage;
  bool waits = false;         // It has found nothing since it was busy.
  bool slept = false;         // Since it was busy.
  bool busy = true;           // At the last look.
  Nanoseconds idle_since{0};  // Known from the first look at the clock on: a busy shard does not look.
  uint32_t looks = 0;         // Looks that found nothing.
  uint32_t busy_polls = 0;
  bool woke = false;
  while (!stop_.load(std::memory_order_acquire)) {
    TellAwaitedTime(std::exchange(woke, false));
    size_t served = shard_->Poll();
    served += AdmitNewcomers();
    if (served > 0) {
      shortage.BeginWait();
      if (std::exchange(slept, false)) spin.CameAfter(SteadyClock::Instance().Now() - idle_since);
      if (++busy_polls % kPollsPerBreakInCrowd == 0 && polling_ != Polling::kBusy) {
        const bool crowd = shard_->counters().Get(format::Counter::kClients) >= kCrowd;
        const bool breaks = crowd || busy_polls % kBusyPollsPerBreak == 0;
        if (breaks && !(shortage.is_short() && shortage.Lasts(SteadyClock::Instance().Now()))) OfferCore(shortage);
      }
      if (std::exchange(waits, false)) steps.End();
      busy = true;
      continue;
    }
    if (!shard_->data().CountKeys()) continue;
    const bool never_sleeps = polling_ == Polling::kBusy;
    if (!std::exchange(waits, true)) steps.Begin();
    // During a shortage the shard keeps its core for some looks, or for none. Then it sleeps, and does not offer it.
    const bool offers_no_more = shortage.is_short() && !steps.keeps_core();
    const bool sleeps_at_once = !never_sleeps && (spin_.count() == 0 || offers_no_more);
    if (sleeps_at_once || ++looks % kLooksPerClock == 0) {
      const Nanoseconds now = SteadyClock::Instance().Now();
      if (busy) {
        busy = false;
        idle_since = now;
        tidy.Restart(now);
      }
      shard_->data().KeepTime();
      if (tidy.Due(now)) {
        const bool did = shard_->Tidy(tidy.Since(now)) > 0;
        tidy.Looked(now, did);
        if (did) continue;  // A front may hold by now what answers wait for.
      }
      if (!never_sleeps && (now - idle_since >= spin.now() || (offers_no_more && shortage.Lasts(now)))) {
        slept = true;
        shard_->control().counters().Add(format::Counter::kSleeps);
        Nanoseconds left = shard_->unsettled() ? tidy.Left(now) : Nanoseconds(kForever);
        if (shard_->data().keeps_time()) left = std::min(left, ShardData::kTimeAge);
        if (shard_->parked().holds_back()) left = std::min(left, shard_->parked().held_for());
        fabric::WaitAny(queues, shard_->awaits_writers() ? std::min(left, kAwaitedSleep) : left);
        woke = true;
        looks = kLooksPerClock - 1;  // without work it sleeps again at once
        continue;
      }
    }
    if (never_sleeps) {
      Relax::Pause();
    } else {
      steps.Step(shortage);
    }
  }
}

// The shard reads no clock. So this thread tells it how long requests have awaited writers.
void ShardThread::TellAwaitedTime(bool woke) {
  if (!shard_->awaits_writers()) {
    awaited_since_.reset();
    return;
  }
  if (!woke && ++awaiting_polls_ % kPollsPerClock != 0) return;
  const Nanoseconds now = SteadyClock::Instance().Now();
  if (!awaited_since_) awaited_since_ = now;
  const Nanoseconds passed = now - *awaited_since_;
  if (passed < kAwaitedStep) return;
  shard_->PassTime(std::min(passed, 2 * kAwaitedSleep));
  awaited_since_ = now;
}

// Sleeps until the shard rings the bell, or until the next tick.
void ShardThread::Clean() {
  CleanQueues& queues = shard_->data().clean_queues();
  const Nanoseconds between_ticks = Nanoseconds(std::chrono::seconds(1)) / kTicksPerSecond;
  Nanoseconds next_tick = SteadyClock::Instance().Now() + between_ticks;
  uint64_t ticks = 0;
  uint64_t proposed = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    const uint32_t rings = queues.bell.rings();  // before it looks
    const bool worked = shard_->data().cleaner().Step();
    const Nanoseconds now = SteadyClock::Instance().Now();
    if (now >= next_tick) {
      if (scrub_rate_ != 0) shard_->data().cleaner().Scrub(std::max<uint64_t>(scrub_rate_ / kTicksPerSecond, 1));
      shard_->data().cleaner().Sweep();
      if (ticks++ % kTicksPerCount == 0 && shard_->number() == 0)
        shard_->control().CountDescriptors(CountDescriptors());
      next_tick = now + between_ticks;
    }
    if (const uint64_t now_proposed = shard_->data().cleaner().proposed(); now_proposed != proposed) {
      proposed = now_proposed;
      Wake();
    }
    if (worked) {
      // Yields, so that a shard on the same processor waits for one step only. In a hurry the shard waits for the
      // cleaner anyway.
      if (!queues.hurry.load(std::memory_order_relaxed)) ::sched_yield();
      continue;
    }
    queues.bell.SleepUnlessRung(rings, [&] {
      pollfd event{cleaner_event_.get(), POLLIN, 0};
      (void)::poll(&event, 1, PollMilliseconds(next_tick - now));
      cleaner_event_.Drain();
    });
  }
}

// The shard waits for a mirror, in the middle of a request. Clients wait meanwhile.
void ShardThread::AdmitMirrors() {
  if (!was_told_.load(std::memory_order_relaxed)) return;
  std::deque<Newcomer> mirrors;
  {
    const std::scoped_lock lock(mutex_);
    const auto first = std::stable_partition(newcomers_.begin(), newcomers_.end(), [](const Newcomer& each) {
      return each.hello.role != format::Role::kMirror;
    });
    std::move(first, newcomers_.end(), std::back_inserter(mirrors));
    newcomers_.erase(first, newcomers_.end());
  }
  for (Newcomer& mirror : mirrors) {
    shard_->Admit(std::move(mirror.incoming), mirror.hello, mirror.port, mirror.admission);
  }
}

size_t ShardThread::AdmitNewcomers() {
  if (!was_told_.load(std::memory_order_relaxed)) return 0;
  if (!was_told_.exchange(false, std::memory_order_acquire)) return 0;
  std::deque<Newcomer> newcomers;
  {
    const std::scoped_lock lock(mutex_);
    newcomers.swap(newcomers_);
  }
  for (Newcomer& newcomer : newcomers) {
    shard_->Admit(std::move(newcomer.incoming), newcomer.hello, newcomer.port, newcomer.admission);
  }
  // Comes after the newcomers, with the present tokens of the gate. A newcomer may have been let in just before its
  // token was removed, or just after its token was added.
  if (gate_ != nullptr) shard_->EndOthers(*gate_->ids());
  return 1;
}

// --- Doorman

Doorman::Doorman(std::unique_ptr<fabric::Listener> listener, size_t port,
                 std::vector<std::unique_ptr<ShardThread>>& shards, Gate* gate, uint32_t per_second, TellEvent tell)
    : listener_(std::move(listener)),
      port_(port),
      shards_(shards),
      gate_(gate),
      per_second_(per_second),
      tell_(std::move(tell)) {}

Doorman::~Doorman() { Stop(); }

Status Doorman::Start() {
  return StartThread(
      "erda-doorman", [this] { Run(); }, &thread_);
}

void Doorman::Stop() {
  stop_.store(true, std::memory_order_release);  // pairs with the acquire in Run
  listener_->Wake();
  if (thread_.joinable()) thread_.join();
}

void Doorman::Run() {
  while (!stop_.load(std::memory_order_acquire)) {
    LookAtTokens();  // also between two clients: they may come without a pause
    if (auto incoming = listener_->Poll()) {
      Receive(std::move(incoming));
      continue;
    }
    listener_->Wait(gate_ != nullptr ? Nanoseconds(kLookAtTokens) : kForever);
  }
}

void Doorman::LookAtTokens() {
  if (gate_ == nullptr || !gate_->Refresh()) return;
  for (const auto& shard : shards_) shard->TokensChanged();
}

// To let a client in, and to end its session later, takes the shard 0.2 ms in which it serves no request.
bool Doorman::IsTooFast(TokenId token, uint32_t per_second) {
  if (per_second == 0) return false;
  const auto [rate, is_new] = rates_.try_emplace(token, per_second, kConnectBurstMicros);
  rate->second.Change(per_second);
  if (is_new && gate_ != nullptr) {  // so other tokens may be gone
    std::erase_if(rates_, [&, ids = gate_->ids()](const auto& each) {
      return each.first != token && !ids->contains(each.first);
    });
  }
  return !rate->second.Take(static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::Instance().Now()).count()));
}

void Doorman::Receive(std::unique_ptr<fabric::Incoming> incoming) {
  auto guest = Greet(*incoming, gate_, static_cast<uint32_t>(shards_.size()), tell_);
  if (!guest) return;
  const uint32_t per_second = per_second_.load(std::memory_order_relaxed);
  if (IsTooFast(guest->admission.token, per_second)) {
    const std::string why = "more than " + std::to_string(per_second) + " clients " +
                            (gate_ != nullptr ? "with this token " : "") + "came within a second";
    if (tell_) tell_(NameOfClient(guest->hello.client_id, incoming->peer_name()) + ": refused: " + why);
    incoming->Reject(BytesOf(Refusal(Code::kResourceExhausted, why)));
    return;
  }
  const uint16_t shard = guest->hello.shard;
  shards_[shard]->Admit({std::move(incoming), guest->hello, port_, std::move(guest->admission)});
}

}  // namespace erda::server
