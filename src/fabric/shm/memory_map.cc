#include "fabric/shm/memory_map.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/map_shared.h"

namespace erda::fabric::shm {

Mapping::~Mapping() { ::munmap(bytes_.data(), bytes_.size()); }

namespace {

// Checks the seals. The caller must do this first: it may measure the memory only once no one can shrink it any more.
Status CheckItStays(const UniqueFd& fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return {Code::kInvalidArgument, "the peer's memory is not sealed against shrinking"};
  }
  struct statfs system {};
  if (::fstatfs(fd.get(), &system) != 0) return ErrnoStatus("cannot examine the peer's memory");
  // A sealed memfd on huge pages is on hugetlbfs. If its owner punches out a page there and no other page is free, the
  // next access raises SIGBUS.
  if (system.f_type != TMPFS_MAGIC) {
    return {Code::kInvalidArgument, "the peer's memory is on huge pages: make it a memfd without MFD_HUGETLB"};
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<Mapping>> MemoryMaps::Map(const UniqueFd& fd, size_t size, bool writable, Trust trust) {
  if (trust == Trust::kPeerMayNotHarm) {
    if (auto status = CheckItStays(fd); !status.ok()) return status;
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot examine the peer's memory");
  if (size == 0 || (S_ISREG(info.st_mode) && std::cmp_less(info.st_size, size))) {
    return Status(Code::kInvalidArgument, "the peer's memory has another size than the peer says");
  }
  const std::scoped_lock lock(mutex_);
  if (maps_.size() >= sweep_at_) {
    std::erase_if(maps_, [](const auto& item) { return item.second.expired(); });
    sweep_at_ = std::max<size_t>(64, 2 * maps_.size());
  }
  const Key key{info.st_dev, info.st_ino, size, writable};
  if (const auto found = maps_.find(key); found != maps_.end()) {
    if (auto mapping = found->second.lock()) return mapping;
  }
  const std::span<std::byte> bytes = MapShared(fd.get(), size, writable);
  if (bytes.empty()) return ErrnoStatus("cannot map " + std::to_string(size) + " bytes of the peer's memory");
  auto mapping = std::make_shared<Mapping>(bytes);
  maps_[key] = mapping;
  return mapping;
}

}  // namespace erda::fabric::shm
