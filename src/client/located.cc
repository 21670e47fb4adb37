// Gets with a known location (docs/protocol.md, "Get, with a known location"): the version is read alone, and counts
// unless its entry has left it. Where that takes no waiting, it takes no operation either: GetNow.
#include <optional>

#include "base/hash.h"
#include "base/planted.h"
#include "client/engine.h"

namespace erda::client {

using format::LogAddress;
using format::ObjectState;
using format::ObjectView;

namespace {

// Of gets without an operation, one in so many is one with.
constexpr uint32_t kGetsPerPoll = 256;

}  // namespace

// The key's entry named this version as its new one after the operation began, and it is acknowledged.
void Engine::Locate(const Operation& op, LogAddress address, uint32_t generation, uint64_t object_bytes, bool expires) {
  const bool of_server = op.link->hello().server_id == locations_server_ || Planted(Flaw::kKnowsForEver);
  if (of_server) locations_.Store(op.key_hash, {address, generation, object_bytes, expires});
}

// (I12) nullopt if there is none, or it cannot be right any more: then the get tells the newer location, or learns of
// the newer slots.
std::optional<Engine::Located> Engine::FindLocated(const Link& link, uint64_t key_hash) {
  const auto location = locations_.Find(key_hash);
  if (!location || (link.hello().server_id != locations_server_ && !Planted(Flaw::kKnowsForEver))) return std::nullopt;
  const uint32_t head = link.geometry().HeadOf(key_hash);
  const Located located{head, link.SlotOf(head, location->address), location->address, location->object_bytes,
                        location->expires};
  if (located.slot.generation() != location->generation) return std::nullopt;
  return located;
}

bool Engine::StartLocatedGet(Operation& op) {
  const auto located = FindLocated(*op.link, op.key_hash);
  if (!located) return false;
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  op.at = located->at;
  op.slot_read = located->slot;
  op.read_bytes = located->bytes;
  op.time_before = op.link->time();
  op.time_behind = Operation::kNoTime;
  op.reads_time = located->expires;
  const bool can_be = op.link->Resolve(op.slot_read, op.at, &offset, &in_segment) && op.read_bytes <= in_segment;
  if (!can_be || !ProvideMessageMemory(op, op.read_bytes).ok()) return false;
  const fabric::RemoteAddress version{format::kPoolRegion, offset};
  if (!op.reads_time) {
    PostRead(op, Step::kLocated, op.message().first(op.read_bytes), version);
    return true;
  }
  // In any order: the version was published before the get began, since the client knew of it.
  op.step = Step::kLocated;
  const fabric::WorkRequest works[] = {ReadWork(op, op.message().first(op.read_bytes), version, false),
                                       ReadWork(op, op.time_copy(), kTimeWord, true)};
  Post(*op.link, works);
  return true;
}

// The version verifies in the use of its region in which the entry named it, and was settled or acknowledged by then.
// If the entry has not left it, it is the newest one still, as of the moment at which the flag was read.
bool Engine::IsLocated(const Link& link, const Located& located, std::string_view key, std::span<const std::byte> bytes,
                       ObjectView* view) {
  *view = format::InspectObject(link.PlaceOf(located.head, located.slot, located.at), bytes);
  const bool left = view->header.left() && !Planted(Flaw::kTrustsLocation);
  return view->state == ObjectState::kWhole && !left && view->key == key;
}

void Engine::OnLocatedRead(Operation& op) {
  const Located located{op.link->geometry().HeadOf(op.key_hash), op.slot_read, op.at, op.read_bytes, op.reads_time};
  ObjectView view;
  if (!IsLocated(*op.link, located, op.key_view(), op.message().first(op.read_bytes), &view)) {
    ++stats_.cache_misled;
    locations_.Refute(op.key_hash);
    return StartGet(op);
  }
  ++stats_.cache_hits;
  locations_.Confirm(op.key_hash);
  if (op.reads_time) op.time_behind = op.time_read();
  EndWith(op, view);
}

// What was read in vain is not counted: the get that follows looks there itself. Now and then it is one that polls, for
// what the server has to say. So is every one while the client has a chunk, which the server may ask back.
Engine::Now Engine::GetNow(std::string_view key, VersionedView* found) {
  if (in_flight_ > 0 || polling_ || !geometry_known_ || ++gets_now_ % kGetsPerPoll == 0) return Now::kNo;
  if (key.empty() || key.size() > format::kKeyBytesMax) return Now::kNo;
  const uint64_t key_hash = HashKey(key, hash_seed_);
  Link& link = *links_[geometry_.ShardOf(key_hash)];
  if (!link.up() || HasChunks()) return Now::kNo;
  const auto located = FindLocated(link, key_hash);
  if (!located || located->bytes > kMessageBytes) return Now::kNo;
  uint64_t offset = 0;
  uint64_t in_segment = 0;
  const bool can_be = link.Resolve(located->slot, located->at, &offset, &in_segment) && located->bytes <= in_segment;
  const auto to = ops_[free_ops_.back()].memory.subspan(kMessageAt, located->bytes);
  const uint64_t time_before = link.time();
  if (!can_be || !link.channel()->ReadNow(to, {format::kPoolRegion, offset})) return Now::kNo;
  ObjectView view;
  if (!IsLocated(link, *located, key, to, &view)) return Now::kNo;
  Expiry expiry = Expiry::kLives;
  if (view.deadline != 0) {
    const Operation& op = ops_[free_ops_.back()];
    if (!link.channel()->ReadNow(op.time_copy(), kTimeWord)) return Now::kNo;
    expiry = ExpiryOf(link, view.deadline, time_before, op.time_read());
    if (expiry != Expiry::kLives && expiry != Expiry::kOver) return Now::kNo;
    ++stats_.reads;
    stats_.read_bytes += sizeof(uint64_t);
  }
  ++stats_.reads;
  stats_.read_bytes += to.size();
  ++stats_.gets;
  ++stats_.cache_hits;
  locations_.Confirm(key_hash);
  if (expiry == Expiry::kOver) return Now::kAbsent;
  *found = ViewOf(view);
  return Now::kValue;
}

}  // namespace erda::client
