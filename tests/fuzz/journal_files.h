// The files of a pool with a journal, and the folder in memory where a fuzzer's run has them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "journal/journaled_pool.h"

namespace erda::fuzz {

struct JournalFiles {
  std::vector<std::byte> pool;
  std::vector<std::byte> journal;
  // The image that an earlier server left in memory (journal/image.h). Both are empty if there was no such server.
  std::vector<std::byte> streams;
  std::vector<std::byte> image;
};

// All pools of the fuzzer have this uuid.
inline constexpr journal::Uuid kJournaledUuid = {7, 7, 7};

class JournalFolder {
 public:
  [[nodiscard]] journal::JournalOptions Options() const;
  // Replaces all files.
  void Write(const JournalFiles& files) const;
  [[nodiscard]] JournalFiles Read() const;
  // A reboot takes the image.
  void Reboot() const;

  [[nodiscard]] std::string pool() const { return folder_ / "pool"; }
  [[nodiscard]] std::string journal() const { return folder_ / "journal"; }

 private:
  [[nodiscard]] std::string InMemory(const std::string& suffix) const;

  const TemporaryFolder folder_{"/dev/shm"};
};

}  // namespace erda::fuzz
