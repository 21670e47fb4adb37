#include "bench/pmr/responder.h"

#include <array>
#include <chrono>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/relax.h"
#include "base/shared_memory.h"
#include "bench/floors/server_process.h"

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

bool Answer(fabric::Channel& channel, bool done) {
  fabric::WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = done ? 0 : 1;
  return channel.Post({&work, 1}).ok();
}

}  // namespace

Result<std::unique_ptr<Responder>> Responder::Start(const std::string& address,
                                                    std::span<const nvm::Pool* const> memories, MakeHandler make) {
  std::unique_ptr<Responder> responder(new Responder(std::move(make)));
  if (auto status = responder->Prepare(address, memories); !status.ok()) return status;
  responder->listening_ = std::thread([raw = responder.get()] { raw->Listen(); });
  return responder;
}

Responder::~Responder() {
  stop_.store(true, std::memory_order_release);  // Pairs with the acquire in Listen and Serve.
  if (listening_.joinable()) listening_.join();
  for (std::thread& thread : serving_) thread.join();
}

Status Responder::Prepare(const std::string& address, std::span<const nvm::Pool* const> memories) {
  auto fabric = fabric::OpenFabric(address, fabric::Role::kListen);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  for (const nvm::Pool* const memory : memories) numbers_.push_back(Offer(*memory));
  auto listener = fabric_->Listen(address);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  return {};
}

// The region for messages comes first, and each client has another one.
Result<uint32_t> Responder::Offer(const nvm::Pool& memory) {
  auto region = fabric_->Register(memory.view(), Access::kRemoteReadWrite);
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
  const auto handler = make_(client, memory->bytes());
  std::array<Completion, 16> completions;
  Relax relax;
  Nanoseconds idle_since{0};
  while (!stop_.load(std::memory_order_acquire)) {
    const size_t n = (*queue)->Poll(completions);
    for (size_t i = 0; i < n; ++i) {
      if (completions[i].kind == OpKind::kClosed) return;
      if (completions[i].kind != OpKind::kReceiveImm) continue;
      const uint64_t bytes = completions[i].imm & ((1U << kSizeBits) - 1);
      const auto kind = static_cast<uint8_t>(completions[i].imm >> kSizeBits);
      if (!Answer(**channel, bytes <= kBytesMax && handler->Do(kind, bytes))) return;
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
