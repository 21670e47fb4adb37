#include "bench/micro/index.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/micro/inputs.h"
#include "format/entry_word.h"
#include "format/geometry.h"
#include "index/index.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::micro {

namespace {

using index::Index;
using index::Slot;

constexpr uint64_t kIndexSlots = uint64_t{1} << 18;
// Half of the slots are used before the measurement. The inserts raise the load to three quarters at most.
constexpr uint64_t kKeysBefore = kIndexSlots / 2;
constexpr uint64_t kInsertsMost = 60'000;
// As a key of 16 bytes with a value of 64.
constexpr uint64_t kObjectBytes = 128;

// The index of one shard in DRAM, and the hashes of the keys in it.
class FilledIndex {
 public:
  static Result<std::unique_ptr<FilledIndex>> Make() {
    auto geometry = format::ChooseGeometry({.pool_size = 64 << 20, .shards = 1, .index_entries = kIndexSlots});
    if (!geometry.ok()) return geometry.status();
    auto pool = nvm::Pool::Open({.path = "dram:", .size = geometry->pool_size});
    if (!pool.ok()) return pool.status();
    auto index = std::make_unique<FilledIndex>(*geometry, *std::move(pool));
    if (auto status = index->index().shape().TakeUp({}); !status.ok()) return status;
    index->index().Open(0);
    (void)index->index().Count(index->index().size());
    for (uint64_t i = 0; i < kKeysBefore; ++i) {
      if (!index->Insert()) return Status(Code::kInternal, "the index has no room");
    }
    return index;
  }
  FilledIndex(const format::Geometry& geometry, std::unique_ptr<nvm::Pool> pool)
      : geometry_(geometry),
        pool_(std::move(pool)),
        nvm_(*pool_),
        index_(nvm_, geometry_, 0, {&displacements_, &blocks_, &reaches_, runs_}) {}
  FilledIndex(const FilledIndex&) = delete;
  FilledIndex& operator=(const FilledIndex&) = delete;

  Index& index() { return index_; }
  // Inserts another key, with one version that is settled. Returns false if there is no room.
  bool Insert() {
    const uint64_t hash = random_.Next();
    const auto slot = index_.free_slots().MakeRoom(hash);
    if (!slot.ok()) return false;
    index_.Describe(*slot, hash, kObjectBytes);
    nvm_.Fence();
    index_.Enter(*slot, format::EntryWord().Published(format::LogAddress(1)).Settled());
    nvm_.Fence();
    hashes_.push_back(hash);
    return true;
  }
  [[nodiscard]] std::optional<Slot> Find(uint64_t hash) const {
    return index_.Find(hash, [](Slot, const format::IndexEntry&) { return true; });
  }
  [[nodiscard]] const std::vector<uint64_t>& hashes() const { return hashes_; }

 private:
  const format::Geometry geometry_;
  const std::unique_ptr<nvm::Pool> pool_;
  nvm::Writer nvm_;
  uint64_t displacements_ = 0;
  uint64_t blocks_ = 0;
  uint64_t reaches_ = 0;
  std::vector<uint32_t> runs_ = std::vector<uint32_t>(format::kRegionsMax);
  Index index_;
  Random random_{1};
  std::vector<uint64_t> hashes_;
};

class IndexFind {
 public:
  static Result<std::unique_ptr<IndexFind>> Make() {
    auto filled = FilledIndex::Make();
    if (!filled.ok()) return filled.status();
    return std::make_unique<IndexFind>(*std::move(filled));
  }
  explicit IndexFind(std::unique_ptr<FilledIndex> filled) : filled_(std::move(filled)) {}

  void Run() {
    const auto slot = filled_->Find(filled_->hashes()[next_++ % kKeysBefore]);
    missing_ += slot ? 0 : 1;
  }
  [[nodiscard]] Status Check() const { return WrongUnless(missing_ == 0); }

 private:
  const std::unique_ptr<FilledIndex> filled_;
  uint64_t next_ = 0;
  uint64_t missing_ = 0;
};

class IndexInsert {
 public:
  static Result<std::unique_ptr<IndexInsert>> Make() {
    auto filled = FilledIndex::Make();
    if (!filled.ok()) return filled.status();
    return std::make_unique<IndexInsert>(*std::move(filled));
  }
  explicit IndexInsert(std::unique_ptr<FilledIndex> filled) : filled_(std::move(filled)) {}

  void Run() { refused_ += filled_->Insert() ? 0 : 1; }
  [[nodiscard]] Status Check() const {
    return WrongUnless(refused_ == 0 && filled_->index().census().used() == filled_->hashes().size() &&
                       filled_->Find(filled_->hashes().back()).has_value());
  }

 private:
  const std::unique_ptr<FilledIndex> filled_;
  uint64_t refused_ = 0;
};

}  // namespace

void AddIndexes(Suite& suite) {
  suite.Add("index_find", 0, IndexFind::Make);
  suite.Add("index_insert", kInsertsMost, IndexInsert::Make);
}

}  // namespace erda::micro
