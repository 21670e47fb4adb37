// The client's copy of a shard's control block, and its age: how many Reads of the block have arrived.
//
// Owns the memory of the copy, and its registration. The link posts the Reads. Only the client's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/activity.h"
#include "format/geometry.h"

namespace erda::client {

class ControlCopy {
 public:
  // The id of a Read of the control block in its completion.
  static constexpr uint64_t kReadId = UINT64_MAX;

  // Begins a new connection. The copy is zeroes until the first Read arrives. REQUIRES: no channel uses the memory.
  Status Reset(fabric::Fabric& fabric, const format::Geometry& geometry);
  // The connection is gone: a Read that is under way does not arrive.
  void Forget() { pending_ = false; }

  // Returns a Read of the control block, with the shard's activity if the caller wants that.
  [[nodiscard]] fabric::WorkRequest ReadWork(bool with_activity);
  void OnPosted() { pending_ = true; }
  void OnArrived() {
    pending_ = false;
    ++reads_;
  }

  [[nodiscard]] bool pending() const { return pending_; }
  // Returns the number of Reads that have arrived, on all connections of the link.
  [[nodiscard]] uint64_t reads() const { return reads_; }
  // Returns a value of reads() for a caller that needs fresh bytes. Once reads() has it, a Read has arrived that was
  // posted after this call.
  [[nodiscard]] uint64_t NextRead() const { return reads_ + (pending_ ? 2 : 1); }

  // Returns the control block as of the last Read, with the activity as of the last Read that had it.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::span<const std::byte> activity() const {
    return bytes().subspan(activity_at_, sizeof(format::ActivityBlock));
  }

 private:
  std::vector<std::byte> bytes_;
  std::unique_ptr<fabric::Region> region_;
  uint64_t activity_at_ = 0;
  bool pending_ = false;
  uint64_t reads_ = 0;
};

}  // namespace erda::client
