#include "index/published.h"

#include "format/control_block.h"

namespace erda::index {

Published Published::In(std::span<std::byte> control, const format::Geometry& geometry) {
  const auto word = [&](uint64_t offset) { return reinterpret_cast<uint64_t*>(control.data() + offset); };
  auto* const runs = reinterpret_cast<uint32_t*>(control.data() + format::RunsOffset(geometry));
  return {word(offsetof(format::ControlBlock, displacements)), word(offsetof(format::ControlBlock, blocks)),
          word(offsetof(format::ControlBlock, reaches)), std::span(runs, geometry.runs_max())};
}

}  // namespace erda::index
