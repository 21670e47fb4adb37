// The requests of one Post, checked against the contract.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/verbs/local_keys.h"
#include "fabric/verbs/request.h"

namespace erda::fabric::verbs {

// Keeps its memory from one Post to the next. The thread of the channel's queue calls it.
class Batch {
 public:
  // Takes the requests over. Returns kInvalidArgument if one of them breaks the contract on this side.
  Status Take(std::span<const WorkRequest> works, LocalKeyCopy& keys);

  // The results of the last Take, if it returned ok.
  [[nodiscard]] std::span<const Request> requests() const { return requests_; }
  [[nodiscard]] uint32_t messages() const { return messages_; }

 private:
  std::vector<Request> requests_;
  uint32_t messages_ = 0;
  LastLocalKey last_key_;
};

}  // namespace erda::fabric::verbs
