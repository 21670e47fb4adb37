#include "bench/pmr/responder.h"

#include <array>
#include <chrono>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/relax.h"
#include "base/shared_memory.h"
#include "bench/floors/server_process.h"
#include "nvm/writer.h"

namespace erda::pmr_bench {

using fabric::Access;
using fabric::Completion;
using fabric::OpKind;

namespace {

constexpr std::chrono::milliseconds kListenAtMost{100};
constexpr std::chrono::milliseconds kSleepAtMost{100};
// Longer than an operation in the lab, and short beside the measurement of one path. Then the threads of clients that
// rest leave the processors alone.
constexpr std::chrono::milliseconds kSpin{20};

// The work of the server for one client.
class Worker {
 public:
  Worker(const Targets& targets, uint64_t client, std::span<const std::byte> payload)
      : disk_(*targets.disk), client_(client), payload_(payload), nvm_(*targets.nvm), region_(*targets.region) {}

  // Returns true if the bytes of the message are persistent.
  bool Do(uint32_t immediate) {
    const uint64_t bytes = immediate & ((1U << kSizeBits) - 1);
    if (bytes > kBytesMax) return false;
    const uint64_t area = client_ * kBytesMax;
    switch (Message{static_cast<uint8_t>(immediate >> kSizeBits)}) {
      case Message::kToDisk:
        return ToDisk(AlignUp(bytes, kBlock));
      case Message::kToRegion:
        region_.Write(area, payload_.first(bytes));
        region_.Persist(area, bytes);
        return !region_.failed();
      case Message::kFlushNvm:
        nvm_.Persist(area, bytes);
        return true;
      case Message::kFlushRegion:
        region_.Persist(area, bytes);
        return !region_.failed();
    }
    return false;
  }

 private:
  static constexpr uint64_t kBlock = 4096;
  bool ToDisk(uint64_t bytes) {
    if (next_ + bytes > kFileBytes) next_ = 0;
    const bool done = disk_.Write(client_ * kFileBytes + next_, payload_.first(bytes)).ok();
    next_ += bytes;
    return done;
  }

  const DurableFile& disk_;
  const uint64_t client_;
  const std::span<const std::byte> payload_;
  nvm::Writer nvm_;
  nvm::Writer region_;
  uint64_t next_ = 0;
};

bool Answer(fabric::Channel& channel, bool persistent) {
  fabric::WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = persistent ? 0 : 1;
  return channel.Post({&work, 1}).ok();
}

}  // namespace

Result<std::unique_ptr<Responder>> Responder::Start(const std::string& address, const Targets& targets) {
  std::unique_ptr<Responder> responder(new Responder(targets));
  if (auto status = responder->Prepare(address); !status.ok()) return status;
  responder->listening_ = std::thread([raw = responder.get()] { raw->Listen(); });
  return responder;
}

Responder::~Responder() {
  stop_.store(true, std::memory_order_release);  // Pairs with the acquire in Listen and Serve.
  if (listening_.joinable()) listening_.join();
  for (std::thread& thread : serving_) thread.join();
}

Status Responder::Prepare(const std::string& address) {
  auto fabric = fabric::OpenFabric(address, fabric::Role::kListen);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  nvm_number_ = Offer(*targets_.nvm);
  region_number_ = Offer(*targets_.region);
  auto listener = fabric_->Listen(address);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  return {};
}

// The region for messages comes first, and each client has another one.
Result<uint32_t> Responder::Offer(const nvm::Pool& pool) {
  auto region = fabric_->Register(pool.view(), Access::kRemoteReadWrite);
  if (!region.ok()) return region.status();
  offered_.push_back(*std::move(region));
  return static_cast<uint32_t>(offered_.size());
}

void Responder::Listen() {
  floors::StayOnOneProcessor(floors::Side::kServing);  // The threads that it starts stay there, too.
  while (!stop_.load(std::memory_order_acquire)) {
    if (auto incoming = listener_->Poll()) {
      serving_.emplace_back([this, asks = std::move(incoming)] { Serve(*asks); });
    } else {
      listener_->Wait(kListenAtMost);
    }
  }
}

// The channel may be connected later than it is accepted. But the responder posts nothing before the client has asked.
void Responder::Serve(fabric::Incoming& incoming) {
  if (incoming.peer_data().size() != sizeof(uint64_t)) return;
  const auto client = LoadAs<uint64_t>(incoming.peer_data());
  auto memory = SharedMemory::Create("erda-pmr-message", kBytesMax);
  if (!memory.ok()) return;
  auto messages = fabric_->Register(memory->view(), Access::kRemoteReadWrite);
  auto queue = fabric_->CreateQueue();
  if (!messages.ok() || !queue.ok()) return;
  std::vector<fabric::Region*> offer = {messages->get()};
  for (const auto& region : offered_) offer.push_back(region.get());
  auto channel = incoming.Accept({queue->get(), offer, {}});
  if (!channel.ok()) return;
  Worker worker(targets_, client, memory->bytes());
  std::array<Completion, 16> completions;
  Relax relax;
  Nanoseconds idle_since{0};
  while (!stop_.load(std::memory_order_acquire)) {
    const size_t n = (*queue)->Poll(completions);
    for (size_t i = 0; i < n; ++i) {
      if (completions[i].kind == OpKind::kClosed) return;
      if (completions[i].kind == OpKind::kReceiveImm && !Answer(**channel, worker.Do(completions[i].imm))) return;
    }
    if (n > 0) {
      relax.Reset();
      idle_since = Nanoseconds(0);
      continue;
    }
    relax.Step();
    if (relax.steps() % kLooksPerClock != 0) continue;
    const Nanoseconds now = SteadyClock::Instance().Now();
    if (idle_since.count() == 0) idle_since = now;
    if (now - idle_since > kSpin) (*queue)->Wait(kSleepAtMost);
  }
}

}  // namespace erda::pmr_bench
