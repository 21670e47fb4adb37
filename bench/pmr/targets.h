// The places into which the paths put bytes: a file on a disk, NVM, and a persistent memory region. Each client has an
// area of kBytesMax bytes in the two memories, and kFileBytes of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "bench/pmr/report.h"
#include "erda/status.h"
#include "nvm/pool.h"

namespace erda::pmr_bench {

inline constexpr uint64_t kFileBytes = 4 << 20;

// A file whose blocks were all written before. So a durable write has no change of the file system to write. Any thread
// may use it.
class DurableFile {
 public:
  static constexpr uint64_t kBlock = 4096;
  // Makes a file on the disk of the folder. It has no name, so it ends with this process.
  static Result<std::unique_ptr<DurableFile>> Create(const std::string& folder, uint64_t size);

  // Returns when the disk has the bytes for good. REQUIRES: address, offset and size are multiples of kBlock.
  Status Write(uint64_t offset, std::span<const std::byte> bytes) const;
  // Returns false if the file system refused direct writes, so that they go through the page cache.
  [[nodiscard]] bool direct() const { return direct_; }
  // Returns true if it is no disk: a flush costs nothing.
  [[nodiscard]] bool in_memory() const;

 private:
  DurableFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  const std::string path_;
  const UniqueFd fd_;
  bool direct_ = false;
};

// Opens the NVM or the region of the settings, of at least `size` bytes. Refuses memory in which Erda has a pool or a
// front.
Result<std::unique_ptr<nvm::Pool>> OpenMemory(const std::string& path, uint64_t size);

// The number of the memory that a direct path writes to, as the responder gets them: NVM, region.
[[nodiscard]] constexpr size_t MemoryOf(Path path) { return path == Path::kPmrDirect ? 1 : 0; }

struct Targets {
  std::unique_ptr<DurableFile> disk;
  std::unique_ptr<nvm::Pool> nvm;
  std::unique_ptr<nvm::Pool> region;
};

}  // namespace erda::pmr_bench
