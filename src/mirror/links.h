// The primary's links of one shard (docs/mirror.md, "The link", "When one of them is gone"). Mirrors come and go. They
// get the shard's stream, and say how much of it they have.
//
// One mirror may join, the same one in all shards (membership.h). Once it is in sync, the shard may answer all that it
// has stored: that is held. Without a mirror that is in sync, nothing more becomes held. After a time the shard then
// goes on alone, or refuses to answer: the operator chooses.
//
// The stream keeps what one of the links still needs. If it runs out of room for that, the shard waits. A link that
// makes no progress meanwhile ends.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
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
#include "format/hello.h"
#include "journal/place.h"
#include "journal/stream.h"
#include "mirror/feed.h"
#include "mirror/membership.h"

namespace erda::mirror {

void WaitShortly(std::span<fabric::CompletionQueue* const> queues);

struct LinksOptions {
  bool sync = true;         // Answers wait for a mirror. If false, no mirror joins, and all is held at once.
  bool goes_alone = false;  // Without a mirror that has joined. If false, the shard stops to answer.
  // After this time without a mirror that is in sync. A mirror that makes no progress for so long is gone. A
  // millisecond at least. With `goes_alone` the mirrors hear of it: they must notice a lost link sooner.
  Nanoseconds timeout = std::chrono::seconds(1);
  // For the mirrors: the epoch of the primary's pool, and whether the pool may lack what the primary has answered.
  uint32_t epoch = 0;
  bool may_lack = false;
  const Clock* clock = &SteadyClock::Instance();
  // Returns when one of the queues may have something, and soon in any case.
  std::function<void(std::span<fabric::CompletionQueue* const>)> wait = WaitShortly;
  // Hears of mirrors that are in sync or gone. The threads of all shards call it. May be empty.
  std::function<void(std::string_view)> tell = {};
};

// Owns the links, and what they use of each fabric. Belongs to the shard's thread. REQUIRES: the stream, its memory and
// the membership outlive it.
class Links {
 public:
  // A mirror that makes a copy has a link beside the one that has joined. The one that counts always has room.
  static constexpr size_t kLinksMax = 8;

  Links(journal::Stream& stream, MemoryView memory, Membership& membership, LinksOptions options);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  ~Links() { Close(); }

  // Makes ready for mirrors that come by these fabrics. Close ends all links, and uses the fabrics no more.
  // REQUIRES: the fabrics, and what Admit offers, last until Close.
  Status Serve(std::span<fabric::Fabric* const> fabrics);
  void Close();
  // Returns true if the shard has to Look now and then.
  [[nodiscard]] bool awaits_mirror() const {
    if (options_.sync && (state_ == State::kWaiting || (joined_ != nullptr && state_ != State::kJoined))) return true;
    return std::ranges::any_of(links_, [this](const auto& link) {
      // Another mirror may keep it from joining. Another shard may give that one up, and does not tell.
      return link->feed->is_late() || (options_.sync && link->feed->asks_to_join());
    });
  }
  // Lets a mirror in, by the fabric of that number. It may read the offered regions. Its private data is `hello`, and
  // what the stream's MirrorHello says. `token` stands for the token of the mirror; 0: the server demanded none.
  Status Admit(fabric::Incoming& incoming, const format::HelloRequest& request, size_t fabric,
               std::span<fabric::Region* const> offer, const format::HelloReply& hello, uint64_t token);
  // Ends the links whose token does not count any more. All else is as after a lost link.
  void EndOthers(const std::function<bool(uint64_t token)>& counts);
  // Takes what the mirrors have said. Returns how much that was.
  size_t Poll();
  // Sends what the stream has to all mirrors, and lets one join. REQUIRES: the pool is fenced: after a power cut it has
  // all that a mirror may have.
  void Send();
  // Looks at the clock. Ends a link that has made no progress for too long. Without a mirror that has joined, the shard
  // may go on alone now, or stop. Returns true if that changes what the shard may answer.
  bool Look();
  // `admit` calls Admit for mirrors that have come. Close forgets it. AwaitRoom and AwaitHeld call it, since a mirror
  // that comes again may be what they wait for.
  void OnWait(std::function<void()> admit) { admit_ = std::move(admit); }
  // Sends and polls until the stream may have more room. Calls Look. REQUIRES: as for Send.
  void AwaitRoom();
  // Waits until all of the stream is held. Returns kUnavailable if the shard stops meanwhile. REQUIRES: as for Send.
  Status AwaitHeld();

  // The place up to which the stream is held.
  [[nodiscard]] const std::atomic<journal::Place>& held() const { return held_; }
  // No client may be served yet. Before a mirror has joined, a get could return what recovery has settled, and the
  // mirror may lack that.
  [[nodiscard]] bool awaits_first() const { return options_.sync && !began_; }
  // The shard has no mirror in sync, and answers nothing that would wait for one.
  [[nodiscard]] bool stopped() const { return state_ == State::kStopped; }
  // A mirror is in sync: what is held grows by what it stores.
  [[nodiscard]] bool in_sync() const { return state_ == State::kJoined; }
  // All is held, without a mirror.
  [[nodiscard]] bool alone() const { return state_ == State::kAlone && joined_ == nullptr; }
  [[nodiscard]] size_t size() const { return links_.size(); }
  // Each fabric has a queue beside the shard's own. So AwaitRoom finds messages of mirrors alone.
  [[nodiscard]] std::span<fabric::CompletionQueue* const> queues() const { return queues_; }

 private:
  struct Link {
    uint64_t id = 0;
    uint64_t token = 0;
    std::string peer;
    std::unique_ptr<fabric::Channel> channel;
    std::optional<Feed> feed;
    bool connected = false;
    bool ended = false;
    bool progresses = true;   // Since the last Look it has stored something, or has got something to store.
    Nanoseconds progress{0};  // The last Look that found this.
  };
  struct Port {
    std::unique_ptr<fabric::Region> stream;  // Its memory.
    std::unique_ptr<fabric::CompletionQueue> queue;
  };
  // A mirror is in sync. Or none is: for a short time, or for longer.
  enum class State : uint8_t { kJoined, kWaiting, kAlone, kStopped };

  void Take(const fabric::Completion& completion);
  void LookAtTheTime();
  // Sends and polls; waits if nothing has come. Calls Look.
  void Turn();
  void SendTo(Link& link);
  void LetJoin(Link& link);
  // The links of a mirror that another shard has given up.
  void EndGivenUp();
  [[nodiscard]] bool MakesProgress(Link& link);
  void End(Link& link, const Status& why);
  // Removes the links that have ended, and brings held() and the stream's room up to date.
  void Settle();
  void RemoveEnded();
  // Its link has ended.
  void LeaveJoined();
  void Tell(const Link& link, std::string_view what) const;

  journal::Stream& stream_;
  Membership& membership_;
  const LinksOptions options_;
  const MemoryView memory_;
  std::vector<Port> ports_;                       // By fabric.
  std::vector<fabric::CompletionQueue*> queues_;  // By fabric.
  std::atomic<journal::Place> held_;
  State state_ = State::kWaiting;
  bool began_ = false;                        // A mirror was in sync, or the shard has gone on alone.
  std::optional<Nanoseconds> waiting_since_;  // While it is kWaiting: its first Look.
  uint64_t lost_ = 0;                         // The mirror for which it waits; 0: any.
  std::vector<std::unique_ptr<Link>> links_;
  Link* joined_ = nullptr;
  uint64_t progress_ = 0;  // Of the membership, at the last Look.
  std::function<void()> admit_;
  // The joined mirror is gone, and may come back at this place. The stream keeps its bytes until the timeout. No value
  // in any state but kWaiting.
  std::optional<journal::Place> kept_;
  std::array<fabric::Completion, 16> completions_;
};

}  // namespace erda::mirror
