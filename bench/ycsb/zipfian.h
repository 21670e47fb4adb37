// Skewed choices: Zipf's law, and a permutation that separates the popular items from their neighbours.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace erda::bench {

// Returns ranks from 0 to n - 1, rank r with a probability in proportion to (r + 1)^-theta. Exact, in constant time and
// memory, by rejection-inversion (W. Hörmann, G. Derflinger: Rejection-inversion to generate variates from monotone
// discrete distributions, ACM TOMACS 6.3, 1996). YCSB's generator is an approximation that first sums over all ranks.
class Zipfian {
 public:
  static constexpr double kTheta = 0.99;  // YCSB's.

  // REQUIRES: n > 0, theta > 0 and not 1.
  explicit Zipfian(uint64_t n, double theta = kTheta);
  // Cheap: a few powers.
  void Resize(uint64_t n);
  uint64_t Next(Random& random);
  [[nodiscard]] uint64_t size() const { return n_; }

 private:
  [[nodiscard]] double Weight(double x) const;           // x^-theta.
  [[nodiscard]] double Integral(double x) const;         // Integral of Weight.
  [[nodiscard]] double InverseIntegral(double y) const;  // Inverse of Integral.

  double theta_;
  uint64_t n_ = 0;
  double lowest_ = 0;   // Integral(1.5) - Weight(1). Below it, there is only rank 0.
  double highest_ = 0;  // Integral(n + 0.5).
  double accept_ = 0;   // A point this close below a whole number is accepted without a second look.
};

// A fixed permutation of [0, n) in constant memory.
class Scatter {
 public:
  explicit Scatter(uint64_t n);  // REQUIRES: n > 0.
  [[nodiscard]] uint64_t operator()(uint64_t i) const;

 private:
  uint64_t n_;
  unsigned bits_;
  uint64_t mask_;
};

}  // namespace erda::bench
