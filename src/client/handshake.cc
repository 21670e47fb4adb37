#include "client/handshake.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "format/activity.h"
#include "format/durability.h"
#include "format/geometry.h"

namespace erda::client {

using format::HelloReply;
using format::HelloRequest;
using format::Placing;

namespace {

bool Offers(std::span<const fabric::RemoteRegion> offered, uint32_t region, uint64_t bytes) {
  return offered.size() > region && offered[region].size >= bytes;
}

// Returns true if the flush method keeps the promise of kPersisted. On a power-safe pool the method kNone would not: a
// put would be acknowledged before it is on the medium.
bool Flushes(const HelloReply& hello) {
  return hello.durability != static_cast<uint8_t>(format::Durability::kPowerSafe) ||
         hello.flush_method != static_cast<uint8_t>(format::FlushMethod::kNone);
}

// Returns true if the client can write where the server tells it to place values. A staging buffer must have room for
// any value, or the put of a large one would wait for ever.
bool MayPlace(const HelloReply& hello, std::span<const fabric::RemoteRegion> offered) {
  const bool stages = hello.placing == static_cast<uint8_t>(Placing::kStaging) ||
                      hello.placing == static_cast<uint8_t>(Placing::kWindow);
  if (stages) return Offers(offered, format::kStagingRegion, hello.geometry.segment_size);
  if (hello.placing == static_cast<uint8_t>(Placing::kPool)) {
    return Offers(offered, format::kPoolWriteRegion, hello.geometry.pool_size);
  }
  return hello.placing == static_cast<uint8_t>(Placing::kNone);
}

}  // namespace

// --- What the client says

void Handshake::Begin(uint32_t slots_wanted) {
  answer_.Forget();
  slots_offered_ = std::min(slots_wanted, format::kSlotsMax);
}

HelloRequest Handshake::Request() const {
  HelloRequest hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  hello.shard = static_cast<uint16_t>(shard_);
  hello.slots = slots_offered_;
  hello.client_id = client_id_;
  answer_.Prove(&hello);
  return hello;
}

// --- A server that refuses

std::optional<Status> Handshake::ReasonOf(std::span<const std::byte> refusal) const {
  const auto reason = format::ChallengeAnswer::ReasonOf(refusal);
  if (!reason) return std::nullopt;
  return Status(reason->code(), address_ + ": " + std::string(reason->message()));
}

// --- A server that accepts

Status Handshake::Take(std::span<const std::byte> reply, std::span<const fabric::RemoteRegion> offered,
                       bool has_token) {
  if (reply.size() < sizeof(HelloReply)) return {Code::kInvalidArgument, address_ + ": that is no Erda server"};
  const auto hello = LoadAs<HelloReply>(reply);
  if (auto status = Check(hello, offered, has_token); !status.ok()) return status;
  hello_ = hello;
  return {};
}

Status Handshake::Check(const HelloReply& hello, std::span<const fabric::RemoteRegion> offered, bool has_token) const {
  const auto wrong = [&](const char* what) { return Status(Code::kInvalidArgument, address_ + ": " + what); };
  if (hello.magic != format::kHelloMagic) return wrong("that is no Erda server");
  if (hello.protocol_version != format::kProtocolVersion) return wrong("the server speaks another protocol version");
  if (auto status = answer_.CheckServer(hello, has_token); !status.ok()) {
    return {status.code(), address_ + ": " + std::string(status.message())};
  }
  const bool flush_is_known = hello.durability <= static_cast<uint8_t>(format::Durability::kPowerSafe) &&
                              hello.flush_method <= static_cast<uint8_t>(format::FlushMethod::kServerFlush);
  if (!flush_is_known) return wrong("the server has a pool or a flush method that this client does not know");
  const uint64_t slot_bytes = uint64_t{hello.slots} * hello.slot_bytes;
  const bool may_ask = hello.read_only != 0 ? hello.placing == static_cast<uint8_t>(Placing::kNone)
                                            : Offers(offered, format::kRequestRegion, slot_bytes);
  const format::Geometry& geometry = hello.geometry;
  const bool holds = Flushes(hello) && format::CheckGeometry(geometry).ok() && shard_ < geometry.shards &&
                     hello.slots >= 1 && hello.slots <= slots_offered_ && hello.slot_bytes >= sizeof(format::Request) &&
                     Offers(offered, format::kPoolRegion, geometry.pool_size) &&
                     Offers(offered, format::kControlRegion, format::ControlRegionBytes(geometry)) && may_ask &&
                     MayPlace(hello, offered);
  return holds ? Status()
               : wrong(
                     "the server's geometry, slots, flush method and memory do not fit together; "
                     "use an Erda server of this client's version");
}

}  // namespace erda::client
