// Random runs of a mirrored pool: a primary with two shards, one or two mirrors, and two clients. Links are lost,
// processes die, power is cut, mirrors are stuck, and superblocks cannot be written. At any moment a mirror that may be
// promoted has each put that was answered. ERDA_SIM_SEEDS=2000 makes more runs. ERDA_SIM_FIRST=17 begins with seed 17.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/server_time.h"
#include "base/test_hash.h"
#include "client/engine.h"
#include "fabric/sim/network.h"
#include "mirror/primary_pool.h"
#include "server/control/expiry_clock.h"
#include "server/crash_pool.h"
#include "server/pool/formatted_pool.h"
#include "server/sessions/gate.h"
#include "server/shard.h"
#include "sim/history.h"
#include "sim/mirror_machine.h"

namespace erda::sim {
namespace {

constexpr uint32_t kShardsOfRun = 2;
constexpr uint32_t kKeysOfRun = 24;
constexpr Nanoseconds kTimeoutOfRun = std::chrono::milliseconds(20);
const std::string kAddressOfRun = "sim:primary";

// A value tells the number of its put. Its other bytes follow from that and from its size.
std::string ValueOfRun(uint64_t put, size_t size) {
  std::string value(size, '\0');
  std::memcpy(value.data(), &put, sizeof(put));
  for (size_t i = sizeof(put); i < size; ++i) value[i] = static_cast<char>(Random::Mix(put * 31 + size + i) >> 5);
  return value;
}
// Returns 0 if no put wrote these bytes.
uint64_t PutOfValue(std::string_view value) {
  if (value.size() < sizeof(uint64_t)) return 0;
  const auto put = LoadAs<uint64_t>(AsBytes(value));
  return ValueOfRun(put, value.size()) == value ? put : 0;
}

// Counts over all runs, which tell that these have reached what they are for.
struct Events {
  uint64_t promotions = 0;
  uint64_t stops = 0;
  uint64_t resumed = 0;
  uint64_t alone = 0;
  uint64_t copies = 0;
  uint64_t waits = 0;  // Of shards, in the middle of a step.
};

class PoolRun {
 public:
  PoolRun(uint64_t seed, Events& events)
      : random_(seed),
        network_(seed, NetworkOf(seed)),
        events_(events),
        goes_alone_(random_.Chance(0.4)),
        primary_crashes_(OneOf({0, 0.0003, 0.002})),
        mirror_crashes_(OneOf({0, 0.0003, 0.002})),
        mark_fails_(OneOf({0, 0.2, 0.5})),
        drops_(OneOf({0, 0.0005, 0.003})),
        floods_(random_.Chance(0.25)),
        small_values_(floods_ ? 0.1 : 0.6) {
    MakePool(seed);
    const uint64_t mirrors = random_.Between(1, 2);
    for (uint64_t i = 0; i < mirrors; ++i) machines_.push_back(MakeMachine());
    const bool placed = random_.Chance(0.3);
    for (uint32_t i = 0; i < clients_.size(); ++i) MakeClient(i, placed && i == 0);
  }
  ~PoolRun() {
    for (Client& client : clients_) client.engine.reset();
    for (auto& machine : machines_) machine->Kill();
    if (pool_) nvm_->before_fence = nullptr;
    DropPrimary();
  }
  PoolRun(const PoolRun&) = delete;
  PoolRun& operator=(const PoolRun&) = delete;

  // Returns what was wrong.
  std::string Run() {
    constexpr int kStepsMax = 100'000;
    int rest = 2000;  // Steps after the last operation.
    for (int i = 0; i < kStepsMax && rest > 0 && failure_.empty(); ++i) {
      if (started_ == operations()) --rest;
      StepWithFaults();
    }
    if (failure_.empty()) Finish();
    if (failure_.empty()) failure_ = history_.Violation();
    return failure_;
  }
  [[nodiscard]] const History& history() const { return history_; }

 private:
  struct Newcomer {
    std::unique_ptr<fabric::Incoming> incoming;
    format::HelloRequest hello;
    server::Admission admission;
  };
  struct ShardOfRun {
    std::unique_ptr<fabric::CompletionQueue> queue;
    std::unique_ptr<server::Shard> shard;
    std::deque<Newcomer> newcomers;
    bool busy = false;  // It is in the middle of a step.
    uint64_t held = 0;
    bool stopped = false;
    bool was_stopped = false;  // Since it was in sync.
    bool alone = false;
    bool in_sync = false;
  };
  struct Client {
    std::unique_ptr<client::Engine> engine;
    bool placed = false;
  };

  static fabric::SimOptions NetworkOf(uint64_t seed) {
    fabric::SimOptions options;
    options.memory_windows = seed % 2 == 0;
    if (seed % 3 == 0) {  // One end of a lost link hears of that much later than the other one.
      options.long_delay_chance = 0.1;
      options.long_delay_max = kTimeoutOfRun / 4;
    }
    if (seed % 4 < 2) options.delay_max = std::chrono::microseconds(50);  // More comes while a Read is under way.
    return options;
  }
  double OneOf(std::array<double, 3> chances) { return chances.at(random_.Uniform(chances.size())); }
  void Fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }

  // --- The primary

  [[nodiscard]] uint64_t bytes() const { return floods_ ? 3 << 20 : 1 << 20; }
  // A random identity or hash seed would change each checksum, and no run could be repeated.
  void MakePool(uint64_t seed) {
    const format::Geometry geometry = *format::ChooseGeometry(
        {.pool_size = bytes(), .shards = kShardsOfRun, .region_size = 64 << 10, .segment_size = 16 << 10});
    superblock_.magic = format::kPoolMagic;
    superblock_.format_version = format::kFormatVersion;
    superblock_.geometry = geometry;
    superblock_.generation = 1;
    superblock_.clean = 1;
    superblock_.uuid.fill(static_cast<uint8_t>(seed));
    superblock_.hash_seed = kTestHashSeed;
    superblock_.crc = format::SuperblockCrc(superblock_);
    images_.cached.resize(bytes() / sizeof(uint64_t));
    std::memcpy(images_.cached.data(), &superblock_, sizeof(superblock_));
    images_.durable = images_.cached;
  }
  mirror::PrimaryOptions OptionsOfPrimary() {
    mirror::PrimaryOptions options;
    options.stream_bytes = journal::Stream::kCapacityMin;
    options.links.goes_alone = goes_alone_;
    options.links.timeout = kTimeoutOfRun;
    options.links.clock = &network_;
    options.links.wait = [this](std::span<fabric::CompletionQueue* const> /*queues*/) { WaitInStep(); };
    if (goes_alone_) return options;
    options.named = named_;
    options.keep = [this](uint64_t id) {
      const bool fails = !calm_ && random_.Chance(mark_fails_);
      if (!fails || random_.Chance(0.5)) named_ = id;
      return fails ? Status(Code::kUnavailable, "the medium takes no superblock") : Status();
    };
    return options;
  }
  void StartPrimary() {
    try {
      if (!goes_alone_ && !calm_ && named_ != 0 && random_.Chance(0.15)) Forget();
      if (auto status = TryToStart(); !status.ok()) Fail("the primary does not start: " + status.ToString());
    } catch (const server::Crash&) {
      LosePrimary();
    }
  }
  // The operator has the primary forget its mirror, and throws the mirror's pool away.
  void Forget() {
    for (auto& machine : machines_) {
      if (machine->id() != named_) continue;
      machine->Kill();
      machine = MakeMachine();
    }
    named_ = 0;
  }
  Status TryToStart() {
    auto nvm = std::make_unique<server::CrashPool>(std::move(images_), nvm::Durability::kPowerSafe);
    nvm_ = nvm.get();
    nvm_->before_fence = [this] {
      if (!calm_ && random_.Chance(serving_ ? primary_crashes_ : 10 * primary_crashes_)) throw server::Crash();
    };
    auto primary = mirror::PrimaryPool::Make(std::move(nvm), superblock_.uuid, kShardsOfRun, OptionsOfPrimary());
    if (!primary.ok()) return primary.status();
    mirrored_ = primary->get();
    auto pool = server::FormattedPool::Take(*std::move(primary), {"the pool", 0}, {.shards = 0});
    if (!pool.ok()) return pool.status();
    pool_ = *std::move(pool);
    fabric_ = network_.CreateFabric("primary");
    auto regions = server::PoolRegions::Register(*fabric_, pool_->pool());
    if (!regions.ok()) return regions.status();
    regions_ = *std::move(regions);
    time_.emplace(ServerTime::From(network_, 1'000'000, pool_->time(), server::ExpiryClock::kNoteAhead * 1000));
    server::ShardOptions options;
    options.slot_bytes = 2048;
    options.staging_bytes = 0;
    options.server_id = ++starts_;
    options.clock = &network_;
    options.time = &*time_;
    options.mirrored = mirrored_;
    for (uint32_t number = 0; number < kShardsOfRun; ++number) {
      ShardOfRun& each = shards_.emplace_back();
      each.queue = *fabric_->CreateQueue();
      const server::Port port{*fabric_, regions_, *each.queue, format::FlushMethod::kServerFlush};
      auto shard = server::Shard::Create(*pool_, number, std::span(&port, 1), options);
      if (!shard.ok()) return shard.status();
      each.shard = *std::move(shard);
      each.shard->links()->OnWait([&each] { AdmitAll(each, true); });
    }
    for (ShardOfRun& each : shards_) {
      if (auto status = each.shard->data().TakeUp(); !status.ok()) return status;
    }
    if (pool_->needs_recovery()) {
      for (ShardOfRun& each : shards_) (void)each.shard->data().Repair();
    }
    for (ShardOfRun& each : shards_) each.shard->data().BeginCleaning();
    if (auto status = pool_->MarkOpen(); !status.ok()) return status;
    listener_ = *fabric_->Listen(kAddressOfRun);
    serving_ = true;
    return {};
  }
  // Its process dies, or its power is cut.
  void LosePrimary() {
    network_.KillNode("primary");
    nvm_->before_fence = nullptr;
    if (random_.Chance(0.5)) {
      auto image = nvm_->AfterPowerCut(random_, ShareKeptOfRun());
      images_ = {image, std::move(image)};
      history_.Cut();
    } else {
      images_ = nvm_->AfterProcessEnd([this] { return random_.Chance(0.5); });
    }
    DropPrimary();
  }
  void DropPrimary() {
    serving_ = false;
    waiting_ = nullptr;
    listener_.reset();
    shards_.clear();
    regions_ = {};
    mirrored_ = nullptr;
    nvm_ = nullptr;
    pool_.reset();
    fabric_.reset();
  }
  void TakeNewcomers() {
    while (auto incoming = listener_->Poll()) {
      const auto guest = server::Greet(*incoming, nullptr, kShardsOfRun, {}, true);
      if (guest) shards_[guest->hello.shard].newcomers.push_back({std::move(incoming), guest->hello, guest->admission});
    }
  }
  // Clients stay at the door while the shard waits in the middle of a step.
  static void AdmitAll(ShardOfRun& each, bool mirrors_only) {
    std::deque<Newcomer> newcomers = std::exchange(each.newcomers, {});
    for (Newcomer& newcomer : newcomers) {
      if (mirrors_only && newcomer.hello.role != format::Role::kMirror) {
        each.newcomers.push_back(std::move(newcomer));
      } else {
        each.shard->Admit(std::move(newcomer.incoming), newcomer.hello, 0, newcomer.admission);
      }
    }
  }
  void StepShard(ShardOfRun& each) {
    TakeNewcomers();
    each.busy = true;
    ShardOfRun* const outer = std::exchange(waiting_, &each);
    AdmitAll(each, false);
    if (random_.Chance(0.3)) each.shard->data().cleaner().Step();
    if (each.shard->Poll() == 0 && each.shard->data().CountKeys() && random_.Chance(0.3)) {
      (void)each.shard->Tidy(std::chrono::milliseconds(10));
      if (each.shard->awaits_writers()) each.shard->PassTime(std::chrono::milliseconds(100));
    }
    waiting_ = outer;
    each.busy = false;
    Look(each);
  }
  // A shard with `stop` takes an answer as held only if some mirror may be promoted.
  void Look(ShardOfRun& each) {
    const mirror::Links& links = *each.shard->links();
    const bool has_mark = std::ranges::any_of(machines_, [](const auto& machine) { return machine->mark().in_sync; });
    const uint64_t held = links.held().load();
    if (!goes_alone_ && held > each.held && !has_mark) Fail("something is held, and no mirror may be promoted");
    each.held = held;
    if (!std::exchange(each.stopped, links.stopped()) && each.stopped) {
      ++events_.stops;
      each.was_stopped = true;
    }
    if (!std::exchange(each.alone, links.alone()) && each.alone) ++events_.alone;
    const bool was_in_sync = std::exchange(each.in_sync, links.in_sync());
    if (was_in_sync || !each.in_sync) return;
    if (std::exchange(each.was_stopped, false)) ++events_.resumed;
  }
  // A shard waits in the middle of a step. All others go on, as they have other threads.
  void WaitInStep() {
    ++events_.waits;
    if (!network_.Step() || random_.Chance(0.01)) network_.RunUntil(network_.Now() + std::chrono::microseconds(200));
    for (auto& machine : machines_) {
      if (machine->stuck && random_.Chance(0.003)) machine->stuck = false;
      StepMirror(*machine);
    }
    if (!serving_) return;
    TakeNewcomers();
    ShardOfRun* const waiting = waiting_;
    for (ShardOfRun& each : shards_) {
      if (!each.busy) {
        StepShard(each);
      } else if (&each != waiting) {
        // It waits, too.
        AdmitAll(each, true);
        each.shard->links()->Send();
        (void)each.shard->links()->Poll();
        each.shard->links()->Look();
      }
    }
  }

  // --- Mirrors

  std::unique_ptr<MirrorMachine> MakeMachine() {
    mirror::MirrorOptions options;
    options.address = kAddressOfRun;
    options.id = ++mirrors_made_;
    options.retry = std::chrono::microseconds(random_.Between(50, 3000));
    options.heartbeat = std::chrono::milliseconds(2);
    if (random_.Chance(0.5)) options.copy_bytes_per_second = random_.Between(20, 500) << 20;
    options.tell = [this](std::string_view line) {
      if (line.find("copies the primary's pool") != std::string_view::npos) ++events_.copies;
    };
    auto machine = std::make_unique<MirrorMachine>(network_, superblock_, std::move(options));
    machine->fails = [this] { return !calm_ && random_.Chance(mark_fails_); };
    machine->before_fence = [this] {
      if (!calm_ && random_.Chance(mirror_crashes_)) throw server::Crash();
    };
    return machine;
  }
  void StepMirror(MirrorMachine& machine) {
    try {
      machine.Step();
    } catch (const server::Crash&) {
      LoseMirror(machine);
    }
  }
  void LoseMirror(MirrorMachine& machine) {
    machine.stuck = false;
    if (random_.Chance(0.5)) {
      machine.CutPower(random_, ShareKeptOfRun());
    } else {
      machine.Kill();
    }
  }

  // --- Clients

  void MakeClient(uint32_t number, bool placed) {
    constexpr std::array kPaths = {PutPath::kAuto, PutPath::kReserve, PutPath::kInline, PutPath::kDelegate};
    client::EngineOptions options;
    options.client_id = 100 + number;
    options.timeout = std::chrono::milliseconds(random_.Between(50, 500));
    options.ack = placed ? Ack::kPlaced : Ack::kPersisted;
    options.cache_entries = 64;
    const uint32_t user = random_.Chance(0.3) ? 1 : 0;
    options.put_path = kPaths.at(random_.Uniform(kPaths.size()));
    if (user != 0 && options.put_path == PutPath::kReserve) options.put_path = PutPath::kAuto;
    auto fabric = network_.CreateFabric("client" + std::to_string(number), nullptr, user);
    clients_.at(number).engine = *client::Engine::Create(std::move(fabric), kAddressOfRun, options, network_);
    clients_.at(number).placed = placed;
    inline_only_[number] = options.put_path == PutPath::kInline;
  }
  [[nodiscard]] uint32_t operations() const { return floods_ ? 800 : 250; }
  void StartOperation(uint32_t number) {
    Client& client = clients_.at(number);
    if (started_ == operations() || client.engine->in_flight() >= (floods_ ? 60 : 6)) return;
    const auto up = client.engine->connections().Connect();
    // An operation without a connection ends soon. Some of them are enough.
    if ((!up.ok() || !*up) && !random_.Chance(0.02)) return;
    ++started_;
    const auto key = static_cast<uint32_t>(random_.Uniform(kKeysOfRun));
    const uint64_t dice = random_.Uniform(100);
    Status began;
    if (dice < 20) {
      const size_t record = history_.Begin(number, key, Action::kGet);
      began = client.engine->Get(KeyOfRun(key), [this, record](const Result<std::string_view>& value) {
        const uint64_t put = value.ok() ? PutOfValue(*value) : Record::kAbsent;
        if (value.ok() && put == 0) Fail("a get returned bytes that no put wrote");
        Ended(record, value.status(), put);
      });
    } else if (dice < 32) {
      const size_t record = history_.Begin(number, key, Action::kDelete);
      began = client.engine->Delete(KeyOfRun(key), [this, record](const Status& status) { Ended(record, status); });
    } else {
      const uint64_t put = ++puts_;
      const size_t longest = inline_only_[number] ? 1500 : 12'000;
      const size_t size = random_.Chance(small_values_) ? random_.Between(8, 100) : random_.Between(8, longest);
      const size_t record = history_.Begin(number, key, Action::kPut, put, client.placed);
      began = client.engine->Put(KeyOfRun(key), ValueOfRun(put, size),
                                 [this, record](const Status& status) { Ended(record, status); });
    }
    if (!began.ok()) Fail("an operation does not begin: " + began.ToString());
  }
  void Ended(size_t record, const Status& status, uint64_t value = Record::kAbsent) {
    const Code code = status.code();
    const bool expected = code == Code::kOk || code == Code::kNotFound || code == Code::kUnavailable ||
                          code == Code::kTimeout || code == Code::kResourceExhausted;
    if (!expected) Fail("an operation ended with " + status.ToString());
    history_.End(record, code, value);
  }
  static std::string KeyOfRun(uint32_t key) { return "key" + std::to_string(key); }

  // --- The loop

  void Step() {
    if (!network_.Step()) network_.RunUntil(network_.Now() + std::chrono::microseconds(50));
    try {
      if (serving_) StepShard(shards_[random_.Uniform(kShardsOfRun)]);
    } catch (const server::Crash&) {
      LosePrimary();
    }
    StepMirror(*machines_[random_.Uniform(machines_.size())]);
    clients_.at(random_.Uniform(clients_.size())).engine->Poll();
  }
  void StepWithFaults() {
    Step();
    if (random_.Chance(floods_ ? 0.3 : 0.05)) StartOperation(static_cast<uint32_t>(random_.Uniform(clients_.size())));
    bool check = random_.Chance(0.0002);
    if (!serving_ && random_.Chance(0.01)) StartPrimary();
    if (serving_ && random_.Chance(0.0001)) {
      LosePrimary();
      if (random_.Chance(0.3)) LoseMirror(*machines_[random_.Uniform(machines_.size())]);
      check |= random_.Chance(0.5);
    }
    for (auto& machine : machines_) {
      if (machine->process() == nullptr) {
        if (random_.Chance(0.004)) machine->Start();
      } else if (random_.Chance(0.0001)) {
        LoseMirror(*machine);
        check |= random_.Chance(0.5);
      } else if (random_.Chance(machine->stuck ? 0.002 : 0.0002)) {
        machine->stuck = !machine->stuck;
      }
      if (random_.Chance(ChanceOfCheck(*machine)) && MayBePromoted(*machine)) Promote(*machine);
      // Often it is away for longer than the timeout.
      const bool away = machine->process() == nullptr || machine->stuck;
      if (away && random_.Chance(0.05)) network_.RunUntil(network_.Now() + std::chrono::milliseconds(1));
    }
    if (random_.Chance(drops_) && network_.DropChannel()) {
      check_in_ = random_.Chance(0.1) ? random_.Between(1, 100) : 0;
    }
    if (check_in_ > 0 && --check_in_ == 0) check = true;
    if (random_.Chance(0.0005)) network_.RunUntil(network_.Now() + Nanoseconds(random_.Uniform(30'000'000)));
    if (check) CheckPromise();
  }

  // --- The promise

  double ShareKeptOfRun() {
    constexpr std::array kShares = {0.0, 0.3, 0.7, 1.0};
    return kShares.at(random_.Uniform(kShares.size()));
  }
  bool MayBePromoted(MirrorMachine& machine) {
    if (!goes_alone_) return machine.mark().in_sync;
    return machine.process() != nullptr && machine.process()->may_be_promoted();
  }
  // Some moments count more than others. In most of them the mirror may not be promoted, and the check costs nothing.
  double ChanceOfCheck(const MirrorMachine& machine) {
    using State = mirror::Mirror::State;
    const State state = machine.state();
    if (std::exchange(states_[machine.id() % states_.size()], state) != state) return state == State::kInSync ? 0.3 : 0;
    if (state == State::kCopying || state == State::kJoining) return 0.02;
    if (!serving_) return 0;
    const bool counts = std::ranges::all_of(shards_, [](ShardOfRun& each) { return each.shard->links()->in_sync(); });
    if (goes_alone_) return state == State::kInSync && !counts ? 0.05 : 0;
    return state == State::kApart && machine.mark().in_sync ? 0.002 : 0;
  }
  void CheckPromise() {
    for (auto& machine : machines_) {
      if (MayBePromoted(*machine)) Promote(*machine);
    }
  }
  // Its power may have failed just before.
  void Promote(MirrorMachine& machine) {
    ++events_.promotions;
    server::CrashPool& pool = machine.pool();
    server::CrashPool::Image image(bytes() / sizeof(uint64_t));
    std::memcpy(image.data(), pool.bytes().data(), bytes());
    if (random_.Chance(0.7)) image = pool.AfterPowerCut(random_, ShareKeptOfRun());
    Promoted promoted(std::move(image));
    if (!promoted.damage().empty()) return Fail("a promoted mirror is damaged: " + promoted.damage());
    History history = history_;
    history.Cut();
    for (uint32_t key = 0; key < kKeysOfRun; ++key) {
      const std::string value = promoted.Get(KeyOfRun(key));
      const size_t record = history.Begin(99, key, Action::kGet);
      const uint64_t put = PutOfValue(value);
      if (put == 0 && value != CodeName(Code::kNotFound)) return Fail("a promoted mirror has a key with " + value);
      history.End(record, put == 0 ? Code::kNotFound : Code::kOk, put);
    }
    const std::string violation = history.Violation();
    if (!violation.empty()) Fail("mirror " + std::to_string(machine.id()) + " was promoted: " + violation);
  }

  // --- The end

  template <class Done>
  bool Until(Done&& done) {
    for (int i = 0; i < 300'000 && failure_.empty(); ++i) {
      if (done()) return true;
      Step();
      if (i % 10'000 == 9'999) network_.RunUntil(network_.Now() + std::chrono::milliseconds(10));
    }
    return false;
  }
  [[nodiscard]] bool AllIsHeld() const {
    return std::ranges::all_of(std::array{0U, 1U}, [this](uint32_t shard) {
      return mirrored_->OfShard(shard).held() == mirrored_->OfShard(shard).place();
    });
  }
  // No more faults. All puts end, a mirror is in sync, and all mirrors have the same pool.
  void Finish() {
    CheckPromise();
    calm_ = true;
    if (!serving_) StartPrimary();
    for (auto& machine : machines_) {
      machine->stuck = false;
      if (machine->process() == nullptr) machine->Start();
    }
    const bool ended = Until([this] {
      const bool idle = std::ranges::all_of(clients_, [](const Client& each) { return each.engine->in_flight() == 0; });
      const bool copied = std::ranges::all_of(
          machines_, [](const auto& each) { return each->state() >= mirror::Mirror::State::kJoining; });
      const bool in_sync =
          std::ranges::all_of(shards_, [](ShardOfRun& each) { return each.shard->links()->in_sync(); });
      return idle && copied && in_sync;
    });
    if (!ended) return Fail("no rest at the end: " + TextOfState());
    CheckPromise();
    if (failure_.empty()) Close();
    if (failure_.empty()) Compare();
    for (auto& machine : machines_) {
      if (!MayBePromoted(*machine)) continue;
      if (auto status = machine->process()->Leave(); !status.ok()) Fail("a mirror cannot leave: " + status.ToString());
      Promote(*machine);
    }
  }
  void Close() {
    for (Client& client : clients_) client.engine.reset();
    for (ShardOfRun& each : shards_) {
      each.busy = true;
      waiting_ = &each;
      while (!each.shard->EndSessions()) WaitInStep();
      each.shard->Close();
      waiting_ = nullptr;
      each.busy = false;
    }
    // A link may have been lost just before.
    const auto follow = [this] {
      return AllIsHeld() && std::ranges::all_of(machines_, [](const auto& machine) {
               return machine->state() >= mirror::Mirror::State::kJoining;
             });
    };
    bool idle = false;
    for (int i = 0; i < 100'000 && !(idle && follow()); ++i) {
      idle = !network_.Step();
      if (idle) network_.RunUntil(network_.Now() + std::chrono::microseconds(50));
      TakeNewcomers();
      for (ShardOfRun& each : shards_) {
        AdmitAll(each, true);
        each.shard->data().Fence();
        each.shard->links()->Send();
        (void)each.shard->links()->Poll();
      }
      for (auto& machine : machines_) StepMirror(*machine);
    }
    if (!follow()) Fail("the mirror lacks something at the end: " + TextOfState());
  }
  // The log may differ: `left` is never flushed, and neither is a value whose client did not commit it.
  void Compare() {
    constexpr uint64_t kBegin = format::kShardRecordsOffset;
    const uint64_t size = pool_->geometry().regions_offset - kBegin;
    for (const auto& machine : machines_) {
      if (std::memcmp(machine->pool().bytes().data() + kBegin, nvm_->bytes().data() + kBegin, size) != 0) {
        Fail("mirror " + std::to_string(machine->id()) + " has another index than the primary");
      }
    }
  }
  [[nodiscard]] std::string TextOfState() {
    std::string text = goes_alone_ ? "alone" : "stop, named " + std::to_string(named_);
    for (const auto& machine : machines_) {
      text += "; mirror " + std::to_string(machine->id()) + " in state " +
              std::to_string(static_cast<int>(machine->state()));
      if (machine->process() != nullptr) text += ", " + machine->process()->last_error().ToString();
    }
    for (const ShardOfRun& each : shards_) {
      text += "; shard: " + std::to_string(each.in_sync) + std::to_string(each.stopped) + std::to_string(each.alone);
    }
    return text;
  }

  Random random_;
  fabric::SimNetwork network_;
  Events& events_;
  std::string failure_;
  const bool goes_alone_;
  const double primary_crashes_;  // The chance at each fence.
  const double mirror_crashes_;
  const double mark_fails_;
  const double drops_;
  // The clients put more than a stream has room for.
  const bool floods_;
  const double small_values_;  // Their share.
  bool calm_ = false;          // No more faults.
  uint64_t check_in_ = 0;      // Steps; 0: no check is due.

  format::Superblock superblock_{};
  server::CrashPool::Images images_;  // Of the primary's pool, while no process has it.
  uint64_t named_ = 0;                // The mirror that the primary's superblock names.
  uint64_t starts_ = 0;
  bool serving_ = false;
  server::CrashPool* nvm_ = nullptr;
  mirror::PrimaryPool* mirrored_ = nullptr;
  std::optional<ServerTime> time_;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<server::FormattedPool> pool_;
  server::PoolRegions regions_;
  std::deque<ShardOfRun> shards_;
  ShardOfRun* waiting_ = nullptr;  // The shard that is in the middle of a step, within those of others.
  std::unique_ptr<fabric::Listener> listener_;

  uint64_t mirrors_made_ = 0;
  std::vector<std::unique_ptr<MirrorMachine>> machines_;
  std::array<mirror::Mirror::State, 8> states_{};  // Of the mirrors, at the last look.

  std::array<Client, 2> clients_;
  std::array<bool, 2> inline_only_{};
  uint32_t started_ = 0;
  uint64_t puts_ = 0;
  History history_;
};

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* const wanted = getenv(variable);
  return wanted == nullptr ? otherwise : strtoull(wanted, nullptr, 10);
}

TEST(MirroredPoolTest, APromotedMirrorHasWhatWasAnsweredOverAllFaults) {
#ifdef ERDA_SANITIZED
  constexpr uint64_t kSeeds = 20;
#else
  constexpr uint64_t kSeeds = 80;
#endif
  Events events;
  const uint64_t first = NumberFrom("ERDA_SIM_FIRST", 1);
  const uint64_t seeds = NumberFrom("ERDA_SIM_SEEDS", kSeeds);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    EXPECT_EQ(PoolRun(seed, events).Run(), "") << "seed " << seed;
  }
  if (seeds < kSeeds) return;
  EXPECT_GT(events.promotions, 5 * seeds);
  EXPECT_GT(events.copies, 3 * seeds);
  EXPECT_GT(events.stops, seeds);
  EXPECT_GT(events.resumed, seeds);
  EXPECT_GT(events.alone, seeds / 4);
  EXPECT_GT(events.waits, seeds / 4);
}

TEST(MirroredPoolTest, ARunIsRepeatedByItsSeed) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Events events;
    PoolRun first(seed, events);
    PoolRun second(seed, events);
    EXPECT_EQ(first.Run(), second.Run());
    EXPECT_EQ(first.history().Hash(), second.history().Hash());
  }
}

}  // namespace
}  // namespace erda::sim
