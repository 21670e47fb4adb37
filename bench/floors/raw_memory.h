// The memory of raw operations. It belongs to the pool itself, so that only the engine makes a difference.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "bench/floors/raw.h"
#include "erda/status.h"

namespace erda::floors {

// Maps a file or device once more, beside the server that has the pool open. The area lies in the last region of the
// log, which the log takes last. For "dram:" it is other memory of the same kind, since the pool's memory belongs to
// the server alone.
class RawMemory {
 public:
  // `bytes` is the wish; a small pool has fewer. Requires: `pool` is a pool, and a server has it open.
  static Result<std::unique_ptr<RawMemory>> Open(const std::string& pool, uint64_t bytes);
  RawMemory(const RawMemory&) = delete;
  RawMemory& operator=(const RawMemory&) = delete;
  ~RawMemory();

  [[nodiscard]] MemoryView view() const;
  [[nodiscard]] const RawArea& area() const { return area_; }
  void Persist(uint64_t offset, uint64_t bytes) const;
  // Returns true if the log has not reached the area. Then no data of the pool was damaged, and the figures are those
  // of memory at rest.
  [[nodiscard]] bool untouched() const;

 private:
  RawMemory() = default;
  Status MapFile(const std::string& path);
  Status FindArea(uint64_t bytes);

  SharedMemory memory_;  // Of "dram:".
  std::span<std::byte> mapped_;
  bool is_pmem_ = false;
  UniqueFd read_write_;
  UniqueFd read_only_;
  uint64_t region_word_at_ = 0;
  RawArea area_;
};

}  // namespace erda::floors
