// The compared schemes' service by hand. The tests post requests as a client does, and others that no real client would
// post. They check that all is persistent when an answer goes out.
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/scheme_storage.h"
#include "bench/schemes/server/service.h"
#include "fabric/sim/network.h"
#include "tests/format/first_blocks.h"

namespace erda::schemes {
namespace {

using fabric::OpKind;

constexpr uint32_t kSlots = 16;
constexpr uint32_t kSlotBytes = 16384;

// A client's end of a connection.
class Peer {
 public:
  Peer(fabric::Fabric& fabric, Scheme scheme)
      : requests_(kSlots * kSlotBytes), replies_(uint64_t{kSlots} * kReplySlotBytes) {
    request_region_ = *fabric.Register(MemoryView{requests_, -1, -1}, fabric::Access::kLocal);
    reply_region_ = *fabric.Register(MemoryView{replies_, -1, -1}, fabric::Access::kRemoteReadWrite);
    queue_ = *fabric.CreateQueue();
    Hello hello{};
    hello.magic = kMagic;
    hello.version = kVersion;
    hello.scheme = static_cast<uint8_t>(scheme);
    hello.slots = kSlots;
    fabric::Region* const offer[] = {reply_region_.get()};
    channel_ = *fabric.Connect("sim:server", {queue_.get(), offer, BytesOf(hello), 4 * kSlots});
  }

  void Poll() {
    std::array<fabric::Completion, 16> completions;
    const size_t n = queue_->Poll(completions);
    for (size_t i = 0; i < n; ++i) {
      if (completions[i].kind == OpKind::kClosed) closed_ = true;
      if (completions[i].kind != OpKind::kReceiveImm) continue;
      const uint32_t slot = completions[i].imm;
      answers_[slot] = LoadAs<Reply>(std::span(replies_).subspan(uint64_t{slot} * kReplySlotBytes));
    }
  }
  [[nodiscard]] bool connected() const { return channel_->connected(); }
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] std::optional<Code> CodeIn(uint32_t slot) const {
    const auto it = answers_.find(slot);
    return it == answers_.end() ? std::nullopt : std::optional(Code{it->second.code});
  }
  [[nodiscard]] uint64_t PositionIn(uint32_t slot) const { return answers_.at(slot).position; }
  template <class T>
  [[nodiscard]] T ValueIn(uint32_t slot) const {
    return LoadAs<T>(std::span(replies_).subspan(uint64_t{slot} * kReplySlotBytes + sizeof(Reply)));
  }

  void Ask(uint32_t slot, const Request& request, std::string_view pair = "") {
    answers_.erase(slot);
    const auto at = std::span(requests_).subspan(uint64_t{slot % kSlots} * kSlotBytes, sizeof(request) + pair.size());
    std::memcpy(at.data(), &request, sizeof(request));
    std::memcpy(at.data() + sizeof(request), pair.data(), pair.size());
    fabric::WorkRequest work;
    work.kind = OpKind::kWriteImm;
    work.imm = slot;
    work.local = at;
    work.remote = {kRequestRegion, uint64_t{slot % kSlots} * kSlotBytes};
    EXPECT_TRUE(channel_->Post({&work, 1}).ok());
  }
  void Say() {
    fabric::WorkRequest work;
    work.kind = OpKind::kSend;
    work.local = std::span(requests_).first(8);
    EXPECT_TRUE(channel_->Post({&work, 1}).ok());
  }
  void Leave() { channel_.reset(); }

 private:
  std::vector<std::byte> requests_;
  std::vector<std::byte> replies_;
  std::unique_ptr<fabric::Region> request_region_;
  std::unique_ptr<fabric::Region> reply_region_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::Channel> channel_;
  std::map<uint32_t, Reply> answers_;
  bool closed_ = false;
};

Request RequestOf(RequestOp op, PairSizes sizes) {
  Request request{};
  request.op = static_cast<uint8_t>(op);
  request.sizes = sizes.raw();
  return request;
}

class SchemeServiceTest : public testing::TestWithParam<Scheme> {
 protected:
  SchemeServiceTest() {
    ServiceOptions options;
    options.scheme = GetParam();
    options.slot_bytes = kSlotBytes;
    options.flush_method = format::FlushMethod::kServerFlush;
    queue_ = *server_fabric_->CreateQueue();
    service_ = *Service::Create(store_.storage(), *server_fabric_, *queue_, options);
    listener_ = *server_fabric_->Listen("sim:server");
  }
  ~SchemeServiceTest() override { service_->Close(); }

  std::unique_ptr<Peer> Connect() {
    auto peer = std::make_unique<Peer>(*client_fabric_, GetParam());
    peers_.push_back(peer.get());
    Run();
    EXPECT_TRUE(peer->connected());
    return peer;
  }
  void Disconnect(std::unique_ptr<Peer>& peer) {
    std::erase(peers_, peer.get());
    peer.reset();
    Run();
  }
  // Runs until nothing happens any more. After Arrived, the posted requests are at the server, which has not looked.
  void Run() {
    for (bool busy = true; busy;) {
      Arrive();
      busy = service_->Poll() > 0;
    }
    Arrive();
  }
  void Arrive() {
    for (bool busy = true; busy;) {
      busy = network_.Step();
      while (auto incoming = listener_->Poll()) {
        service_->Admit(std::move(incoming));
        busy = true;
      }
      for (Peer* peer : peers_) peer->Poll();
    }
  }

  // Posts the first request of a put.
  void AskPut(Peer& peer, uint32_t slot, std::string_view key, std::string_view value) {
    const PairSizes sizes = TestStorage::SizesOf(key, value);
    if (GetParam() == Scheme::kReadAfterWrite) return peer.Ask(slot, RequestOf(RequestOp::kReserve, sizes), key);
    const std::string pair = std::string(key) + std::string(value);
    Request request = RequestOf(RequestOp::kPut, sizes);
    request.crc = PairCrc(store_.seed(), sizes, AsBytes(pair));
    peer.Ask(slot, request, pair);
  }
  // Read After Write: writes the entry, and posts the commit. (The bytes bypass the network, which other tests cover.)
  void AskCommit(Peer& peer, uint32_t slot, std::string_view key, std::string_view value) {
    const uint64_t position = peer.PositionIn(slot);
    const std::string entry = store_.Entry(position, key, value);
    std::memcpy(store_.pool().view().bytes.data() + store_.OffsetOf(position), entry.data(), entry.size());
    Request request = RequestOf(RequestOp::kCommit, {});
    request.position = position;
    peer.Ask(slot, request);
  }
  std::optional<Code> Put(Peer& peer, uint32_t slot, std::string_view key, std::string_view value) {
    AskPut(peer, slot, key, value);
    Run();
    if (GetParam() == Scheme::kReadAfterWrite && peer.CodeIn(slot) == Code::kOk) {
      AskCommit(peer, slot, key, value);
      Run();
    }
    return peer.CodeIn(slot);
  }
  std::optional<Code> Get(Peer& peer, uint32_t slot, std::string_view key) {
    peer.Ask(slot, RequestOf(RequestOp::kGet, TestStorage::SizesOf(key, "")), key);
    Run();
    return peer.CodeIn(slot);
  }
  Counters Count(Peer& peer, uint32_t slot) {
    peer.Ask(slot, RequestOf(RequestOp::kCounters, {}));
    Run();
    EXPECT_EQ(peer.CodeIn(slot), Code::kOk);
    return peer.ValueIn<Counters>(slot);
  }
  // Fills the log as the only client, so that nothing is applied. It begins with the slot `first`. Returns the slot in
  // which a put has to wait.
  uint32_t FillLog(Peer& peer, uint32_t first) {
    const std::string value(kSlotBytes - 1000, 'f');
    const auto fit = static_cast<uint32_t>(TestStorage::Small().log_bytes / kSlotBytes);
    for (uint32_t i = 0; i <= fit; ++i) AskPut(peer, first + i, Filler(i), value);
    Arrive();
    return first + fit;
  }
  static std::string Filler(uint32_t i) { return "filler " + std::to_string(i); }
  [[nodiscard]] bool LogIsDurable() {
    SchemePool& pool = store_.storage().scheme_pool();
    return store_.pool().IsDurable(pool.log_offset(), pool.log_bytes());
  }

  fabric::SimNetwork network_{1};
  std::shared_ptr<fabric::Fabric> server_fabric_ = network_.CreateFabric("server");
  std::shared_ptr<fabric::Fabric> client_fabric_ = network_.CreateFabric("client");
  TestStorage store_{GetParam(), TestStorage::Small(), false};
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::Listener> listener_;
  std::unique_ptr<Service> service_;
  std::vector<Peer*> peers_;
};

INSTANTIATE_TEST_SUITE_P(Both, SchemeServiceTest, testing::Values(Scheme::kRedoLogging, Scheme::kReadAfterWrite),
                         [](const auto& one) { return std::string(SchemeName(one.param)); });

// Checked at the end of the Poll that sends the answer. That Poll fences nothing else, since the key has its
// destination.
TEST_P(SchemeServiceTest, AnsweredPutIsPersistent) {
  const auto peer = Connect();
  ASSERT_EQ(Put(*peer, 0, "key", "old value"), Code::kOk);
  ASSERT_EQ(Put(*peer, 0, "gone", "value"), Code::kOk);
  AskPut(*peer, 0, "key", "new value");
  if (GetParam() == Scheme::kReadAfterWrite) {
    Run();
    AskCommit(*peer, 0, "key", "new value");
  }
  Arrive();
  EXPECT_GT(service_->Poll(), 0U);
  EXPECT_TRUE(LogIsDurable());
  Run();
  EXPECT_EQ(peer->CodeIn(0), Code::kOk);
  peer->Ask(0, RequestOf(RequestOp::kDelete, TestStorage::SizesOf("gone", "")), "gone");
  Arrive();
  EXPECT_GT(service_->Poll(), 0U);
  EXPECT_TRUE(LogIsDurable());
  Run();
  EXPECT_EQ(peer->CodeIn(0), Code::kOk);
}

// A request for the counters applies everything before it, also requests that have just arrived.
TEST_P(SchemeServiceTest, CountersRequestAppliesPersistentEntries) {
  const std::string old_value(300, 'a');
  const std::string new_value(300, 'b');
  const auto peer = Connect();
  ASSERT_EQ(Put(*peer, 0, "key", old_value), Code::kOk);
  store_.storage().Close();
  AskPut(*peer, 0, "key", new_value);
  if (GetParam() == Scheme::kReadAfterWrite) {
    Run();
    AskCommit(*peer, 0, "key", new_value);
  }
  peer->Ask(1, RequestOf(RequestOp::kCounters, {}));
  Arrive();
  Random random(1);
  std::vector<CrashPool::Image> left;
  store_.pool().before_fence = [&] {
    for (int i = 0; i < 20; ++i) left.push_back(store_.pool().AfterPowerCut(random, 0.5));
  };
  Run();
  store_.pool().before_fence = nullptr;
  EXPECT_EQ(peer->CodeIn(0), Code::kOk);
  EXPECT_EQ(peer->ValueIn<Counters>(1).unapplied, 0U);
  EXPECT_FALSE(left.empty());
  for (auto& image : left) {
    TestStorage again(GetParam(), TestStorage::Small());
    again.Open(std::move(image));
    const auto found = again.Get("key");
    ASSERT_TRUE(found == old_value || found == new_value) << found.value_or("nothing");
  }
}

TEST_P(SchemeServiceTest, BreachOfTheProtocolEndsOnlyItsClient) {
  const bool is_redo = GetParam() == Scheme::kRedoLogging;
  const auto good = Connect();
  ASSERT_EQ(Put(*good, 0, "key", "value"), Code::kOk);
  const PairSizes sizes = TestStorage::SizesOf("key", "value");
  const std::string pair = "keyvalue";
  const auto ended = [&](const char* what, const Request& request, uint32_t slot = 0) {
    SCOPED_TRACE(what);
    auto bad = Connect();
    bad->Ask(slot, request, pair);
    Run();
    EXPECT_TRUE(bad->closed());
    EXPECT_EQ(bad->CodeIn(slot), std::nullopt);
    Disconnect(bad);
    EXPECT_EQ(Get(*good, 1, "key"), Code::kOk);
  };
  Request put = RequestOf(is_redo ? RequestOp::kPut : RequestOp::kReserve, sizes);
  put.crc = PairCrc(store_.seed(), sizes, AsBytes(pair));
  {
    auto bad = Connect();
    bad->Ask(0, put, pair);
    Run();
    EXPECT_EQ(bad->CodeIn(0), Code::kOk);  // This one is good.
    Disconnect(bad);
  }
  ended("no such slot", put, kSlots);
  Request request = put;
  request.op = 0;
  ended("no operation", request);
  request.op = 99;
  ended("an unknown operation", request);
  request = put;
  request.op = static_cast<uint8_t>(is_redo ? RequestOp::kReserve : RequestOp::kPut);
  ended("the other scheme's put", request);
  request = put;
  request.crc = is_redo ? ~put.crc : put.crc;
  if (is_redo) ended("a checksum that does not fit", request);
  for (const PairSizes wrong : {PairSizes::OfPut(0, 5), PairSizes::OfPut(kKeyBytesMax + 1, 0),
                                PairSizes::OfPut(3, kSlotBytes - sizeof(Request) - 2),
                                PairSizes::OfPut(3, kValueBytesMax), PairSizes::OfDelete(3), PairSizes(~uint32_t{0})}) {
    request = put;
    request.sizes = wrong.raw();
    ended("sizes that cannot be", request);
  }
  for (const RequestOp op : {RequestOp::kGet, RequestOp::kDelete}) {
    ended("no key", RequestOf(op, PairSizes::OfPut(0, 5)));
    ended("a key longer than its slot", RequestOf(op, PairSizes::OfPut(2047, 0)));
  }
  request = RequestOf(RequestOp::kCommit, {});
  request.position = uint64_t{1} << 40;
  ended("a commit of what was never given out", request);
  auto bad = Connect();
  bad->Say();
  Run();
  EXPECT_TRUE(bad->closed());
}

TEST_P(SchemeServiceTest, PutsWaitForRoomInTheLogInTheirOrder) {
  const auto peer = Connect();
  const uint32_t waiting = FillLog(*peer, 0);
  peer->Ask(waiting + 1, RequestOf(RequestOp::kGet, TestStorage::SizesOf(Filler(0), "")), Filler(0));
  Arrive();
  EXPECT_GT(service_->Poll(), 0U);
  if (GetParam() == Scheme::kRedoLogging) {
    EXPECT_TRUE(LogIsDurable());  // Also requests that were served after a wait, in the same Poll.
    Run();
  } else {
    Run();
    EXPECT_EQ(peer->CodeIn(waiting), std::nullopt);  // The first entry is not written, so nothing is applied.
    EXPECT_EQ(peer->CodeIn(waiting + 1), std::nullopt);
    AskCommit(*peer, 0, Filler(0), std::string(kSlotBytes - 1000, 'f'));
    Run();
    EXPECT_EQ(peer->CodeIn(0), Code::kOk);
  }
  EXPECT_EQ(peer->CodeIn(waiting), Code::kOk);
  EXPECT_EQ(peer->CodeIn(waiting + 1), Code::kOk);
  EXPECT_EQ(Count(*peer, 0).waits, 2U);
}

// No real client has two requests in one slot. Without a limit they would fill the server's memory.
TEST_P(SchemeServiceTest, AnotherRequestInASlotWhoseFirstOneWaitsEndsItsClient) {
  const auto good = Connect();
  const auto bad = Connect();
  FillLog(*good, 0);
  AskPut(*bad, 0, "key", "value");
  AskPut(*bad, 0, "key", "value");
  Run();
  EXPECT_TRUE(bad->closed());
  EXPECT_FALSE(good->closed());
}

TEST_P(SchemeServiceTest, AClientThatLeavesMakesRoomForThoseThatWait) {
  const auto stays = Connect();
  auto leaves = Connect();
  const uint32_t waiting = FillLog(*leaves, 0);
  service_->Poll();
  AskPut(*stays, 0, "key", "value");
  Run();
  EXPECT_EQ(stays->CodeIn(0).has_value(), GetParam() == Scheme::kRedoLogging);
  Disconnect(leaves);
  EXPECT_EQ(stays->CodeIn(0), Code::kOk);
  EXPECT_EQ(Get(*stays, 1, Filler(waiting)).has_value(), true);
}

// More keys share a home in the index than its neighbourhood holds.
TEST_P(SchemeServiceTest, WaitingPutsAreRefusedIfTheIndexHasNoSlotForTheirKey) {
  const auto peer = Connect();
  const format::Geometry& geometry = store_.storage().scheme_pool().geometry();
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() <= format::kNeighbourhood; ++i) {
    std::string key = "key" + std::to_string(i);
    if (format::FirstHome(geometry, HashKey(key, schemes::kHashSeed)) == 100) keys.push_back(std::move(key));
  }
  const std::string last = keys.back();
  keys.pop_back();
  for (const std::string& key : keys) ASSERT_EQ(Put(*peer, 0, key, "value"), Code::kOk);
  AskPut(*peer, 0, last, "value");
  const uint32_t waiting = FillLog(*peer, 1);
  peer->Ask(waiting + 1, RequestOf(RequestOp::kGet, TestStorage::SizesOf(last, "")), last);
  Run();
  EXPECT_EQ(peer->CodeIn(0), Code::kOk);
  if (GetParam() == Scheme::kReadAfterWrite) {
    AskCommit(*peer, 0, last, "value");
    Run();
    EXPECT_EQ(peer->CodeIn(0), Code::kOk);
  }
  EXPECT_EQ(store_.storage().stuck(), true);
  EXPECT_EQ(peer->CodeIn(waiting), Code::kResourceExhausted);
  EXPECT_EQ(peer->CodeIn(waiting + 1), Code::kOk);  // Found in the log.
  EXPECT_EQ(Put(*peer, 0, "another", "value"), Code::kResourceExhausted);
  EXPECT_EQ(Get(*peer, 0, keys[0]), Code::kOk);
}

}  // namespace
}  // namespace erda::schemes
