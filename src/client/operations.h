// The operations of one client: which are in flight, whose turn it is on a key, and which have ended.
//
// Owns the slots, their registered memory, the order of operations on one key, and the list of operations whose
// callback is still to run. Each kind of operation (get.h, put.h, block.h) owns an array with one operation for each
// slot. One kind uses a slot at a time. Only the client's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fifo.h"
#include "base/hash.h"
#include "client/key_order.h"
#include "client/operation.h"
#include "erda/status.h"
#include "fabric/fabric.h"

namespace erda::client {

class Operations {
 public:
  // While it lives a Poll is under way, and callbacks run.
  class Polling {
   public:
    explicit Polling(Operations& operations) : operations_(operations) {
      operations_.polling_ = true;
      operations_.finished_ = 0;
    }
    Polling(const Polling&) = delete;
    Polling& operator=(const Polling&) = delete;
    ~Polling() { operations_.polling_ = false; }

   private:
    Operations& operations_;
  };

  // Makes a slot for each operation that can be in flight, and one for an operation whose callback runs.
  Status Prepare(fabric::Fabric& fabric, uint32_t queue_depth);
  // Gives a kind of operation its array. REQUIRES: Prepare succeeded, and no operation is in flight.
  template <class Op>
  void AddKind(std::vector<Op>* kind) {
    kind->resize(slots_.size());
    for (OpIndex i = 0; i < slots_.size(); ++i) {
      Op& op = (*kind)[i];
      op.index = i;
      op.type = Op::kType;
      op.memory = std::span(memory_).subspan(i * kOpMemoryBytes, kOpMemoryBytes);
      slots_[i] = &op;
    }
  }

  // --- Beginning

  [[nodiscard]] bool HasRoom() const { return in_flight_ < queue_depth_; }
  // Whether an operation on this key can begin now; Refusal says why not.
  [[nodiscard]] bool CanTake(std::string_view key) const {
    return !key.empty() && key.size() <= format::kKeyBytesMax && HasRoom();
  }
  [[nodiscard]] Status Refusal(std::string_view key) const;
  [[nodiscard]] Status NoRoom() const;
  // An operation of that kind, which is in flight from here on. REQUIRES: HasRoom(), and AddKind was called for it.
  template <class Op>
  Op& Take(std::vector<Op>& kind) {
    const OpIndex slot = free_.back();
    free_.pop_back();
    ++in_flight_;
    Op& op = kind[slot];
    if (slots_[slot] != &op) {
      // The slot keeps the large memory that its last operation had.
      op.large = std::move(slots_[slot]->large);
      slots_[slot] = &op;
    }
    op.BeginAgain();
    return op;
  }
  // Puts the operation after the others on its key. True if it has to wait for its turn.
  [[nodiscard]] bool Join(Operation& op) { return key_order_.Join(*this, op); }
  // Takes back an operation that has not begun, and calls nobody.
  template <class Op>
  void Abandon(Op& op) {
    --in_flight_;
    Free(op);
  }
  // Makes the operation's message as large as that, at least.
  Status ProvideMessage(Operation& op, uint64_t bytes) {
    return bytes <= op.message().size() ? Status() : ProvideLargeMessage(op, bytes);
  }
  // The pool is another one, so every hash is. All operations keep their order.
  void Rehash(const HashSeed& seed);

  // --- Ending

  // The operation has ended, and its callback runs in the next Poll.
  void Defer(Operation& op, Status status) {
    op.result = std::move(status);
    op.step = Step::kDone;
    done_.push_back(op.index);
  }
  // Calls deliver for each operation that has been deferred until now. Operations that end meanwhile wait for the next
  // call: a callback that starts an operation which fails as well must not keep a Poll for ever.
  template <class Deliver>
  void DeliverDeferred(Deliver&& deliver) {
    const size_t n = done_.size();
    for (size_t i = 0; i < n; ++i) deliver(*slots_[done_[i]]);
    done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(n));
  }
  [[nodiscard]] bool has_deferred() const { return !done_.empty(); }
  // Ends the operation by its callback. While that runs the operation is neither in flight nor free: a value that the
  // callback is given lies in its memory. The next one on the key is ready only after that. REQUIRES: polling().
  template <class Op, class Callback>
  void Retire(Op& op, Callback&& callback) {
    const OpIndex next = op.in_order ? key_order_.Leave(*this, op) : kNoOp;
    op.step = Step::kFree;
    --in_flight_;
    ++finished_;
    if (op.buffer) op.buffer->in_use = false;
    // A callback must not throw; if it does all the same, nothing else gets stuck: Poll throws it when all is done.
    try {
      callback();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    Free(op);
    if (next != kNoOp) ready_.push_back(next);
  }
  // An operation whose turn has come since the one before it ended; null if no turn has come. An operation whose
  // connection went meanwhile is deferred instead.
  [[nodiscard]] Operation* TakeReady() { return ready_.empty() ? nullptr : TakeNextReady(); }

  // --- What there is

  [[nodiscard]] Operation& operator[](OpIndex index) { return *slots_[index]; }
  [[nodiscard]] size_t size() const { return slots_.size(); }
  [[nodiscard]] uint32_t in_flight() const { return in_flight_; }
  [[nodiscard]] bool polling() const { return polling_; }
  // How many have ended in this Poll.
  [[nodiscard]] uint64_t finished() const { return finished_; }
  // A callback of this Poll has thrown; ThrowAgain throws that.
  [[nodiscard]] bool has_thrown() const { return thrown_ != nullptr; }
  [[noreturn]] void ThrowAgain();
  // Memory of a slot that is free. REQUIRES: HasRoom() or no callback runs.
  [[nodiscard]] const Operation& free_slot() const { return *slots_[free_.back()]; }
  // Registered memory for the one report that may be under way.
  [[nodiscard]] std::span<std::byte> report_memory() { return std::span(memory_).last(kReportBytesMax); }

 private:
  Status ProvideLargeMessage(Operation& op, uint64_t bytes);
  template <class Op>
  void Free(Op& op) {
    op.step = Step::kFree;
    op.Clear();
    op.DropLargeMemory();
    op.buffer.reset();
    op.in_buffer = {};
    free_.push_back(op.index);
  }
  Operation* TakeNextReady();

  fabric::Fabric* fabric_ = nullptr;
  uint32_t queue_depth_ = 0;
  std::vector<std::byte> memory_;  // of all slots, and then for a report
  std::unique_ptr<fabric::Region> region_;
  std::vector<Operation*> slots_;  // the operation that uses each slot, or used it last
  std::vector<OpIndex> free_;
  KeyOrder key_order_;
  std::vector<OpIndex> done_;
  Fifo<OpIndex> ready_;
  uint32_t in_flight_ = 0;
  uint64_t finished_ = 0;
  bool polling_ = false;
  std::exception_ptr thrown_;
};

}  // namespace erda::client
