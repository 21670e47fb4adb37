#include "crash/machine.h"

#include <fmt/core.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "lab/device.h"

namespace erda::crash {

namespace {

// The journal is small, so the ring begins again at its start in each round.
constexpr const char* kPoolSize = "256M";
constexpr const char* kJournaledPoolSize = "64M";
constexpr const char* kJournalSize = "10M";
// So small that the disk sometimes has to help.
constexpr uint64_t kFrontBytes = 1 << 20;

}  // namespace

void Machine::NewPool() {
  namespace fs = std::filesystem;
  ++counts_.pools;
  std::error_code error;
  if (fs::is_character_file(settings_.pool)) {
    if (!WipeDevice(settings_.pool)) throw Trouble("cannot wipe " + settings_.pool);
  } else {
    fs::remove(settings_.pool, error);
  }
  if (has_journal()) {
    fs::remove(settings_.journal, error);
    for (const auto& file : fs::directory_iterator(settings_.memory)) fs::remove(file);
  }
  if (!settings_.front.empty()) {
    fs::remove(settings_.front, error);
    std::ofstream(settings_.front, std::ios::binary) << std::string(kFrontBytes, '\0');
  }
  // PMEM_IS_PMEM_FORCE makes a file count as NVM for every other pool. The server then flushes the values of clients.
  random_.Chance(0.5) && !has_journal() ? setenv("PMEM_IS_PMEM_FORCE", "1", 1) : unsetenv("PMEM_IS_PMEM_FORCE");
}

void Machine::StartProcess() {
  std::string size = has_journal() ? kJournaledPoolSize : kPoolSize;
  if (std::filesystem::is_character_file(settings_.pool)) size = DeviceSize(settings_.pool);
  // Workers make reserved puts over a NIC, too.
  std::vector<std::string> command = {
      settings_.server, "--pool",          settings_.pool,  "--size",   size, "--region-size", "4M", "--shards", "2",
      "--listen",       settings_.address, "--pool-writes", "everybody"};
  if (has_journal()) {
    command.insert(command.end(), {"--journal", fmt::format("{},size={}", settings_.journal, kJournalSize),
                                   "--journal-memory", settings_.memory, "--journal-on-tmpfs"});
  }
  if (!settings_.front.empty()) command.insert(command.end(), {"--journal-front", settings_.front});
  if (!settings_.sync.empty()) command.insert(command.end(), {"--sync", settings_.sync});
  server_ = std::make_unique<Process>(command);
}

void Machine::Start() {
  StartProcess();
  WaitUntil([&] { return !server_->Running() || server_->out().find("ready") != std::string::npos; }, kPatience);
  const std::string out = server_->out();
  if (!server_->Running() || out.find("ready") == std::string::npos) {
    throw Trouble("the server did not start: " + out + server_->err());
  }
  note_("the server is ready");
  if (const size_t at = out.find("recovered in "); at != std::string::npos) {
    ++counts_.recoveries;
    reports_.push_back(out.substr(at, out.find('\n', at) - at));
  }
}

void Machine::Restart() {
  KillSome(false);
  Start();
}

bool Machine::RestartWithoutMemory() {
  const bool lost = LoseMemory();
  KillSome(lost);
  Start();
  return lost;
}

void Machine::KillSome(bool with_memory) {
  while (random_.Chance(0.2)) {
    StartProcess();
    std::this_thread::sleep_for(std::chrono::microseconds(random_.Uniform(with_memory ? 100'000 : 10'000)));
    End(SIGKILL);
    if (with_memory && random_.Chance(0.5)) LoseMemory();
  }
}

void Machine::End(int signal) {
  if (!server_->Running()) throw Trouble("the server ended by itself: " + server_->out() + server_->err());
  note_(signal == SIGKILL ? "the server is killed" : "the server is asked to stop");
  server_->Signal(signal);
  const Ended ended = server_->Wait(kPatience);
  if (ended.code != (signal == SIGKILL ? 128 + SIGKILL : 0)) {
    throw Trouble(fmt::format("the server ended with {}: {}{}", ended.code, ended.out, ended.err));
  }
  ++(signal == SIGKILL ? counts_.kills : counts_.clean_stops);
  server_.reset();
}

bool Machine::LoseMemory() {
  bool lost = false;
  for (const auto& file : std::filesystem::directory_iterator(settings_.memory)) {
    lost |= std::filesystem::remove(file);
  }
  if (!lost) return false;
  note_("the image is lost");
  ++counts_.lost_images;
  return true;
}

}  // namespace erda::crash
