// The work request that posts a receive. The thread of the queue makes it, and posts it.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "fabric/verbs/handshake.h"
#include "fabric/verbs/work_id.h"

namespace erda::fabric::verbs {

// Returns the number of receives for a channel of this message depth: some more, for the greeting, and to spare.
constexpr uint32_t ReceivesFor(uint32_t message_depth) { return message_depth + 4; }

// Refers to itself, so it stays where it is made.
struct ReceiveWork {
  ReceiveWork(WorkId id, std::byte* memory, uint32_t key)
      : piece{reinterpret_cast<uint64_t>(memory), kReceiveBytes, key}, work{id.word(), nullptr, &piece, 1} {}
  ReceiveWork(const ReceiveWork&) = delete;
  ReceiveWork& operator=(const ReceiveWork&) = delete;
  ~ReceiveWork() = default;

  ibv_sge piece;
  ibv_recv_wr work;
};

}  // namespace erda::fabric::verbs
