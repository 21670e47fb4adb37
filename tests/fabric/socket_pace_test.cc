// The number of Polls after which a queue of the shm fabric hears its sockets again.
#include "fabric/shm/socket_pace.h"

#include <gtest/gtest.h>

namespace erda::fabric {
namespace {

using shm::SocketPace;

// Returns the number of Polls, all of one kind, until one hears the sockets.
uint32_t PollsUntilDue(SocketPace* pace, bool found_something) {
  pace->CountHearing();
  uint32_t polls = 0;
  for (; !pace->is_due() && polls < 2 * SocketPace::kBusyPolls; ++polls) pace->CountPoll(found_something);
  return polls;
}

TEST(SocketPaceTest, EmptyPollsHearTheSocketsSooner) {
  SocketPace pace;
  EXPECT_EQ(PollsUntilDue(&pace, false), SocketPace::kEmptyPolls);
  EXPECT_EQ(PollsUntilDue(&pace, true), SocketPace::kBusyPolls);
}

TEST(SocketPaceTest, BusyPollsHearTheSocketsSoonerWhileChannelsAreParked) {
  SocketPace pace;
  pace.CountParked();
  pace.CountParked();
  EXPECT_EQ(PollsUntilDue(&pace, true), SocketPace::kBusyPollsParked);
  EXPECT_EQ(PollsUntilDue(&pace, false), SocketPace::kEmptyPolls);
  pace.CountUnparked();
  EXPECT_EQ(pace.parked(), 1U);
  EXPECT_EQ(PollsUntilDue(&pace, true), SocketPace::kBusyPollsParked);
  pace.CountUnparked();
  EXPECT_EQ(pace.parked(), 0U);
  EXPECT_EQ(PollsUntilDue(&pace, true), SocketPace::kBusyPolls);
}

TEST(SocketPaceTest, EachPollHearsTheSocketsWhileAChannelAsks) {
  SocketPace pace;
  EXPECT_FALSE(pace.is_due());
  pace.BeginAsking();
  pace.BeginAsking();
  pace.CountHearing();
  EXPECT_TRUE(pace.is_due());
  pace.EndAsking();
  EXPECT_TRUE(pace.is_due());
  pace.EndAsking();
  EXPECT_FALSE(pace.is_due());
}

}  // namespace
}  // namespace erda::fabric
