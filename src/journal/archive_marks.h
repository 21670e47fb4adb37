// The places up to which the disk holds a stream, with their times, for the archive.
//
// A time is the one at which the writer took the last record before the place. It is after all of the record's bytes
// were appended, and before anybody is told that they are held. So a put that was acknowledged before a moment is
// before the last mark of that moment. A put that was sent after it is not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <vector>

#include "journal/place.h"

namespace erda::journal {

// Any thread may call it. The writer's thread notes, and the archiver's thread takes.
class ArchiveMarks {
 public:
  struct Mark {
    Place end;
    uint64_t time_us;
  };

  // A record gets this time.
  void NoteTime(uint64_t time_us) {
    const std::lock_guard lock(mutex_);
    time_us_ = std::max(time_us_, time_us);
  }
  // The disk holds the stream up to this place, with all records that got a time.
  void NoteHeld(Place place) noexcept {
    const std::lock_guard lock(mutex_);
    if (place <= end_) return;
    end_ = place;
    try {
      marks_.push_back({place, time_us_});
    } catch (const std::bad_alloc&) {  // The next mark covers the place, too.
      if (!marks_.empty()) marks_.back() = {place, time_us_};
    }
  }

  // The marks begin after this place.
  void Begin(Place place) {
    const std::lock_guard lock(mutex_);
    std::erase_if(marks_, [place](const Mark& mark) { return mark.end <= place; });
    end_ = std::max(end_, place);
  }
  // Returns the last place that was noted.
  [[nodiscard]] Place end() const {
    const std::lock_guard lock(mutex_);
    return marks_.empty() ? 0 : marks_.back().end;
  }
  // Returns marks after `from`, as many as have `bytes` bytes, and one at least if there is one.
  [[nodiscard]] std::vector<Mark> After(Place from, uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    std::vector<Mark> found;
    for (const Mark& mark : marks_) {
      if (mark.end <= from) continue;
      if (!found.empty() && mark.end - from > bytes) break;
      found.push_back(mark);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  uint64_t time_us_ = 0;
  std::deque<Mark> marks_;
  Place end_ = 0;
};

}  // namespace erda::journal
