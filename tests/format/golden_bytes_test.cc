// All bytes of an example of every structure. Another compiler, another library or a careless change must not alter
// one.
#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "format/activity.h"
#include "format/control_block.h"
#include "format/durability.h"
#include "format/fixture.h"
#include "format/hello.h"
#include "format/index_entry.h"
#include "format/log_layout.h"
#include "format/messages.h"
#include "format/mirror_link.h"
#include "format/proof.h"
#include "format/rest_sum.h"

namespace erda::format {
namespace {

TEST(GoldenBytesTest, SuperblockHasItsDocumentedBytes) {
  EXPECT_EQ(Hex(BytesOf(TestSuperblock(TestGeometry(), 0x1122334455667788))), HexOf(R"(
    45 52 44 41 50 4f 4f 4c  0e 00 00 00 93 45 7f 4a
    00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
    88 77 66 55 44 33 22 11  01 00 00 00 00 00 00 00
    00 00 00 04 00 00 00 00  00 00 10 00 00 00 00 00
    00 00 04 00 00 00 00 00  00 10 00 00 00 00 00 00
    00 60 01 00 00 00 00 00  00 00 10 00 00 00 00 00
    1f 00 00 00 02 00 00 00  01 00 00 00 0b 00 00 00
    b0 b1 b2 b3 b4 b5 b6 b7  b8 b9 ba bb bc bd be bf
    00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
    00*48)"));
}

TEST(GoldenBytesTest, SuperblockOfAMirrorHasItsDocumentedBytes) {
  Superblock superblock = TestSuperblock(TestGeometry(), 0x1122334455667788);
  superblock.format_version = kMirroredVersion;
  superblock.journaled = 1;
  superblock.epoch = 0x01020304;
  superblock.mirror_id = 0x1112131415161718;
  superblock.mirror_role = static_cast<uint32_t>(MirrorRole::kInSync);
  superblock.crc = SuperblockCrc(superblock);
  EXPECT_EQ(Hex(BytesOf(superblock)), HexOf(R"(
    45 52 44 41 50 4f 4f 4c  10 00 00 00 3e e0 5e ce
    00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
    88 77 66 55 44 33 22 11  01 00 00 00 01 00 00 00
    00 00 00 04 00 00 00 00  00 00 10 00 00 00 00 00
    00 00 04 00 00 00 00 00  00 10 00 00 00 00 00 00
    00 60 01 00 00 00 00 00  00 00 10 00 00 00 00 00
    1f 00 00 00 02 00 00 00  01 00 00 00 0b 00 00 00
    b0 b1 b2 b3 b4 b5 b6 b7  b8 b9 ba bb bc bd be bf
    00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
    18 17 16 15 14 13 12 11  04 03 02 01 03 00 00 00
    00*32)"));
  EXPECT_EQ(static_cast<uint32_t>(MirrorRole::kNone), 0U);
  EXPECT_EQ(static_cast<uint32_t>(MirrorRole::kPrimary), 1U);
  EXPECT_EQ(static_cast<uint32_t>(MirrorRole::kFilling), 2U);
}

TEST(GoldenBytesTest, ShardRecordHasItsDocumentedBytes) {
  ShardRecord record{};
  record.version_limit = 0x1122334455667788;
  record.keys = 0x0102;
  record.move = 0x0304;
  record.time = CheckedWord::Of(0x0102030405).raw();
  record.blocks = CheckedWord::Of(0x0102).raw();
  record.reaches = CheckedWord::Of(Reaches().Raised(0).Raised(0).Raised(UINT64_MAX).number()).raw();
  record.rest_place = RestSum(0x0102, 0x0304).place_word();
  record.rest_hash = RestSum(0x0102, 0x0304).hash_word();
  EXPECT_EQ(Hex(BytesOf(record)), HexOf(R"(
    88 77 66 55 44 33 22 11  02 01 00*6  04 03 00*6  71 54 05 04 03 02 01 00
    e8 73 02 01 00*4  f1 8b 02 00 00 00 00 20  f3 b1 02 01 00 00 00 80
    55 5d 04 03 00 00 00 80)"));
}

TEST(GoldenBytesTest, RegionWordHasItsDocumentedBytes) {
  const uint64_t word = RegionWord::Linked(0x11223344, 0xaa, 31).raw();
  EXPECT_EQ(Hex(BytesOf(word)), HexOf("a5 aa 1f 54 44 33 22 11"));
  const uint64_t settled = RegionWord::Linked(0x11223344, 0xaa, 31).Settled().raw();
  EXPECT_EQ(Hex(BytesOf(settled)), HexOf("c3 aa 1f 32 44 33 22 11"));
  const uint64_t free = RegionWord::Free(0x11223344).raw();
  EXPECT_EQ(Hex(BytesOf(free)), HexOf("00 00 00 44 44 33 22 11"));
  const uint64_t emptied = RegionWord::Emptied(0x11223344).raw();
  EXPECT_EQ(Hex(BytesOf(emptied)), HexOf("5a 00 00 1e 44 33 22 11"));
  const uint64_t run = RegionWord::OfIndex(0x11223344, 0x0aaa).raw();
  EXPECT_EQ(Hex(BytesOf(run)), HexOf("3c aa 0a d8 44 33 22 11"));
}

TEST(GoldenBytesTest, IndexEntryHasItsDocumentedBytes) {
  IndexEntry entry{};
  entry.word = EntryWord::Make(true, LogAddress(0x12345678), LogAddress(0x0abcdef1), true).raw();
  entry.meta = EntryMeta::Make(0x89abcdef, 0x42, 31, 1000).raw();
  EXPECT_EQ(Hex(BytesOf(entry)), HexOf(R"(
    e3 bd 79 15 78 56 34 92  3f 00 1f 42 ef cd ab 89)"));
}

TEST(GoldenBytesTest, SegmentHeaderHasItsDocumentedBytes) {
  SegmentHeader header{};
  header.identity = SegmentHeader::Identity(0x11223344);
  header.state = static_cast<uint64_t>(SegmentState::kSettled);
  header.first_version = 0x0102030405060708;
  header.end = 0x1112131415161718;
  header.mark = SegmentHeader::Mark(0x21222320);
  EXPECT_EQ(Hex(BytesOf(header)), HexOf(R"(
    44 33 22 11 01 60 67 56  64 6f 6e 65 64 6f 6e 65
    08 07 06 05 04 03 02 01  18 17 16 15 14 13 12 11
    20 23 22 21 df 07 23 7e  00*24)"));
}

// The key is "key", and the value is "value". The two checksums bind them to TestPlace().
TEST(GoldenBytesTest, ObjectHasItsDocumentedBytes) {
  EXPECT_EQ(Hex(WholeObject(TestPlace(), "key", "value")), HexOf(R"(
    45 16 be 29 03 00 01 01  05 00 00 00 08 00 00 01
    4d 00 00 00 00 00 00 00  e1 98 17 d1 2d d3 77 34
    6b 65 79 5c 9a d8 21 76  61 6c 75 65)"));
}

TEST(GoldenBytesTest, ExpiringObjectHasItsDocumentedBytes) {
  EXPECT_EQ(Hex(WholeObject(TestPlace(), "key", "value", 77, 0x0102030405)), HexOf(R"(
    ea 47 2f 5e 03 00 01 05  05 00 00 00 08 00 00 01
    4d 00 00 00 00 00 00 00  e1 98 17 d1 2d d3 77 34
    05 04 03 02 01 00 00 00  6b 65 79 95 3e b4 3d 76
    61 6c 75 65)"));
}

TEST(GoldenBytesTest, ObjectWithoutAValueHasItsDocumentedBytes) {
  EXPECT_EQ(Hex(WholeObject(TestPlace(), "k", "", 1)), HexOf(R"(
    6c 93 ca 08 01 00 01 01  00 00 00 00 08 00 00 01
    01 00 00 00 00 00 00 00  5b e6 f6 8d 00 38 cf 23
    6b 6c 93 ca 08)"));
}

TEST(GoldenBytesTest, ThePoolSeedIsTheChecksumOfTheUuid) { EXPECT_EQ(PoolSeed(kUuid), 0xd9c908ebU); }

TEST(GoldenBytesTest, HelloRequestHasItsDocumentedBytes) {
  const HelloRequest hello = {kHelloMagic,
                              kProtocolVersion,
                              0x2211,
                              0x66554433,
                              Role::kMirror,
                              0x1122334455667788,
                              0x99aabbccddeeff00,
                              {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  EXPECT_EQ(Hex(BytesOf(hello)), HexOf(R"(
    45 72 64 61 11 00 11 22  33 44 55 66 01 00 00 00
    88 77 66 55 44 33 22 11  00 ff ee dd cc bb aa 99
    01 02 03 04 05 06 07 08  09 0a 0b 0c 0d 0e 0f 10)"));
}

TEST(GoldenBytesTest, MirrorHelloHasItsDocumentedBytes) {
  const MirrorHello hello = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
                             0x1122334455667780,
                             0x1122334455667790,
                             0x55667788,
                             1,
                             0x0304};
  EXPECT_EQ(Hex(BytesOf(hello)), HexOf(R"(
    01 02 03 04 05 06 07 08  09 0a 0b 0c 0d 0e 0f 10
    80 77 66 55 44 33 22 11  90 77 66 55 44 33 22 11
    88 77 66 55 01 00 04 03)"));
}

TEST(GoldenBytesTest, HelloReplyHasItsDocumentedBytes) {
  HelloReply hello{};
  hello.magic = kHelloMagic;
  hello.protocol_version = kProtocolVersion;
  hello.flush_method = static_cast<uint8_t>(FlushMethod::kServerFlush);
  hello.pool_uuid = kUuid;
  hello.server_id = 0x1122334455667788;
  hello.slots = 64;
  hello.slot_bytes = 0x1000;
  hello.durability = static_cast<uint8_t>(Durability::kPowerSafe);
  hello.placing = static_cast<uint8_t>(Placing::kStaging);
  hello.read_only = 1;
  hello.proof.fill(0xab);
  hello.time = 0x2122232425262728;
  hello.geometry = TestGeometry();
  hello.hash_seed = kTestHashSeed;
  EXPECT_EQ(Hex(BytesOf(hello)), HexOf(R"(
    45 72 64 61 11 00 02 02  00 01 02 03 04 05 06 07
    08 09 0a 0b 0c 0d 0e 0f  88 77 66 55 44 33 22 11
    40 00 00 00 00 10 00 00  02 01 00 00 00 00 00 00
    28 27 26 25 24 23 22 21
    00 00 00 04 00 00 00 00  00 00 10 00 00 00 00 00
    00 00 04 00 00 00 00 00  00 10 00 00 00 00 00 00
    00 60 01 00 00 00 00 00  00 00 10 00 00 00 00 00
    1f 00 00 00 02 00 00 00  01 00 00 00 0b 00 00 00
    00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
    ab*16)"));
}

TEST(GoldenBytesTest, HelloRefusalHasItsDocumentedBytes) {
  HelloRefusal refusal{};
  refusal.magic = kHelloMagic;
  refusal.protocol_version = kProtocolVersion;
  refusal.code = static_cast<uint8_t>(Code::kPermissionDenied);
  std::memcpy(refusal.message.data(), "no", 2);
  EXPECT_EQ(Hex(BytesOf(refusal)), HexOf(R"(
    45 72 64 61 11 00 07 00  6e 6f 00*126)"));
}

TEST(GoldenBytesTest, HelloChallengeHasItsDocumentedBytes) {
  HelloChallenge challenge{};
  challenge.magic = kHelloMagic;
  challenge.protocol_version = kProtocolVersion;
  challenge.code = static_cast<uint8_t>(Code::kPermissionDenied);
  challenge.is_challenge = 1;
  challenge.challenge = 0x1122334455667788;
  challenge.nonce.fill(0xcd);
  EXPECT_EQ(Hex(BytesOf(challenge)), HexOf(R"(
    45 72 64 61 11 00 07 01  88 77 66 55 44 33 22 11
    cd*32)"));
}

// Python's hmac computed the HMAC-SHA-256 of the label, the nonce and the bytes before the proof.
TEST(GoldenBytesTest, ProofsHaveTheirDocumentedBytes) {
  Nonce nonce;
  nonce.fill(0xcd);
  HelloRequest request{};
  request.magic = kHelloMagic;
  request.protocol_version = kProtocolVersion;
  request.shard = 3;
  request.slots = 64;
  request.client_id = 0x1122334455667788;
  request.challenge = 0x99aabbccddeeff00;
  request.proof.fill(0xff);  // The new proof does not cover these bytes.
  EXPECT_EQ(Hex(BytesOf(ClientProof("a token of some length", nonce, request))),
            HexOf("15 64 24 24 e6 e8 9f 78 5f c6 1c 1a 45 92 6d b6"));
  HelloReply reply{};
  reply.magic = kHelloMagic;
  reply.protocol_version = kProtocolVersion;
  reply.slots = 64;
  EXPECT_EQ(Hex(BytesOf(ServerProof("a token of some length", nonce, reply))),
            HexOf("2b 1c 52 92 35 52 47 1d 45 ce 4a a1 9e ae e1 88"));
}

TEST(GoldenBytesTest, RequestHasItsDocumentedBytes) {
  Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kCommit);
  request.ack = 1;
  request.key_size = 0x0203;
  request.value_size = 0x04050607;
  request.id = 0x08090a0b0c0d0e0f;
  request.key_hash = 0x1011121314151617;
  request.address = 0x18191a1b;
  request.head = 0x1c1d1e1f;
  request.version = 0x2021222324252627;
  request.condition = static_cast<uint8_t>(Condition::kVersion);
  request.ttl = 0x28292a2b2c2d2e2f;
  EXPECT_EQ(Hex(BytesOf(request)), HexOf(R"(
    03 01 03 02 07 06 05 04  0f 0e 0d 0c 0b 0a 09 08
    17 16 15 14 13 12 11 10  1b 1a 19 18 1f 1e 1d 1c
    27 26 25 24 23 22 21 20  00 00 00 00 01 00 00 00
    2f 2e 2d 2c 2b 2a 29 28)"));
  EXPECT_EQ(InlineValueOffset(5), 56U + 5 + 4);
}

TEST(GoldenBytesTest, ReplyHasItsDocumentedBytes) {
  Reply reply{};
  reply.id = 0x0102030405060708;
  reply.code = static_cast<uint8_t>(Code::kResourceExhausted);
  reply.reason = static_cast<uint8_t>(Reason::kLogFull);
  reply.address = 0x11121314;
  reply.head = 0x15161718;
  reply.generation = 0x191a1b1c;
  reply.number = 0x2122232425262728;
  reply.header = {0x31323334, 0x3536, 1, 1, 0x3738393a, 0x3b3c3d3e, 0x4142434445464748, 0x5152535455565758};
  EXPECT_EQ(Hex(BytesOf(reply)), HexOf(R"(
    08 07 06 05 04 03 02 01  04 02 00 00 14 13 12 11
    18 17 16 15 1c 1b 1a 19  28 27 26 25 24 23 22 21
    34 33 32 31 36 35 01 01  3a 39 38 37 3e 3d 3c 3b
    48 47 46 45 44 43 42 41  58 57 56 55 54 53 52 51)"));
}

TEST(GoldenBytesTest, ControlBlockHasItsDocumentedBytes) {
  ControlBlock control{};
  control.displacements = 0x1111111111111111;
  control.blocks = 0x5555555555555555;
  control.head_generation = 0x2222222222222222;
  control.reaches = 0x6666666666666666;
  control.time = 0x7777777777777777;
  control.counters[0] = 0x3333333333333333;
  control.counters[63] = 0x4444444444444444;
  EXPECT_EQ(Hex(BytesOf(control)), HexOf("11*8 55*8 22*8 66*8 77*8 00*24 33*8 00*496 44*8 00*448"));
  EXPECT_EQ(kControlHeadsOffset, 1024U);
  EXPECT_EQ(kControlHeadBytes, 1024U);
  Geometry geometry = TestGeometry();
  geometry.heads_per_shard = 3;
  geometry.regions_per_shard = 100;
  EXPECT_EQ(RunsOffset(geometry), 4096U);
  geometry.more_layers = 1;
  EXPECT_EQ(RunsOffset(geometry), 7168U);
  EXPECT_EQ(HeadSlotOffset(geometry, 2, 3), 1024U + 2 * 1024 + 3 * 8);
  EXPECT_EQ(HeadSlotOffset(geometry, 2, 128 + 3), 1024U + (3 + 2) * 1024 + 3 * 8);
  geometry.more_layers = 0;
  EXPECT_EQ(ControlBytes(geometry), 8192U);
  geometry.heads_per_shard = 2;
  EXPECT_EQ(ControlBytes(geometry), 4096U);
  geometry.regions_per_shard = 514;  // This gives 257 runs, of 4 bytes each.
  EXPECT_EQ(ControlBytes(geometry), 8192U);
  EXPECT_EQ(ActivityOffset(geometry), 8192U);
  EXPECT_EQ(ControlRegionBytes(geometry), 16384U);
  const uint64_t slot = HeadSlot::Of(0x0a0b, 0x11223344).raw();
  EXPECT_EQ(Hex(BytesOf(slot)), HexOf("0c 0a 00 00 44 33 22 11"));
}

TEST(GoldenBytesTest, CountersHaveTheirDocumentedBytes) {
  ActivityBlock block{};
  KindCounts& put = block.kinds[static_cast<size_t>(RequestOp::kPutInline)];
  put.outcomes[static_cast<size_t>(Code::kConflict)] = 0x1111111111111111;
  put.times.buckets[0] = 0x2222222222222222;
  put.times.nanos = 0x3333333333333333;
  block.persist.buckets[1] = 0x4444444444444444;
  block.clean_region.nanos = 0x5555555555555555;
  block.fabrics[1].scheme = {'s', 'h', 'm'};
  block.fabrics[1].device = {'r', 'x', 'e', '0'};
  block.fabrics[1].violations = 0x6666666666666666;
  block.hold.nanos = 0x7777777777777777;
  EXPECT_EQ(Hex(BytesOf(block)),
            HexOf("00*320 00*24 11*8 00*88 22*8 00*184 33*8 00*4480 00*8 44*8 00*184 00*192 55*8 "
                  "00*112 00*64 73 68 6d 00*5 72 78 65 30 00*20 00*24 66*8 00*384 00*192 77*8 00*56"));
  for (const auto& [nanos, bucket] : std::vector<std::pair<uint64_t, size_t>>{
           {0, 0}, {1, 0}, {256, 0}, {257, 1}, {512, 1}, {513, 2}, {1 << 30, 22}, {(1 << 30) + 1, 23}, {~0ULL, 23}}) {
    EXPECT_EQ(BucketOf(nanos), bucket) << nanos;
  }
}

TEST(GoldenBytesTest, EnumeratorsHaveTheirDocumentedNumbers) {
  const auto number = [](auto value) { return static_cast<uint64_t>(value); };
  EXPECT_EQ(number(ObjectKind::kValue), 1U);
  EXPECT_EQ(number(ObjectKind::kTombstone), 2U);
  EXPECT_EQ(number(ObjectHeader::kPersistedFlag), 1U);
  EXPECT_EQ(number(ObjectHeader::kFlushedByReadFlag), 2U);
  EXPECT_EQ(number(ObjectHeader::kExpiresFlag), 4U);
  EXPECT_EQ(number(SegmentState::kOpen), 0x6e65706f6e65706fU);
  EXPECT_EQ(number(SegmentState::kSealed), 0x6c6165736c616573U);
  EXPECT_EQ(number(SegmentState::kSettled), 0x656e6f64656e6f64U);
  EXPECT_EQ(number(SegmentState::kCopies), 0x79706f6379706f63U);
  EXPECT_EQ(number(SegmentState::kCopied), 0x656e6f6479706f63U);
  EXPECT_EQ(number(RequestOp::kPutInline), 1U);
  EXPECT_EQ(number(RequestOp::kReserve), 2U);
  EXPECT_EQ(number(RequestOp::kCommit), 3U);
  EXPECT_EQ(number(RequestOp::kDelete), 4U);
  EXPECT_EQ(number(RequestOp::kReport), 5U);
  EXPECT_EQ(number(RequestOp::kClean), 6U);
  EXPECT_EQ(number(RequestOp::kDelegate), 7U);
  EXPECT_EQ(number(RequestOp::kPutDelegated), 8U);
  EXPECT_EQ(number(RequestOp::kGiveBack), 9U);
  EXPECT_EQ(number(RequestOp::kPutStaged), 11U);
  EXPECT_EQ(number(RequestOp::kIncrement), 10U);
  EXPECT_EQ(kRevokes, 0x80000000U);
  EXPECT_EQ(kAsksTime, 0x40000000U);
  EXPECT_EQ(number(Condition::kNone), 0U);
  EXPECT_EQ(number(Condition::kVersion), 1U);
  EXPECT_EQ(number(FlushMethod::kNone), 0U);
  EXPECT_EQ(number(FlushMethod::kReadAfterWrite), 1U);
  EXPECT_EQ(number(FlushMethod::kServerFlush), 2U);
  EXPECT_EQ(number(Reason::kNone), 0U);
  EXPECT_EQ(number(Reason::kIndexFull), 1U);
  EXPECT_EQ(number(Reason::kLogFull), 2U);
  EXPECT_EQ(number(Reason::kTooManyReservations), 3U);
  EXPECT_EQ(number(Reason::kNotWhole), 4U);
  EXPECT_EQ(number(Reason::kReadOnly), 5U);
  EXPECT_EQ(number(Reason::kDamaged), 6U);
  EXPECT_EQ(number(Reason::kNoChunk), 7U);
  EXPECT_EQ(number(Reason::kNotANumber), 8U);
  EXPECT_EQ(number(Reason::kOverflow), 9U);
  EXPECT_EQ(number(Reason::kNoMirror), 11U);
  EXPECT_EQ(number(Reason::kJournal), 10U);
  EXPECT_EQ(number(Durability::kVolatile), 0U);
  EXPECT_EQ(number(Durability::kProcessSafe), 1U);
  EXPECT_EQ(number(Durability::kPowerSafe), 2U);
}

TEST(GoldenBytesTest, EachFlushMethodHasAName) {
  EXPECT_STREQ(FlushMethodName(FlushMethod::kNone), "none");
  EXPECT_STREQ(FlushMethodName(FlushMethod::kReadAfterWrite), "read-after-write");
  EXPECT_STREQ(FlushMethodName(FlushMethod::kServerFlush), "server-flush");
  EXPECT_STREQ(FlushMethodName(static_cast<FlushMethod>(3)), "unknown");
}

TEST(GoldenBytesTest, EachDurabilityHasAName) {
  EXPECT_STREQ(DurabilityName(Durability::kVolatile), "volatile");
  EXPECT_STREQ(DurabilityName(Durability::kProcessSafe), "process-safe");
  EXPECT_STREQ(DurabilityName(Durability::kPowerSafe), "power-safe");
  EXPECT_STREQ(DurabilityName(static_cast<Durability>(3)), "unknown");
}

}  // namespace
}  // namespace erda::format
