// The first words of a shard's control block. They are the displacement counter, the number of blocks, the generation
// of the head slots, the reaches, and the time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/fabric.h"
#include "format/control_block.h"

namespace erda::client {

struct Reading {
  uint64_t displacements;
  uint64_t blocks;
  uint64_t head_generation;
  uint64_t reaches;
  uint64_t time;
};
static_assert(sizeof(Reading) == format::kMissReadingBytes);
static_assert(offsetof(format::ControlBlock, displacements) == offsetof(Reading, displacements));
static_assert(offsetof(format::ControlBlock, blocks) == offsetof(Reading, blocks));
static_assert(offsetof(format::ControlBlock, reaches) == offsetof(Reading, reaches));
static_assert(offsetof(format::ControlBlock, time) == offsetof(Reading, time));

}  // namespace erda::client
