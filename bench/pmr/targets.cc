#include "bench/pmr/targets.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/bytes.h"
#include "base/file_system.h"
#include "base/map_shared.h"
#include "bench/floors/temporary_folder.h"
#include "format/superblock.h"
#include "journal/aligned_buffer.h"
#include "journal/front_part.h"
#include "nvm/front.h"

namespace erda::pmr_bench {

Result<std::unique_ptr<DurableFile>> DurableFile::Create(const std::string& folder, uint64_t size) {
  const floors::TemporaryFolder own{std::filesystem::path(folder)};  // An interrupted process leaves no file.
  if (own.path().empty()) return ErrnoStatus("cannot make a folder in " + folder);
  std::string path = own.path() + "/disk";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus("cannot create " + path);
  std::unique_ptr<DurableFile> file(new DurableFile(std::move(path), std::move(fd)));
  const int flags = ::fcntl(file->fd_.get(), F_GETFL);
  file->direct_ = flags >= 0 && ::fcntl(file->fd_.get(), F_SETFL, flags | O_DIRECT) == 0;
  const journal::AlignedBuffer zeroes(kBytesMax);
  for (uint64_t at = 0; at < size; at += kBytesMax) {
    if (auto status = file->Write(at, zeroes.bytes()); !status.ok()) return status;
  }
  return file;
}

Status DurableFile::Write(uint64_t offset, std::span<const std::byte> bytes) const {
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const ssize_t written = ::pwritev2(fd_.get(), &part, 1, static_cast<off_t>(offset), RWF_DSYNC);
  if (written < 0) return ErrnoStatus("cannot write " + path_);
  if (std::cmp_not_equal(written, bytes.size())) return {Code::kResourceExhausted, path_ + ": the disk is full"};
  return {};
}

bool DurableFile::in_memory() const { return IsInMemory(fd_.get()); }

Result<std::unique_ptr<nvm::Pool>> OpenMemory(const std::string& path, uint64_t size) {
  auto memory = path == "dram:" ? nvm::Pool::Open({.path = path, .size = size})
                                : nvm::OpenFront({.address = path, .least_size = size, .any_file = true});
  if (!memory.ok()) return memory;
  // The fronts of kv-leveldb and kv-cuckoo belong to no pool, so they have no uuid.
  const auto header = LoadAs<journal::FrontHeader>((*memory)->bytes());
  const bool is_front = header.magic == journal::kFrontMagic && header.uuid != journal::Uuid{};
  if (header.magic == format::kPoolMagic || is_front) {
    return Status(Code::kInvalidArgument, path + " has data of Erda, which this measurement would overwrite");
  }
  // A DAX device maps whole pages of 2 MiB.
  (*memory)->Narrow(std::min((*memory)->size(), AlignUp(size, kLargePage)));
  return memory;
}

}  // namespace erda::pmr_bench
