// The clients and mirrors that the gate lets in, and those that it refuses.
#include "server/sessions/gate.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "base/hand_clock.h"
#include "base/temporary_folder.h"
#include "format/proof.h"

namespace erda::server {
namespace {

using format::HelloRequest;

const std::string kWriter = "the-token-of-a-writer";
const std::string kReader = "the-token-of-a-reader";
const std::string kMirror = "the-token-of-a-mirror";

class GateTest : public testing::Test {
 protected:
  GateTest() {
    Write(kWriter + "\n" + kReader + " read-only\n");
    gate_ = *Gate::Open(path(), clock_);
  }
  [[nodiscard]] std::string path() const { return folder_ / "tokens"; }
  // Writes another file each time, as careful editors do. So the gate sees the change even with a coarse clock of the
  // file system.
  void Write(const std::string& text) const {
    const std::string next = path() + ".next";
    std::ofstream(next) << text;
    EXPECT_EQ(chmod(next.c_str(), 0600), 0);
    std::filesystem::rename(next, path());
  }
  static HelloRequest Hello() {
    HelloRequest hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.shard = 1;
    hello.slots = 8;
    hello.client_id = 77;
    return hello;
  }
  // Returns the hello with the answer to the challenge that the gate gives for it.
  HelloRequest Answer(HelloRequest hello, const std::string& token) {
    const auto verdict = gate_->Judge(hello);
    EXPECT_TRUE(verdict.challenge && !verdict.admission);
    if (!verdict.challenge) return hello;
    nonce_ = verdict.challenge->nonce;
    hello.challenge = verdict.challenge->challenge;
    hello.proof = format::ClientProof(token, nonce_, hello);
    return hello;
  }
  void ExpectRefused(const HelloRequest& hello, const std::string& words) {
    const auto verdict = gate_->Judge(hello);
    EXPECT_FALSE(verdict.admission || verdict.challenge);
    EXPECT_EQ(verdict.refusal.code(), Code::kPermissionDenied);
    EXPECT_NE(verdict.refusal.message().find(words), std::string_view::npos) << verdict.refusal.ToString();
  }

  const TemporaryFolder folder_;
  HandClock clock_;
  std::unique_ptr<Gate> gate_;
  format::Nonce nonce_{};
};

TEST_F(GateTest, ClientWithATokenIsLetInWithItsRights) {
  const auto writer = gate_->Judge(Answer(Hello(), kWriter));
  ASSERT_TRUE(writer.admission);
  EXPECT_EQ(writer.admission->rights, TokenRights::kWrite);
  EXPECT_EQ(writer.admission->secret, kWriter);
  EXPECT_EQ(writer.admission->nonce, nonce_);
  const auto reader = gate_->Judge(Answer(Hello(), kReader));
  ASSERT_TRUE(reader.admission);
  EXPECT_EQ(reader.admission->rights, TokenRights::kRead);
  EXPECT_EQ(*gate_->ids(), (TokenIds{writer.admission->token, reader.admission->token}));
  EXPECT_NE(writer.admission->token, 0U);
}

TEST_F(GateTest, ATokenMakesMirrorsOrLetsClientsIn) {
  Write(kWriter + "\n" + kReader + " read-only\n" + kMirror + " mirror\n");
  EXPECT_TRUE(gate_->Refresh());
  HelloRequest hello = Hello();
  ExpectRefused(Answer(hello, kMirror), "this token is for mirrors alone");
  hello.role = format::Role::kMirror;
  ExpectRefused(Answer(hello, kWriter), "this token makes no mirror");
  ExpectRefused(Answer(hello, kReader), "this token makes no mirror");
  const auto mirror = gate_->Judge(Answer(hello, kMirror));
  ASSERT_TRUE(mirror.admission);
  EXPECT_EQ(mirror.admission->rights, TokenRights::kMirror);
  EXPECT_TRUE(gate_->ids()->contains(mirror.admission->token));
  for (const char* other : {"", " read-only"}) {
    Write(kMirror + other + "\n");
    EXPECT_TRUE(gate_->Refresh());
    EXPECT_FALSE(gate_->ids()->contains(mirror.admission->token)) << "it has other rights";
  }
}

TEST_F(GateTest, ClientWithoutATokenIsRefused) {
  ExpectRefused(Answer(Hello(), "the-token-of-nobody"), "does not know this token");
  HelloRequest hello = Answer(Hello(), kWriter);
  for (size_t bit = 0; bit < 8 * hello.proof.size(); ++bit) {
    HelloRequest changed = hello;
    changed.proof[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    ExpectRefused(changed, "does not know this token");
  }
  // The proof covers all fields of the hello.
  HelloRequest changed = hello;
  changed.slots = 9;
  ExpectRefused(changed, "does not know this token");
  changed = hello;
  changed.shard = 2;
  ExpectRefused(changed, "does not know this token");
  changed = hello;
  changed.client_id = 78;
  ExpectRefused(changed, "does not know this token");
  changed = hello;
  changed.role = format::Role::kMirror;
  ExpectRefused(changed, "does not know this token");
  changed = hello;
  changed.challenge ^= 1;
  ExpectRefused(changed, "does not know this token");
  EXPECT_TRUE(gate_->Judge(hello).admission) << "all of that took nothing from it";
}

TEST_F(GateTest, ProofCountsOnceAndForALimitedTime) {
  const HelloRequest hello = Answer(Hello(), kWriter);
  EXPECT_TRUE(gate_->Judge(hello).admission);
  ExpectRefused(hello, "used before");
  clock_.now += Gate::kAnswerTime;
  ExpectRefused(hello, "used before");
  // A late proof gets another challenge, and no refusal.
  const HelloRequest late = Answer(Hello(), kWriter);
  clock_.now += Gate::kAnswerTime + std::chrono::seconds(1);
  for (const HelloRequest& each : {late, hello}) {
    const auto verdict = gate_->Judge(each);
    EXPECT_TRUE(verdict.challenge && !verdict.admission);
  }
  EXPECT_TRUE(gate_->Judge(Answer(Hello(), kWriter)).admission);
}

TEST_F(GateTest, ChallengeOfTheFutureOrOfAnotherStartIsRefused) {
  HelloRequest hello = Answer(Hello(), kWriter);
  hello.challenge += uint64_t{1} << 32;
  EXPECT_TRUE(gate_->Judge(hello).challenge);
  hello = Answer(Hello(), kWriter);
  gate_ = *Gate::Open(path(), clock_);
  ExpectRefused(hello, "does not know this token");
}

TEST_F(GateTest, NoTwoChallengesAreTheSame) {
  std::set<format::Nonce> nonces;
  std::set<uint64_t> challenges;
  for (int i = 0; i < 100; ++i) {
    const auto verdict = gate_->Judge(Hello());
    ASSERT_TRUE(verdict.challenge);
    EXPECT_NE(verdict.challenge->challenge, 0U);
    nonces.insert(verdict.challenge->nonce);
    challenges.insert(verdict.challenge->challenge);
  }
  EXPECT_EQ(nonces.size(), 100U);
  EXPECT_EQ(challenges.size(), 100U);
}

TEST_F(GateTest, AChangeOfTheFileCounts) {
  const TokenIds before = *gate_->ids();
  EXPECT_FALSE(gate_->Refresh());
  Write("# the same\n" + kReader + " read-only\n" + kWriter + "\n");
  EXPECT_FALSE(gate_->Refresh()) << "nothing that matters";
  EXPECT_EQ(*gate_->ids(), before);
  Write(kReader + "\n");
  EXPECT_TRUE(gate_->Refresh());
  for (const TokenId id : *gate_->ids()) EXPECT_FALSE(before.contains(id)) << "it has other rights";
  ExpectRefused(Answer(Hello(), kWriter), "does not know");
  const auto verdict = gate_->Judge(Answer(Hello(), kReader));
  ASSERT_TRUE(verdict.admission);
  EXPECT_EQ(verdict.admission->rights, TokenRights::kWrite);
}

// The gate remembers a limited number of proofs, and forgets them when they are too old to count.
TEST_F(GateTest, ProofsBeyondTheLimitAreToldToTryAgain) {
  HelloRequest hello = Hello();
  for (hello.client_id = 1; hello.client_id <= Gate::kAnswersMax; ++hello.client_id) {
    ASSERT_TRUE(gate_->Judge(Answer(hello, kWriter)).admission) << hello.client_id;
  }
  const HelloRequest one_more = Answer(hello, kWriter);
  const auto verdict = gate_->Judge(one_more);
  EXPECT_FALSE(verdict.admission || verdict.challenge);
  EXPECT_EQ(verdict.refusal.code(), Code::kResourceExhausted);
  ExpectRefused(Answer(hello, "the-token-of-nobody"), "does not know this token");
  clock_.now += Gate::kAnswerTime + std::chrono::seconds(1);
  EXPECT_TRUE(gate_->Judge(Answer(hello, kWriter)).admission);
}

// Connected clients stay. No client comes in by tokens that may be out of date.
TEST_F(GateTest, AFileThatCannotBeReadLetsNobodyIn) {
  const TokenIds before = *gate_->ids();
  for (const char* wrong : {"", "short\n", "a-token-that-is-cut"}) {
    Write(wrong);
    EXPECT_FALSE(gate_->Refresh());
    ExpectRefused(Answer(Hello(), kWriter), "cannot read its tokens");
    EXPECT_EQ(*gate_->ids(), before);
  }
  std::filesystem::remove(path());
  EXPECT_FALSE(gate_->Refresh());
  ExpectRefused(Answer(Hello(), kWriter), "cannot read its tokens");
  Write(kWriter + "\n" + kReader + " read-only\n");
  EXPECT_FALSE(gate_->Refresh());
  EXPECT_TRUE(gate_->Judge(Answer(Hello(), kWriter)).admission);
  EXPECT_FALSE(Gate::Open(path() + "nothing", clock_).ok());
}

// The process has no descriptors left. The file does not change, and the gate reads it again later.
TEST_F(GateTest, UnreadableFileIsReadAgainLater) {
  Write("another-token-for-all\n");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool refreshed = gate_->Refresh();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(refreshed);
  ExpectRefused(Answer(Hello(), kWriter), "cannot read its tokens");
  EXPECT_TRUE(gate_->Refresh());
  EXPECT_TRUE(gate_->Judge(Answer(Hello(), "another-token-for-all")).admission);
}

}  // namespace
}  // namespace erda::server
