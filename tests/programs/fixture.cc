#include "programs/fixture.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "paths.h"

namespace erda {

ProgramsTest::ProgramsTest() {
  std::string name = std::filesystem::temp_directory_path() / "erda-programs.XXXXXX";
  EXPECT_NE(mkdtemp(name.data()), nullptr) << name;
  folder_ = name;
}

ProgramsTest::~ProgramsTest() {
  // Gives back rights that a test took away.
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.is_directory()) std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_all);
  }
  std::filesystem::remove_all(folder_);
}

ProgramsTest::Words ProgramsTest::Command(const std::string& program, const Words& arguments) {
  Words command = {BinDir() + "/" + program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

ProgramsTest::Words ProgramsTest::ServerCommand(const Words& more) const {
  Words arguments = {"--pool", Pool(), "--size", "64M", "--listen", Address()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Command("erda-server", arguments);
}

Ended ProgramsTest::Run(const std::string& program, const Words& arguments, std::string_view input, Rights rights) {
  return Process(Command(program, arguments), input, rights).Wait();
}

Ended ProgramsTest::Cli(const Words& arguments, std::string_view input) const {
  Words all = {"-a", Address()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Run("erda-cli", all, input);
}

Ended ProgramsTest::Ycsb(const Words& arguments) const {
  Words all = {"-a", Address()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Run("erda-ycsb", all);
}

Ended ProgramsTest::ServerWith(const Words& arguments, Rights rights) {
  return Run("erda-server", arguments, "", rights);
}

namespace {

std::unique_ptr<Process> StartUntilReady(const std::vector<std::string>& command) {
  auto server = std::make_unique<Process>(command);
  WaitUntil([&server] { return server->out().ends_with('\n') || !server->Running(); });
  const std::string out = server->out();
  const bool recovered = out.starts_with("erda-server: recovered in ");
  const std::string ready = recovered ? out.substr(std::min(out.find('\n'), out.size() - 1) + 1) : out;
  EXPECT_TRUE(ready.starts_with("erda-server: ready, listening on ")) << out << server->err();
  return server;
}

}  // namespace

std::unique_ptr<Process> ProgramsTest::StartServer(const Words& more) const {
  return StartUntilReady(ServerCommand(more));
}

std::unique_ptr<Process> ProgramsTest::StartServerWith(const Words& arguments) {
  return StartUntilReady(Command("erda-server", arguments));
}

void ProgramsTest::StopServer(Process& server) {
  server.Signal(SIGTERM);
  ExpectFine(server.Wait());
}

void ProgramsTest::MakePool() const {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "key", "value"}));
  StopServer(*server);
}

void ProgramsTest::Damage(const std::string& text) const {
  std::string bytes = ReadFile(Pool());
  const size_t at = bytes.find(text);
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  WriteFile(Pool(), bytes);
}

void ExpectRefused(const Ended& ended, int code, const std::string& text) {
  EXPECT_EQ(ended.code, code) << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_TRUE(ended.err.ends_with('\n')) << ended.err;
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  EXPECT_NE(ended.err.find(text), std::string::npos) << "no '" << text << "' in: " << ended.err;
}

void ExpectFine(const Ended& ended) {
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::string content(file ? static_cast<size_t>(file.tellg()) : 0, '\0');
  file.seekg(0).read(content.data(), static_cast<std::streamsize>(content.size()));
  EXPECT_TRUE(file) << path;
  return content;
}

void WriteFile(const std::string& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file << content << std::flush;
  EXPECT_TRUE(file) << path;
}

}  // namespace erda
