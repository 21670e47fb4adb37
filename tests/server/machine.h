// A store on NVM that can lose power.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "server/crash_pool.h"
#include "server/store.h"

namespace erda::server {

// A pool and its store.
struct Machine {
  explicit Machine(const StoreOptions& options)
      : Machine(options, std::make_unique<CrashPool>(std::max(options.wish.pool_size, options.grown_to))) {}
  // The power is back, with this image of the pool.
  Machine(StoreOptions options, const CrashPool::Image& image, TakeUp take_up = TakeUp::kRecover)
      : Machine(With(options, take_up), std::make_unique<CrashPool>(image)) {}

  // Runs the work up to the fence with this number. Returns true if the work ended before that fence.
  template <class Work>
  bool RunUpTo(size_t fence, Work&& work) {
    pool->before_fence = [&] {
      if (fence-- == 0) throw Crash();
    };
    bool ended = true;
    try {
      work();
    } catch (const Crash&) {
      ended = false;
    }
    pool->before_fence = nullptr;
    return ended;
  }

  CrashPool* pool;
  Store store;

 private:
  static StoreOptions With(StoreOptions options, TakeUp take_up) {
    options.take_up = take_up;
    return options;
  }
  Machine(const StoreOptions& options, std::unique_ptr<CrashPool> new_pool)
      : pool(new_pool.get()), store(options, std::move(new_pool)) {}
};

// The words that a power cut may lose: all combinations if there are few, and otherwise some random ones.
class Choices {
 public:
  static constexpr size_t kAllUpTo = 6;
  static constexpr size_t kSome = 40;

  Choices(const CrashPool& pool, uint64_t seed) : pool_(pool), random_(seed) {
    (void)pool.AfterPowerCut([&] {
      ++words_;
      return true;
    });
  }
  [[nodiscard]] size_t size() const { return words_ <= kAllUpTo ? size_t{1} << words_ : kSome; }
  CrashPool::Image At(size_t number) {
    if (words_ > kAllUpTo) {
      constexpr std::array kKept = {0.0, 0.1, 0.5, 0.9, 1.0};
      return pool_.AfterPowerCut(random_, kKept.at(number % kKept.size()));
    }
    size_t word = 0;
    return pool_.AfterPowerCut([&] { return ((number >> word++) & 1) != 0; });
  }

 private:
  const CrashPool& pool_;
  Random random_;
  size_t words_ = 0;
};

}  // namespace erda::server
