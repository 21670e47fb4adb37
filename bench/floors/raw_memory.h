// The memory of raw operations: of the pool itself, so that nothing but the engine makes a difference.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "bench/floors/raw.h"
#include "erda/status.h"

namespace erda::floors {

// A file or a device is mapped once more, beside the server that has the pool open. The area lies in the last region of
// the log, which the log takes last. The memory of "dram:" belongs to the server alone, so it is other memory there, of
// the same kind.
class RawMemory {
 public:
  // `bytes`: as many as are wished; a small pool has fewer. The pool is one, and open.
  static Result<std::unique_ptr<RawMemory>> Open(const std::string& pool, uint64_t bytes);
  RawMemory(const RawMemory&) = delete;
  RawMemory& operator=(const RawMemory&) = delete;
  ~RawMemory();

  [[nodiscard]] MemoryView view() const;
  [[nodiscard]] const RawArea& area() const { return area_; }
  void Persist(uint64_t offset, uint64_t bytes) const;
  // The log has not come to the area: nothing of the pool was damaged, and the figures are those of memory at rest.
  [[nodiscard]] bool untouched() const;

 private:
  RawMemory() = default;
  Status MapFile(const std::string& path);
  Status FindArea(uint64_t bytes);

  SharedMemory memory_;  // of dram:
  std::span<std::byte> mapped_;
  bool is_pmem_ = false;
  UniqueFd read_write_;
  UniqueFd read_only_;
  uint64_t region_word_at_ = 0;
  RawArea area_;
};

}  // namespace erda::floors
