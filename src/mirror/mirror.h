// A mirror: keeps its pool equal to a primary's, and knows when the operator may promote it (docs/mirror.md). A state
// machine with one link to each shard of the primary. It owns no thread, and reads only the clock that its options
// name.
//
//   apart --> connecting --> copying --> joining --> in sync
//     ^            |            |           |           |
//     +------------+------------+-----------+-----------+     A link is lost: then all end.
//
// It comes again after a time. If the streams are the same, and still have what it lacks, it goes on where it was, also
// in the middle of a copy. Otherwise it makes a new copy. A new process always does.
//
// THE MARK. With a primary that stops without its mirror, the superblock says whether the mirror may be promoted. The
// mirror takes this mark back before the first byte of a copy ("keeps-mark-while-copying" of
// tests/model/joining_model.py). It marks the pool when it has joined all shards on its present links, and only then
// tells them ("in-sync-with-one-shard", "says-before-its-superblock").
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/shared_memory.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/challenge.h"
#include "format/hello.h"
#include "format/mirror_link.h"
#include "format/superblock.h"
#include "journal/place.h"
#include "mirror/copy.h"
#include "mirror/follower.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::mirror {

struct MirrorOptions {
  std::string address;  // Of the primary.
  // Not 0, and the same for each process with this pool. Two pools with one id are one mirror to the primary: then one
  // may be promoted that lacks what the other one has.
  uint64_t id = 0;
  std::string token;                                       // Empty: it has none.
  uint64_t ring_bytes = 1 << 20;                           // For each shard: one by format::IsMirrorRingSize.
  uint64_t copy_bytes_per_second = 0;                      // 0: no limit.
  Nanoseconds retry = std::chrono::milliseconds(200);      // From a lost link to the next attempt.
  Nanoseconds heartbeat = std::chrono::milliseconds(250);  // Between two looks whether the primary is there.
  Nanoseconds silence = std::chrono::seconds(5);           // After this time without an answer, a link is lost.
  const Clock* clock = &SteadyClock::Instance();
  std::function<void(std::string_view)> tell = {};  // Hears of what happens. May be empty.
};

// The superblock says this of the mirror.
struct Mark {
  bool in_sync = false;  // It may be promoted.
  uint32_t epoch = 0;

  bool operator==(const Mark&) const = default;
};

// Belongs to one thread. Owns its links, and what they use of the fabric. REQUIRES: fabric, pool and superblock outlive
// it.
class Mirror {
 public:
  // Writes the mark into the superblock. It is persistent on return. After an error the superblock may have either
  // mark.
  using StoreMark = std::function<Status(const Mark&)>;
  enum class State : uint8_t { kApart, kConnecting, kCopying, kJoining, kInSync };

  // superblock: the pool's. It has the identity, the geometry and the hash seed of the primary's. mark: what it says.
  static Result<std::unique_ptr<Mirror>> Make(fabric::Fabric& fabric, nvm::Pool& pool,
                                              const format::Superblock& superblock, const Mark& mark, StoreMark store,
                                              MirrorOptions options);
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  // Ends all links. So the primary hears nothing more of this mirror.
  ~Mirror();

  // Takes what has come, and does what is due. Returns how much that was.
  size_t Poll();
  // Returns when Poll may have something to do.
  void Wait();
  // Ends the current or the next Wait. Any thread may call it.
  void Wake() { queue_->Wake(); }
  // Ends all links for good, and stores what has come. For a promotion: the primary gets no answer any more.
  Status Leave();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const Mark& mark() const { return mark_; }
  // With a primary that goes on alone, the mirror is in sync while its links are up. Otherwise the mark says it. Ask
  // before Leave.
  [[nodiscard]] bool may_be_promoted() const;
  // The progress of the copy. Null: none was begun.
  [[nodiscard]] const Copy* copy() const { return copy_ ? &*copy_ : nullptr; }
  // How often it has looked whether the primary is there, over all links.
  [[nodiscard]] uint64_t looks() const { return looks_; }
  // Why the last links ended, or why there are none.
  [[nodiscard]] const Status& last_error() const { return last_error_; }

 private:
  struct Link {
    uint32_t shard = 0;
    SharedMemory ring;  // Each link has its own: a late Write of an old one must not reach it.
    std::unique_ptr<fabric::Region> region;
    format::ChallengeAnswer answer;
    std::unique_ptr<fabric::Channel> channel;  // After the memory that it uses.
    bool connected = false;
    bool looks = false;     // A Read of the heartbeat is under way.
    Nanoseconds looked{0};  // When the last Read was posted.
    Nanoseconds seen{0};    // The primary had the link at this time, or later.
    std::optional<Follower> follower;
  };
  // Where the mirror is in a stream.
  struct Reached {
    std::array<uint8_t, 16> stream;
    journal::Place place = 0;
  };

  Mirror(fabric::Fabric& fabric, nvm::Pool& pool, const format::Superblock& superblock, const Mark& mark,
         StoreMark store, MirrorOptions options);

  Status Connect();
  Status ConnectTo(Link& link);
  void End(const Status& why);
  Status Take(const fabric::Completion& completion);
  Status TakeRefusal(Link& link);
  // All links are connected.
  Status Follow();
  Status StoreAll(Link& link);
  Status Begin();
  Status CheckPrimary(const Link& link) const;
  [[nodiscard]] bool CanGoOn() const;
  Status BeginCopy();
  Status Ask();
  Status BeInSync();
  Status LookForPrimary();
  // The primary has not answered a Read on this link for so long that it may go on alone, or that it is gone.
  [[nodiscard]] bool IsSilent(const Link& link) const;
  [[nodiscard]] Nanoseconds SilenceMax() const;
  Status Remember(const Mark& mark);
  void Tell(const std::string& what) const;
  template <class Rule>
  [[nodiscard]] bool All(Rule&& rule) const;

  fabric::Fabric& fabric_;
  nvm::Writer writer_;
  const format::Superblock& superblock_;
  const StoreMark store_;
  const MirrorOptions options_;
  Mark mark_;
  bool mark_failed_ = false;  // The superblock may have another mark.
  bool wrote_mark_ = false;   // This process has written the mark.
  bool was_in_sync_ = false;  // Since its last copy.
  State state_ = State::kApart;
  Status last_error_;
  Nanoseconds retry_at_{0};
  Nanoseconds look_at_{0};
  uint64_t looks_ = 0;
  SharedMemory buffer_;  // Of the copy, and of the heartbeat.
  std::unique_ptr<fabric::Region> buffer_region_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::optional<Copy> copy_;
  std::vector<Reached> reached_;              // By shard. Empty: the mirror needs a copy.
  std::vector<std::unique_ptr<Link>> links_;  // By shard. Empty: there are none.
  std::array<fabric::Completion, 16> completions_;
};

}  // namespace erda::mirror
