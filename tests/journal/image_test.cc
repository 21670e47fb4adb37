#include "journal/image.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "base/bytes.h"
#include "base/map_shared.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "journal/apply.h"
#include "journal/captured_pool.h"
#include "nvm/writer.h"

namespace erda::journal {
namespace {

namespace fs = std::filesystem;

class ImageTest : public testing::Test {
 protected:
  static constexpr uint64_t kPoolBytes = 5 << 20;
  static constexpr uint32_t kShards = 3;

  [[nodiscard]] ImageShape Shape() const {
    return {.uuid = {0xab, 1, 2},
            .pool_size = kPoolBytes,
            .shards = kShards,
            .stream_capacity = Stream::kCapacityMin,
            .folder = folder_.path().string()};
  }
  [[nodiscard]] fs::path File(const char* ending) const {
    return folder_.path() / (std::string("erda-ab010200000000000000000000000000.") + ending);
  }
  [[nodiscard]] size_t Files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  // Creates an image. If that fails, fails the test and returns null.
  [[nodiscard]] std::unique_ptr<Image> MustCreate() const {
    auto image = Image::Create(Shape());
    EXPECT_TRUE(image.ok()) << image.status().ToString();
    return image.ok() ? *std::move(image) : nullptr;
  }
  // Leaves an image that is ready.
  void LeaveReady() const {
    const auto image = MustCreate();
    ASSERT_NE(image, nullptr);
    std::ranges::copy(AsBytes("of the pool"), image->pool().view().bytes.begin() + 100);
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      auto stream = Stream::Format(image->StreamMemory(shard), image->shape().uuid, shard, 16 * shard);
      ASSERT_TRUE(stream.ok());
      ASSERT_TRUE(stream->Append(shard, AsBytes("of the stream")));
    }
    image->MarkReady();
  }
  // Changes the header in the file, as another program would.
  template <class Change>
  void ChangeHeader(Change change) const {
    const UniqueFd fd(::open(File("streams").c_str(), O_RDWR));
    ASSERT_TRUE(fd);
    ImageHeader header{};
    ASSERT_EQ(::pread(fd.get(), &header, sizeof(header), 0), ssize_t{sizeof(header)});
    change(&header);
    ASSERT_EQ(::pwrite(fd.get(), &header, sizeof(header), 0), ssize_t{sizeof(header)});
  }
  // Checks that a call fails with this code, and that its message has this part.
  template <class T>
  static testing::AssertionResult Fails(const Result<T>& result, Code code, std::string_view part) {
    if (result.ok()) return testing::AssertionFailure() << "it did not fail";
    if (result.status().code() == code && result.status().message().find(part) != std::string_view::npos)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << result.status().ToString();
  }

  const TemporaryFolder folder_{"/dev/shm"};
};

TEST_F(ImageTest, NewImageIsZeroesInMemoryOfItsOwnerAlone) {
  const mode_t mask = ::umask(0);
  const auto image = MustCreate();
  ::umask(mask);
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(Files(), 2U);
  for (const char* ending : {"streams", "pool"}) {
    struct stat info {};
    ASSERT_EQ(::stat(File(ending).c_str(), &info), 0) << ending;
    EXPECT_EQ(info.st_mode & 07777, 0600U) << ending;
    // A full tmpfs must show now, and not as a SIGBUS later. (To look at the bytes would make their pages.)
    EXPECT_GE(info.st_blocks * 512, info.st_size) << ending;
  }
  nvm::Pool& pool = image->pool();
  EXPECT_EQ(pool.size(), kPoolBytes);
  EXPECT_TRUE(IsZero(pool.bytes()));
  EXPECT_FALSE(pool.created());
  EXPECT_EQ(pool.durability(), nvm::Durability::kProcessSafe);
  EXPECT_EQ(pool.large_pages(), nvm::LargePages::kInMemory);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pool.bytes().data()) % kLargePage, 0U);
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    const auto memory = image->StreamMemory(shard);
    EXPECT_EQ(memory.size(), Stream::MemoryFor(Stream::kCapacityMin));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % kSmallPage, 0U);
    EXPECT_TRUE(IsZero(memory));
    std::ranges::fill(memory, static_cast<std::byte>(shard + 1));
  }
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    for (const std::byte byte : image->StreamMemory(shard)) ASSERT_EQ(byte, static_cast<std::byte>(shard + 1));
  }
  EXPECT_EQ(fs::file_size(File("pool")), kPoolBytes) << "a client gets its descriptor, and nothing else is in it";
}

TEST_F(ImageTest, ViewGivesTheSameBytesToAnotherProcess) {
  const auto image = MustCreate();
  ASSERT_NE(image, nullptr);
  const MemoryView view = image->pool().view();
  view.bytes.back() = std::byte{'z'};
  const auto bytes = MapShared(view.fd, kPoolBytes, true);
  ASSERT_FALSE(bytes.empty());
  EXPECT_EQ(bytes.back(), std::byte{'z'});
  bytes.front() = std::byte{'a'};
  EXPECT_EQ(image->pool().bytes().front(), std::byte{'a'});
  ::munmap(bytes.data(), bytes.size());
  const auto read_only = MapShared(view.fd_read_only, kPoolBytes, false);
  ASSERT_FALSE(read_only.empty());
  EXPECT_EQ(read_only.front(), std::byte{'a'});
  ::munmap(read_only.data(), read_only.size());
  EXPECT_TRUE(MapShared(view.fd_read_only, kPoolBytes, true).empty());
}

TEST_F(ImageTest, HeaderHasItsBytes) {
  const ImageHeader header{.magic = kImageMagic,
                           .version = kImageVersion,
                           .crc = 0x44434241,
                           .uuid = {1, 2},
                           .boot = {3, 4},
                           .pool_size = 0x100000,
                           .stream_capacity = 0x40000,
                           .shards = 5,
                           .reserved = 0,
                           .state = static_cast<uint64_t>(ImageState::kReady)};
  std::string expected("ERDAIMAG\1\0\0\0ABCD\1\2", 18);
  expected.resize(32);
  expected += "\3\4";
  expected.resize(48);
  expected += std::string_view("\0\0\x10\0\0\0\0\0\0\0\4\0\0\0\0\0\5\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 32);
  EXPECT_EQ(AsString(BytesOf(header)), expected);
  ImageHeader other = header;
  other.state = 1;
  other.crc = 7;
  EXPECT_EQ(ImageHeaderCrc(other), ImageHeaderCrc(header)) << "the state changes without the crc";
  other.shards = 6;
  EXPECT_NE(ImageHeaderCrc(other), ImageHeaderCrc(header));
}

TEST_F(ImageTest, ReadyImageIsOpenedWithAllBytes) {
  LeaveReady();
  ImageShape shape = Shape();
  for (const uint64_t capacity : {shape.stream_capacity, uint64_t{0}}) {
    shape.stream_capacity = capacity;
    const auto image = Image::Open(shape);
    ASSERT_TRUE(image.ok()) << image.status().ToString();
    EXPECT_EQ((*image)->shape().stream_capacity, Stream::kCapacityMin);
    EXPECT_EQ(AsString((*image)->pool().bytes().subspan(100, 11)), "of the pool");
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      const auto stream = Stream::Open((*image)->StreamMemory(shard), shape.uuid, shard);
      ASSERT_TRUE(stream.ok()) << stream.status().ToString();
      EXPECT_EQ(stream->released(), 16 * shard);
      EXPECT_EQ(stream->end(), 16 * shard + EntrySpace(13));
    }
  }
}

TEST_F(ImageTest, ReadyImageIsNotReplaced) {
  LeaveReady();
  EXPECT_TRUE(Fails(Image::Create(Shape()), Code::kInvalidArgument, "has an image already"));
  EXPECT_TRUE(Image::Open(Shape()).ok());
}

TEST_F(ImageTest, ImageThatWasNeverReadyDoesNotCount) {
  EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kNotFound, "there is no file"));
  EXPECT_EQ(Files(), 0U) << "to open makes no file";
  {
    const auto image = MustCreate();
    ASSERT_NE(image, nullptr);
    image->pool().view().bytes[100] = std::byte{'x'};
    image->StreamMemory(0)[5000] = std::byte{'x'};
  }
  EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kNotFound, "never ready"));
  const auto image = MustCreate();
  ASSERT_NE(image, nullptr);
  EXPECT_TRUE(IsZero(image->pool().bytes()));
  EXPECT_TRUE(IsZero(image->StreamMemory(0)));
}

// A kill may come between any two steps of Create.
TEST_F(ImageTest, ImageThatWasBeingMadeIsReplaced) {
  const UniqueFd fd(::open(File("streams").c_str(), O_RDWR | O_CREAT, 0600));
  for (const off_t size : {0, 50, 100'000}) {
    ASSERT_EQ(::ftruncate(fd.get(), size), 0);
    EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kNotFound, "never ready")) << size;
    EXPECT_NE(MustCreate(), nullptr) << size;
    ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
  }
}

TEST_F(ImageTest, ImageOfAnotherBootDoesNotCount) {
  LeaveReady();
  ChangeHeader([](ImageHeader* header) {
    header->boot[5] ^= 1;
    header->crc = ImageHeaderCrc(*header);
  });
  EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kNotFound, "of another boot"));
  const auto image = MustCreate();
  ASSERT_NE(image, nullptr);
  EXPECT_TRUE(IsZero(image->pool().bytes()));
}

TEST_F(ImageTest, OtherShapeIsRefused) {
  LeaveReady();
  ImageShape shape = Shape();
  shape.pool_size += 4096;
  EXPECT_TRUE(Fails(Image::Open(shape), Code::kInvalidArgument, "a pool of 5242880 bytes with 3 shards"));
  shape = Shape();
  shape.shards = 4;
  EXPECT_TRUE(Fails(Image::Open(shape), Code::kInvalidArgument, "not what was asked for"));
  shape = Shape();
  shape.stream_capacity *= 2;
  EXPECT_TRUE(Fails(Image::Open(shape), Code::kInvalidArgument, "streams of 262144 bytes"));
  ChangeHeader([](ImageHeader* header) {
    header->uuid[0] = 1;
    header->crc = ImageHeaderCrc(*header);
  });
  EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kInvalidArgument, "another pool"));
}

TEST_F(ImageTest, ShapeThatCannotBeIsRefused) {
  const auto refuses = [](const ImageShape& shape) {
    return Fails(Image::Create(shape), Code::kInvalidArgument, "cannot have");
  };
  ImageShape shape = Shape();
  shape.shards = 0;
  EXPECT_TRUE(refuses(shape));
  shape.shards = format::kShardsMax + 1;
  EXPECT_TRUE(refuses(shape));
  shape = Shape();
  shape.pool_size = 0;
  EXPECT_TRUE(refuses(shape));
  shape = Shape();
  shape.stream_capacity += 4096;
  EXPECT_TRUE(refuses(shape));
  EXPECT_EQ(Files(), 0U);
}

TEST_F(ImageTest, DamagedImageIsRefusedAndNotReplaced) {
  const auto refuses = [this](Code code, std::string_view part) {
    const auto opened = Fails(Image::Open(Shape()), code, part);
    return opened ? Fails(Image::Create(Shape()), code, part) : opened;
  };
  LeaveReady();
  ChangeHeader([](ImageHeader* header) { header->pool_size ^= 1; });
  EXPECT_TRUE(refuses(Code::kCorruption, "header of the image is damaged"));
  ChangeHeader([](ImageHeader* header) { header->version = 2; });
  EXPECT_TRUE(refuses(Code::kInvalidArgument, "version 2"));
  ChangeHeader([](ImageHeader* header) { header->magic ^= 1; });
  EXPECT_TRUE(refuses(Code::kCorruption, "is no image of a pool"));
}

TEST_F(ImageTest, FilesOfOtherSizesAreRefused) {
  LeaveReady();
  fs::resize_file(File("pool"), kPoolBytes - 4096);
  EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kCorruption, "has 5238784 bytes, not 5242880"));
  fs::remove(File("pool"));
  EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kCorruption, "missing"));
  fs::resize_file(File("streams"), 8192);
  EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kCorruption, "has 8192 bytes"));
}

TEST_F(ImageTest, OneProcessHasItOpen) {
  const auto image = MustCreate();
  ASSERT_NE(image, nullptr);
  image->MarkReady();
  EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kUnavailable, "another server has it open"));
  EXPECT_TRUE(Fails(Image::Create(Shape()), Code::kUnavailable, "another server has it open"));
  EXPECT_EQ(Image::Remove(Shape().folder, Shape().uuid).code(), Code::kUnavailable);
  EXPECT_EQ(Files(), 2U);
}

// In a folder like /dev/shm another user may make a file of this name first.
TEST_F(ImageTest, FilesOfOthersAreRefused) {
  LeaveReady();
  for (const char* ending : {"streams", "pool"}) {
    ASSERT_EQ(::chmod(File(ending).c_str(), 0660), 0);
    EXPECT_TRUE(Fails(Image::Open(Shape()), Code::kPermissionDenied, "other users")) << ending;
    ASSERT_EQ(::chmod(File(ending).c_str(), 0600), 0);
  }
  fs::rename(File("streams"), folder_.path() / "elsewhere");
  fs::create_symlink(folder_.path() / "elsewhere", File("streams"));
  EXPECT_FALSE(Image::Open(Shape()).ok());
  EXPECT_FALSE(Image::Create(Shape()).ok());
  fs::remove(File("streams"));
  fs::create_directory(File("streams"));
  EXPECT_FALSE(Image::Create(Shape()).ok());
}

TEST_F(ImageTest, MemoryWithoutRoomIsRefused) {
  ImageShape shape = Shape();
  shape.pool_size = uint64_t{1} << 46;
  EXPECT_TRUE(Fails(Image::Create(shape), Code::kResourceExhausted, "needs 703687"));
  EXPECT_EQ(Files(), 0U);
  shape = Shape();
  shape.folder = "/proc";
  EXPECT_TRUE(Fails(Image::Create(shape), Code::kInvalidArgument, "/proc is not in a tmpfs"));
  shape.folder = folder_.path() / "none";
  EXPECT_TRUE(Fails(Image::Create(shape), Code::kInvalidArgument, "none"));
}

TEST_F(ImageTest, FullMemoryIsAnErrorAndNoSignal) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  ASSERT_EQ(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=4m"), 0) << std::strerror(errno);
  EXPECT_TRUE(Fails(Image::Create(Shape()), Code::kResourceExhausted, "has room for 4194304 bytes"));
  EXPECT_EQ(Files(), 0U);
  // Others may take the memory after a look at the room.
  const std::string path = folder_.path() / "file";
  auto fd = MemoryFile::Open(path, MemoryFile::Use::kNew);
  ASSERT_TRUE(fd.ok()) << fd.status().ToString();
  EXPECT_TRUE(Fails(MemoryFile::Make(path, *std::move(fd), 6 << 20), Code::kResourceExhausted, "no memory for"));
  ASSERT_EQ(::umount(folder_.path().c_str()), 0) << std::strerror(errno);
}

TEST_F(ImageTest, RemovedImageIsGone) {
  EXPECT_TRUE(Image::Remove(Shape().folder, Shape().uuid).ok()) << "there is none";
  LeaveReady();
  EXPECT_TRUE(Image::Remove(Shape().folder, Shape().uuid).ok());
  EXPECT_EQ(Files(), 0U);
  LeaveReady();
  auto image = Image::Open(Shape());
  ASSERT_TRUE(image.ok()) << image.status().ToString();
  ASSERT_TRUE((*image)->Remove().ok());
  EXPECT_EQ(Files(), 0U);
  EXPECT_EQ(AsString((*image)->pool().bytes().subspan(100, 11)), "of the pool") << "this process keeps the memory";
  EXPECT_NE(MustCreate(), nullptr);
}

// A child stores numbers in turn and flushes each, until it is killed. The image then has all of the stream, and at
// most the one store that was not flushed yet.
TEST_F(ImageTest, KilledServerLeavesImageAndStream) {
  constexpr uint64_t kWords = 512;
  Random random(1);
  uint64_t stores = 0;  // Of all children, at least.
  for (int kill = 0; kill < 10; ++kill) {
    LeaveReady();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto image = Image::Open(Shape());
      if (!image.ok()) ::_exit(1);
      auto stream = Stream::Open((*image)->StreamMemory(1), Shape().uuid, 1);
      if (!stream.ok()) ::_exit(2);
      // The stream keeps each word many times.
      const std::atomic<Place> held{0};
      const Health health([] {}, [](const Status& /*status*/) {});
      const auto release = [&] { stream->Release(stream->Cut(stream->released(), kEntrySpaceMax)); };
      CapturedPool pool(
          (*image)->pool(), *stream,
          CapturedPool::Medium{&held, &health, release, [] { return Status(); }, [](uint64_t /*waiters*/) {}});
      nvm::Writer writer(pool);
      for (uint64_t number = 1;; ++number) {
        writer.Store64(4096 + number % kWords * 8, number);
        writer.Persist(4096 + number % kWords * 8, 8);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.Between(500, 5000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended with " << WEXITSTATUS(status);

    auto image = Image::Open(Shape());
    ASSERT_TRUE(image.ok()) << image.status().ToString();
    auto stream = Stream::Open((*image)->StreamMemory(1), Shape().uuid, 1);
    ASSERT_TRUE(stream.ok()) << stream.status().ToString();
    std::vector<std::byte> held(kPoolBytes);
    for (const auto piece : stream->Bytes(stream->released(), stream->end()))
      ASSERT_TRUE(ApplyToMemory(piece, held).ok());
    uint64_t different = 0;
    uint64_t last = 0;
    for (uint64_t word = 0; word < kWords; ++word) {
      const auto in_stream = LoadAs<uint64_t>(std::span(held).subspan(4096 + word * 8));
      const auto in_image = LoadAs<uint64_t>((*image)->pool().bytes().subspan(4096 + word * 8));
      different += in_stream != in_image ? 1 : 0;
      const uint64_t next = in_stream == 0 && word > 0 ? word : in_stream + kWords;
      EXPECT_TRUE(in_image == in_stream || in_image == next) << in_image << " and " << in_stream;
      last = std::max(last, in_image);
    }
    EXPECT_LE(different, 1U) << "after " << last << " stores";
    stores += last;
    ASSERT_TRUE((*image)->Remove().ok());
  }
  EXPECT_GT(stores, 0U);
}

}  // namespace
}  // namespace erda::journal
