// The objects of a shard's log, read at the addresses that index entries name. Counts the verified and the live bytes
// in the shard's report.
//
// In a sound pool no two entries lead to one object. So the bytes of the log are enough as a budget for the values of
// all entries. Where entries share objects, the budget keeps the time in bounds. One thread uses a reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/object.h"
#include "inspect/client_chunks.h"
#include "inspect/linked_regions.h"
#include "inspect/shard_bytes.h"
#include "inspect/shard_findings.h"

namespace erda::inspect {

class ObjectReader {
 public:
  // REQUIRES: the report has the bytes of the log, and the chunks are all found.
  ObjectReader(const ShardBytes& bytes, const LinkedRegions& regions, ClientChunks* chunks, ShardFindings* findings)
      : bytes_(bytes),
        geometry_(bytes.geometry()),
        regions_(regions),
        chunks_(*chunks),
        report_(findings->report()),
        budget_(report_.log_bytes) {}

  // Returns the pool's bytes from an address to the end of its chunk or segment. Empty if no entry can lead there.
  [[nodiscard]] std::span<const std::byte> BytesAt(uint32_t head, format::LogAddress address) const;
  // Reads the header and the label.
  [[nodiscard]] format::ObjectView Header(uint32_t head, format::LogAddress address) const {
    return format::InspectHeader(PlaceOf(head, address), BytesAt(head, address));
  }
  struct Read {
    format::ObjectView view;
    bool over_budget = false;  // the budget is spent, so the value was not read
  };
  // Reads the value, too.
  [[nodiscard]] Read Whole(uint32_t head, format::LogAddress address);
  // Counts the object's space as live: an entry names it.
  void CountLive(uint32_t head, format::LogAddress address, uint64_t space);

  // Returns whether the header of the segment around the address says that every version there is settled.
  // REQUIRES: BytesAt the address is not empty.
  [[nodiscard]] bool SegmentSaysSettled(uint32_t head, format::LogAddress address) const;
  // Returns whether the region table says so of the region. REQUIRES: BytesAt the address is not empty.
  [[nodiscard]] bool RegionSaysSettled(uint32_t head, format::LogAddress address) const {
    return bytes_.RegionWordOf(regions_.RegionAt(head, address)).settled();
  }
  // Returns whether several entries must lead to one object outside of chunks.
  [[nodiscard]] bool budget_spent() const { return budget_spent_; }

 private:
  [[nodiscard]] format::Place PlaceOf(uint32_t head, format::LogAddress address) const;
  // Returns null if the address is in no chunk.
  [[nodiscard]] ClientChunks::Chunk* ChunkOf(uint32_t head, format::LogAddress address);

  const ShardBytes& bytes_;
  const format::Geometry& geometry_;
  const LinkedRegions& regions_;
  ClientChunks& chunks_;
  ShardReport& report_;
  uint64_t budget_;  // bytes of values outside of chunks that may still be read
  bool budget_spent_ = false;
};

}  // namespace erda::inspect
