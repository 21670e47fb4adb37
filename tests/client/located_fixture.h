// An engine whose server is a log and an entry by hand. The fixture tells the Reads of a get.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "client/chain_fixture.h"
#include "format/control_block.h"
#include "format/index_entry.h"

namespace erda::client {

class LocatedTest : public ChainTest {
 protected:
  static constexpr auto kPlace = LogAddress::At(0, 4096);
  static constexpr auto kOther = LogAddress::At(0, 8192);

  // Makes the key's entry name the version at `at`, settled.
  void Name(LogAddress at) { entry_ = format::EntryWord().Published(at).Settled(); }
  // Gets the key, and answers all Reads. Returns their kinds: 'e' an entry, 'v' a version, 't' the time.
  std::string ReadsOfGet() {
    std::string reads;
    got_ = "";
    Get();
    while (!fabric_->posted.empty()) {
      const WorkRequest work = fabric_->Take();
      EXPECT_EQ(work.kind, OpKind::kRead);
      const bool version = work.remote.region == format::kPoolRegion && work.remote.offset >= geometry_.RegionOffset(0);
      const char control = ReadsTime(work) ? 't' : 'c';
      reads.push_back(version ? 'v' : work.remote.region == format::kControlRegion ? control : 'e');
      if (reads.back() == 'e') {
        AnswerEntry(work);
      } else {
        Answer(work);
      }
      if (fabric_->posted.empty()) engine_->Poll();
    }
    return reads;
  }
  void AnswerEntry(const WorkRequest& work) {
    const format::IndexEntry entry{entry_.raw(),
                                   format::EntryMeta::Make(format::EntryMeta::TagOf(HashKey(kKey)), 0, 0, 4).raw()};
    std::memset(work.local.data(), 0, work.local.size());
    std::memcpy(work.local.data(), &entry, sizeof(entry));
    fabric_->Complete(work);
  }
  void SetLeft(LogAddress at) {
    const auto first = format::WithLeft(LoadAs<uint64_t>(std::span(log_).subspan(at.offset_in_slot())));
    std::memcpy(InLog(at), &first, sizeof(first));
  }

  format::EntryWord entry_;
};

}  // namespace erda::client
