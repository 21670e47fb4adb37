#include "sim/forger.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "format/control_block.h"

namespace erda::sim {

using fabric::OpKind;
using format::kChunkObjectsAt;
using format::LogAddress;
using format::ObjectHeader;
using format::ObjectKind;
using format::RequestOp;

namespace {

constexpr size_t kReplyBytes = 4096;
constexpr size_t kWrittenBytes = 64 << 10;  // for Writes that may be under way
constexpr size_t kControlAt = kReplyBytes + kWrittenBytes;
constexpr size_t kControlBytes = 1 << 20;
constexpr size_t kSmall = 40;  // bytes of a value

}  // namespace

Forger::Forger(fabric::SimNetwork& network, uint64_t seed, std::string address, uint32_t shards,
               std::vector<std::string> keys)
    : network_(network),
      random_(seed ^ 0xf049e),
      address_(std::move(address)),
      shards_(shards),
      keys_(std::move(keys)),
      memory_(kControlAt + kControlBytes),
      fabric_(network_.CreateFabric("forger", nullptr, 1)),
      queue_(*fabric_->CreateQueue()),
      region_(*fabric_->Register({memory_, -1, -1}, fabric::Access::kRemoteReadWrite)) {}

void Forger::Leave() {
  channel_.reset();
  chunk_.reset();
  connected_ = closed_ = waits_ = control_read_ = false;
}

void Forger::Connect() {
  Leave();
  shard_ = static_cast<uint32_t>(random_.Uniform(shards_));
  format::HelloRequest hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  hello.shard = static_cast<uint16_t>(shard_);
  hello.slots = 1;
  hello.client_id = 0xf0;
  fabric::Region* const offer[] = {region_.get()};
  auto channel = fabric_->Connect(address_, {queue_.get(), offer, BytesOf(hello), 64});
  if (channel.ok()) channel_ = *std::move(channel);
}

void Forger::Poll() {
  std::array<fabric::Completion, 16> completions;
  for (size_t n = queue_->Poll(completions); n > 0; n = queue_->Poll(completions)) {
    for (const fabric::Completion& completion : std::span(completions).first(n)) {
      if (completion.channel != channel_.get()) continue;  // of an earlier connection
      closed_ |= completion.kind == OpKind::kClosed;
      control_read_ |= completion.kind == OpKind::kRead && completion.code == Code::kOk;
      if (completion.kind == OpKind::kReceiveImm && waits_) OnAnswer();
    }
  }
  if (channel_ != nullptr && !connected_ && channel_->connected()) {
    connected_ = true;
    hello_ = LoadAs<format::HelloReply>(channel_->peer_data());
  }
}

void Forger::Step() {
  Poll();
  if (channel_ == nullptr || closed_) return Connect();
  if (!connected_ || waits_) return;
  if (hello_.placing != static_cast<uint8_t>(format::Placing::kWindow)) return;
  if (!chunk_) return AskForChunk();
  if (chunk_->offset == 0) {
    // The control block tells the region of the chunk.
    if (!control_read_) return;
    const LogAddress address(chunk_->told.address);
    const uint64_t at = format::HeadSlotOffset(hello_.geometry, chunk_->told.head % hello_.geometry.heads_per_shard,
                                               hello_.geometry.SlotOf(address));
    const auto slot = LoadAs<format::HeadSlot>(std::span(memory_).subspan(kControlAt + at));
    if (slot.none() || slot.generation() != chunk_->told.generation) return Leave();
    chunk_->offset = hello_.geometry.RegionOffset(slot.region()) + hello_.geometry.OffsetInRegion(address);
  }
  const uint64_t dice = random_.Uniform(100);
  if (dice < 40) return PutOwn();
  if (dice < 90) return Forge();
  if (dice < 92) return Leave();
  if (dice < 96) {
    format::Request request{};
    request.op = static_cast<uint8_t>(RequestOp::kGiveBack);
    request.head = chunk_->told.head;
    request.address = chunk_->told.address;
    request.version = chunk_->told.header.version;
    chunk_.reset();
    Ask(request, {});
  }
}

void Forger::Ask(format::Request request, std::string_view key) {
  asked_ = request;
  waits_ = true;
  std::string message(AsString(BytesOf(request)));
  message += key;
  written_ = (written_ + 8192) % (kWrittenBytes - 8192);
  std::ranges::copy(AsBytes(message), memory_.begin() + static_cast<ptrdiff_t>(kReplyBytes + written_));
  fabric::WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.local = std::span(memory_).subspan(kReplyBytes + written_, message.size());
  work.remote = {format::kRequestRegion, 0};
  if (!channel_->Post({&work, 1}).ok()) closed_ = true;
}

void Forger::AskForChunk() {
  format::Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kDelegate);
  request.head = shard_ * hello_.geometry.heads_per_shard +
                 static_cast<uint32_t>(random_.Uniform(hello_.geometry.heads_per_shard));
  request.version = 256;
  request.value_size = static_cast<uint32_t>(random_.Between(256, format::ChunkBytesMax(hello_.geometry)));
  Ask(request, {});
}

void Forger::OnAnswer() {
  waits_ = false;
  const auto reply = LoadAs<format::Reply>(memory_);
  const auto op = static_cast<RequestOp>(asked_.op);
  const bool ok = reply.code == static_cast<uint8_t>(Code::kOk);
  if (op == RequestOp::kPutDelegated && chunk_) {
    if (!ok) chunk_.reset();
    if (ok)
      chunk_->own.push_back(LogAddress(asked_.address).offset_in_slot() -
                            LogAddress(chunk_->told.address).offset_in_slot());
  }
  if (op != RequestOp::kDelegate || !ok) return;
  chunk_ = Chunk{};
  chunk_->told = reply;
  chunk_->told.head = asked_.head;
  chunk_->bytes = SpaceOf(reply.header);
  control_read_ = false;
  fabric::WorkRequest read;
  read.kind = OpKind::kRead;
  read.local = std::span(memory_).subspan(kControlAt, std::min(kControlBytes, format::ControlBytes(hello_.geometry)));
  read.remote = {format::kControlRegion, 0};
  if (!channel_->Post({&read, 1}).ok()) closed_ = true;
}

// Writes into the chunk, without the bytes beyond its end.
void Forger::Write(uint64_t at, std::span<const std::byte> bytes) {
  written_ = (written_ + 8192) % (kWrittenBytes - 8192);
  const uint64_t size = std::min<uint64_t>(bytes.size(), chunk_->bytes - std::min(at, chunk_->bytes));
  if (size == 0) return;
  std::ranges::copy(bytes.first(size), memory_.begin() + static_cast<ptrdiff_t>(kReplyBytes + written_));
  fabric::WorkRequest work;
  work.kind = OpKind::kWrite;
  work.local = std::span(memory_).subspan(kReplyBytes + written_, size);
  work.remote = {format::kPoolRegion, chunk_->offset + at, static_cast<uint32_t>(chunk_->told.number)};
  if (!channel_->Post({&work, 1}).ok()) closed_ = true;
}

void Forger::PutOwn() {
  std::string key;
  for (uint64_t i = random_.Uniform(1000);; ++i) {
    key = "forger" + std::to_string(i);
    if (hello_.geometry.ShardOf(HashKey(key, hello_.hash_seed)) == shard_ &&
        hello_.geometry.HeadOf(HashKey(key, hello_.hash_seed)) == chunk_->told.head) {
      break;
    }
  }
  const std::string value(random_.Uniform(kSmall), 'f');
  const uint64_t space = format::ObjectSpace(key.size(), value.size());
  if (chunk_->tail + space > chunk_->bytes) return;
  Write(chunk_->tail + format::ValueOffset(key.size()), AsBytes(value));
  format::Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kPutDelegated);
  request.ack = static_cast<uint8_t>(Ack::kPersisted);
  request.key_size = static_cast<uint16_t>(key.size());
  request.value_size = static_cast<uint32_t>(value.size());
  request.value_crc = Crc32c(0, AsBytes(value));
  const LogAddress chunk(chunk_->told.address);
  request.address = LogAddress::At(chunk.slot(), chunk.offset_in_slot() + chunk_->tail).raw();
  chunk_->tail += space;
  Ask(request, key);
}

void Forger::Forge() {
  ++forged_;
  const LogAddress chunk(chunk_->told.address);
  const uint64_t last = (chunk_->bytes - kSmall) / format::kGranuleBytes * format::kGranuleBytes;
  uint64_t at = chunk_->tail;
  const uint64_t where = random_.Uniform(4);
  if (where == 1 && !chunk_->own.empty()) at = chunk_->own[random_.Uniform(chunk_->own.size())];
  if (where == 2) at = last;
  if (where == 3) at = AlignDown(random_.Between(kChunkObjectsAt, last), format::kGranuleBytes);
  if (random_.Chance(0.1)) return Write(at, BytesOf(random_.Next()));  // bytes that do not verify

  const std::string& key = keys_[random_.Uniform(keys_.size())];
  const uint64_t in_segment = (hello_.geometry.OffsetInRegion(chunk) + at) % hello_.geometry.segment_size;
  const uint64_t sizes[] = {hello_.geometry.segment_size - in_segment, chunk_->bytes - std::min(at, chunk_->bytes), 256,
                            format::ObjectSpace(key.size(), 0)};
  const uint64_t versions[] = {1, chunk_->told.header.version, chunk_->told.header.version + 5, uint64_t{1} << 40};
  ObjectHeader header{};
  const bool is_chunk = random_.Chance(0.2);
  const std::string_view label = is_chunk ? std::string_view() : std::string_view(key);
  header.key_size = static_cast<uint16_t>(label.size());
  header.kind = static_cast<uint8_t>(is_chunk               ? ObjectKind::kChunk
                                     : random_.Chance(0.05) ? ObjectKind::kTombstone
                                                            : ObjectKind::kValue);
  const uint64_t space = std::max(sizes[random_.Uniform(std::size(sizes))], format::ObjectSpace(label.size(), 0));
  header.value_size = static_cast<uint32_t>(space - format::ValueOffset(label.size()));
  header.version = versions[random_.Uniform(std::size(versions))];
  header.key_hash = HashKey(key, hello_.hash_seed);
  const auto place = LogAddress::At(chunk.slot(), chunk.offset_in_slot() + at);
  header.header_crc = format::HeaderCrc(
      {format::PoolSeed(hello_.pool_uuid), chunk_->told.head, place, chunk_->told.generation}, header, label);
  std::string bytes(AsString(BytesOf(header)));
  bytes += label;
  Write(at, AsBytes(bytes));
}

}  // namespace erda::sim
