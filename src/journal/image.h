// The image: the memory in which a server with a journal keeps its pool, and the streams of the shards beside it.
//
// It is two files in tmpfs, in a folder that is /dev/shm if nothing else is asked for. So it outlives the server's
// process, and a reboot takes it away:
//
//   erda-UUID.streams   a header page (image_header.h), then the streams of the shards. It has the lock.
//   erda-UUID.pool      the bytes of the pool, and nothing else: the fabric gives its descriptor to clients.
//
// A server that starts opens the image. If that returns kNotFound, the server makes one: it creates it, fills the
// pool's bytes, formats the streams, and marks it as ready. A server that is killed before leaves an image that does
// not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "erda/status.h"
#include "journal/image_header.h"
#include "journal/memory_file.h"
#include "journal/stream.h"
#include "nvm/pool.h"

namespace erda::journal {

struct ImageShape {
  Uuid uuid{};  // Of the pool.
  uint64_t pool_size = 0;
  uint32_t shards = 0;
  uint64_t stream_capacity = 0;  // Of each shard's stream. Open takes any if this is 0.
  std::string folder = "/dev/shm";
};

// Owns the files' descriptors, mappings and lock. One thread creates, opens, marks and removes it; several may use its
// memory.
class Image {
 public:
  // Makes an image of zeroes that does not count until MarkReady. Takes all its memory. Replaces one that was never
  // ready, or that another boot left. Returns kInvalidArgument if there is one of this boot that is ready. Returns
  // kUnavailable if another process has it open, and kResourceExhausted if the memory has no room for it.
  static Result<std::unique_ptr<Image>> Create(const ImageShape& shape);
  // Opens the image that an earlier process left. Returns kNotFound if no image of this boot is ready, and
  // kInvalidArgument if it has another shape. Never changes a file.
  static Result<std::unique_ptr<Image>> Open(const ImageShape& shape);
  // Removes the image of a pool, whatever its state. Returns ok if the pool has no image, and kUnavailable if a
  // process has it open.
  static Status Remove(const std::string& folder, const Uuid& uuid);

  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() = default;

  [[nodiscard]] const ImageShape& shape() const { return shape_; }
  // The pool's bytes. A flush does nothing there: what the shards flush must go through a CapturedPool.
  [[nodiscard]] nvm::Pool& pool() { return *pool_; }
  // The memory for Stream::Format and Stream::Open. REQUIRES: shard < shape().shards.
  [[nodiscard]] std::span<std::byte> StreamMemory(uint32_t shard);

  // The image counts from now on. REQUIRES: the pool's bytes and all streams are there.
  void MarkReady();
  // The image counts no more, and the next process finds none. Any thread may call it, also without memory or disk.
  void MarkBroken();
  // Removes the files: the next process finds no image. This one keeps its memory and the lock.
  Status Remove();

 private:
  Image(ImageShape shape, UniqueFd lock, MemoryFile streams, std::unique_ptr<nvm::Pool> pool);

  const ImageShape shape_;
  const UniqueFd lock_;
  MemoryFile streams_;
  std::unique_ptr<nvm::Pool> pool_;
  bool removed_ = false;
};

}  // namespace erda::journal
