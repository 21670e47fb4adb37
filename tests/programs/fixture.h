// A folder of its own for each test, and short ways to run the programs in it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "programs/process.h"

namespace erda {

class ProgramsTest : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  ProgramsTest();
  ~ProgramsTest() override;

  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string Pool() const { return Path("pool"); }
  [[nodiscard]] std::string Address() const { return "shm:" + Path("socket"); }

  // The whole command line of a server of Pool() at Address(), with 64M if it has to be created.
  [[nodiscard]] static Words Command(const std::string& program, const Words& arguments);
  [[nodiscard]] Words ServerCommand(const Words& more = {}) const;

  static Ended Run(const std::string& program, const Words& arguments, std::string_view input = "",
                   Rights rights = Rights::kOwn);
  // With the address and the arguments.
  [[nodiscard]] Ended Cli(const Words& arguments, std::string_view input = "") const;
  [[nodiscard]] Ended Ycsb(const Words& arguments) const;
  // Arguments of a server that is to fail.
  static Ended ServerWith(const Words& arguments, Rights rights = Rights::kOwn);

  // Waits until it is ready.
  [[nodiscard]] std::unique_ptr<Process> StartServer(const Words& more = {}) const;
  [[nodiscard]] static std::unique_ptr<Process> StartServerWith(const Words& arguments);
  // By SIGTERM; it must stop cleanly.
  static void StopServer(Process& server);
  // A new pool that was closed cleanly, without a server.
  void MakePool() const;
  // The first byte of the text in the pool.
  void Damage(const std::string& text) const;

 private:
  std::filesystem::path folder_;
};

// The program refused: this exit code, nothing on stdout, one line on stderr that holds `text`.
void ExpectRefused(const Ended& ended, int code, const std::string& text);
// All went well, and nothing was said on stderr.
void ExpectFine(const Ended& ended);

[[nodiscard]] std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, std::string_view content);

}  // namespace erda
