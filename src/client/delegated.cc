#include "client/delegated.h"

#include <algorithm>
#include <span>

#include "client/requests.h"

namespace erda::client {

using format::LogAddress;

void Delegated::Reset(uint32_t first_head, uint32_t heads, uint64_t bytes_max) {
  first_head_ = first_head;
  bytes_max_ = bytes_max;
  chunks_.clear();
  heads_.assign(heads, {});
  to_send.clear();
  sending = false;
  if (heads == 0) return;  // The connection ends, which must not need memory.
  // Room for the chunks that the client may have, and for used-up ones with puts that are not answered.
  chunks_.reserve(2 * format::kChunksPerClient);
  to_send.Reserve(2 * format::kChunksPerClient);
}

Delegated::Chunk* Delegated::Find(uint32_t head, uint64_t object_bytes) {
  if (format::kChunkObjectsAt + object_bytes > bytes_max_) return nullptr;
  Chunk* found = nullptr;
  uint64_t room = 0;
  for (Chunk& chunk : chunks_) {
    if (chunk.head != head) continue;
    room += chunk.room();
    if (found == nullptr && chunk.room() >= object_bytes) found = &chunk;
  }
  if (found == nullptr || room < HeadAt(head).wanted / 2) Ask(head, object_bytes);
  return found;
}

void Delegated::Ask(uint32_t head, uint64_t object_bytes) {
  Head& of = HeadAt(head);
  if (of.asked || chunks_.size() >= format::kChunksPerClient) return;
  if (of.patience > 0) {
    --of.patience;
    return;
  }
  of.wanted = std::min(std::max(2 * of.wanted, format::kChunkObjectsAt + kObjectsAtFirst * object_bytes), bytes_max_);
  of.asked = true;
  to_send.push_back(MakeDelegate(head, of.wanted, format::kChunkObjectsAt + object_bytes));
}

LogAddress Delegated::Place(Chunk& chunk, uint64_t object_bytes) {
  const auto address = LogAddress::At(chunk.address.slot(), chunk.address.offset_in_slot() + chunk.tail);
  chunk.tail += object_bytes;
  ++chunk.in_flight;
  // (I8) With the first put in this chunk the server lets the earlier ones go.
  for (Chunk& before : std::span(chunks_.data(), &chunk)) before.passed |= before.head == chunk.head;
  std::erase_if(chunks_, [&](const Chunk& c) { return Drop(c); });
  return address;
}

void Delegated::OnAnswer(uint32_t head, LogAddress object, bool refused) {
  const auto it = std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& c) { return c.Holds(head, object); });
  if (it == chunks_.end()) return;
  --it->in_flight;
  if (refused) Revoke(*it);
  if (Drop(*it)) chunks_.erase(it);
}

bool Delegated::Drop(const Chunk& chunk) {
  if (chunk.in_flight > 0 || !(chunk.revoked || chunk.passed)) return false;
  if (!chunk.passed) to_send.push_back(MakeGiveBack(chunk.head, chunk.address, chunk.version));
  return true;
}

void Delegated::OnDelegated(uint32_t head, const format::Reply& reply) {
  Head& of = HeadAt(head);
  const uint64_t bytes = SpaceOf(reply.header);
  of.asked = false;
  of.wanted = std::min(of.wanted, bytes);
  Chunk chunk;
  chunk.head = head;
  chunk.address = LogAddress(reply.address);
  chunk.tail = format::kChunkObjectsAt;
  chunk.bytes = bytes;
  chunk.version = reply.header.version;
  chunk.generation = reply.generation;
  chunk.window = static_cast<uint32_t>(reply.number);
  chunks_.push_back(chunk);
}

void Delegated::OnRefused(uint32_t head) { HeadAt(head) = {.patience = kPatience}; }

// Puts there that are in flight may still be answered, so the client gives the chunk back after them.
void Delegated::OnRevoked(LogAddress address) {
  for (Chunk& chunk : chunks_) {
    if (chunk.address == address) Revoke(chunk);
  }
  std::erase_if(chunks_, [&](const Chunk& c) { return Drop(c); });
}

void Delegated::Revoke(Chunk& chunk) {
  if (chunk.revoked) return;
  chunk.revoked = true;
  Head& of = HeadAt(chunk.head);
  of.wanted = 0;
  // A client that hardly uses its chunks would leave unused space with each put.
  const bool hardly_used = chunk.tail - format::kChunkObjectsAt < (chunk.bytes - format::kChunkObjectsAt) / 2;
  if (hardly_used) of.patience = kPatience;
}

}  // namespace erda::client
