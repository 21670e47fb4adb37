#include "server/versions/in_flight.h"

namespace erda::server {

InFlight::Id InFlight::Add(const Reservation& reservation) {
  Id id = free_;
  if (id != kNone) {
    free_ = nodes_[id].next;
  } else {
    id = static_cast<Id>(nodes_.size());
    nodes_.emplace_back();
  }
  Id& bucket = buckets_[reservation.key_hash % kBuckets];
  nodes_[id] = {reservation, bucket, kNone, true};
  if (bucket != kNone) nodes_[bucket].before = id;
  bucket = id;
  ++size_;
  return id;
}

void InFlight::Remove(Id id) {
  const Id before = nodes_[id].before;
  const Id next = nodes_[id].next;
  (before == kNone ? buckets_[nodes_[id].reservation.key_hash % kBuckets] : nodes_[before].next) = next;
  if (next != kNone) nodes_[next].before = before;
  nodes_[id].used = false;
  nodes_[id].next = free_;
  free_ = id;
  --size_;
}

InFlight::Id InFlight::Find(uint64_t key_hash, uint32_t head, format::LogAddress address) const {
  for (Id id = BucketOf(key_hash); id != kNone; id = nodes_[id].next) {
    const Reservation& r = nodes_[id].reservation;
    if (r.key_hash == key_hash && r.head == head && r.address == address) return id;
  }
  return kNone;
}

}  // namespace erda::server
