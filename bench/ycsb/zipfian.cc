#include "bench/ycsb/zipfian.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace erda::bench {

Zipfian::Zipfian(uint64_t n, double theta) : theta_(theta) {
  lowest_ = Integral(1.5) - Weight(1);
  accept_ = 2 - InverseIntegral(Integral(2.5) - Weight(2));
  Resize(n);
}

void Zipfian::Resize(uint64_t n) {
  n_ = n;
  highest_ = Integral(static_cast<double>(n) + 0.5);
}

namespace {

// Returns a number from [0, 1).
double Unit(Random& random) { return static_cast<double>(random.Next() >> 11) * 0x1.0p-53; }

}  // namespace

double Zipfian::Weight(double x) const { return std::exp(-theta_ * std::log(x)); }

double Zipfian::Integral(double x) const { return std::expm1((1 - theta_) * std::log(x)) / (1 - theta_); }

double Zipfian::InverseIntegral(double y) const { return std::exp(std::log1p((1 - theta_) * y) / (1 - theta_)); }

// The weights are steps under the hat, an integral from half to half. Chooses a point under the hat by inversion.
// Accepts its whole number if the point lies under the step.
uint64_t Zipfian::Next(Random& random) {
  for (;;) {
    const double point = highest_ + Unit(random) * (lowest_ - highest_);
    const double x = InverseIntegral(point);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
    if (k - x <= accept_ || point >= Integral(k + 0.5) - Weight(k)) return static_cast<uint64_t>(k) - 1;
  }
}

Scatter::Scatter(uint64_t n)
    : n_(n), bits_(std::max(2U, static_cast<unsigned>(std::bit_width(n - 1)))), mask_(~uint64_t{0} >> (64 - bits_)) {}

// Each step is a bijection of the numbers of bits_ bits. Repeating it until the number is below n makes it a bijection
// of [0, n).
uint64_t Scatter::operator()(uint64_t i) const {
  do {
    for (const uint64_t odd : {0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0x9e3779b97f4a7c15}) {
      i = (i * odd + 1) & mask_;
      i ^= i >> (bits_ / 2);
    }
  } while (i >= n_);
  return i;
}

}  // namespace erda::bench
