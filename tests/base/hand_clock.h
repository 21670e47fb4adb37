// A clock that the test sets by hand.
#pragma once

#include "base/clock.h"

namespace erda {

class HandClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds Now() const override { return now; }
  Nanoseconds now{1};
};

}  // namespace erda
