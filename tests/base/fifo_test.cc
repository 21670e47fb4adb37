#include "base/fifo.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"

namespace erda {
namespace {

TEST(Fifo, BehavesLikeADeque) {
  Fifo<int> fifo;
  std::deque<int> deque;
  Random random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t dice = random.Uniform(100);
    if (dice < 55) {
      fifo.push_back(i);
      deque.push_back(i);
    } else if (dice < 95) {
      const size_t n = random.Uniform(deque.size() + 1) % 4;
      fifo.pop_front(n);
      deque.erase(deque.begin(), deque.begin() + static_cast<std::ptrdiff_t>(n));
    } else if (dice < 99) {
      const auto goes = [&](int value) { return value % 7 == i % 7; };
      fifo.EraseIf(goes);
      std::erase_if(deque, goes);
    } else if (random.Chance(0.05)) {
      fifo.clear();
      deque.clear();
    }
    ASSERT_EQ(fifo.size(), deque.size());
    ASSERT_EQ(fifo.empty(), deque.empty());
    if (deque.empty()) continue;
    ASSERT_EQ(fifo.front(), deque.front());
    const size_t at = random.Uniform(deque.size());
    ASSERT_EQ(fifo[at], deque[at]);
  }
}

}  // namespace
}  // namespace erda
