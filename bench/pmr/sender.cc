#include "bench/pmr/sender.h"

#include <chrono>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/relax.h"

namespace erda::pmr_bench {

using fabric::Access;
using fabric::OpKind;
using fabric::WorkRequest;

namespace {

constexpr std::chrono::seconds kAnswerAtMost{10};
constexpr uint64_t kReadBytes = 8;

}  // namespace

Result<std::unique_ptr<Sender>> Sender::Connect(const Responder& responder, uint64_t number, Flush flush) {
  std::unique_ptr<Sender> sender(new Sender(responder, number, flush));
  if (auto status = sender->Prepare(); !status.ok()) return status;
  fabric::Region* const offer[] = {sender->answer_region_.get()};
  auto channel = sender->fabric_->Connect(responder.address(), {sender->queue_.get(), offer, BytesOf(number)});
  if (!channel.ok()) return channel.status();
  sender->channel_ = *std::move(channel);
  if (auto status = sender->Await(OpKind::kConnected); !status.ok()) return status;
  return sender;
}

Status Sender::Prepare() {
  memory_.resize(kBytesMax + kReadBytes);
  payload_ = std::span(memory_).first(kBytesMax);
  read_ = std::span(memory_).last(kReadBytes);
  auto answers = SharedMemory::Create("erda-pmr-answers", kReadBytes);
  if (!answers.ok()) return answers.status();
  answers_ = *std::move(answers);
  auto fabric = fabric::OpenFabric(responder_.address(), fabric::Role::kConnect);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  auto region = fabric_->Register(MemoryView{memory_, -1, -1}, Access::kLocal);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  auto answer_region = fabric_->Register(answers_.view(), Access::kRemoteReadWrite);
  if (!answer_region.ok()) return answer_region.status();
  answer_region_ = *std::move(answer_region);
  auto queue = fabric_->CreateQueue();
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  return {};
}

Status Sender::Persist(Path path, uint64_t bytes) {
  switch (path) {
    case Path::kSsdSync:
      return Ask(ImmediateOf(Message::kToDisk, bytes), bytes);
    case Path::kPmrSync:
      return Ask(ImmediateOf(Message::kToRegion, bytes), bytes);
    case Path::kPmemDirect:
    case Path::kPmrDirect:
      return WriteAndFlush(path, bytes);
  }
  return {};
}

Status Sender::Ask(uint32_t immediate, uint64_t bytes) {
  WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = immediate;
  work.local = payload_.first(bytes);
  work.remote = {kMessageRegion, 0};
  if (auto status = channel_->Post({&work, 1}); !status.ok()) return status;
  return Await(OpKind::kReceiveImm);
}

// With one doorbell.
Status Sender::WriteAndFlush(Path path, uint64_t bytes) {
  const uint32_t region = *responder_.RegionOf(MemoryOf(path));
  const uint64_t area = number_ * kBytesMax;
  WorkRequest works[2];
  works[0].kind = OpKind::kWrite;
  works[0].signaled = false;
  works[0].local = payload_.first(bytes);
  works[0].remote = {region, area};
  if (flush_ == Flush::kRead) {
    works[1].kind = OpKind::kRead;
    works[1].local = read_;
    works[1].remote = {region, area + bytes - kReadBytes};
  } else {
    works[1].kind = OpKind::kWriteImm;
    works[1].signaled = false;
    works[1].imm = ImmediateOf(path == Path::kPmrDirect ? Message::kFlushRegion : Message::kFlushNvm, bytes);
    works[1].remote = {kMessageRegion, 0};
  }
  if (auto status = channel_->Post(works); !status.ok()) return status;
  return Await(flush_ == Flush::kRead ? OpKind::kRead : OpKind::kReceiveImm);
}

Status Sender::Await(OpKind kind) {
  Relax relax;
  Nanoseconds since{0};
  for (;;) {
    const size_t n = queue_->Poll(completions_);
    for (size_t i = 0; i < n; ++i) {
      const fabric::Completion& completion = completions_[i];
      if (completion.kind == OpKind::kClosed) return {Code::kUnavailable, channel_->error().ToString()};
      if (completion.code != Code::kOk) return {completion.code, "an operation failed"};
      if (completion.kind != kind) continue;
      if (kind == OpKind::kReceiveImm && completion.imm != 0) {
        return {Code::kUnavailable, "the server could not make the bytes persistent: its disk or memory failed"};
      }
      return {};
    }
    relax.Step();
    if (relax.steps() % kLooksPerClock != 0) continue;
    const Nanoseconds now = SteadyClock::Instance().Now();
    if (since.count() == 0) since = now;
    if (now - since > kAnswerAtMost) return {Code::kTimeout, "no answer from " + responder_.address()};
  }
}

}  // namespace erda::pmr_bench
