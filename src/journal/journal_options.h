// The options with which a journaled pool is opened.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "erda/status.h"

namespace erda::journal {

struct JournalOptions {
  std::string pool;     // An ordinary file.
  std::string journal;  // The file of the rings.
  // The folder of the image, in a tmpfs.
  std::string memory = "/dev/shm";
  // A small NVM in front of the journal, as nvm::OpenFront takes it. Empty: none.
  std::string front{};
  // Files in memory are accepted in place of a disk, and any file in place of a front. For tests.
  bool disk_in_memory = false;
  // 0: every answer waits until a power cut cannot undo what it tells. Otherwise no answer waits, and the disk gets the
  // streams at this interval, or when memory gets short.
  Nanoseconds interval{0};
  // The folder of an archive. Empty: no archive.
  std::string archive{};
  // A line about the archive. Any thread calls it.
  std::function<void(const std::string&)> archive_event = [](const std::string&) {};
  // The disk has failed. Called once, by any thread.
  std::function<void(const Status&)> failed = [](const Status&) {};
};

}  // namespace erda::journal
