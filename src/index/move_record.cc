#include "index/move_record.h"

namespace erda::index {

Result<format::MoveWord> MoveRecord::Last() const {
  const format::CheckedWord checked(nvm_.Load64(Offset()));
  const format::MoveWord word(checked.number());
  if (checked.damaged() || (!word.none() && !word.Fits(view_.size())))
    return Status(Code::kCorruption, "the record of a shard is damaged");
  return word;
}

}  // namespace erda::index
