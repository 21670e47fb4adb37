// The channels of a queue, by their numbers and by their queue pairs.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace erda::fabric::verbs {

class VerbsChannel;

// Operations that a channel may have under way at once.
struct ChannelNeeds {
  uint32_t sends = 0;
  uint32_t own_receives = 0;
  uint32_t shared_receives = 0;
  // Returns the entries that the channel needs in the completion queue. SharedReceives adds those of shared receives.
  [[nodiscard]] uint32_t entries() const { return sends + own_receives; }
};

// Owns no channel. The thread of the queue calls it.
class ChannelTable {
 public:
  // Gives the channel the lowest free number, from 1 on.
  void Add(VerbsChannel* channel, const ChannelNeeds& needs);
  // Frees the channel's number. Returns what it needed.
  ChannelNeeds Remove(const VerbsChannel* channel);
  // Returns 0 if the channel is not in the table. Takes time in proportion to the number of channels.
  [[nodiscard]] uint32_t NumberOf(const VerbsChannel* channel) const;

  void AddPair(uint32_t pair_number, VerbsChannel* channel) { by_pair_[pair_number] = channel; }
  void RemovePair(uint32_t pair_number) { by_pair_.erase(pair_number); }

  // Returns null if no channel has the number. REQUIRES: a channel had it once.
  [[nodiscard]] VerbsChannel* Find(uint32_t number) const { return members_[number].channel; }
  // Returns null if no channel has a queue pair of this number.
  [[nodiscard]] VerbsChannel* FindByPair(uint32_t pair_number) const {
    const auto found = by_pair_.find(pair_number);
    return found == by_pair_.end() ? nullptr : found->second;
  }
  // Returns true if there was never a channel.
  [[nodiscard]] bool unused() const { return members_.size() == 1; }
  // Calls `each(VerbsChannel&)` for each channel, by number. It must neither add nor remove one.
  template <class Each>
  void ForEach(const Each& each) const {
    for (const Member& member : members_) {
      if (member.channel != nullptr) each(*member.channel);
    }
  }

 private:
  struct Member {
    VerbsChannel* channel = nullptr;  // Null if the number is free.
    ChannelNeeds needs;
  };
  std::vector<Member> members_{1};  // By number; 0 stays free.
  std::unordered_map<uint32_t, VerbsChannel*> by_pair_;
};

}  // namespace erda::fabric::verbs
