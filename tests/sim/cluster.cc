#include "sim/cluster.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "base/random.h"
#include "base/test_hash.h"
#include "client/engine.h"
#include "client/scan.h"
#include "fabric/sim/network.h"
#include "sim/forger.h"
#include "sim/server_process.h"
#include "tests/format/first_blocks.h"

namespace erda::sim {

namespace {

using client::Engine;
using format::Counter;

// Larger than any value (Plan::value_bytes_max, StartPut).
constexpr size_t kBufferBytes = 8192;

// Returns a different value for each number: the number, and bytes that follow from number and size.
std::string ValueOf(uint64_t number, size_t size) {
  std::string value(size, '\0');
  std::memcpy(value.data(), &number, sizeof(number));
  for (size_t i = sizeof(number); i < size; ++i) {
    value[i] = static_cast<char>(Random::Mix(number * 31 + size + i / 8) >> (i % 8 * 8));
  }
  return value;
}

// The checker of the history goes a level deeper with each power cut, so a run has at most this number of crashes. On
// average, a run has 40.
constexpr uint64_t kDeathsMax = 2000;

// Returns the number in a value, or 0 if no put ever wrote these bytes.
uint64_t NumberIn(std::string_view value) {
  if (value.size() < sizeof(uint64_t)) return 0;
  const auto number = LoadAs<uint64_t>(AsBytes(value));
  return ValueOf(number, value.size()) == value ? number : 0;
}

// A value's number and its version. By default, the key is absent.
struct Known {
  uint64_t number = Record::kAbsent;
  uint64_t version = kAbsent;
};

constexpr const char* kCounterName = "counter";

// A page of a scan that is under way. To the checker, it is a get of each key.
struct Scanning {
  ScanOptions options;
  std::unique_ptr<client::Scan> scan;
  std::vector<size_t> records;  // by key
};
// A scan reads its entries in no order with the other operations of its client. So the checker counts it as another
// client.
constexpr uint32_t kScanners = 1'000'000;

// A client's clock, which can stand still for some time.
class ClientClock final : public Clock {
 public:
  explicit ClientClock(const Clock& clock) : clock_(clock) {}
  [[nodiscard]] Nanoseconds Now() const override { return stopped_.value_or(clock_.Now()) - lost_; }
  void Stop() {
    if (!stopped_) stopped_ = clock_.Now();
  }
  void GoOn() {
    if (stopped_) lost_ += clock_.Now() - *stopped_;
    stopped_.reset();
  }

 private:
  const Clock& clock_;
  std::optional<Nanoseconds> stopped_;
  Nanoseconds lost_{0};
};

struct ClientProcess {
  uint32_t id = 0;
  std::string node;
  std::shared_ptr<fabric::Fabric> fabric;
  PutPath path = PutPath::kAuto;
  Ack ack = Ack::kPersisted;
  bool stands_still = false;  // true if its clock stands still while it pauses
  std::unique_ptr<ClientClock> clock;
  std::unique_ptr<Engine> engine;
  Nanoseconds paused_until{0};
  std::map<uint32_t, uint64_t> remembered;  // for Defect::kStaleGet: the number that the last get of a key found
  std::map<uint32_t, Known> known;          // by key: the last number and version that the client learned
  std::vector<std::shared_ptr<Buffer::Memory>> buffers;
  std::unique_ptr<Scanning> scanning;  // declared after the engine, so that it is destroyed first
  uint64_t cursor = 0;
};

class Cluster {
 public:
  explicit Cluster(const Plan& plan)
      : plan_(plan),
        random_(plan.seed * 7919 + 1),
        flip_random_(plan.seed + 31),
        network_(plan.seed, plan.network),
        server_(network_, plan_) {
    const auto geometry = format::ChooseGeometry(WishOf(plan_));
    for (uint64_t i = 0; geometry.ok() && key_names_.size() < plan_.keys; ++i) {
      std::string name = "key" + std::to_string(i);
      const uint64_t home = format::FirstHome(*geometry, HashKey(name));
      const bool near = key_names_.size() % 3 == 0;
      if (!plan_.collisions || (near ? home >= 12 && home <= 20 : home == 0)) key_names_.push_back(std::move(name));
    }
    for (uint32_t key = 0; key < key_names_.size(); ++key) {
      const uint64_t hash = HashKey(key_names_[key]);
      places_[key_names_[key]] = {geometry->ShardOf(hash), client::Scan::PlaceOf(static_cast<uint32_t>(hash))};
    }
    if (plan_.forge_chance > 0) {
      forger_ = std::make_unique<Forger>(network_, plan_.seed, ServerAddress(0), plan_.shards, key_names_);
    }
    server_.on_power_cut = [this] { outcome_.history.Cut(); };
    server_.on_fence = [this](bool ends) { GoOnWithoutServer(ends); };
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster() {
    server_.on_power_cut = nullptr;
    server_.on_fence = nullptr;
  }

  Outcome Run() {
    network_.RunUntil(std::chrono::seconds(1));
    server_.Start();
    for (uint32_t i = 0; i < plan_.clients && failure().empty(); ++i) clients_.push_back(MakeClient(plan_.timeout));
    while (started_ < plan_.operations && failure().empty()) Step();
    stopping_ = true;
    if (forger_) outcome_.facts[Fact::kForged] = forger_->forged();
    forger_.reset();
    server_.StayUp();
    Settle();
    ReadAll();
    CheckIdleServer();
    if (failure().empty()) CheckRestart();
    if (failure().empty()) CheckBytes();
    Collect();
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] const std::string& failure() const {
    return outcome_.failure.empty() ? server_.failure() : outcome_.failure;
  }
  void Fail(const std::string& why) {
    if (outcome_.failure.empty()) outcome_.failure = why;
  }

  // --- Clients

  // path: the put path of a client of the server's user. Without it, chance decides user and path.
  std::unique_ptr<ClientProcess> MakeClient(Nanoseconds timeout, std::optional<PutPath> path = std::nullopt) {
    auto process = std::make_unique<ClientProcess>();
    process->id = ++clients_made_;
    process->node = "client" + std::to_string(process->id);
    Random nature(plan_.seed ^ (process->id * 0x9e37));
    const bool delegates = nature.Chance(0.35);
    const bool stranger = !path && nature.Chance(plan_.stranger_share);
    process->stands_still = plan_.clocks_stand_still > 0 && nature.Chance(plan_.clocks_stand_still);
    process->clock = std::make_unique<ClientClock>(network_);
    process->fabric = network_.CreateFabric(process->node, nullptr, stranger ? 1 : 0);
    constexpr PutPath kPaths[] = {PutPath::kAuto, PutPath::kReserve, PutPath::kReserve, PutPath::kInline};
    client::EngineOptions options;
    options.ack = process->ack = random_.Chance(plan_.placed_share) ? Ack::kPlaced : Ack::kPersisted;
    PutPath one = kPaths[random_.Uniform(std::size(kPaths))];
    if (stranger && one == PutPath::kReserve) one = PutPath::kAuto;  // the server would refuse reserved puts
    options.put_path = process->path = path.value_or(delegates ? PutPath::kDelegate : one);
    options.queue_depth = plan_.queue_depth;
    options.timeout = timeout;
    options.client_id = process->id;
    options.cache_entries = process->id % 3 == 0 ? 0 : 64;
    auto engine =
        Engine::Create(process->fabric, ServerAddress(random_.Uniform(plan_.ports)), options, *process->clock);
    if (!engine.ok()) {
      Fail("no engine: " + engine.status().ToString());
    } else {
      process->engine = *std::move(engine);
    }
    return process;
  }

  // --- Expiry

  // A put with a time to live. It expires when the time that its shard tells reaches the deadline, which lies between
  // `begins` and `ends`.
  struct Expiring {
    uint32_t key = 0;
    uint64_t number = 0;
    uint64_t begins = 0;
    uint64_t ends = UINT64_MAX;
    size_t put = 0;
    std::optional<size_t> expiry{};  // the number of the record of its expiry
  };
  // Records the expiries that are due. Requires: the next record does not exist yet.
  void TellExpiries() {
    std::erase_if(expiring_, [&](Expiring& each) {
      const uint64_t now = TimeOf(each.key);
      if (now < each.begins) return false;
      if (!each.expiry) {
        each.expiry = outcome_.history.Begin(Record::kNature, each.key, Action::kExpire, each.number);
      }
      if (now < each.ends) return false;
      outcome_.history.End(*each.expiry, Code::kOk);
      return true;
    });
  }
  [[nodiscard]] uint64_t TimeOf(uint32_t key) const { return server_.TimeOf(places_.at(KeyName(key)).first); }
  size_t BeginRecord(const ClientProcess& process, uint32_t key, Action action, uint64_t value = 0, bool placed = false,
                     std::optional<uint64_t> expects = std::nullopt) {
    TellExpiries();
    return outcome_.history.Begin(process.id, key, action, value, placed, expects);
  }
  // Draws the time to live of a put that has just been recorded. Returns nothing if the put does not expire.
  std::optional<std::chrono::milliseconds> DrawTtl(uint32_t key, uint64_t number, size_t record) {
    if (plan_.ttl_share == 0 || !random_.Chance(plan_.ttl_share)) return std::nullopt;
    const std::chrono::milliseconds ttl(random_.Between(1, plan_.ttl_max));
    Expiring expiring;
    expiring.key = key;
    expiring.number = number;
    expiring.begins = TimeOf(key) + static_cast<uint64_t>(ttl.count());
    expiring.put = record;
    expiring_.push_back(expiring);
    expires_.insert(number);
    ttls_[record] = ttl;
    ++outcome_.facts[Fact::kPutsExpiring];
    return ttl;
  }
  // A put was answered, so its deadline is known up to its rounding.
  void LearnDeadline(size_t record, Code code) {
    const auto ttl = ttls_.find(record);
    if (ttl == ttls_.end() || code != Code::kOk) return;
    for (Expiring& each : expiring_) {
      if (each.put == record) each.ends = server_.LatestTime() + static_cast<uint64_t>(ttl->second.count());
    }
  }

  // Kills a client in the middle of its work. Another one takes its place.
  void KillClient() {
    auto& victim = clients_[random_.Uniform(clients_.size())];
    network_.KillNode(victim->node);
    AddStats(victim->engine->stats());
    victim = MakeClient(plan_.timeout);
    ++outcome_.facts[Fact::kKills];
  }

  [[nodiscard]] bool Paused(const ClientProcess& process) const {
    if (network_.Now() < process.paused_until) return true;
    process.clock->GoOn();
    return false;
  }
  void Poll(ClientProcess& process) {
    if (Paused(process)) return;
    process.engine->Poll();
    if (process.scanning && process.scanning->scan->GoOn()) EndScan(process);
  }

  void Pause(ClientProcess& process) {
    process.paused_until =
        network_.Now() + Nanoseconds(random_.Uniform(static_cast<uint64_t>(plan_.pause_max.count())));
    if (process.stands_still) process.clock->Stop();
    ++outcome_.facts[Fact::kPauses];
  }

  void DamageSomething() {
    const auto key = static_cast<uint32_t>(random_.Uniform(plan_.keys));
    const auto value = server_.Damage(KeyName(key));
    if (!value) return;
    outcome_.history.Damage(key, NumberIn(*value));
    ++outcome_.facts[Fact::kDamages];
  }

  void StartOperation(ClientProcess& process) {
    if (process.engine->in_flight() == plan_.queue_depth || started_ >= plan_.operations || Paused(process)) return;
    ++started_;
    const bool hot = plan_.hot_share > 0 && random_.Chance(plan_.hot_share);
    const auto key = hot ? 0 : static_cast<uint32_t>(random_.Uniform(plan_.keys));
    if (plan_.scan_share > 0 && random_.Chance(plan_.scan_share)) return StartScan(process);
    const uint64_t dice = random_.Uniform(100);
    if (plan_.conditions && random_.Chance(0.6)) {
      StartWithVersions(process, key, dice);
    } else if (dice < plan_.percent_gets) {
      StartGet(process, key);
    } else if (dice < plan_.percent_gets + plan_.percent_deletes) {
      StartDelete(process, key);
    } else {
      StartPut(process, key);
    }
  }

  [[nodiscard]] const std::string& KeyName(uint32_t key) const { return key_names_.at(key); }

  // Returns a free buffer for every third operation. Returns null for the others, or if all buffers are in use.
  std::shared_ptr<Buffer::Memory> BufferFor(ClientProcess& process, uint64_t operation) {
    if (operation % 3 != 0) return nullptr;
    if (process.buffers.empty()) {
      for (int i = 0; i < 2; ++i) process.buffers.push_back(process.engine->MakeBuffer(kBufferBytes).value());
    }
    const auto free = std::find_if(process.buffers.begin(), process.buffers.end(),
                                   [](const auto& buffer) { return !buffer->in_use; });
    return free == process.buffers.end() ? nullptr : *free;
  }

  void StartGet(ClientProcess& process, uint32_t key) {
    if (GetAtOnce(process, key)) return;
    const size_t record = BeginRecord(process, key, Action::kGet);
    const auto done = [=, this, &process](const Result<std::string_view>& value) {
      EndGet(process, key, record, value);
    };
    const auto buffer = BufferFor(process, record);
    Started(buffer ? process.engine->Get(KeyName(key), buffer, done) : process.engine->Get(KeyName(key), done));
  }
  // Gets without starting an operation. Returns false if that is not possible.
  bool GetAtOnce(ClientProcess& process, uint32_t key) {
    if (Paused(process)) return false;
    VersionedView found;
    const auto now = process.engine->GetNow(KeyName(key), &found);
    if (now == Engine::Now::kNo) return false;
    ++outcome_.facts[Fact::kGetsAtOnce];
    const auto value = now == Engine::Now::kValue ? Result<std::string_view>(found.value) : Status(Code::kNotFound);
    EndGet(process, key, BeginRecord(process, key, Action::kGet), value);
    return true;
  }
  void EndGet(ClientProcess& process, uint32_t key, size_t record, const Result<std::string_view>& value) {
    const bool stale = plan_.defect == Defect::kStaleGet && process.remembered.contains(key) && random_.Chance(0.2);
    uint64_t number = value.ok() ? NumberIn(*value) : Record::kAbsent;
    if (value.ok() && number == 0) Fail("a get returned bytes that no put wrote");
    Code code = value.status().code();
    if (stale && (code == Code::kOk || code == Code::kNotFound)) {
      number = process.remembered[key];
      code = number == Record::kAbsent ? Code::kNotFound : Code::kOk;
    } else if (code == Code::kOk || code == Code::kNotFound) {
      process.remembered[key] = number;
    }
    Ended(process, record, value.status(), code, number);
  }

  size_t SizeOfPut(ClientProcess& process, uint32_t key) {
    size_t most = std::min<size_t>(plan_.value_bytes_max,
                                   process.engine->connections().pool().ValueBytesMax(KeyName(key).size()));
    if (most == 0 || process.path == PutPath::kInline) most = plan_.same_sizes ? plan_.value_bytes_max : 1900;
    const size_t least = plan_.same_sizes ? most : 8;
    return !plan_.same_sizes && random_.Chance(0.5) ? random_.Between(8, 100) : random_.Between(least, most);
  }

  void StartPut(ClientProcess& process, uint32_t key) {
    const uint64_t number = ++values_;
    const std::string value = ValueOf(number, SizeOfPut(process, key));
    const size_t record = BeginRecord(process, key, Action::kPut, number, process.ack == Ack::kPlaced);
    const auto done = [=, this, &process](const Status& status) { Ended(process, record, status, status.code()); };
    if (plan_.defect == Defect::kLostPut && random_.Chance(0.05)) return done(Status());
    if (const auto ttl = DrawTtl(key, number, record)) {
      Started(process.engine->Put(KeyName(key), value, PutOptions{{}, ttl},
                                  [done](const Result<uint64_t>& version) { done(version.status()); }));
    } else if (const auto buffer = BufferFor(process, number)) {
      std::ranges::copy(AsBytes(value), buffer->value.begin());
      Started(process.engine->Put(KeyName(key), buffer, value.size(), done));
    } else {
      Started(process.engine->Put(KeyName(key), value, done));
    }
    if (key == 0 && plan_.stall_chance > 0 && random_.Chance(plan_.stall_chance)) Pause(process);
    if (plan_.defect == Defect::kRepeatedPut && process.engine->in_flight() < plan_.queue_depth) {
      Started(process.engine->Put(KeyName(key), value, [](const Status& /*status*/) {}));
    }
  }

  void StartDelete(ClientProcess& process, uint32_t key) {
    const size_t record = BeginRecord(process, key, Action::kDelete);
    Started(process.engine->Delete(
        KeyName(key), [=, this, &process](const Status& status) { Ended(process, record, status, status.code()); }));
  }

  // --- Scans

  void StartScan(ClientProcess& process) {
    const auto up = process.engine->connections().Connect();
    if (process.scanning || !up.ok() || !*up) return;
    TellExpiries();
    process.scanning = std::make_unique<Scanning>();
    Scanning& scanning = *process.scanning;
    scanning.options.cursor = process.cursor;
    scanning.options.keys = random_.Chance(0.5) ? plan_.keys : random_.Between(1, plan_.keys);
    scanning.options.bytes = random_.Chance(0.8) ? 1 << 20 : random_.Between(1, 10'000);
    // If a scan tells a key without its value, the key was present. So the record then is a conflict with the condition
    // that the key is absent.
    scanning.options.values = random_.Chance(0.7);
    const auto expects = scanning.options.values ? std::nullopt : std::optional(Record::kAbsent);
    for (uint32_t key = 0; key < plan_.keys; ++key) {
      scanning.records.push_back(
          outcome_.history.Begin(kScanners + process.id, key, Action::kGet, Record::kAbsent, false, expects));
    }
    scanning.scan = std::make_unique<client::Scan>(*process.engine, scanning.options);
    if (scanning.scan->GoOn()) EndScan(process);
  }
  // Returns true if the key lies between the two cursors, or after the first one if `next` is empty.
  [[nodiscard]] bool IsInPage(const std::string& key, uint64_t cursor, std::optional<uint64_t> next) const {
    const auto& [shard, place] = places_.at(key);
    const auto from = client::ScanCursor::From(cursor);
    const auto to = client::ScanCursor::From(next.value_or(UINT64_MAX));
    if (shard < from.shard || shard > to.shard) return false;
    const bool depth_told = shard == from.shard && from.position > 0;
    const uint32_t depth = depth_told ? from.depth : shard == to.shard ? to.depth : 0;
    const uint32_t position = client::Scan::PositionOf(place, depth);
    return (shard > from.shard || position >= from.position) && (shard < to.shard || position < to.position);
  }
  void EndScan(ClientProcess& process) {
    const auto scanning = std::exchange(process.scanning, nullptr);
    const auto page = scanning->scan->Take();
    TellExpiries();
    ++outcome_.facts[Fact::kScans];
    const auto end = [&](uint32_t key, Code code, uint64_t value = Record::kAbsent) {
      outcome_.history.End(scanning->records[key], code, value);
    };
    if (!page.ok()) {
      const Code code = page.status().code();
      const bool expected = code == Code::kUnavailable || code == Code::kTimeout;
      if (!expected) Fail("a scan ended with " + page.status().ToString());
      for (uint32_t key = 0; key < plan_.keys; ++key) end(key, code);
      return;
    }
    process.cursor = page->next.value_or(0);
    if (page->damaged > 0 && outcome_.facts[Fact::kDamages] == 0) Fail("a scan met damage, and nothing is damaged");
    std::map<std::string, uint64_t> told;
    for (const ScannedKey& each : page->keys) {
      const bool of_all = each.key == kCounterName || each.key == "probe";
      if (!told.emplace(each.key, NumberIn(each.value)).second) Fail("a scan told a key twice");
      if (of_all) continue;
      if (!places_.contains(each.key)) return Fail("a scan told a key that was never put");
      if (!IsInPage(each.key, scanning->options.cursor, page->next)) Fail("a scan told a key that is not of its page");
      if (!scanning->options.values && !each.value.empty()) Fail("a scan told a value that was not wanted");
      if (scanning->options.values && told[each.key] == 0) Fail("a scan told bytes that no put wrote");
    }
    outcome_.facts[Fact::kKeysScanned] += told.size();
    for (uint32_t key = 0; key < plan_.keys; ++key) {
      const auto found = told.find(KeyName(key));
      if (found != told.end()) {
        end(key, scanning->options.values ? Code::kOk : Code::kConflict, found->second);
      } else {
        // A scan tells no damaged keys.
        const bool absent = page->damaged == 0 && IsInPage(KeyName(key), scanning->options.cursor, page->next);
        end(key, absent ? Code::kNotFound : Code::kInvalidArgument);
      }
    }
  }

  // --- Versions

  void StartWithVersions(ClientProcess& process, uint32_t key, uint64_t dice) {
    // The checker counts only increments that survive a power cut.
    if (process.ack == Ack::kPersisted && random_.Chance(0.15)) return StartIncrement(process);
    if (dice < plan_.percent_gets) return StartVersionedGet(process, key);
    std::optional<Known> wanted;
    if (random_.Chance(0.8)) wanted = random_.Chance(0.25) ? Known{} : process.known[key];
    const auto expects = wanted ? std::optional(wanted->number) : std::nullopt;
    const auto if_version = wanted ? std::optional(wanted->version) : std::nullopt;
    if (wanted && wanted->version != kAbsent && random_.Chance(0.2)) {
      const size_t record = BeginRecord(process, key, Action::kDelete, 0, false, expects);
      return Started(process.engine->Delete(
          KeyName(key), DeleteOptions{if_version},
          [=, this, &process](const Status& status) { Ended(process, record, status, status.code()); }));
    }
    const uint64_t number = ++values_;
    const std::string value = ValueOf(number, SizeOfPut(process, key));
    const bool placed = process.ack == Ack::kPlaced;
    const size_t record = BeginRecord(process, key, Action::kPut, number, placed, expects);
    const auto ttl = DrawTtl(key, number, record);
    Started(process.engine->Put(KeyName(key), value, PutOptions{if_version, ttl},
                                [=, this, &process](const Result<uint64_t>& version) {
                                  if (version.ok()) Learn(process, key, {number, *version});
                                  Ended(process, record, version.status(), version.status().code());
                                }));
    if (plan_.stall_chance > 0 && random_.Chance(plan_.stall_chance)) Pause(process);
  }

  void StartVersionedGet(ClientProcess& process, uint32_t key) {
    const size_t record = BeginRecord(process, key, Action::kGet);
    Started(process.engine->GetVersioned(KeyName(key), [=, this, &process](const Result<VersionedView>& got) {
      const uint64_t number = got.ok() ? NumberIn(got->value) : Record::kAbsent;
      if (got.ok() && number == 0) Fail("a get returned bytes that no put wrote");
      if (got.ok()) Learn(process, key, {number, got->version});
      if (got.ok() && got->expires.has_value() != expires_.contains(number)) Fail("a value has another deadline");
      if (got.status().code() == Code::kNotFound) process.known[key] = {};
      Ended(process, record, got.status(), got.status().code(), number);
    }));
  }

  // Checks that each value has one version for ever, and that no other value has it.
  void Learn(ClientProcess& process, uint32_t key, const Known& known) {
    process.known[key] = known;
    const bool same_value =
        values_by_version_.emplace(std::pair(key, known.version), known.number).first->second == known.number;
    const bool same_version = versions_by_value_.emplace(known.number, known.version).first->second == known.version;
    if (!same_value || !same_version || known.version == kAbsent) {
      Fail("value " + std::to_string(known.number) + " of key " + std::to_string(key) + " has version " +
           std::to_string(known.version) + (same_value ? ", and had another" : ", as another had"));
    }
  }

  void StartIncrement(ClientProcess& process) {
    const size_t number = counts_.size();
    counts_.push_back({++count_events_, Record::kNever, 0, Code::kUnavailable});
    Started(process.engine->Increment(kCounterName, 1, [=, this](const Result<int64_t>& sum) {
      Count& count = counts_[number];
      count.end = ++count_events_;
      count.code = sum.status().code();
      if (sum.ok()) count.sum = *sum;
    }));
  }

  // Checks the increments against the counter. Requires: no operation is under way.
  void CheckCounter() {
    if (counts_.empty() || !failure().empty()) return;
    ClientProcess& reader = *clients_.back();
    std::optional<Result<std::string>> last;
    for (uint32_t attempt = 0; attempt < 100 && (!last || last->status().code() == Code::kTimeout ||
                                                 last->status().code() == Code::kUnavailable);
         ++attempt) {
      Started(reader.engine->Get(kCounterName, [&](const Result<std::string_view>& value) {
        last = value.ok() ? Result<std::string>(std::string(*value)) : Result<std::string>(value.status());
      }));
      Settle();
    }
    const bool absent = last && last->status().code() == Code::kNotFound;
    if (!last || (!last->ok() && !absent)) return Fail("the counter cannot be read in the end");
    if (last->ok() && (*last)->size() != sizeof(int64_t)) return Fail("the counter is no number in the end");
    if (last->ok()) ++present_;
    const int64_t sum = absent ? 0 : LoadAs<int64_t>(AsBytes(**last));
    if (const std::string why = CountsViolation(counts_, sum); !why.empty()) Fail(why);
  }

  void Started(const Status& status) {
    if (!status.ok()) Fail("an operation could not be started: " + status.ToString());
  }

  void Ended(ClientProcess& process, size_t record, const Status& status, Code code, uint64_t value = 0) {
    if (outcome_.history.records()[record].end != Record::kNever) return Fail("an operation ended twice");
    TellExpiries();
    LearnDeadline(record, code);
    outcome_.history.End(record, code, value);
    ++outcome_.codes[static_cast<size_t>(code)];
    const bool expected = code == Code::kOk || code == Code::kNotFound || code == Code::kUnavailable ||
                          (code == Code::kConflict && outcome_.history.records()[record].expects) ||
                          code == Code::kTimeout || code == Code::kResourceExhausted ||
                          (code == Code::kCorruption && outcome_.facts[Fact::kDamages] > 0);
    if (!expected || (plan_.has_room && code == Code::kResourceExhausted)) {
      Fail("an operation ended with " + status.ToString());
    }
    if (!stopping_ && random_.Chance(plan_.next_chance)) StartOperation(process);
  }

  // --- The loop

  void Step() {
    const auto client = [this]() -> ClientProcess& { return *clients_[random_.Uniform(clients_.size())]; };
    if (random_.Chance(plan_.start_chance)) StartOperation(client());
    if (random_.Chance(plan_.client_chance)) Poll(client());
    if (random_.Chance(plan_.server_chance)) server_.Step(random_);
    if (forger_ && random_.Chance(plan_.forge_chance)) forger_->Step();
    if (random_.Chance(plan_.drop_chance)) network_.DropChannel();
    if (random_.Chance(plan_.kill_chance)) KillClient();
    if (random_.Chance(plan_.pause_chance)) Pause(client());
    if (random_.Chance(plan_.damage_chance)) DamageSomething();
    if (flip_random_.Chance(plan_.flip_chance) && server_.FlipIndexBit(flip_random_)) ++outcome_.facts[Fact::kFlips];
    if (random_.Chance(plan_.restart_chance)) {
      if (server_.running()) {
        server_.Stop();
        ++outcome_.facts[Fact::kRestarts];
      } else {
        const bool flips = flip_random_.Chance(plan_.rest_flip_chance) && server_.FlipIndexBitAtRest(flip_random_);
        outcome_.facts[Fact::kFlips] += flips ? 1 : 0;
        server_.Start();
      }
    }
    if (server_.process_deaths() + server_.power_cuts() < kDeathsMax) {
      if (server_.running() && random_.Chance(plan_.crash_anywhere_chance)) server_.Crash();
      if (plan_.power_cut_share > 0 && !server_.running() && random_.Chance(0.005)) server_.CutPower();
    } else {
      server_.StayUp();
    }
    if (plan_.crash_chance > 0 && !server_.running() && random_.Chance(0.02)) server_.Start();
    if (!network_.Step()) network_.RunUntil(network_.Now() + std::chrono::microseconds(10));
  }

  // The clients do not wait for the server's fence. They see bytes that the server has stored and not made persistent
  // yet.
  void GoOnWithoutServer(bool ends) {
    // It matters most whether clients see bytes that a crash will lose.
    const double chance = ends && plan_.fence_race_chance > 0 ? 0.8 : plan_.fence_race_chance;
    if (clients_.empty() || !random_.Chance(chance)) return;
    for (uint64_t left = random_.Between(1, ends ? 200 : 12); left > 0 && network_.Step(); --left) {
      ClientProcess& process = *clients_[random_.Uniform(clients_.size())];
      Poll(process);
      if (forger_ && random_.Chance(0.2)) forger_->Step();
      if (!stopping_) GetAtOnce(process, static_cast<uint32_t>(random_.Uniform(plan_.keys)));
    }
  }

  // Steps until no operation is under way. Lets time pass if nothing happens, so that unanswered operations end, too.
  void Settle() {
    if (!server_.running()) server_.Start();
    const auto busy = [](const auto& process) { return process->engine->in_flight() > 0; };
    for (uint64_t i = 0; std::any_of(clients_.begin(), clients_.end(), busy) && failure().empty(); ++i) {
      if (i > 1'000'000) return Fail("some operations never end");
      for (auto& process : clients_) Poll(*process);
      server_.Step(random_);
      if (!network_.Step()) network_.RunUntil(network_.Now() + std::chrono::microseconds(100));
    }
  }

  // A new client gets each key, and repeats the get until it is answered.
  void ReadAll() {
    present_ = 0;
    clients_.push_back(MakeClient(std::chrono::seconds(1)));
    if (!failure().empty()) return;
    ClientProcess& reader = *clients_.back();
    for (uint32_t key = 0; key < plan_.keys && failure().empty(); ++key) {
      for (uint32_t attempt = 0;; ++attempt) {
        if (attempt == 100) return Fail("nothing can be read in the end");
        const size_t before = outcome_.history.records().size();
        StartGet(reader, key);
        Settle();
        if (!failure().empty()) return;
        // Records of expiries may come before the one of this get, and gets in a fence of the server after it.
        const auto since = outcome_.history.records().subspan(before);
        const Code code = std::ranges::find(since, reader.id, &Record::client)->code;
        if (code == Code::kOk || code == Code::kCorruption) ++present_;
        if (code == Code::kOk || code == Code::kCorruption || code == Code::kNotFound || !failure().empty()) break;
      }
    }
    if (plan_.scan_share > 0) ScanAll(reader);
    CheckCounter();
  }
  void ScanAll(ClientProcess& reader) {
    reader.cursor = 0;
    for (uint64_t i = 0; failure().empty(); ++i) {
      if (i == 1'000'000) return Fail("a scan never ends");
      const auto up = reader.engine->connections().Connect();
      if (up.ok() && *up) {
        StartScan(reader);
        Settle();
        if (reader.cursor == 0) return;
      }
      Poll(reader);
      server_.Step(random_);
      if (!network_.Step()) network_.RunUntil(network_.Now() + std::chrono::microseconds(100));
    }
  }

  // Without clients nothing is in flight. No client broke the protocol.
  void CheckIdleServer() {
    for (auto& process : clients_) {
      if (process->engine) AddStats(process->engine->stats());
    }
    clients_.clear();
    // Lets all times to live end, and gives the sweep time to find these values. With a journal, the clock of a server
    // that starts may be a little earlier.
    const bool expires = plan_.ttl_share > 0;
    const uint32_t earlier = plan_.journal ? 100 : 10;
    if (expires) network_.RunUntil(network_.Now() + std::chrono::milliseconds(plan_.ttl_max + earlier));
    for (uint64_t i = 0; i < 10'000; ++i) {
      server_.HoldAll();
      server_.Step(random_);
      if (!network_.Step() && server_.Count(Counter::kClients) == 0 && i > (expires ? 5000 : 1000)) break;
    }
    if (!failure().empty()) return;
    if (server_.Count(Counter::kClients) != 0) Fail("the server still has clients in the end");
    if (server_.Count(Counter::kInFlight) != 0) Fail("something is still in flight in the end");
    // A late Write of the forger may hit a put that it has made since, so its violations do not count.
    if (server_.Count(Counter::kViolations) != 0 && plan_.forge_chance == 0) Fail("a client broke the protocol");
    if (network_.counts().unfenced != 0) Fail("a session ended while its client was writing");
  }

  // Checks that a restart keeps all keys, and that the counters agree with the keys that can be read.
  void CheckRestart() {
    const uint64_t keys = server_.Count(Counter::kKeys);
    const uint64_t log_bytes = server_.Count(Counter::kLogBytesUsed);
    server_.Stop();
    server_.Start();
    const uint64_t log_bytes_now = server_.Count(Counter::kLogBytesUsed);  // before the cleaner changes anything
    ReadAll();
    if (!failure().empty()) return;
    if (server_.Count(Counter::kKeys) != keys) Fail("another number of keys after a restart");
    if (present_ != keys && plan_.forge_chance == 0) {
      Fail("the server counts " + std::to_string(keys) + " keys, and " + std::to_string(present_) + " can be read");
    }
    if (outcome_.facts[Fact::kDamages] == 0 && plan_.forge_chance == 0 && server_.Count(Counter::kDamagedKeys) > 0) {
      Fail("the server tells a key as damaged, and none is");
    }
    // Beside damage the end of the objects is not known, so the segment counts as full.
    if (outcome_.facts[Fact::kDamages] == 0 && log_bytes_now != log_bytes) {
      Fail("another number of used bytes in the log after a restart");
    }
  }

  // Checks the bytes that server and client write to NVM for one operation: docs/benchmarks/results.md, "Bytes".
  void CheckBytes() {
    if (!plan_.check_bytes || plan_.index_entries != 0) return;  // entries would move
    network_.CalmDown();
    network_.RunUntil(network_.Now() + std::chrono::milliseconds(2));  // so that the first put also notes the time
    for (const PutPath path : {PutPath::kInline, PutPath::kReserve}) {
      clients_.clear();
      clients_.push_back(MakeClient(std::chrono::seconds(1), path));
      if (!failure().empty()) return;
      constexpr uint64_t kKey = 5;
      // The first put of a server also writes the version limit and the note of the time.
      const bool room = Bytes(40, 0) && Bytes(std::nullopt, 0) && Bytes(40, 36 + kKey + 40 + 24) &&
                        Bytes(40, 36 + kKey + 40 + 24) && Bytes(100, 36 + kKey + 100 + 24 + 8);
      Bytes(std::nullopt, room ? 36 + kKey + 24 : 0);
    }
  }

  // Puts a value of this size, or deletes the key. Returns false if the log has no room. expected: the bytes that the
  // operation must write, or 0 if any number is right.
  bool Bytes(std::optional<size_t> size, uint64_t expected) {
    Engine& engine = *clients_.back()->engine;
    const auto written = [&] { return server_.Count(Counter::kNvmBytes) + engine.stats().nvm_bytes_written; };
    const auto cleaned = [&] {
      return server_.Count(Counter::kCleanRegions) + server_.Count(Counter::kCleanMoves) +
             server_.Count(Counter::kFreeRegions) + server_.Count(Counter::kSetAside);
    };
    const uint64_t before = written();
    const uint64_t cleaned_before = cleaned();
    const uint64_t log_before = server_.Count(Counter::kLogBytesUsed);
    std::optional<Status> done;
    const auto end = [&](const Status& status) { done = status; };
    Started(size ? engine.Put("probe", std::string(*size, 'p'), end) : engine.Delete("probe", end));
    for (uint64_t i = 0; !done || server_.Count(Counter::kInFlight) > 0; ++i) {
      if (i > 1'000'000) {
        Fail("an operation on an idle server never ends");
        return false;
      }
      engine.Poll();
      server_.Step(random_);
      if (!network_.Step()) network_.RunUntil(network_.Now() + std::chrono::microseconds(10));
    }
    if (done->code() == Code::kResourceExhausted) return false;
    if (!done->ok() && (size || done->code() != Code::kNotFound)) {
      Fail("an operation on an idle server ended with " + done->ToString());
    }
    // A new segment takes more bytes, and so does the cleaner.
    const uint64_t log_bytes = server_.Count(Counter::kLogBytesUsed) - log_before;
    const bool same_segment = log_bytes == (size ? format::ObjectSpace(5, *size) : 0);
    if (done->ok() && expected != 0 && same_segment && cleaned() == cleaned_before && written() - before != expected) {
      Fail("an operation wrote " + std::to_string(written() - before) + " bytes to NVM, not " +
           std::to_string(expected));
    }
    return true;
  }

  void AddStats(const ClientStats& stats) {
    outcome_.clients.gets += stats.gets;
    outcome_.clients.puts += stats.puts;
    outcome_.clients.deletes += stats.deletes;
    outcome_.clients.second_looks += stats.second_looks;
    outcome_.clients.older_versions += stats.older_versions;
    outcome_.clients.cache_hits += stats.cache_hits;
    outcome_.clients.cache_misled += stats.cache_misled;
    outcome_.clients.reconnects += stats.reconnects;
    outcome_.clients.requests += stats.requests;
  }

  void Collect() {
    outcome_.failure = failure();
    outcome_.network_hash = network_.history_hash();
    outcome_.settled = server_.Count(Counter::kSettled);
    Facts& facts = outcome_.facts;
    facts[Fact::kRuns] = 1;
    facts[Fact::kOperations] = outcome_.history.records().size();
    facts[Fact::kUnknownOutcomes] =
        outcome_.codes[static_cast<size_t>(Code::kUnavailable)] + outcome_.codes[static_cast<size_t>(Code::kTimeout)];
    facts[Fact::kProcessDeaths] = server_.process_deaths();
    facts[Fact::kPowerCuts] = server_.power_cuts();
    facts[Fact::kRecoveriesCutOff] = server_.recoveries_cut_off();
    facts[Fact::kGrown] = server_.growths();
    const fabric::SimCounts& counts = network_.counts();
    facts[Fact::kDroppedChannels] = counts.dropped_channels;
    facts[Fact::kTornWrites] = counts.torn_writes;
    facts[Fact::kTornReads] = counts.torn_reads;
    facts[Fact::kLatePieces] = counts.late_pieces;
    facts[Fact::kLostPieces] = counts.lost_pieces;
    facts[Fact::kOlderVersions] = outcome_.clients.older_versions;
    facts[Fact::kSecondLooks] = outcome_.clients.second_looks;
    facts[Fact::kReports] = server_.Count(Counter::kReports);
    facts[Fact::kTakenBack] = server_.Count(Counter::kTakenBack);
    facts[Fact::kRegionsCleaned] = server_.Count(Counter::kCleanRegions);
    facts[Fact::kVersionsMoved] = server_.Count(Counter::kCleanMoves);
    facts[Fact::kExpired] = server_.Count(Counter::kExpired);
    facts[Fact::kSplits] = server_.Splits();
    facts[Fact::kPutsDelayed] = server_.Count(Counter::kPutsDelayed);
    facts[Fact::kPutsStaged] = server_.Count(Counter::kPutsStaged);
    facts[Fact::kRunsWithRoom] = plan_.has_room ? 1 : 0;
    facts[Fact::kPutsRefused] = outcome_.codes[static_cast<size_t>(Code::kResourceExhausted)];
    outcome_.recovered = server_.recovered();
  }

  const Plan& plan_;
  Random random_;
  Random flip_random_;  // separate, so that the other draws stay the same
  fabric::SimNetwork network_;
  ServerProcess server_;
  std::unique_ptr<Forger> forger_;  // null: no client forges
  std::vector<std::unique_ptr<ClientProcess>> clients_;
  Outcome outcome_;
  std::vector<std::string> key_names_;
  std::map<std::string, std::pair<uint32_t, uint32_t>> places_;  // by key: the shard, and the place in it
  uint32_t clients_made_ = 0;
  uint32_t started_ = 0;
  uint64_t values_ = 0;
  uint64_t present_ = 0;  // the number of keys that the last ReadAll found
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> values_by_version_;  // by key and version
  std::map<uint64_t, uint64_t> versions_by_value_;
  std::vector<Expiring> expiring_;
  std::map<size_t, std::chrono::milliseconds> ttls_;  // by record
  std::set<uint64_t> expires_;                        // values with a time to live
  std::vector<Count> counts_;
  uint64_t count_events_ = 0;
  bool stopping_ = false;
};

}  // namespace

Outcome RunPlan(const Plan& plan) { return Cluster(plan).Run(); }

std::string ProblemOf(const Outcome& outcome) {
  return outcome.failure.empty() ? outcome.history.Violation() : outcome.failure;
}

}  // namespace erda::sim
