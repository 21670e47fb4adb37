#include "base/token_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace erda {
namespace {

const std::string kOne = "a-token-of-16-ch";
const std::string kTwo(256, 'x');
const std::string kThree = "a-token-of-a-mirror";

void ExpectWrong(const std::string& text, const std::string& words) {
  const auto tokens = ParseTokens(text, "FILE");
  ASSERT_FALSE(tokens.ok()) << text;
  EXPECT_EQ(tokens.status().code(), Code::kInvalidArgument);
  EXPECT_NE(tokens.status().message().find(words), std::string_view::npos) << tokens.status().ToString();
  EXPECT_EQ(tokens.status().message().find(kOne), std::string_view::npos) << "a token is told";
}

TEST(TokenFileTest, TokensAreReadWithTheirRights) {
  const auto tokens =
      ParseTokens("# comment\n\n  " + kOne + " \t read-only\r\n" + kTwo + "\n" + kThree + " mirror\n", "FILE");
  ASSERT_TRUE(tokens.ok()) << tokens.status().ToString();
  EXPECT_EQ(*tokens, (std::vector<Token>{
                         {kOne, TokenRights::kRead}, {kTwo, TokenRights::kWrite}, {kThree, TokenRights::kMirror}}));
}

TEST(TokenFileTest, ErrorNamesTheLineAndNeverItsText) {
  ExpectWrong("", "has no token");
  ExpectWrong("# nothing\n\n", "has no token");
  ExpectWrong(kTwo + "\nshort\n", "line 2: a token has 16 to 256");
  ExpectWrong(kTwo + "x\n", "line 1: a token has 16 to 256");
  ExpectWrong(kOne + "\x01\n", "printable");
  ExpectWrong(kOne + "\xc3\xa4\n", "printable");
  ExpectWrong(kOne + " readonly\n", "line 1: after a token");
  ExpectWrong(kOne + " read-only too\n", "line 1: after a token");
  ExpectWrong(kOne + " mirrors\n", "line 1: after a token");
  ExpectWrong(kOne + " mirror read-only\n", "line 1: after a token");
  ExpectWrong(kOne + "\n" + kTwo + "\n" + kOne + " read-only\n", "line 3: this token stands in an earlier line");
  // Cut off, it could have other rights than were meant.
  ExpectWrong(kOne, "line 1: the line does not end");
  ExpectWrong(kTwo + " read-only\n" + kOne, "line 2: the line does not end");
  std::string many;
  for (int i = 0; i < 257; ++i) many += "token-number-" + std::to_string(1000 + i) + "\n";
  ExpectWrong(many, "line 257: there are more than 256 tokens");
}

class TokenFileRights : public testing::Test {
 protected:
  TokenFileRights() { std::ofstream(path()) << kOne << "\n"; }
  [[nodiscard]] std::string path() const { return folder_ / "tokens"; }

  const TemporaryFolder folder_;
};

TEST_F(TokenFileRights, OnlyTheOwnerMayReadOrChangeIt) {
  for (const mode_t mode : {0600, 0400, 0700}) {
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
    const auto tokens = ReadTokenFile(path());
    ASSERT_TRUE(tokens.ok()) << tokens.status().ToString();
    EXPECT_EQ(tokens->front().secret, kOne);
  }
  for (const mode_t mode : {0604, 0640, 0620, 0602, 0660, 0666, 0610}) {
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
    EXPECT_EQ(ReadTokenFile(path()).status().code(), Code::kPermissionDenied) << std::oct << mode;
  }
}

TEST_F(TokenFileRights, PipeIsRefusedWithoutWaiting) {
  EXPECT_FALSE(ReadTokenFile(folder_ / "nothing").ok());
  EXPECT_EQ(ReadTokenFile(folder_.path()).status().code(), Code::kInvalidArgument);
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadTokenFile(pipe).status().code(), Code::kInvalidArgument);
  std::filesystem::create_symlink(path(), folder_ / "link");
  ASSERT_EQ(chmod(path().c_str(), 0600), 0);
  EXPECT_TRUE(ReadTokenFile(folder_ / "link").ok()) << "what it leads to counts";
}

}  // namespace
}  // namespace erda
