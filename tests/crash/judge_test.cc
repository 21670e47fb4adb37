// The judge reads files of records as clients leave them. It must find each loss, and must call nothing else a loss.
#include "crash/judge.h"

#include <gtest/gtest.h>

#include <map>

#include "programs/fixture.h"

namespace erda::crash {
namespace {

class JudgeTest : public ProgramsTest {
 protected:
  // Judges a round of one key, 0. `files` has the lines of each client after its first line. `reads` is the outcome of
  // the get at the end.
  std::string Check(const std::map<std::string, std::string>& files, const std::string& reads,
                    Death death = Death::kProcess) {
    std::vector<Operation> done;
    for (const auto& [client, lines] : files) {
      for (const Operation& operation : Read("client " + client + " auto\n" + lines)) done.push_back(operation);
    }
    return judge_.Check(done, Read("client 99 persisted auto\nbegin 1 1000000 get 0\nend 1 1000001 " + reads + "\n"),
                        death);
  }
  void Fine(const std::map<std::string, std::string>& files, const std::string& reads, Death death = Death::kProcess) {
    EXPECT_EQ(Check(files, reads, death), "") << reads;
  }
  void Lost(const std::map<std::string, std::string>& files, const std::string& reads, Death death = Death::kProcess) {
    EXPECT_NE(Check(files, reads, death), "") << reads;
  }
  // Lets a test judge several ends of the same round.
  void Forget() { judge_ = Judge(1); }

 private:
  std::vector<Operation> Read(const std::string& content) {
    WriteFile(Path("records"), content);
    const auto read = ReadRecords(Path("records"));
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    return read.ok() ? *read : std::vector<Operation>();
  }

  Judge judge_{1};
};

constexpr const char* kTwoPuts = "begin 1 10 put 0\nend 1 20 ok\nbegin 2 30 put 0\nend 2 40 ok\n";

TEST_F(JudgeTest, ALostPutIsFound) {
  Fine({{"1 persisted", kTwoPuts}}, "ok 1:2");
  Forget();
  Lost({{"1 persisted", kTwoPuts}}, "not-found");
  Forget();
  Lost({{"1 placed", kTwoPuts}}, "not-found");
}

TEST_F(JudgeTest, TheKeysHistoryIsShown) {
  EXPECT_EQ(Check({{"1 persisted", kTwoPuts}, {"2 placed", "begin 1 50 get 0\nend 1 60 ok 1:1\nbegin 2 70 delete 0\n"}},
                  "ok 1:2"),
            "'key 0 ': no order of the operations explains what the clients saw\n"
            "  at first: absent\n"
            "  [0.0, 0.0] us: client 1 put 1:1 persisted: ok\n"
            "  [0.0, 0.0] us: client 1 put 1:2 persisted: ok\n"
            "  [0.0, 0.1] us: client 2 get: ok, 1:1  <-\n");
}

TEST_F(JudgeTest, AnOldValueThatComesBackIsFound) {
  Lost({{"1 persisted", kTwoPuts}}, "ok 1:1");
  Forget();
  Lost({{"1 placed", kTwoPuts}}, "ok 1:1");
  Forget();
  // The old value comes back during the round.
  Lost({{"1 persisted", kTwoPuts}, {"2 placed", "begin 1 50 get 0\nend 1 60 ok 1:1\n"}}, "ok 1:2");
  Forget();
  // The value of an earlier round comes back.
  Fine({{"1 persisted", kTwoPuts}}, "ok 1:2");
  Lost({{"2 persisted", "begin 1 50 get 0\nend 1 60 ok 1:2\n"}}, "ok 1:1");
}

TEST_F(JudgeTest, SeenValueMustStay) {
  // The put is not acknowledged, but a reader has had its value.
  const std::map<std::string, std::string> files = {
      {"1 persisted", "begin 1 10 put 0\nend 1 20 ok\nbegin 2 30 put 0\n"},
      {"2 persisted", "begin 1 50 get 0\nend 1 60 ok 1:2\n"}};
  for (const Death death : {Death::kProcess, Death::kPower}) {
    Fine(files, "ok 1:2", death);
    Forget();
    Lost(files, "ok 1:1", death);
    Forget();
  }
}

TEST_F(JudgeTest, AValueThatIsNotWholeIsFound) {
  Lost({{"1 persisted", kTwoPuts}}, "ok damaged");
  Forget();
  Lost({{"1 persisted", kTwoPuts}, {"2 persisted", "begin 1 50 get 0\nend 1 60 ok damaged\n"}}, "ok 1:2");
  Forget();
  Lost({{"1 persisted", kTwoPuts}}, "corruption");
}

TEST_F(JudgeTest, AValueThatNobodyPutIsFound) {
  Lost({{"1 persisted", kTwoPuts}}, "ok 1:3");
  Forget();
  Lost({{"1 persisted", "begin 1 10 put 0\nend 1 20 resource-exhausted\n"}}, "ok 1:1");
}

TEST_F(JudgeTest, ADeletedKeyThatComesBackIsFound) {
  const std::map<std::string, std::string> files = {
      {"1 persisted", "begin 1 10 put 0\nend 1 20 ok\nbegin 2 30 delete 0\nend 2 40 ok\n"}};
  for (const Death death : {Death::kProcess, Death::kPower}) {
    Lost(files, "ok 1:1", death);
    Forget();
    Fine(files, "not-found", death);
    Lost({}, "ok 1:1", death);  // the key comes back in the next round
    Forget();
  }
}

TEST_F(JudgeTest, UnansweredWriteMayTakeEffectUntilTheRoundEnds) {
  const std::map<std::string, std::string> files = {
      {"1 persisted", "begin 1 10 put 0\nend 1 20 ok\nbegin 2 30 put 0\nend 2 40 unavailable\nbegin 3 50 delete 0\n"}};
  for (const char* end : {"ok 1:1", "ok 1:2", "not-found"}) {
    Fine(files, end);
    Forget();
  }
  Fine(files, "ok 1:1");
  Lost({}, "ok 1:2");
}

TEST_F(JudgeTest, SharedKeysHaveOneOrder) {
  const std::map<std::string, std::string> files = {
      {"1 persisted", "begin 1 10 put 0\nend 1 50 ok\n"},
      {"2 placed", "begin 1 20 put 0\nend 1 60 ok\n"},
      {"3 placed", "begin 1 70 get 0\nend 1 80 ok 2:1\nbegin 2 90 get 0\nend 2 100 ok 2:1\n"}};
  Lost(files, "ok 1:1");
  Forget();
  Fine(files, "ok 2:1");
}

TEST_F(JudgeTest, PowerCutMayUndoOnlyPlacedPuts) {
  const auto after = [&](const std::map<std::string, std::string>& files, const char* end, bool fine) {
    Forget();
    fine ? Fine(files, end, Death::kPower) : Lost(files, end, Death::kPower);
  };
  const std::map<std::string, std::string> placed = {{"1 persisted", "begin 1 10 put 0\nend 1 20 ok\n"},
                                                     {"2 placed",
                                                      "begin 1 30 put 0\nend 1 40 ok\nbegin 2 50 put 0\nend 2 60 ok\n"
                                                      "begin 3 70 get 0\nend 3 80 ok 2:2\n"}};
  after(placed, "ok 2:2", true);
  after(placed, "ok 2:1", true);
  after(placed, "ok 1:1", true);
  after(placed, "not-found", false);
  // A persisted put follows the placed puts, and stays.
  auto then = placed;
  then["3 persisted"] = "begin 1 90 put 0\nend 1 100 ok\n";
  after(then, "ok 3:1", true);
  for (const char* end : {"ok 2:2", "ok 2:1", "ok 1:1", "not-found"}) after(then, end, false);
  // A reader saw the placed value before the cut.
  auto missed = placed;
  missed["3 placed"] = "begin 1 90 get 0\nend 1 100 ok 2:1\n";
  after(missed, "ok 1:1", false);
  // Both orders of the two puts are possible, and a reader saw one of them.
  const std::map<std::string, std::string> at_once = {
      {"1 placed", "begin 1 10 put 0\nend 1 50 ok\n"},
      {"2 placed", "begin 1 20 put 0\nend 1 60 ok\n"},
      {"3 placed", "begin 1 30 get 0\nend 1 31 ok 1:1\nbegin 2 70 get 0\nend 2 80 ok 2:1\n"}};
  after(at_once, "ok 1:1", true);
  // The next round begins with the older version that the cut left.
  Fine({{"4 persisted", "begin 1 10 get 0\nend 1 20 ok 1:1\n"}}, "ok 1:1");
  Lost({{"5 persisted", "begin 1 10 get 0\nend 1 20 ok 2:1\n"}}, "ok 2:1");
}

TEST_F(JudgeTest, EachKeyIsReadAtTheEnd) {
  Lost({}, "unavailable");
  EXPECT_NE(Judge(1).Check({}, {}, Death::kProcess), "");
}

}  // namespace
}  // namespace erda::crash
