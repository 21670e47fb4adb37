#include "journal/image_header.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace erda::journal {

uint32_t ImageHeaderCrc(const ImageHeader& header) {
  ImageHeader copy = header;
  copy.crc = 0;
  return Crc32c(0, BytesOf(copy).first(offsetof(ImageHeader, state)));
}

Result<std::optional<ImageHeader>> ReadImageHeader(int fd, const std::string& path) {
  std::array<std::byte, sizeof(ImageHeader)> bytes{};
  const ssize_t count = ::pread(fd, bytes.data(), bytes.size(), 0);
  if (count < 0) return ErrnoStatus("cannot read " + path);
  if (static_cast<size_t>(count) < bytes.size() || IsZero(bytes)) return std::optional<ImageHeader>();
  const auto header = LoadAs<ImageHeader>(bytes);
  const auto wrong = [&path](Code code, const std::string& what) { return Status(code, path + ": " + what); };
  if (header.magic != kImageMagic)
    return wrong(Code::kCorruption, "is no image of a pool; remove the file if nothing needs it");
  if (header.version != kImageVersion) {
    return wrong(Code::kInvalidArgument, "an image of version " + std::to_string(header.version) +
                                             ", and this program knows version " + std::to_string(kImageVersion) +
                                             "; start and stop the server that made it");
  }
  if (header.crc != ImageHeaderCrc(header)) return wrong(Code::kCorruption, "the header of the image is damaged");
  return std::optional(header);
}

Status WriteImageHeader(int fd, const std::string& path, const ImageHeader& header) {
  const ssize_t written = ::pwrite(fd, &header, sizeof(header), 0);
  if (written < 0) return ErrnoStatus("cannot write " + path);
  // A file in memory takes a piece of a page whole or not at all.
  return written == ssize_t{sizeof(header)} ? Status() : ErrnoStatus("cannot write " + path, EIO);
}

}  // namespace erda::journal
