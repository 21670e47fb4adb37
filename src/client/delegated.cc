#include "client/delegated.h"

#include <algorithm>
#include <span>

namespace erda::client {

using format::LogAddress;
using format::Request;
using format::RequestOp;

Delegated::Chunk* Delegated::Find(uint32_t head, uint32_t head_in_shard, uint64_t object_bytes) {
  Head& of = heads_[head_in_shard];
  Chunk* found = nullptr;
  uint64_t room = 0;
  for (Chunk& chunk : chunks_) {
    if (chunk.head != head) continue;
    room += chunk.room();
    if (found == nullptr && chunk.room() >= object_bytes) found = &chunk;
  }
  if (room < std::max(of.wanted / 2, object_bytes)) Ask(head, of, object_bytes);
  return found;
}

void Delegated::Ask(uint32_t head, Head& of, uint64_t object_bytes) {
  if (of.asked || chunks_.size() >= format::kChunksPerClient) return;
  if (of.patience > 0) {
    --of.patience;
    return;
  }
  const uint64_t least = format::kChunkObjectsAt + object_bytes;
  of.wanted = std::min(std::max(2 * of.wanted, kObjectsAtFirst * object_bytes), kBytesMax);
  of.wanted = std::max(of.wanted, least);
  of.asked = true;
  Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kDelegate);
  request.head = head;
  request.value_size = static_cast<uint32_t>(std::min<uint64_t>(of.wanted, UINT32_MAX));
  request.version = least;
  to_send.push_back(request);
}

LogAddress Delegated::Place(Chunk& chunk, uint64_t object_bytes) {
  const auto address = LogAddress::At(chunk.address.slot(), chunk.address.offset_in_region() + chunk.tail);
  chunk.tail += object_bytes;
  ++chunk.in_flight;
  // (I8) With the first put in this one the server lets go of those before it.
  for (Chunk& before : std::span(chunks_.data(), &chunk)) before.passed |= before.head == chunk.head;
  std::erase_if(chunks_, [&](const Chunk& c) { return Drop(c); });
  return address;
}

void Delegated::OnAnswer(uint32_t head, LogAddress object) {
  const auto it = std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& c) { return c.Holds(head, object); });
  if (it == chunks_.end()) return;
  --it->in_flight;
  if (Drop(*it)) chunks_.erase(it);
}

bool Delegated::Drop(const Chunk& chunk) {
  if (chunk.in_flight > 0 || !(chunk.taken_back || chunk.passed)) return false;
  if (!chunk.passed) {
    Request request{};
    request.op = static_cast<uint8_t>(RequestOp::kGiveBack);
    request.head = chunk.head;
    request.address = chunk.address.raw();
    to_send.push_back(request);
  }
  return true;
}

void Delegated::OnDelegated(uint32_t head, uint32_t head_in_shard, LogAddress address, uint32_t generation,
                            uint64_t bytes) {
  Head& of = heads_[head_in_shard];
  of.asked = false;
  if (bytes == 0) {
    of.patience = kPatience;
    of.wanted = 0;
    return;
  }
  chunks_.push_back({head, address, format::kChunkObjectsAt, bytes, generation});
}

// Puts there that are in flight may be answered yet: it is given back behind them.
void Delegated::OnTakenBack(LogAddress address, uint32_t first_head) {
  for (Chunk& chunk : chunks_) {
    if (chunk.address != address) continue;
    heads_[chunk.head - first_head].wanted = 0;
    chunk.taken_back = true;
  }
  std::erase_if(chunks_, [&](const Chunk& c) { return Drop(c); });
}

}  // namespace erda::client
