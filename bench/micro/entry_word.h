// The work of an entry word (format/entry_word.h): the words of a put that is published and settled.
#pragma once

#include "bench/micro/suite.h"

namespace erda::micro {

void AddEntryWords(Suite& suite);

}  // namespace erda::micro
