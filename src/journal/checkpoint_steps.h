// The places at which the next checkpoints are made. The checkpointer takes to the pool file what the disk holds, in
// steps of some size, and each step frees its space. So a full ring lets puts go on after one step, and not after all.
//
// A checkpoint needs the end of a record. The places that the disk holds from time to time are such ends, and the steps
// are made of those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "journal/place.h"

namespace erda::journal {

// Belongs to the checkpointer's thread.
class CheckpointSteps {
 public:
  using Places = std::vector<Place>;  // One for each shard.

  // Before the first step the pool file has the streams up to these places. A step has at least `bytes` of all streams
  // together. The last one may have less.
  CheckpointSteps(Places begin, uint64_t bytes) : done_(std::move(begin)), bytes_(bytes) {}

  [[nodiscard]] bool empty() const { return steps_.empty(); }
  [[nodiscard]] size_t size() const { return steps_.size(); }
  // The disk holds the streams up to these places. REQUIRES: none is before an earlier one.
  void Note(Places held) {
    if (held == (steps_.empty() ? done_ : steps_.back())) return;
    if (!steps_.empty() && Bytes(steps_.size() > 1 ? steps_[steps_.size() - 2] : done_, steps_.back()) < bytes_) {
      steps_.back() = std::move(held);
    } else {
      steps_.push_back(std::move(held));
    }
  }
  // The places of the next step. REQUIRES: !empty().
  [[nodiscard]] const Places& next() const { return steps_.front(); }
  // The next step is made. REQUIRES: !empty().
  void Pop() {
    done_ = std::move(steps_.front());
    steps_.pop_front();
  }

 private:
  static uint64_t Bytes(const Places& from, const Places& to) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < from.size(); ++i) bytes += to[i] - from[i];
    return bytes;
  }

  Places done_;
  const uint64_t bytes_;
  std::deque<Places> steps_;
};

}  // namespace erda::journal
