#include "crash/records.h"

#include <gtest/gtest.h>

#include "programs/fixture.h"

namespace erda::crash {
namespace {

class RecordsTest : public ProgramsTest {};

TEST_F(RecordsTest, AValueNamesItsPutAndNoOther) {
  for (const size_t size : {kLeastValueBytes, size_t{33}, size_t{39}, size_t{40}, size_t{20'000}}) {
    const std::string value = MakeValue(ValueId(3, 14), 15, size);
    ASSERT_EQ(value.size(), size);
    EXPECT_EQ(ValueIn(value, 15), ValueId(3, 14));
    EXPECT_EQ(ValueIn(value, 16), kDamaged) << "of another key";
    EXPECT_EQ(ValueIn(value.substr(0, size - 1), 15), kDamaged) << "cut off";
    EXPECT_EQ(ValueIn(value + "x", 15), kDamaged) << "more than that";
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      std::string damaged = value;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      EXPECT_EQ(ValueIn(damaged, 15), kDamaged) << "byte " << at << " of " << size;
    }
  }
  // A torn value: the front of one put, and the rest of another put of the same size.
  const std::string mixed = MakeValue(ValueId(3, 14), 15, 8000).substr(0, 4096) +  //
                            MakeValue(ValueId(3, 13), 15, 8000).substr(4096);
  EXPECT_EQ(ValueIn(mixed, 15), kDamaged);
  EXPECT_EQ(ValueIn("", 15), kDamaged);
}

TEST_F(RecordsTest, WrittenRecordsAreRead) {
  ClientOptions options;
  options.ack = Ack::kPlaced;
  {
    Recorder recorder(Path("records"), 7, options);
    recorder.Begin(1, Action::kPut, 5);
    recorder.Begin(2, Action::kGet, 6);
    recorder.Begin(3, Action::kDelete, 7);
    recorder.EndGet(2, ValueId(4, 9));
    recorder.End(1, Code::kResourceExhausted);
    recorder.Begin(4, Action::kGet, 5);
    recorder.EndGet(4, kDamaged);
  }
  const auto read = ReadRecords(Path("records"));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_EQ(read->size(), 4U);
  EXPECT_EQ(ToText((*read)[0]), "client 7 put 7:1 placed: resource exhausted");
  EXPECT_EQ(ToText((*read)[1]), "client 7 get: ok, 4:9");
  EXPECT_EQ(ToText((*read)[2]), "client 7 delete: no answer");
  EXPECT_EQ(ToText((*read)[3]), "client 7 get: ok, damaged");
  EXPECT_EQ((*read)[1].key, 6U);
  EXPECT_LE((*read)[0].begin, (*read)[1].begin);
  EXPECT_LE((*read)[1].end, (*read)[0].end);
}

TEST_F(RecordsTest, UnfinishedLastLineIsLeftOutAndABadLineIsRefused) {
  WriteFile(Path("cut"), "client 2 persisted auto\nbegin 1 100 put 3\nend 1 1");
  const auto cut = ReadRecords(Path("cut"));
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(cut->size(), 1U);
  EXPECT_EQ((*cut)[0].end, sim::Record::kNever);
  for (const char* bad :
       {"begin 1 100 put 3\n", "client 2 persisted auto\nend 1 100 ok\n", "client 2 persisted auto\n?\n",
        "client 2 persisted auto\nbegin 1 100 put 3\nbegin 1 100 put 3\n", "client 2 persisted auto\nbegin 1 100 put\n",
        "client 2 persisted auto\nbegin 1 100 get 3\nend 1 100 ok 3;4\n"}) {
    WriteFile(Path("bad"), bad);
    EXPECT_FALSE(ReadRecords(Path("bad")).ok()) << bad;
  }
}

}  // namespace
}  // namespace erda::crash
