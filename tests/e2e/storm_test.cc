// A storm: hostile clients send all kinds of inputs while good clients work. ERDA_STORM_INPUTS=100000 makes a long one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptors.h"
#include "base/unique_fd.h"
#include "e2e/fixture.h"
#include "e2e/storm.h"

namespace erda {
namespace {

using Nanos = std::chrono::nanoseconds;

const std::string kGood = "the-token-of-the-good-ones";
const std::string kHostile = "the-token-that-was-stolen";

uint64_t InputsWanted() {
  const char* wanted = getenv("ERDA_STORM_INPUTS");
#ifdef ERDA_SANITIZED_THREADS
  constexpr uint64_t kFew = 800;
#elif defined(ERDA_SANITIZED)
  constexpr uint64_t kFew = 2500;
#else
  constexpr uint64_t kFew = 6000;
#endif
  return wanted == nullptr ? kFew : strtoull(wanted, nullptr, 10);
}

// Returns the number of mappings of memory that servers and clients share.
size_t Mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t mappings = 0;
  for (std::string line; std::getline(maps, line);) mappings += line.find("memfd:") != std::string::npos ? 1 : 0;
  return mappings;
}

class GoodClient {
 public:
  GoodClient(std::unique_ptr<Client> client, uint32_t number) : client_(std::move(client)), number_(number) {}

  // Puts a key, and reads it and another one back. Adds the time of each operation.
  void Work(std::vector<Nanos>* times) {
    const uint64_t i = round_++;
    const auto key_of = [&](uint64_t k) { return "good" + std::to_string(number_) + "-" + std::to_string(k % kKeys); };
    const auto value_of = [&](uint64_t r) { return Bytes(r * 2 + number_, r % 16 == 0 ? 20'000 : 50 + r % 900); };
    const auto timed = [&](const auto& call) {
      const auto begin = std::chrono::steady_clock::now();
      call();
      times->push_back(std::chrono::steady_clock::now() - begin);
    };
    const std::string value = value_of(i);
    timed([&] {
      const Status put = client_->Put(key_of(i), value);
      EXPECT_TRUE(put.ok()) << put.ToString();
    });
    for (const uint64_t round : {i, i - std::min<uint64_t>(i, kKeys / 2)}) {
      timed([&] {
        const auto got = client_->Get(key_of(round));
        EXPECT_TRUE(got.ok()) << got.status().ToString();
        if (got.ok()) {
          EXPECT_TRUE(*got == value_of(round)) << "another value of " << key_of(round);
        }
      });
    }
  }
  [[nodiscard]] Client& client() { return *client_; }

 private:
  static constexpr uint64_t kKeys = 64;
  const std::unique_ptr<Client> client_;
  const uint32_t number_;
  uint64_t round_ = 0;
};

double Percentile(std::vector<Nanos> times, double share) {
  std::ranges::sort(times);
  const auto at = std::min(times.size() - 1, static_cast<size_t>(share * static_cast<double>(times.size())));
  return std::chrono::duration<double, std::micro>(times[at]).count();
}

constexpr uint32_t kStormClients = 4;

// The hostile clients, in a separate process, like real attackers. They share with the server only the memory that the
// fabric gives them. Requires: this process has one thread when Storm is made.
class Storm {
 public:
  Storm(const std::string& address, uint64_t inputs) {
    std::array<int, 2> start{};
    std::array<int, 2> results{};
    if (::pipe2(start.data(), O_CLOEXEC) != 0 || ::pipe2(results.data(), O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(start[1]);
      char go = 0;
      if (::read(start[0], &go, 1) == 1) Rage(address, inputs, results[1]);
      ::_exit(0);
    }
    ::close(start[0]);
    ::close(results[1]);
    start_ = UniqueFd(start[1]);
    results_ = UniqueFd(results[0]);
  }
  ~Storm() {
    start_.reset();  // ends the process, unless it has begun
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  void Begin() { ASSERT_EQ(::write(start_.get(), "!", 1), 1); }
  // Also true if the process died.
  [[nodiscard]] bool HasEnded() const {
    pollfd ready{results_.get(), POLLIN, 0};
    return ::poll(&ready, 1, 0) > 0;
  }
  // Returns the sum over all hostile clients, or nothing if the process died.
  std::optional<Tallies> Results() {
    Tallies sum;
    const bool whole = ::read(results_.get(), &sum, sizeof(sum)) == sizeof(sum);
    int status = -1;
    const bool well = ::waitpid(std::exchange(pid_, 0), &status, 0) > 0 && status == 0;
    return whole && well ? std::optional(sum) : std::nullopt;
  }

 private:
  static void Rage(const std::string& address, uint64_t inputs, int results) {
    // Attackers have other processors. Here they run at low priority. So good clients wait only for the work that the
    // server does for the hostile ones.
    (void)!::nice(19);
    std::array<Tallies, kStormClients> tallies{};
    AtOnce(kStormClients, [&](uint32_t i) {
      StormClient client(address, kHostile, i + 1);
      Random random(i + 100);
      // The kinds come in any order, and each kind about equally often.
      while (client.sent() < inputs / kStormClients + 1) {
        const uint64_t input = random.Uniform(kInputs);
        if (client.tallies()[input].sent <= client.sent() / kInputs + 10) client.Send(static_cast<Input>(input));
      }
      tallies[i] = client.tallies();
    });
    for (uint32_t i = 1; i < kStormClients; ++i) {
      for (size_t input = 0; input < kInputs; ++input) tallies[0][input] += tallies[i][input];
    }
    if (::write(results, tallies.data(), sizeof(tallies[0])) != sizeof(tallies[0])) ::_exit(1);
  }

  pid_t pid_ = 0;
  UniqueFd start_;
  UniqueFd results_;
};

class StormTest : public E2eTest {
 protected:
  static constexpr uint32_t kGoodClients = 2;
  static constexpr uint32_t kConnectsPerSecond = 1000;
#ifdef ERDA_SANITIZED
  static constexpr uint64_t kCrowdedRounds = 1000;
#else
  static constexpr uint64_t kCrowdedRounds = 20'000;
#endif

  [[nodiscard]] ServerOptions Guarded() {
    const std::string file = Path("tokens");
    std::ofstream(file) << kGood << "\n" << kHostile << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    ServerOptions options = Options(PoolKind::kDram);
    options.pool_size = 256 << 20;
    options.shards = 2;
    options.token_file = file;
    options.clients_per_token = 16;
    options.connects_per_second = kConnectsPerSecond;
    options.on_event = [this](std::string_view line) {
      const std::scoped_lock lock(mutex_);
      ++events_;
      printable_ &= std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; });
      told_token_ |= line.find(kHostile) != std::string_view::npos || line.find(kGood) != std::string_view::npos;
      const size_t what = line.find("protocol: ");
      if (what != std::string_view::npos) reasons_.emplace(line.substr(what));
    };
    return options;
  }

  std::mutex mutex_;
  uint64_t events_ = 0;
  bool printable_ = true;
  bool told_token_ = false;
  std::set<std::string, std::less<>> reasons_;
};

TEST_F(StormTest, RandomInputsHarmNoOtherClient) {
  const uint64_t inputs = InputsWanted();
  Storm storm(Address(), inputs);
  const auto server = Serve(PoolKind::kDram, Guarded());
  std::vector<std::unique_ptr<GoodClient>> good;
  for (uint32_t i = 0; i < kGoodClients; ++i) {
    How how;
    how.token = kGood;
    good.push_back(std::make_unique<GoodClient>(Connect(how), i));
  }
  Client& looking = good[0]->client();

  const auto work = [&](std::vector<std::vector<Nanos>>* times, const std::function<bool(uint64_t)>& goes_on) {
    times->resize(kGoodClients);
    AtOnce(kGoodClients, [&](uint32_t i) {
      for (uint64_t round = 0; goes_on(round); ++round) good[i]->Work(&(*times)[i]);
    });
  };
  std::vector<std::vector<Nanos>> quiet;
  work(&quiet, [](uint64_t round) { return round < 500; });
  // The same number of good clients instead of the hostile ones. Their effect is the share of the processors, and no
  // attack.
  std::vector<std::vector<Nanos>> crowded;
  {
    std::vector<std::unique_ptr<GoodClient>> crowd;
    for (uint32_t i = 0; i < kStormClients; ++i) {
      How how;
      how.token = kGood;
      crowd.push_back(std::make_unique<GoodClient>(Connect(how), kGoodClients + i));
    }
    std::atomic<bool> ends{false};
    std::thread others([&] {
      AtOnce(kStormClients, [&](uint32_t i) {
        for (std::vector<Nanos> times; !ends; times.clear()) crowd[i]->Work(&times);
      });
    });
    work(&crowded, [](uint64_t round) { return round < kCrowdedRounds; });
    ends = true;
    others.join();
  }
  const uint64_t descriptors = CountDescriptors();
  const size_t mappings = Mappings();

  std::vector<std::vector<Nanos>> stormy;
  storm.Begin();
  work(&stormy, [&](uint64_t /*round*/) { return !storm.HasEnded(); });
  const std::optional<Tallies> tallies = storm.Results();
  ASSERT_TRUE(tallies.has_value()) << "the storm itself ended badly";

  // Nothing of the hostile clients is left, and everything of the others.
  EXPECT_TRUE(WaitUntil([&] {
    const Counters now = CountersOf(looking);
    return now.at("clients") == 2 * kGoodClients && now.at("in_flight") == 0;
  }));
  EXPECT_TRUE(WaitUntil([&] { return CountDescriptors() <= descriptors; }))
      << descriptors << " descriptors before, " << CountDescriptors() << " now";
  EXPECT_TRUE(WaitUntil([&] { return Mappings() <= mappings; }))
      << mappings << " mappings before, " << Mappings() << " now";
  for (const auto& client : good) EXPECT_EQ(client->client().stats().reconnects, 0U);
  std::vector<std::vector<Nanos>> after;
  work(&after, [](uint64_t round) { return round < 100; });

  uint64_t sent = 0;
  std::printf(
      "| what was tried | how often | answered | refused | channel closed | not waited for "
      "|\n|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < kInputs; ++i) {
    const Tally& tally = (*tallies)[i];
    sent += tally.sent;
    EXPECT_GT(tally.sent, 0U) << kInputNames[i];
    std::printf("| %s | %lu | %lu | %lu | %lu | %lu |\n", kInputNames[i], tally.sent, tally.answered, tally.refused,
                tally.closed, tally.left);
  }
  const auto all = [](const std::vector<std::vector<Nanos>>& times) {
    std::vector<Nanos> joined;
    for (const auto& each : times) joined.insert(joined.end(), each.begin(), each.end());
    return joined;
  };
  const uint64_t violations = CountersOf(looking).at("violations");
  std::printf("%lu inputs, %lu violations, %lu lines, %zu reasons\n", sent, violations, events_, reasons_.size());
  std::printf("good clients, without the storm: %zu operations, p50 %.0f us, p99 %.0f us\n", all(quiet).size(),
              Percentile(all(quiet), 0.5), Percentile(all(quiet), 0.99));
  std::printf("good clients, with 4 more:      %zu operations, p50 %.0f us, p99 %.0f us\n", all(crowded).size(),
              Percentile(all(crowded), 0.5), Percentile(all(crowded), 0.99));
  std::printf("good clients, in the storm:      %zu operations, p50 %.0f us, p99 %.0f us\n", all(stormy).size(),
              Percentile(all(stormy), 0.5), Percentile(all(stormy), 0.99));

  EXPECT_GE(sent, inputs);
  EXPECT_GT(violations, sent / 50);
  const std::scoped_lock lock(mutex_);
  EXPECT_GE(events_, violations);
  EXPECT_TRUE(printable_);
  EXPECT_FALSE(told_token_);
  EXPECT_GE(reasons_.size(), 10U);
  EXPECT_TRUE(reasons_.contains("protocol: it broke a rule of the fabric"));
  EXPECT_FALSE(reasons_.contains("protocol: in a way that has no name"));
  for (const std::string& reason : reasons_) std::printf("  %s\n", reason.c_str());
}

}  // namespace
}  // namespace erda
