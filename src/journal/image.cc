#include "journal/image.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "base/boot.h"
#include "base/bytes.h"
#include "format/geometry.h"

namespace erda::journal {

namespace {

// The pool's bytes in memory.
class ImagePool final : public nvm::Pool {
 public:
  ImagePool(MemoryFile file, UniqueFd read_only) : file_(std::move(file)), read_only_(std::move(read_only)) {
    bytes_ = file_.bytes();
    durability_ = nvm::Durability::kProcessSafe;
  }
  [[nodiscard]] MemoryView view() const override { return {bytes_, file_.fd(), read_only_.get()}; }
  // Whether the pool is new is known to the server, which fills the image.
  [[nodiscard]] bool created() const override { return false; }
  [[nodiscard]] nvm::LargePages large_pages() const override { return nvm::LargePages::kInMemory; }
  void RemoveIfCreated() override {}
  Status Widen(uint64_t /*kept*/, uint64_t /*size*/) override {
    return {Code::kInvalidArgument, "the image of a pool keeps the size that it was made with"};
  }
  [[nodiscard]] format::BootId boot() const override { return BootOfMachine(); }

 private:
  // Memory outlives the process by itself.
  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override {}

  MemoryFile file_;
  UniqueFd read_only_;
};

struct Paths {
  std::string streams;
  std::string pool;
};

Paths PathsOf(const std::string& folder, const Uuid& uuid) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = folder + "/erda-";
  for (const uint8_t byte : uuid) {
    name += kDigits[byte >> 4];
    name += kDigits[byte & 15];
  }
  return {name + ".streams", name + ".pool"};
}

uint64_t StreamsBytes(const ImageShape& shape) {
  return kImageHeaderBytes + shape.shards * Stream::MemoryFor(shape.stream_capacity);
}

Status CheckShape(const ImageShape& shape) {
  constexpr uint64_t kPoolBytesMax = uint64_t{1} << 47;  // The addresses that a process has.
  const auto wrong = [](const std::string& what) {
    return Status(Code::kInvalidArgument, "the image of a pool cannot have " + what);
  };
  if (shape.shards == 0 || shape.shards > format::kShardsMax) return wrong(std::to_string(shape.shards) + " shards");
  if (shape.pool_size == 0 || shape.pool_size > kPoolBytesMax)
    return wrong(std::to_string(shape.pool_size) + " bytes of a pool");
  if (!Stream::IsCapacity(shape.stream_capacity)) {
    return wrong("streams of " + std::to_string(shape.stream_capacity) + " bytes; take a power of two from " +
                 std::to_string(Stream::kCapacityMin) + " on");
  }
  return {};
}

ImageHeader HeaderOf(const ImageShape& shape) {
  ImageHeader header{};
  header.magic = kImageMagic;
  header.version = kImageVersion;
  header.uuid = shape.uuid;
  header.boot = BootOfMachine();
  header.pool_size = shape.pool_size;
  header.stream_capacity = shape.stream_capacity;
  header.shards = shape.shards;
  header.state = static_cast<uint64_t>(ImageState::kFilling);
  header.crc = ImageHeaderCrc(header);
  return header;
}

bool Counts(const std::optional<ImageHeader>& header) {
  return header && header->boot == BootOfMachine() && header->state == static_cast<uint64_t>(ImageState::kReady);
}

Status RemoveFile(const std::string& path) {
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? Status() : ErrnoStatus("cannot remove " + path);
}

// REQUIRES: the caller has the image locked. The first step takes the state away: then no image counts, wherever a kill
// ends the rest. The file with the lock goes last.
Status RemoveFiles(const Paths& paths, int streams) {
  if (auto status = WriteImageHeader(streams, paths.streams, {}); !status.ok()) return status;
  if (auto status = RemoveFile(paths.pool); !status.ok()) return status;
  return RemoveFile(paths.streams);
}

Result<std::unique_ptr<nvm::Pool>> PoolOf(const std::string& path, Result<MemoryFile> file) {
  if (!file.ok()) return file.status();
  UniqueFd read_only(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!read_only) return ErrnoStatus("cannot open " + path);
  return std::unique_ptr<nvm::Pool>(std::make_unique<ImagePool>(*std::move(file), std::move(read_only)));
}

Status OtherShape(const std::string& path, const ImageHeader& header) {
  return {Code::kInvalidArgument, path + ": an image of a pool of " + std::to_string(header.pool_size) +
                                      " bytes with " + std::to_string(header.shards) + " shards and streams of " +
                                      std::to_string(header.stream_capacity) +
                                      " bytes, which is not what was asked for"};
}

}  // namespace

Image::Image(ImageShape shape, UniqueFd lock, MemoryFile streams, std::unique_ptr<nvm::Pool> pool)
    : shape_(std::move(shape)), lock_(std::move(lock)), streams_(std::move(streams)), pool_(std::move(pool)) {}

Result<std::unique_ptr<Image>> Image::Create(const ImageShape& shape) {
  if (auto status = CheckShape(shape); !status.ok()) return status;
  // No file is made in a folder that cannot have an image.
  if (auto status = CheckMemoryFor(shape.folder, 0); !status.ok()) return status;
  const Paths paths = PathsOf(shape.folder, shape.uuid);
  auto lock = MemoryFile::OpenLocked(paths.streams, MemoryFile::Use::kExistingOrNew);
  if (!lock.ok()) return lock.status();
  const auto earlier = ReadImageHeader(lock->get(), paths.streams);
  if (!earlier.ok()) return earlier.status();
  if (Counts(*earlier)) {
    return Status(Code::kInvalidArgument,
                  paths.streams + ": the pool has an image already, and it may have what no disk has yet; open it");
  }
  const auto fail = [&](Status status) {
    (void)::unlink(paths.pool.c_str());
    (void)::unlink(paths.streams.c_str());
    return status;
  };
  if (::ftruncate(lock->get(), 0) != 0) return fail(ErrnoStatus("cannot empty " + paths.streams));
  if (auto status = RemoveFile(paths.pool); !status.ok()) return fail(std::move(status));
  if (auto status = CheckMemoryFor(shape.folder, StreamsBytes(shape) + shape.pool_size); !status.ok())
    return fail(std::move(status));
  auto file = MemoryFile::Open(paths.streams, MemoryFile::Use::kExisting);
  if (!file.ok()) return fail(file.status());
  auto streams = MemoryFile::Make(paths.streams, *std::move(file), StreamsBytes(shape));
  if (!streams.ok()) return fail(streams.status());
  if (auto status = WriteImageHeader(streams->fd(), paths.streams, HeaderOf(shape)); !status.ok())
    return fail(std::move(status));
  file = MemoryFile::Open(paths.pool, MemoryFile::Use::kNew);
  if (!file.ok()) return fail(file.status());
  auto pool = PoolOf(paths.pool, MemoryFile::Make(paths.pool, *std::move(file), shape.pool_size));
  if (!pool.ok()) return fail(pool.status());
  return std::unique_ptr<Image>(new Image(shape, *std::move(lock), *std::move(streams), *std::move(pool)));
}

Result<std::unique_ptr<Image>> Image::Open(const ImageShape& shape) {
  const Paths paths = PathsOf(shape.folder, shape.uuid);
  auto lock = MemoryFile::OpenLocked(paths.streams, MemoryFile::Use::kExisting);
  if (!lock.ok()) return lock.status();
  const auto header = ReadImageHeader(lock->get(), paths.streams);
  if (!header.ok()) return header.status();
  if (!Counts(*header))
    return Status(Code::kNotFound, paths.streams + ": the image was never ready, or is of another boot");
  const ImageHeader& found = **header;
  if (found.uuid != shape.uuid) return Status(Code::kInvalidArgument, paths.streams + ": an image of another pool");
  const bool same_capacity = shape.stream_capacity == 0 || shape.stream_capacity == found.stream_capacity;
  if (found.pool_size != shape.pool_size || found.shards != shape.shards || !same_capacity)
    return OtherShape(paths.streams, found);
  ImageShape known = shape;
  known.stream_capacity = found.stream_capacity;
  if (auto status = CheckShape(known); !status.ok()) return status;

  auto file = MemoryFile::Open(paths.streams, MemoryFile::Use::kExisting);
  if (!file.ok()) return file.status();
  auto streams = MemoryFile::Map(paths.streams, *std::move(file), StreamsBytes(known));
  if (!streams.ok()) return streams.status();
  file = MemoryFile::Open(paths.pool, MemoryFile::Use::kExisting);
  if (!file.ok() && file.status().code() == Code::kNotFound)
    return Status(Code::kCorruption, paths.pool + ": the file with the pool's bytes is missing");
  if (!file.ok()) return file.status();
  auto pool = PoolOf(paths.pool, MemoryFile::Map(paths.pool, *std::move(file), known.pool_size));
  if (!pool.ok()) return pool.status();
  return std::unique_ptr<Image>(new Image(std::move(known), *std::move(lock), *std::move(streams), *std::move(pool)));
}

Status Image::Remove(const std::string& folder, const Uuid& uuid) {
  const Paths paths = PathsOf(folder, uuid);
  const auto lock = MemoryFile::OpenLocked(paths.streams, MemoryFile::Use::kExisting);
  if (!lock.ok()) return lock.status().code() == Code::kNotFound ? Status() : lock.status();
  return RemoveFiles(paths, lock->get());
}

// Once only: the names may belong to the next process's image afterwards.
Status Image::Remove() {
  if (removed_) return {};
  Status status = RemoveFiles(PathsOf(shape_.folder, shape_.uuid), streams_.fd());
  removed_ = status.ok();
  return status;
}

std::span<std::byte> Image::StreamMemory(uint32_t shard) {
  assert(shard < shape_.shards);
  const uint64_t size = Stream::MemoryFor(shape_.stream_capacity);
  return streams_.bytes().subspan(kImageHeaderBytes + shard * size, size);
}

namespace {

std::atomic_ref<uint64_t> StateIn(std::span<std::byte> streams) {
  return std::atomic_ref(reinterpret_cast<ImageHeader*>(streams.data())->state);
}

}  // namespace

void Image::MarkReady() {
  // Release: a kill leaves the stores of this process up to some instruction. If this one is among them, so are the
  // pool's bytes and the streams. Pairs with the reading of the header in Open, by a later process.
  StateIn(streams_.bytes()).store(static_cast<uint64_t>(ImageState::kReady), std::memory_order_release);
}

// Sequentially consistent: no store that comes later may be in memory without this one after a kill.
void Image::MarkBroken() {
  StateIn(streams_.bytes()).store(static_cast<uint64_t>(ImageState::kFilling), std::memory_order_seq_cst);
}

}  // namespace erda::journal
