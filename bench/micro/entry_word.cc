#include "bench/micro/entry_word.h"

#include <memory>

#include "bench/micro/inputs.h"
#include "format/entry_word.h"
#include "format/log_address.h"

namespace erda::micro {

namespace {

using format::EntryWord;
using format::LogAddress;

class EntryWordPublish {
 public:
  static Result<std::unique_ptr<EntryWordPublish>> Make() { return std::make_unique<EntryWordPublish>(); }

  void Run() {
    word_ = word_.Published(LogAddress(++puts_)).Settled();
    benchmark::DoNotOptimize(word_);
  }
  // The new address names the last put, and the old address the put before it.
  [[nodiscard]] Status Check() const {
    return WrongUnless(word_.settled() && word_.new_address() == LogAddress(puts_) &&
                       word_.old_address() == LogAddress(puts_ - 1));
  }

 private:
  EntryWord word_;
  uint32_t puts_ = 0;
};

}  // namespace

void AddEntryWords(Suite& suite) { suite.Add("entry_word_publish", 0, EntryWordPublish::Make); }

}  // namespace erda::micro
