#include "bench/pmr/worker.h"

#include "base/bytes.h"

namespace erda::pmr_bench {

bool Worker::Do(uint8_t kind, uint64_t bytes) {
  const uint64_t area = client_ * kBytesMax;
  switch (Message{kind}) {
    case Message::kToDisk:
      return ToDisk(AlignUp(bytes, DurableFile::kBlock));
    case Message::kToRegion:
      region_.Write(area, payload_.first(bytes));
      region_.Persist(area, bytes);
      return !region_.failed();
    case Message::kFlushNvm:
      nvm_.Persist(area, bytes);
      return true;
    case Message::kFlushRegion:
      region_.Persist(area, bytes);
      return !region_.failed();
  }
  return false;
}

bool Worker::ToDisk(uint64_t bytes) {
  if (next_ + bytes > kFileBytes) next_ = 0;
  const bool done = disk_.Write(client_ * kFileBytes + next_, payload_.first(bytes)).ok();
  next_ += bytes;
  return done;
}

}  // namespace erda::pmr_bench
