// The requests that are in a queue pair, by number. A number is that of the request's completion.
//
// Some requests ask for no completion. They are done when a later request is: a queue pair works in order.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "fabric/verbs/request.h"

namespace erda::fabric::verbs {

// The thread of the channel's queue calls it.
class PostedRing {
 public:
  // REQUIRES: `places` is not 0, and the ring is empty. Uses the largest power of two in `places`.
  void Resize(uint32_t places) {
    places_.resize(std::bit_floor(places));
    mask_ = static_cast<uint32_t>(places_.size()) - 1;
  }
  [[nodiscard]] uint32_t places() const { return static_cast<uint32_t>(places_.size()); }
  [[nodiscard]] bool empty() const { return begin_ == end_; }
  // Returns the number of requests that fit in. One more place stays free, for the last request of the queue pair.
  [[nodiscard]] uint32_t room() const { return mask_ - (end_ - begin_); }

  // Returns the number that the next Add uses.
  [[nodiscard]] uint32_t next() const { return end_; }
  // REQUIRES: room() > 0, or the request is the last one.
  void Add(const PostedRequest& posted) { places_[end_++ & mask_] = posted; }
  // Forgets the newest requests, which the queue pair did not take.
  void TakeBack(uint32_t count) { end_ -= count; }
  // Takes the request with this number out, and all before it. Returns false if it is not there.
  bool Take(uint32_t number, PostedRequest* posted) {
    if (number - begin_ >= end_ - begin_) return false;
    begin_ = number + 1;
    *posted = places_[number & mask_];
    return true;
  }
  // REQUIRES: not empty.
  [[nodiscard]] const PostedRequest& oldest() const { return places_[begin_ & mask_]; }
  void DropOldest() { ++begin_; }

 private:
  std::vector<PostedRequest> places_;
  uint32_t mask_ = 0;
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
};

}  // namespace erda::fabric::verbs
