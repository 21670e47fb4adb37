#include "fabric/verbs/channel_life.h"

#include <cassert>
#include <utility>

namespace erda::fabric::verbs {

void ChannelLife::Join(Population* population) {
  population_ = population;
  Count(1);
}

void ChannelLife::Advance(Stage stage) {
  assert(stage_ < stage && stage <= Stage::kConnected);
  MoveTo(stage);
}

void ChannelLife::Fail(Status error, Blame blame, Nanoseconds now) {
  assert(!failed());
  peer_broke_rules_ = blame == Blame::kPeer;
  error_ = std::move(error);
  since_ = now;
  MoveTo(Stage::kFailed);
}

void ChannelLife::Close() {
  assert(stage_ == Stage::kFailed);
  MoveTo(Stage::kClosed);
}

void ChannelLife::MoveTo(Stage stage) {
  Count(-1);
  stage_ = stage;
  Count(1);
}

void ChannelLife::Count(int by) {
  if (population_ == nullptr) return;
  if (stage_ < Stage::kConnected) population_->connecting += static_cast<uint32_t>(by);
  if (stage_ == Stage::kFailed) population_->failing += static_cast<uint32_t>(by);
}

Due ChannelLife::Look(Nanoseconds now) {
  switch (stage_) {
    case Stage::kConnected: {
      const bool silent = !heard_ && !probing_;
      heard_ = false;
      probing_ = probing_ || silent;
      return silent ? Due::kProbe : Due::kNothing;
    }
    case Stage::kFailed:
      return now - since_ > kFlushIn ? Due::kDeviceDead : Due::kNothing;
    case Stage::kClosed:
      return Due::kNothing;
    default:
      return now - since_ > kConnectIn ? Due::kTimeout : Due::kNothing;
  }
}

}  // namespace erda::fabric::verbs
