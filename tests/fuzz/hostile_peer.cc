#include "fuzz/hostile_peer.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "format/object.h"

namespace erda::fuzz {

using fabric::OpKind;
using format::RequestOp;

namespace {

constexpr size_t kPartBytes = 8192;
constexpr size_t kParts = 64;

// Changes one byte of the structure, at the offset `where`. Changes nothing if the offset lies beyond its end.
template <class T>
void Spoil(T* structure, uint8_t where, uint8_t what) {
  if (where < sizeof(T)) reinterpret_cast<uint8_t*>(structure)[where] ^= what;
}

// Returns the end of a chunk, as an offset from its begin.
uint64_t EndOf(const format::Reply& chunk) { return sizeof(format::ObjectHeader) + chunk.header.value_size; }

std::string Filled(size_t size, uint8_t what) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(what + 7 * i);
  return bytes;
}

}  // namespace

HostilePeer::HostilePeer(fabric::SimNetwork& network, const std::string& name, std::string address, uint64_t client_id,
                         uint32_t user)
    : fabric_(network.CreateFabric(name, nullptr, user)),
      queue_(*fabric_->CreateQueue()),
      address_(std::move(address)),
      client_id_(client_id),
      replies_(kSlots * sizeof(format::Reply)),
      reply_region_(*fabric_->Register({replies_, -1, -1}, fabric::Access::kRemoteReadWrite)),
      local_(kParts * kPartBytes),
      local_region_(*fabric_->Register({local_, -1, -1}, fabric::Access::kLocal)),
      control_(kPartBytes),
      control_region_(*fabric_->Register({control_, -1, -1}, fabric::Access::kLocal)) {}

void HostilePeer::Leave() {
  channel_.reset();
  closed_ = false;
  connected_ = false;
  reserved_.reset();
  chunk_.reset();
}

void HostilePeer::Poll() {
  std::array<fabric::Completion, 16> completions;
  const size_t count = queue_->Poll(completions);
  for (const fabric::Completion& completion : std::span(completions).first(count)) {
    if (completion.channel != channel_.get() || channel_ == nullptr) continue;
    if (completion.kind == OpKind::kConnected) {
      connected_ = true;
      const auto said = channel_->peer_data();
      hello_ = said.size() < sizeof(hello_) ? format::HelloReply{} : LoadAs<format::HelloReply>(said);
    } else if (completion.kind == OpKind::kClosed) {
      closed_ = true;
      connected_ = false;
      reserved_.reset();
      chunk_.reset();
    } else if (completion.kind == OpKind::kReceiveImm && completion.imm < kSlots) {
      const uint32_t slot = completion.imm;
      const auto reply = LoadAs<format::Reply>(std::span(replies_).subspan(slot * sizeof(format::Reply)));
      if (reply.code != 0) continue;
      if (asked_[slot].op < served_.size()) ++served_[asked_[slot].op];
      if (asked_[slot].op == static_cast<uint8_t>(RequestOp::kReserve)) reserved_ = {reply, asked_key_[slot]};
      if (asked_[slot].op == static_cast<uint8_t>(RequestOp::kDelegate)) {
        chunk_ = {reply, "", format::kChunkObjectsAt};
        chunk_->told.head = asked_[slot].head;
      }
    }
  }
}

void HostilePeer::Act(const Action& action) {
  if (action.kind < kRequest || channel_ == nullptr || closed_) {
    Leave();
    return Ask(action);
  }
  if (action.kind < kGarbage) return Request(action);
  // Writes garbage, with an immediate number that may name no request slot.
  if (action.kind < kWrite) {
    reserved_.reset();
    chunk_.reset();
    return Post(OpKind::kWriteImm, action.slot, Filled(action.size % 200, action.what),
                {action.where % 5U, uint64_t{action.op} * 97});
  }
  if (action.kind < kTime) return WriteIntoPlace(action);
  // The message asks for the time. Some of these messages have bytes, which do not belong there.
  if (action.kind < kSend) {
    return Post(OpKind::kWriteImm, format::kAsksTime | action.slot % (kSlots + 1),
                Filled(action.op % 8 == 1 ? 8 : 0, action.what), {format::kRequestRegion, 0});
  }
  if (action.kind < kRead) return Post(OpKind::kSend, 0, Filled(action.size % 100, action.what), {});
  // These Reads often lie beyond the end of the memory.
  if (action.kind < kLeave) {
    return Post(OpKind::kRead, 0, std::string(action.size % kPartBytes, '\0'),
                {action.where % 5U, uint64_t{action.op} << (action.slot % 64)});
  }
  Leave();
}

void HostilePeer::Ask(const Action& action) {
  format::HelloRequest hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  shard_ = action.key % 2;
  hello.shard = static_cast<uint16_t>(shard_);
  hello.slots = 1 + action.slot % kSlots;
  hello.client_id = client_id_;
  // Most hellos are correct. Otherwise the server would refuse all of them, and nothing more would happen.
  if (action.op % 8 == 0) Spoil(&hello, action.where, action.what);
  const size_t bytes = action.op % 16 == 1 ? action.size % sizeof(hello) : sizeof(hello);
  fabric::Region* const offer[] = {reply_region_.get()};
  auto channel = fabric_->Connect(address_, {queue_.get(), offer, BytesOf(hello).first(bytes), 2 * kSlots + 2});
  if (channel.ok()) channel_ = *std::move(channel);
}

std::string HostilePeer::KeyOf(const Action& action) const {
  if (action.key % 16 == 15) return Filled(1 + action.size % 300, action.key);
  std::string key = "hostile" + std::to_string(client_id_ * 16 + action.key % 4);
  while (hello_.geometry.ShardOf(HashKey(key, hello_.hash_seed)) != shard_) key += "'";
  return key;
}

format::Request HostilePeer::Build(const Action& action, std::string* rest) {
  format::Request request{};
  auto op = static_cast<RequestOp>(1 + action.op % static_cast<uint8_t>(RequestOp::kIncrement));
  const bool of_pool = op == RequestOp::kReserve || op == RequestOp::kCommit || op == RequestOp::kDelegate ||
                       op == RequestOp::kPutDelegated || op == RequestOp::kGiveBack;
  // The server ends a channel without pool writes for the other requests, so they are rare here.
  if (stages() && of_pool && action.what % 16 != 0) op = RequestOp::kPutStaged;
  if (op == RequestOp::kCommit && !reserved_) op = RequestOp::kReserve;
  if ((op == RequestOp::kPutDelegated || op == RequestOp::kGiveBack) && !chunk_) op = RequestOp::kDelegate;
  request.op = static_cast<uint8_t>(op);
  request.ack = action.what & 1;
  request.id = action.size;
  std::string key = KeyOf(action);
  // The log is zero where nobody has written. A value of zeroes can count as present there without a Write.
  std::string value = Filled(action.size % 3000, action.what);
  if (action.where % 4 == 0) std::ranges::fill(value, '\0');
  request.key_size = static_cast<uint16_t>(key.size());
  request.value_size = static_cast<uint32_t>(value.size());
  request.ttl = action.what % 16 == 7 ? action.size : 0;
  switch (op) {
    case RequestOp::kCommit:
      if (action.what % 4 != 0) WriteBody(action.what, SIZE_MAX);
      request.key_hash = HashKey(reserved_->key, hello_.hash_seed);
      request.address = reserved_->told.address;
      request.head = reserved_->told.head;
      request.version = reserved_->told.header.version;
      break;
    case RequestOp::kDelegate:
      request.head = shard_ * hello_.geometry.heads_per_shard;
      request.value_size = static_cast<uint32_t>(format::ChunkBytesMax(hello_.geometry));
      request.version = 512;
      break;
    case RequestOp::kPutDelegated:
      request.value_crc = Crc32c(0, AsBytes(value));
      request.address = format::LogAddress::At(format::LogAddress(chunk_->told.address).slot(),
                                               format::LogAddress(chunk_->told.address).offset_in_slot() + chunk_->tail)
                            .raw();
      if (const auto at = OffsetOf(chunk_->told);
          at && chunk_->tail + format::ObjectSpace(key.size(), value.size()) <= EndOf(chunk_->told)) {
        Post(OpKind::kWrite, 0, value,
             {format::kPoolWriteRegion, *at + chunk_->tail + format::ValueOffset(key.size())});
      }
      chunk_->tail += format::ObjectSpace(key.size(), value.size());
      value.clear();
      break;
    case RequestOp::kPutStaged:
      request.address = uint32_t{action.where} * 61;
      if (action.what % 4 != 0) Post(OpKind::kWrite, 0, value, {format::kStagingRegion, request.address});
      value.clear();
      break;
    case RequestOp::kGiveBack:
      request.address = chunk_->told.address;
      request.head = chunk_->told.head;
      request.version = chunk_->told.header.version;
      break;
    case RequestOp::kIncrement:
      value.resize(8);
      request.value_size = 8;
      break;
    default:
      break;
  }
  if (action.key % 8 == 7) request.condition = action.what % 2;
  *rest = key + std::string(format::kChecksumBytes, '.') + value;
  return request;
}

void HostilePeer::Request(const Action& action) {
  if (!connected_) return;
  std::string rest;
  format::Request request = Build(action, &rest);
  const bool spoilt = action.kind >= kSpoiltRequest;
  if (spoilt) Spoil(&request, action.where, action.what);
  const uint32_t slot = action.slot % (spoilt ? kSlots + 1 : kSlots);
  if (slot < kSlots) {
    asked_[slot] = request;
    asked_key_[slot] = rest.substr(0, request.key_size);
  }
  // A place belongs to the peer no longer when the peer reports that it is done with the place.
  const auto op = static_cast<RequestOp>(request.op);
  if (op == RequestOp::kCommit) reserved_.reset();
  if (op == RequestOp::kGiveBack || (op == RequestOp::kPutDelegated && spoilt)) chunk_.reset();
  if (op == RequestOp::kReserve || op == RequestOp::kDelegate) {
    const size_t bytes = std::min<size_t>(control_.size(), format::ControlBytes(hello_.geometry));
    fabric::WorkRequest read;
    read.kind = OpKind::kRead;
    read.local = std::span(control_).first(bytes);
    read.remote = {format::kControlRegion, 0};
    (void)channel_->Post({&read, 1});
  }
  const auto bytes = BytesOf(request);
  Post(OpKind::kWriteImm, slot, std::string(AsString(bytes)) + rest,
       {format::kRequestRegion, uint64_t{slot} * hello_.slot_bytes});
}

std::optional<uint64_t> HostilePeer::OffsetOf(const format::Reply& told) const {
  const format::Geometry& geometry = hello_.geometry;
  if (geometry.heads_per_shard == 0) return std::nullopt;
  const format::LogAddress address(told.address);
  const uint64_t at = format::HeadSlotOffset(geometry, told.head % geometry.heads_per_shard, geometry.SlotOf(address));
  if (at + sizeof(format::HeadSlot) > control_.size()) return std::nullopt;
  const auto slot = LoadAs<format::HeadSlot>(std::span(control_).subspan(at));
  if (slot.none() || slot.generation() != told.generation) return std::nullopt;
  return geometry.RegionOffset(slot.region()) + geometry.OffsetInRegion(address);
}

void HostilePeer::WriteIntoPlace(const Action& action) {
  if (stages()) {  // the place may hold a value that the shard is about to copy
    return Post(OpKind::kWrite, 0, Filled(action.size % 3000, action.what),
                {format::kStagingRegion, uint64_t{action.where} * 61});
  }
  if (reserved_ && action.op % 2 == 0) {
    WriteBody(action.what, action.op % 4 == 0 ? action.size : SIZE_MAX);
  } else if (chunk_) {
    const auto at = OffsetOf(chunk_->told);
    const uint64_t end = EndOf(chunk_->told);
    if (!at || chunk_->tail >= end) return;
    const std::string garbage = Filled(std::min<uint64_t>(action.size % 500, end - chunk_->tail), action.what);
    Post(OpKind::kWrite, 0, garbage, {format::kPoolWriteRegion, *at + chunk_->tail});
  }
}

// Writes the right body into the reserved place, or only its first bytes.
void HostilePeer::WriteBody(uint8_t what, size_t bytes) {
  const auto at = OffsetOf(reserved_->told);
  if (!at) return;
  const format::ObjectHeader& header = reserved_->told.header;
  const std::string value = Filled(header.value_size, what);
  const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value));
  std::string body(AsString(BytesOf(checksum)));
  body += value;
  body.resize(std::min(body.size(), bytes));
  Post(OpKind::kWrite, 0, body, {format::kPoolWriteRegion, *at + format::ChecksumOffset(header.label_size())});
}

void HostilePeer::Post(OpKind kind, uint32_t imm, std::string_view bytes, fabric::RemoteAddress to) {
  if (!connected_) return;
  const auto part = std::span(local_).subspan(next_part_++ % kParts * kPartBytes, kPartBytes);
  std::memcpy(part.data(), bytes.data(), std::min(bytes.size(), kPartBytes));
  fabric::WorkRequest work;
  work.kind = kind;
  work.signaled = kind == OpKind::kRead;
  work.imm = imm;
  work.local = part.first(std::min(bytes.size(), kPartBytes));
  work.remote = to;
  (void)channel_->Post({&work, 1});  // ignores a refusal by the fabric
}

}  // namespace erda::fuzz
