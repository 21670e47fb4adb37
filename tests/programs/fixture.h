// A separate folder for each test, and short ways to run the programs in it.
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

  // Returns the whole command line of a server of Pool() at Address(), with 64M for a new pool.
  [[nodiscard]] static Words Command(const std::string& program, const Words& arguments);
  [[nodiscard]] Words ServerCommand(const Words& more = {}) const;

  static Ended Run(const std::string& program, const Words& arguments, std::string_view input = "",
                   Rights rights = Rights::kOwn);
  // Run with the address and the arguments.
  [[nodiscard]] Ended Cli(const Words& arguments, std::string_view input = "") const;
  [[nodiscard]] Ended Ycsb(const Words& arguments) const;
  // Runs a server that must fail.
  static Ended ServerWith(const Words& arguments, Rights rights = Rights::kOwn);

  // Start a server, and wait until it is ready.
  [[nodiscard]] std::unique_ptr<Process> StartServer(const Words& more = {}) const;
  [[nodiscard]] static std::unique_ptr<Process> StartServerWith(const Words& arguments);
  // Stops by SIGTERM. The server must stop cleanly.
  static void StopServer(Process& server);
  // Makes a new pool that is closed cleanly, without a server.
  void MakePool() const;
  // Damages the first byte of the text in the pool.
  void Damage(const std::string& text) const;

 private:
  std::filesystem::path folder_;
};

// Checks that the program refused: this exit code, nothing on stdout, one line on stderr that contains `text`.
void ExpectRefused(const Ended& ended, int code, const std::string& text);
// Checks that all went well, and that stderr is empty.
void ExpectFine(const Ended& ended);

[[nodiscard]] std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, std::string_view content);

}  // namespace erda
