// A mapped page that cannot be had: the kernel sends SIGBUS to the thread that touches it.
#pragma once

#include <string>

namespace erda::tools {

// From here on a SIGBUS ends the process with a line that names the file: on stderr, and in the log file if there is
// one. The process ends by the signal, as it would without this. Call it once, before threads start.
void TellBusErrors(const std::string& program, const std::string& log_file);
// From here on the line goes to this log file. From one thread at a time.
void TellBusErrorsIn(const std::string& log_file);

}  // namespace erda::tools
