#include "bench/floors/raw.h"

#include <cstring>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/relax.h"

namespace erda::floors {

using fabric::Access;
using fabric::Completion;
using fabric::OpKind;
using fabric::WorkRequest;
using format::ObjectHeader;
using format::Reply;
using format::Request;
using format::RequestOp;

namespace {

// Empty looks between two looks at the clock, as in the engine's server and client.
constexpr uint32_t kServerLooksPerClock = 16;
constexpr uint32_t kClientLooksPerClock = 8;
constexpr std::chrono::seconds kTimeout{10};
constexpr std::chrono::milliseconds kListenAtMost{100};
constexpr std::chrono::seconds kSleepAtMost{1};
// As the offset of an object: there is no object.
constexpr uint64_t kNoWork = ~uint64_t{0};

WorkRequest WriteImmWork(std::span<std::byte> local, uint32_t region) {
  WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.local = local;
  work.remote = {region, 0};
  return work;
}

}  // namespace

// --- The responder

Result<std::unique_ptr<RawServer>> RawServer::Start(const std::string& address, const MemoryView& memory,
                                                    const RawArea& area, Persist persist) {
  std::unique_ptr<RawServer> server(new RawServer());
  server->area_ = area;
  server->memory_ = memory.bytes;
  server->persist_ = std::move(persist);
  if (auto status = server->Prepare(address, memory); !status.ok()) return status;
  try {
    server->thread_ = std::thread([raw = server.get()] { raw->Run(); });
  } catch (const std::system_error& error) {
    return Status(Code::kResourceExhausted, std::string("cannot start a thread: ") + error.what());
  }
  return server;
}

RawServer::~RawServer() {
  stop_.store(true, std::memory_order_release);  // Pairs with the acquire in Run and Serve.
  if (listener_) listener_->Wake();
  if (queue_) queue_->Wake();
  if (thread_.joinable()) thread_.join();
}

Status RawServer::Prepare(const std::string& address, const MemoryView& memory) {
  auto requests = SharedMemory::Create("erda-raw-requests", kRawRequestBytesMax);
  if (!requests.ok()) return requests.status();
  request_memory_ = *std::move(requests);
  reply_memory_.resize(sizeof(Reply));

  auto fabric = fabric::OpenFabric(address, fabric::Role::kListen);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  const auto add = [&](const MemoryView& bytes, Access access, std::unique_ptr<fabric::Region>* region) {
    auto registered = fabric_->Register(bytes, access);
    if (!registered.ok()) return registered.status();
    *region = *std::move(registered);
    return Status();
  };
  if (auto status = add(memory, Access::kRemoteReadWrite, &region_); !status.ok()) return status;
  if (auto status = add(request_memory_.view(), Access::kRemoteReadWrite, &request_region_); !status.ok()) {
    return status;
  }
  if (auto status = add({reply_memory_, -1, -1}, Access::kLocal, &reply_region_); !status.ok()) return status;
  auto queue = fabric_->CreateQueue();
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  auto listener = fabric_->Listen(address);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  return {};
}

void RawServer::Run() {
  while (!stop_.load(std::memory_order_acquire)) {
    if (const auto incoming = listener_->Poll()) {
      Serve(*incoming);
    } else {
      listener_->Wait(kListenAtMost);
    }
  }
}

// Serves one client at a time, until it leaves. The channel may be connected later than it is accepted. But the
// responder posts nothing before the client has asked, and a client that asks is connected.
void RawServer::Serve(fabric::Incoming& incoming) {
  fabric::Region* const offer[] = {region_.get(), request_region_.get()};
  auto channel = incoming.Accept({queue_.get(), offer, {}});
  if (!channel.ok()) return;
  std::array<Completion, 16> completions;
  Relax relax;
  uint32_t idle_looks = 0;
  Nanoseconds idle_since{0};
  while (!stop_.load(std::memory_order_acquire)) {
    const size_t n = queue_->Poll(completions);
    for (size_t i = 0; i < n; ++i) {
      if (completions[i].kind == OpKind::kClosed) return;
      if (completions[i].kind == OpKind::kReceiveImm && !Answer(**channel, completions[i])) return;
    }
    if (n > 0) {
      relax.Reset();
      idle_since = Nanoseconds(0);
      continue;
    }
    relax.Step();
    if (++idle_looks % kServerLooksPerClock != 0) continue;
    const Nanoseconds now = SteadyClock::Instance().Now();
    if (idle_since.count() == 0) idle_since = now;
    if (now - idle_since > kSpin) queue_->Wait(kSleepAtMost);
  }
}

// Does the least work of a shard: looks at the request, makes persistent what the request names, and answers.
bool RawServer::Answer(fabric::Channel& channel, const Completion& completion) {
  if (completion.bytes < sizeof(Request)) return false;
  const auto request = LoadAs<Request>(request_memory_.bytes());
  Reply reply{};
  switch (RequestOp{request.op}) {
    case RequestOp::kCommit:  // The key hash stands for the offset.
      if (!Has(request.key_hash, request.value_size)) return false;
      persist_(request.key_hash, request.value_size);
      break;
    case RequestOp::kPutInline:
      if (request.key_hash != kNoWork && !PutWork(request, &reply.header)) return false;
      break;
    default:
      return false;
  }
  reply.id = request.id;
  std::memcpy(reply_memory_.data(), &reply, sizeof(reply));
  const WorkRequest work = WriteImmWork(reply_memory_, kRawReplyRegion);
  return channel.Post({&work, 1}).ok();
}

// Does the work without which no put could be found, verified and kept. It uses Erda's formats, since other formats
// would not need less. The key hash stands for the object's offset, and the version for the offset of the word that
// names it.
bool RawServer::PutWork(const Request& request, ObjectHeader* header) {
  const uint64_t object = request.key_hash;
  const uint64_t entry = request.version;
  const std::span<const std::byte> bytes = request_memory_.bytes();
  if (request.key_size != kKeyBytes || request.value_size > bytes.size() - format::InlineValueOffset(kKeyBytes)) {
    return false;
  }
  if (!Has(object, ObjectReadBytes(request.value_size)) || !Has(entry, sizeof(uint64_t))) return false;
  std::array<char, kKeyBytes> key;  // A private copy, as of the request: the client can still write there.
  std::memcpy(key.data(), bytes.data() + sizeof(Request), key.size());
  header->key_size = kKeyBytes;
  header->kind = static_cast<uint8_t>(format::ObjectKind::kValue);
  header->value_size = request.value_size;
  header->version = ++version_;
  header->key_hash = HashKey({key.data(), key.size()}, kRawHashSeed);
  header->header_crc = format::HeaderCrc(kRawPlace, *header, {key.data(), key.size()});
  std::byte* const at = memory_.data() + object;
  std::memcpy(at, header, sizeof(*header));
  std::memcpy(at + format::kLabelOffset, key.data(), key.size());
  const std::span<std::byte> value(at + format::ValueOffset(kKeyBytes), request.value_size);
  std::memcpy(value.data(), bytes.data() + format::InlineValueOffset(kKeyBytes), value.size());
  const uint32_t checksum = format::ObjectChecksum(*header, value);
  std::memcpy(at + format::ChecksumOffset(kKeyBytes), &checksum, sizeof(checksum));
  persist_(object, ObjectReadBytes(request.value_size));
  auto& word = *reinterpret_cast<uint64_t*>(memory_.data() + entry);
  // Stored whole, like an entry's word. No thread reads it.
  std::atomic_ref<uint64_t>(word).store(object, std::memory_order_relaxed);
  persist_(entry, sizeof(word));
  return true;
}

// --- The client

Result<std::unique_ptr<RawClient>> RawClient::Connect(const std::string& address, uint64_t value_bytes,
                                                      format::FlushMethod flush) {
  std::unique_ptr<RawClient> client(new RawClient());
  client->address_ = address;
  client->flush_ = flush;
  if (auto status = client->Prepare(value_bytes); !status.ok()) return status;
  fabric::Region* const offer[] = {client->reply_region_.get()};
  auto channel = client->fabric_->Connect(address, {client->queue_.get(), offer, {}});
  if (!channel.ok()) return channel.status();
  client->channel_ = *std::move(channel);
  if (auto status = client->Await(OpKind::kConnected); !status.ok()) return status;
  return client;
}

Status RawClient::Prepare(uint64_t value_bytes) {
  const uint64_t request_at = AlignUp(std::max(ObjectReadBytes(value_bytes), kSmallReadBytes), kCacheLine);
  const uint64_t work_at = AlignUp(request_at + RequestBytes(value_bytes), kCacheLine);
  const uint64_t commit_at = AlignUp(work_at + RequestBytes(value_bytes), kCacheLine);
  const uint64_t deep_at = AlignUp(commit_at + sizeof(Request), kCacheLine);
  const uint64_t large_at = AlignUp(deep_at + kDeep * request_at, kCacheLine);
  memory_.resize(large_at + RequestBytes(kLargeBytes));
  const std::span<std::byte> all = memory_;
  read_buffer_ = all.first(request_at);
  request_ = all.subspan(request_at, RequestBytes(value_bytes));
  work_ = all.subspan(work_at, RequestBytes(value_bytes));
  body_ = request_.subspan(sizeof(Request) + kKeyBytes);
  commit_ = all.subspan(commit_at, sizeof(Request));
  deep_buffer_ = all.subspan(deep_at, kDeep * request_at);
  large_ = all.subspan(large_at);
  Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kPutInline);
  request.key_hash = kNoWork;
  request.key_size = kKeyBytes;
  request.value_size = static_cast<uint32_t>(value_bytes);
  std::memcpy(request_.data(), &request, sizeof(request));
  std::memcpy(large_.data(), &request, sizeof(request));
  auto replies = SharedMemory::Create("erda-raw-replies", sizeof(Reply));
  if (!replies.ok()) return replies.status();
  reply_memory_ = *std::move(replies);

  auto fabric = fabric::OpenFabric(address_, fabric::Role::kConnect);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  auto region = fabric_->Register(MemoryView{memory_, -1, -1}, Access::kLocal);
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  auto reply_region = fabric_->Register(reply_memory_.view(), Access::kRemoteReadWrite);
  if (!reply_region.ok()) return reply_region.status();
  reply_region_ = *std::move(reply_region);
  auto queue = fabric_->CreateQueue();
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  return {};
}

// The engine's client waits in the same way (Polling::kBusy).
Result<uint64_t> RawClient::AwaitCount(OpKind kind) {
  Nanoseconds since{0};
  for (;;) {
    const size_t n = queue_->Poll(completions_);
    uint64_t done = 0;
    for (size_t i = 0; i < n; ++i) {
      if (completions_[i].kind == OpKind::kClosed) {
        return Status(Code::kUnavailable, address_ + ": " + channel_->error().ToString());
      }
      if (completions_[i].code != Code::kOk) return Status(completions_[i].code, address_ + ": a raw operation failed");
      done += completions_[i].kind == kind ? 1 : 0;
    }
    if (done > 0) return done;
    Relax::Pause();
    if (++idle_looks_ % kClientLooksPerClock != 0) continue;
    const Nanoseconds now = SteadyClock::Instance().Now();
    if (since.count() == 0) since = now;
    if (now - since > kTimeout) return Status(Code::kTimeout, address_ + ": no answer to a raw operation");
  }
}

Status RawClient::Read(uint64_t offset, uint64_t bytes) {
  WorkRequest work;
  work.kind = OpKind::kRead;
  work.local = read_buffer_.first(bytes);
  work.remote = {kRawMemoryRegion, offset};
  if (auto status = channel_->Post({&work, 1}); !status.ok()) return status;
  return Await(OpKind::kRead);
}

Status RawClient::PingPong() {
  const WorkRequest work = WriteImmWork(request_, kRawRequestRegion);
  if (auto status = channel_->Post({&work, 1}); !status.ok()) return status;
  return Await(OpKind::kReceiveImm);
}

Status RawClient::PutWork(uint64_t offset, uint64_t entry, std::string_view key, std::string_view value) {
  auto request = LoadAs<Request>(request_);
  request.key_hash = offset;
  request.version = entry;
  request.id = HashKey(key, kRawHashSeed);  // The hash chooses the shard.
  std::memcpy(work_.data(), &request, sizeof(request));
  std::memcpy(work_.data() + sizeof(request), key.data(), kKeyBytes);
  std::memcpy(work_.data() + format::InlineValueOffset(kKeyBytes), value.data(), value.size());
  const WorkRequest work = WriteImmWork(work_, kRawRequestRegion);
  if (auto status = channel_->Post({&work, 1}); !status.ok()) return status;
  if (auto status = Await(OpKind::kReceiveImm); !status.ok()) return status;
  const auto reply = LoadAs<Reply>(reply_memory_.bytes());
  const bool right = reply.id == request.id && reply.header.key_hash == request.id && reply.header.version != 0;
  return right ? Status() : Status(Code::kInternal, address_ + ": the answer is not that of the request");
}

Status RawClient::WriteAndFlush(uint64_t offset) {
  WorkRequest works[2];
  works[0].kind = OpKind::kWrite;
  works[0].signaled = false;
  works[0].local = body_;
  works[0].remote = {kRawMemoryRegion, offset + format::ChecksumOffset(kKeyBytes)};
  if (flush_ == format::FlushMethod::kServerFlush) {
    Request commit{};
    commit.op = static_cast<uint8_t>(RequestOp::kCommit);
    commit.key_hash = works[0].remote.offset;
    commit.value_size = static_cast<uint32_t>(body_.size());
    std::memcpy(commit_.data(), &commit, sizeof(commit));
    works[1] = WriteImmWork(commit_, kRawRequestRegion);
  } else {
    works[1].kind = OpKind::kRead;
    works[1].local = read_buffer_.first(sizeof(uint64_t));
    works[1].remote = {kRawMemoryRegion, offset};
  }
  if (auto status = channel_->Post(works); !status.ok()) return status;
  return Await(flush_ == format::FlushMethod::kServerFlush ? OpKind::kReceiveImm : OpKind::kRead);
}

Status RawClient::WriteAndAsk(uint64_t offset) {
  WorkRequest works[2];
  works[0].kind = OpKind::kWrite;
  works[0].signaled = false;
  works[0].local = large_.last(kLargeBytes);
  works[0].remote = {kRawMemoryRegion, offset + format::ValueOffset(kKeyBytes)};
  works[1] = WriteImmWork(large_.first(sizeof(Request) + kKeyBytes), kRawRequestRegion);
  if (auto status = channel_->Post(works); !status.ok()) return status;
  return Await(OpKind::kReceiveImm);
}

}  // namespace erda::floors
