// The operations of one client: the table of those in flight, their turns on each key, and those that have ended.
//
// Owns the table, the operations' registered memory, and their order on one key. It also has the list of operations
// whose callback is still to run. Each kind of operation (get.h, put.h, block.h) owns an array with one operation for
// each row of the table. Only one kind uses a row at a time. Only the client's thread calls it.
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
#include "client/operation_memory.h"
#include "erda/status.h"
#include "fabric/fabric.h"

namespace erda::client {

class Operations {
 public:
  // While one exists, a Poll is under way, and callbacks run.
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

  // Makes a row for each operation that can be in flight, and one for an operation whose callback runs.
  Status Prepare(fabric::Fabric& fabric, uint32_t queue_depth);
  // Gives a kind of operation its array. REQUIRES: Prepare succeeded, and no operation is in flight.
  template <class Op>
  void AddKind(std::vector<Op>* kind) {
    kind->resize(slots_.size());
    for (OpIndex i = 0; i < slots_.size(); ++i) {
      Op& op = (*kind)[i];
      op.index = i;
      op.type = Op::kType;
      op.memory = memory_.Of(i);
      slots_[i] = &op;
    }
  }

  // --- Beginning

  [[nodiscard]] bool HasRoom() const { return in_flight_ < queue_depth_; }
  // Returns true if an operation on this key can begin now. Otherwise Refusal says why not.
  [[nodiscard]] bool CanTake(std::string_view key) const {
    return !key.empty() && key.size() <= format::kKeyBytesMax && HasRoom();
  }
  [[nodiscard]] Status Refusal(std::string_view key) const;
  [[nodiscard]] Status NoRoom() const;
  // Returns an operation of that kind, which is in flight from here on. REQUIRES: HasRoom(), and AddKind was called for
  // the kind.
  template <class Op>
  Op& Take(std::vector<Op>& kind) {
    const OpIndex slot = free_.back();
    free_.pop_back();
    ++in_flight_;
    Op& op = kind[slot];
    if (slots_[slot] != &op) {
      // The row keeps the large memory that its last operation had.
      op.large = std::move(slots_[slot]->large);
      slots_[slot] = &op;
    }
    op.BeginAgain();
    return op;
  }
  // Puts the operation after the others on its key. Returns true if it has to wait for its turn.
  [[nodiscard]] bool Join(Operation& op) { return key_order_.Join(*this, op); }
  // Takes back an operation that has not begun. Its callback does not run.
  template <class Op>
  void Abandon(Op& op) {
    --in_flight_;
    Free(op);
  }
  // The pool is another one, with another seed, so each key has another hash. All operations keep their order.
  void Rehash(const HashSeed& seed);

  // --- Ending

  // Ends the operation: its callback runs in the next Poll.
  void Defer(Operation& op, Status status) {
    op.result = std::move(status);
    op.step = Step::kDone;
    done_.push_back(op.index);
  }
  // Calls deliver for each operation that has been deferred until now. Operations that are deferred meanwhile wait for
  // the next call. Otherwise a callback that starts an operation which fails as well would keep a Poll for ever.
  template <class Deliver>
  void DeliverDeferred(Deliver&& deliver) {
    const size_t n = done_.size();
    for (size_t i = 0; i < n; ++i) deliver(*slots_[done_[i]]);
    done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(n));
  }
  [[nodiscard]] bool has_deferred() const { return !done_.empty(); }
  // Ends the operation, and runs its callback. Meanwhile the operation is neither in flight nor free, since the value
  // that the callback gets lies in its memory. After that the next operation on the key is ready, if its turn has come.
  // REQUIRES: polling().
  template <class Op, class Callback>
  void Retire(Op& op, Callback&& callback) {
    const OpIndex next = op.in_order ? key_order_.Leave(*this, op) : kNoOp;
    op.step = Step::kFree;
    --in_flight_;
    ++finished_;
    if (op.buffer) op.buffer->in_use = false;
    // A callback must not throw. If it does all the same, no other operation gets stuck: Poll throws the exception
    // after all other work.
    try {
      callback();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    Free(op);
    if (next != kNoOp) ready_.push_back(next);
  }
  // Returns an operation whose turn has come, since the one before it ended. Returns null if no turn has come. Defers
  // an operation whose connection ended while it waited.
  [[nodiscard]] Operation* TakeReady() { return ready_.empty() ? nullptr : TakeNextReady(); }
  // Returns the next operation on the key if it waits for its turn, and may begin now that this one has begun.
  // Otherwise returns null.
  [[nodiscard]] Operation* FollowerOf(const Operation& op) {
    if (op.after == kNoOp) return nullptr;
    Operation& next = *slots_[op.after];
    return next.waits_for_turn() && !next.doomed && next.MayFollow(op) ? &next : nullptr;
  }

  // --- What there is

  [[nodiscard]] Operation& operator[](OpIndex index) { return *slots_[index]; }
  [[nodiscard]] size_t size() const { return slots_.size(); }
  [[nodiscard]] uint32_t in_flight() const { return in_flight_; }
  [[nodiscard]] bool polling() const { return polling_; }
  // Returns the number of operations that have ended in this Poll.
  [[nodiscard]] uint64_t finished() const { return finished_; }
  // Returns true if a callback of this Poll has thrown. ThrowAgain throws that exception.
  [[nodiscard]] bool has_thrown() const { return thrown_ != nullptr; }
  [[noreturn]] void ThrowAgain();
  // Returns an operation that is not in flight. REQUIRES: HasRoom() or no callback runs.
  [[nodiscard]] const Operation& free_slot() const { return *slots_[free_.back()]; }
  [[nodiscard]] OperationMemory& memory() { return memory_; }

 private:
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

  uint32_t queue_depth_ = 0;
  OperationMemory memory_;
  std::vector<Operation*> slots_;  // By row: the operation that uses it, or used it last.
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
