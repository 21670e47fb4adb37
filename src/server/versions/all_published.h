// The proof that a shard has published all its puts. A function takes the proof by value if it would reveal an
// unpublished put, or would end the protection of one. Nothing can copy or move a proof, so a caller makes it in the
// call itself: EndSession(batch.Publish(), session). A caller that forgets to publish does not compile. Neither does
// one that keeps a proof across a later put. The shard's thread makes and takes proofs.
#pragma once

namespace erda::server {

// PublishBatch::Publish alone makes one.
class AllPublished {
 public:
  AllPublished(const AllPublished&) = delete;
  AllPublished& operator=(const AllPublished&) = delete;

 private:
  friend class PublishBatch;  // only to make a proof: the class has no state
  AllPublished() = default;
};

}  // namespace erda::server
