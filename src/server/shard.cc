#include "server/shard.h"

#include "base/planted.h"
#include "server/requests/chunk_news.h"

namespace erda::server {

namespace {

// Reservations that one Tidy looks at.
constexpr size_t kSweepStep = 64;
// A shard that is never idle ages its chunks after this number of Polls that served something. At a microsecond for
// each Poll, that takes at least kAgeTime.
constexpr uint32_t kPollsPerAge = 1 << 16;
constexpr Nanoseconds kAgeTime = std::chrono::milliseconds(65);
// The shard looks again at a client that was in the middle of a Write after this number of Polls with work.
constexpr uint32_t kPollsPerFence = 64;
// A shard that is never idle looks at the time of its mirrors after this number of Polls with work.
constexpr uint32_t kPollsPerLook = 16;
// Requests awaiting a writer that one Poll looks at if it has other work.
constexpr size_t kUndecidedStep = 16;

}  // namespace

// --- Setting up, and the end

Result<std::unique_ptr<Shard>> Shard::Create(FormattedPool& pool, uint32_t number, std::span<const Port> ports,
                                             const ShardOptions& options) {
  auto control = ControlMemory::Create(pool.geometry());
  if (!control.ok()) return control.status();
  auto maker = SessionMaker::Create(pool, control->memory(), ports, options);
  if (!maker.ok()) return maker.status();
  std::unique_ptr<Shard> shard(new Shard(pool, number, ports, options, *std::move(control), *std::move(maker)));
  if (shard->links_ == nullptr) return shard;
  std::vector<fabric::Fabric*> fabrics;
  for (const Port& port : ports) fabrics.push_back(&port.fabric);
  if (auto status = shard->links_->Serve(fabrics); !status.ok()) return status;
  return shard;
}

Shard::Shard(FormattedPool& pool, uint32_t number, std::span<const Port> ports, const ShardOptions& options,
             ControlMemory control, SessionMaker maker)
    : number_(number),
      clock_(*options.clock),
      links_(options.mirrored == nullptr ? nullptr : &options.mirrored->links(number)),
      control_(std::move(control)),
      data_(pool, number, control_, options),
      sessions_(std::move(maker), number, control_.counters(), control_.activity(), options),
      replies_(data_.nvm(), control_.activity(), clock_),
      commits_(data_.versions()),
      for_medium_(data_.versions()),
      inbox_(RequestHandler({pool.geometry(), number, pool.superblock().hash_seed}, options, control_.counters(),
                            data_.versions(), data_.cleaning(), sessions_, replies_, commits_, for_medium_),
             options, control_.counters(), sessions_, data_.versions(), data_.cleaning(), for_medium_),
      arrivals_(ports),
      persist_timer_(data_.nvm(), control_.activity(), clock_),
      hold_timer_(control_.activity(), clock_) {}

// The links are the pool's, which may outlive what they use of the fabrics.
Shard::~Shard() {
  if (links_ != nullptr) links_->Close();
}

void Shard::Admit(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port,
                  const Admission& admission) {
  if (links_ == nullptr) [[likely]]
    return sessions_.Open(std::move(incoming), hello, port, admission);
  if (hello.role == format::Role::kMirror) {
    return sessions_.OpenMirror(std::move(incoming), hello, port, admission, *links_);
  }
  // A get could return what recovery has settled, and the mirror may lack that.
  if (!links_->awaits_first()) return sessions_.Open(std::move(incoming), hello, port, admission);
  sessions_.Refuse(*incoming, hello, port, {Code::kUnavailable, "the server waits for its mirror"});
}

void Shard::EndOthers(const TokenIds& tokens) {
  sessions_.DoomOthers(tokens);
  if (links_ != nullptr) EndOtherMirrors(tokens);
}

void Shard::EndOtherMirrors(const TokenIds& tokens) {
  links_->EndOthers([&](TokenId token) { return tokens.contains(token); });
}

bool Shard::EndSessions() {
  sessions_.DoomAll();
  CloseDoomed();
  return !sessions_.has_doomed();
}

void Shard::Close() {
  (void)EndSessions();
  sessions_.CloseAll([this](const Session& session) { LetGo(session); });
  data_.versions().Close();
  data_.cleaning().TellDamage();
}

bool Shard::unsettled() const {
  const Versions& versions = data_.versions();
  return versions.in_flight() > 0 || versions.chunks().delegates() || parked().awaits_room() ||
         parked().awaits_writers() || sessions_.has_doomed() || replies_.waits() ||
         (links_ != nullptr && links_->awaits_mirror());
}

// --- Polls

size_t Shard::Poll() {
  size_t served = data_.versions().holds_later() ? TakeHeld() : 0;
  served += inbox_.WakeForRate();
  const size_t received = Receive();
  served += received;
  Publish();
  const size_t answered = replies_.empty() ? 0 : served;
  if (answered > 0) Reply();
  // No client waits for the steps below, except those with parked requests.
  if (parked().awaits_writers()) served += inbox_.WakeForWriter(served > 0 ? kUndecidedStep : SIZE_MAX, false);
  const size_t cleaned = Clean(served > 0);
  if (cleaned > 0 && received == 0) data_.KeepTime();
  TellChunkNews(data_.versions().chunks(), sessions_, replies_);
  served += inbox_.WakeForRoom();
  const bool has_more = served != answered || cleaned > 0 || !replies_.empty();
  if (has_more) Reply();
  if (served == 0 && !has_more && !sessions_.has_new_doomed()) return 0;
  if (AskHeld()) ++served;
  data_.versions().growth().Grow();
  if (links_ != nullptr) [[unlikely]]
    served += SendToMirrors(links_->awaits_mirror() && ++polls_since_look_ % kPollsPerLook == 0);
  if (sessions_.has_new_doomed() || ++polls_since_fence_ % kPollsPerFence == 0) served += CloseDoomed();
  return served + cleaned;
}

size_t Shard::Tidy(Nanoseconds since) {
  Versions& versions = data_.versions();
  if (parked().awaits_room()) data_.cleaning().waiting().LosePatience(since);
  versions.delegating().Age();
  TellChunkNews(versions.chunks(), sessions_, replies_);
  Reply();
  size_t done = CloseDoomed();
  if (versions.in_flight() > 0) done += versions.Sweep(kSweepStep);
  if (parked().awaits_writers()) done += inbox_.WakeForWriter(SIZE_MAX, true);
  Reply();
  if (links_ != nullptr) done += SendToMirrors(true);
  if (AskHeld()) ++done;
  return done;
}

size_t Shard::SendToMirrors(bool looks) {
  data_.Fence();
  links_->Send();
  return looks && links_->Look() ? 1 : 0;
}

// The medium gets other bytes later, such as the settled bit of a version that was answered.
bool Shard::AskHeld() {
  if (!data_.versions().awaits_hold() && !replies_.waits()) [[likely]]
    return false;
  if (data_.nvm().held() < data_.nvm().place()) hold_timer_.Asked(data_.nvm().place());
  data_.nvm().AskHeld(replies_.waiting());
  return data_.nvm().held() != held_;
}

// First settles, then answers: a client that has its answer finds what it has put. Requests that waited for a version
// of a key go on before later ones arrive.
size_t Shard::TakeHeld() {
  const size_t heard = links_ != nullptr ? links_->Poll() : 0;
  return heard + SettleHeld();
}

size_t Shard::SettleHeld() {
  const bool failed = data_.nvm().failed();
  const uint64_t held = data_.nvm().held();
  if (failed && !gave_up_) [[unlikely]]
    return GiveUp(held);
  gave_up_ = failed;  // A mirror may be in sync again.
  if (held == held_ && !Planted(Flaw::kSettledBeforeHeld)) return 0;
  held_ = held;
  hold_timer_.Held(held);
  // A client that waits for the time reads the word next.
  if (data_.keeps_time() || replies_.tells_time()) (void)data_.versions().part().clock().Raise();
  const auto [settled, later] = data_.versions().SettleHeld();
  if (later) replies_.Postpone(held);
  size_t taken = settled + replies_.AddHeld(held);
  if (settled > 0 && !for_medium_.empty()) taken += inbox_.WakeForMedium();
  if (taken > 0 && parked().awaits_writers()) taken += inbox_.WakeForWriter(SIZE_MAX, false);
  return taken;
}

// (J5) Settles and answers what the medium holds. All else that waits gets an error. Later requests get one at once.
size_t Shard::GiveUp(uint64_t held) {
  gave_up_ = true;
  const auto [settled, later] = data_.versions().SettleHeld();
  if (later) replies_.Postpone(held);
  size_t ended = settled + replies_.AddHeld(held) + replies_.AddFailed();
  ended += inbox_.WakeForMedium();
  if (parked().awaits_room()) data_.cleaning().waiting().wait().EndAll();  // They go on in this Poll.
  return ended + inbox_.WakeForWriter(SIZE_MAX, true);
}

size_t Shard::Receive() {
  size_t received = 0;
  Nanoseconds seen{0};
  arrivals_.Poll([&](std::span<const fabric::Completion> completions) {
    if (received == 0) {
      seen = clock_.Now();
      data_.KeepTime();
    }
    for (const fabric::Completion& completion : completions) inbox_.Take(completion, seen);
    received += completions.size();
  });
  return received;
}

void Shard::Publish() {
  Versions& versions = data_.versions();
  persist_timer_.Run(versions.has_unpublished() || !commits_.empty(),
                     [&] { commits_.End(versions.PublishPuts(), sessions_, replies_); });
}

// The gauges are stored before the replies are sent, so that a client with a reply finds its request counted.
void Shard::Reply() {
  Versions& versions = data_.versions();
  versions.PublishGauges(versions.PublishPuts());
  replies_.Send(versions.PublishPuts(), [this](Session& session) {
    sessions_.Violate(session, "it takes no answers, or asks more at once than it has slots");
  });
}

// Cleaning begins after all keys are counted. A shard that is never idle ages its chunks here, and not in Tidy.
size_t Shard::Clean(bool was_busy) {
  if (parked().awaits_room()) data_.CountKeys();
  const size_t cleaned = data_.cleaning().Step();
  data_.pages_ahead().Step();
  if (was_busy && ++busy_polls_ % kPollsPerAge == 0) {
    data_.versions().delegating().Age();
    if (parked().awaits_room()) data_.cleaning().waiting().AwaitChunks(kAgeTime);
  }
  return cleaned;
}

size_t Shard::CloseDoomed() {
  if (!sessions_.has_doomed()) return 0;
  const size_t closed = sessions_.CloseDoomed([this](const Session& session) { LetGo(session); });
  data_.versions().PublishGauges(data_.versions().PublishPuts());
  return closed;
}

void Shard::LetGo(const Session& session) {
  data_.versions().EndSession(session.id);
  inbox_.Forget(session);
  commits_.Forget(session);
  replies_.Forget(session);
}

}  // namespace erda::server
