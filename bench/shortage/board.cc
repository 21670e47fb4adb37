#include "bench/shortage/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/unique_fd.h"

namespace erda::shortage {

Result<std::unique_ptr<Board>> Board::Map(const std::string& path, bool create) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_TRUNC : 0), 0600));
  if (!fd || (create && ::ftruncate(fd.get(), kBytes) != 0)) return ErrnoStatus("cannot open " + path);
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return ErrnoStatus("cannot map " + path);
  return std::unique_ptr<Board>(new Board(static_cast<std::byte*>(memory)));
}

Board::~Board() { ::munmap(memory_, kBytes); }

}  // namespace erda::shortage
