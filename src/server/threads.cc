#include "server/threads.h"

#include <pthread.h>

#include <system_error>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/relax.h"
#include "server/tidy_timer.h"

namespace erda::server {

namespace {

constexpr std::chrono::hours kForever{1};
// Of a shard that is never idle; for others each look that finds nothing counts.
constexpr uint32_t kBusyPollsPerCount = 64;
// Looks for work between two at the clock.
constexpr uint32_t kLooksPerClock = 16;

template <class Body>
Status StartThread(const std::string& name, Body&& body, std::thread* thread) {
  try {
    *thread = std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    return {Code::kResourceExhausted, "cannot start thread " + name + ": " + error.what()};
  }
  pthread_setname_np(thread->native_handle(), name.c_str());
  return {};
}

}  // namespace

// --- ShardThread

ShardThread::ShardThread(std::vector<std::unique_ptr<fabric::CompletionQueue>> queues, Polling polling,
                         std::chrono::nanoseconds spin)
    : queues_(std::move(queues)), polling_(polling), spin_(polling == Polling::kSleep ? Nanoseconds(0) : spin) {}

ShardThread::~ShardThread() { Stop(); }

Status ShardThread::Start() {
  return StartThread(
      "erda-shard" + std::to_string(shard_->number()), [this] { Run(); }, &thread_);
}

void ShardThread::Stop() {
  stop_.store(true, std::memory_order_release);  // pairs with the acquire in Run
  Wake();
  if (thread_.joinable()) thread_.join();
  newcomers_.clear();  // refused
}

void ShardThread::Admit(Newcomer newcomer) {
  {
    const std::scoped_lock lock(mutex_);
    newcomers_.push_back(std::move(newcomer));
  }
  has_newcomers_.store(true, std::memory_order_release);  // pairs with the exchange in AdmitNewcomers
  Wake();
}

void ShardThread::Run() {
  std::vector<fabric::CompletionQueue*> queues;
  for (const auto& queue : queues_) queues.push_back(queue.get());
  Relax relax;
  TidyTimer tidy;
  bool busy = true;           // at the last look
  Nanoseconds idle_since{0};  // known from the first look at the clock on: a busy shard looks at none
  uint32_t looks = 0;         // that found nothing
  uint32_t busy_polls = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    size_t served = shard_->Poll();
    served += AdmitNewcomers();
    if (served > 0) {
      if (++busy_polls % kBusyPollsPerCount == 0) shard_->CountKeys();
      busy = true;
      relax.Reset();
      continue;
    }
    if (!shard_->CountKeys()) continue;
    const bool never_sleeps = polling_ == Polling::kBusy;
    const bool sleeps_at_once = !never_sleeps && spin_.count() == 0;
    if (sleeps_at_once || ++looks % kLooksPerClock == 0) {
      const Nanoseconds now = SteadyClock::Instance().Now();
      if (busy) {
        busy = false;
        idle_since = now;
        tidy.Restart(now);
      }
      if (tidy.Due(now)) tidy.Looked(now, shard_->Tidy() > 0);
      if (!never_sleeps && now - idle_since >= spin_) {
        shard_->CountSleep();
        fabric::WaitAny(queues, shard_->in_flight() > 0 ? tidy.Left(now) : Nanoseconds(kForever));
        continue;
      }
    }
    if (never_sleeps) {
      Relax::Pause();
    } else {
      relax.Step();
    }
  }
}

size_t ShardThread::AdmitNewcomers() {
  if (!has_newcomers_.load(std::memory_order_relaxed)) return 0;
  if (!has_newcomers_.exchange(false, std::memory_order_acquire)) return 0;
  std::deque<Newcomer> newcomers;
  {
    const std::scoped_lock lock(mutex_);
    newcomers.swap(newcomers_);
  }
  for (Newcomer& newcomer : newcomers) shard_->Admit(std::move(newcomer.incoming), newcomer.hello, newcomer.port);
  return newcomers.size();
}

// --- Doorman

Doorman::Doorman(std::unique_ptr<fabric::Listener> listener, size_t port,
                 std::vector<std::unique_ptr<ShardThread>>& shards)
    : listener_(std::move(listener)), port_(port), shards_(shards) {}

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
    while (auto incoming = listener_->Poll()) Receive(std::move(incoming));
    listener_->Wait(kForever);
  }
}

void Doorman::Receive(std::unique_ptr<fabric::Incoming> incoming) {
  const auto refuse = [&](Code code, const std::string& message) {
    incoming->Reject(BytesOf(Shard::Refusal(code, message)));
  };
  if (incoming->peer_data().size() < sizeof(format::HelloRequest)) {
    return refuse(Code::kInvalidArgument, "this is an Erda server, and that was no Erda client");
  }
  const auto hello = LoadAs<format::HelloRequest>(incoming->peer_data());
  if (hello.magic != format::kHelloMagic) {
    return refuse(Code::kInvalidArgument, "this is an Erda server, and that was no Erda client");
  }
  if (hello.protocol_version != format::kProtocolVersion) {
    return refuse(Code::kInvalidArgument, "the server speaks protocol version " +
                                              std::to_string(format::kProtocolVersion) + ", the client " +
                                              std::to_string(hello.protocol_version));
  }
  if (hello.shard >= shards_.size()) return refuse(Code::kInvalidArgument, "there is no such shard");
  shards_[hello.shard]->Admit({std::move(incoming), hello, port_});
}

}  // namespace erda::server
