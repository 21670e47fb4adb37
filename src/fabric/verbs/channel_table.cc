#include "fabric/verbs/channel_table.h"

#include <algorithm>
#include <cassert>

namespace erda::fabric::verbs {

void ChannelTable::Add(VerbsChannel* channel, const ChannelNeeds& needs) {
  size_t number = 1;
  while (number < members_.size() && members_[number].channel != nullptr) ++number;
  if (number == members_.size()) members_.emplace_back();
  members_[number] = {channel, needs};
}

ChannelNeeds ChannelTable::Remove(const VerbsChannel* channel) {
  Member& member = members_[NumberOf(channel)];
  assert(member.channel == channel);
  member.channel = nullptr;
  return member.needs;
}

uint32_t ChannelTable::NumberOf(const VerbsChannel* channel) const {
  const auto found = std::ranges::find(members_, channel, &Member::channel);
  return found == members_.end() ? 0 : static_cast<uint32_t>(found - members_.begin());
}

}  // namespace erda::fabric::verbs
