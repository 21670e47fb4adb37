#include "inspect/client_chunks.h"

#include <iterator>
#include <string>

namespace erda::inspect {

const ClientChunks::Chunk* ClientChunks::Find(uint64_t offset) const {
  const auto after = chunks_.upper_bound(offset);
  if (after == chunks_.begin()) return nullptr;
  const Chunk& chunk = std::prev(after)->second;
  return offset < chunk.end ? &chunk : nullptr;
}

ClientChunks::Chunk* ClientChunks::Find(uint64_t offset) {
  return const_cast<Chunk*>(static_cast<const ClientChunks*>(this)->Find(offset));
}

void ClientChunks::AddDamage(ShardFindings* findings) const {
  for (const auto& [begin, chunk] : chunks_) {
    if (!chunk.claims_more) continue;
    findings->Add("the objects in a client's chunk, at byte " + std::to_string(begin) +
                  ", state more bytes than it has");
  }
}

}  // namespace erda::inspect
