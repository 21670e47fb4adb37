// The client's side of a scheme: a store for the driver, with the calls and the promises of erda::Client. Both schemes
// get, delete and count in the same way. Their puts are in redo_logging.h and read_after_write.h.
//
// It waits as Erda's client does (src/client), but does not connect again: when the server is gone, so is the store.
// Owns its operations and its connection (scheme_link.h). One thread calls it at a time.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "bench/schemes/client/scheme_link.h"
#include "bench/schemes/messages.h"
#include "bench/schemes/scheme.h"
#include "bench/ycsb/store.h"
#include "client/key_order.h"
#include "erda/client.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "format/messages.h"

namespace erda::schemes {

class SchemeClient : public bench::NvmStore {
 public:
  ~SchemeClient() override = default;
  // Must be called first, and once.
  Status Connect();

  Result<size_t> Get(std::string_view key, std::span<std::byte> out) override;
  Status Put(std::string_view key, std::string_view value) override;
  Status Delete(std::string_view key) override;
  Status GetAsync(std::string_view key, GetCallback done) override;
  Status PutAsync(std::string_view key, std::string_view value, DoneCallback done) override;
  Status DeleteAsync(std::string_view key, DoneCallback done) override;
  size_t Poll() override;
  [[nodiscard]] size_t max_value_bytes(size_t key_bytes) const override;
  Result<uint64_t> ServerNvmBytes() override;
  [[nodiscard]] uint64_t ClientNvmBytes() const override { return nvm_bytes_; }

  // Waits. Works with any number of operations in flight.
  Result<Counters> ServerCounters();
  [[nodiscard]] const HelloReply& hello() const { return link_.hello(); }

 protected:
  enum class Step : uint8_t {
    kFree,
    kKeyTurn,    // Waits for an earlier operation on the same key.
    kReply,      // Waits for the server's answer.
    kPlaced,     // Waits for the Read after the Write of an entry.
    kCommitted,  // Waits for the answer to the commit after it.
    kDone,       // Waits for its callback, in the next Poll.
  };
  using OpIndex = client::OpIndex;

  // Memory of an operation, registered with the fabric:
  //   0         32          40       64
  //   +---------+-----------+--------+------------------------------+
  //   | commit  | read into | 0      | message: Request, key, value |
  //   +---------+-----------+--------+------------------------------+
  struct Operation {
    OpIndex index = client::kNoOp;  // Also the number of its request slot.
    Step step = Step::kFree;
    RequestOp op = RequestOp::kGet;
    PairSizes sizes;
    uint32_t value_size = 0;  // Of the answer.
    uint64_t key_hash = 0;
    Status result;
    GetCallback get_done;
    DoneCallback done;
    Nanoseconds deadline{0};  // Set by the first look at it.
    OpIndex after = client::kNoOp;
    OpIndex bucket_next = client::kNoOp;
    bool in_order = false;
    std::span<std::byte> memory;

    [[nodiscard]] static bool MayFollow(const Operation& /*before*/) { return false; }
    [[nodiscard]] bool waits_for_turn() const { return step == Step::kKeyTurn; }
    [[nodiscard]] std::span<std::byte> commit() const { return memory.first(sizeof(Request)); }
    [[nodiscard]] std::span<std::byte> word() const { return memory.subspan(sizeof(Request), sizeof(uint64_t)); }
    [[nodiscard]] std::span<std::byte> message() const { return memory.subspan(kMessageAt); }
    [[nodiscard]] std::span<std::byte> pair() const { return message().subspan(sizeof(Request), sizes.pair()); }
    [[nodiscard]] std::string_view key_view() const { return AsString(pair().first(sizes.key())); }
  };
  static constexpr size_t kMessageAt = 64;

  // keeps_key_order: operations on one key wait for each other here. This is not needed if the server sees them in
  // order.
  SchemeClient(Scheme scheme, std::string address, const ClientOptions& options, bool keeps_key_order)
      : options_(options), keeps_key_order_(keeps_key_order), link_(scheme, std::move(address)) {}

  // Requires: key and value are in the operation's message.
  virtual void StartPut(Operation& op) = 0;
  // Handles a kOk answer to the request of StartPut.
  virtual void OnPutAnswered(Operation& op, const Reply& reply) = 0;

  void SendRequest(Operation& op, uint32_t crc, uint64_t bytes);
  [[nodiscard]] fabric::WorkRequest WriteImmWork(const Operation& op, std::span<std::byte> local) const;
  void Post(std::span<const fabric::WorkRequest> works);
  void Finish(Operation& op, Status status);
  void CountNvmBytes(uint64_t bytes) { nvm_bytes_ += bytes; }

 private:
  Status Prepare();
  Status OnConnected();
  Result<Operation*> NewOperation(RequestOp kind, std::string_view key, uint64_t value_size);
  void Begin(Operation& op);
  void Run(Operation& op);
  void Dispatch(const fabric::Completion& completion);
  void OnReply(Operation& op);
  void Deliver(Operation& op);
  void DeliverDeferred();
  [[nodiscard]] std::string_view ValueOf(const Operation& op) const;
  // Ends every operation in flight; none begins any more.
  void Break(const Status& status);
  void CheckDeadlines();
  template <class Done>
  void WaitFor(Done&& done);
  // The outcome for which a synchronous call waits. Callbacks capture only a pointer to it, so that std::function does
  // not allocate.
  struct Outcome {
    bool finished = false;
    Status status;
    void Set(Status how) {
      status = std::move(how);
      finished = true;
    }
  };
  template <class Start>
  Status RunToEnd(Outcome& outcome, Start&& start);

  const ClientOptions options_;
  const bool keeps_key_order_;
  Status broken_;

  std::vector<Operation> ops_;
  std::vector<OpIndex> free_ops_;
  client::KeyOrder key_order_;  // If it is kept.
  std::deque<OpIndex> done_;
  uint32_t in_flight_ = 0;
  size_t finished_ = 0;  // In this Poll.
  bool polling_ = false;
  uint32_t polls_ = 0;
  Nanoseconds next_check_{0};
  uint64_t nvm_bytes_ = 0;

  SchemeLink link_;
  std::array<fabric::Completion, 64> completions_;
};

}  // namespace erda::schemes
