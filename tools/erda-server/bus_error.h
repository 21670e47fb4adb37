// If the kernel cannot provide a mapped page, it sends SIGBUS to the thread that touches the page.
#pragma once

#include <string>

namespace erda::tools {

// After this call, a SIGBUS makes the process print a line that names the file. The line goes to stderr, and to the log
// file if there is one. Then the process ends by the signal, as it would without this call. Call it once, before
// threads start.
void TellBusErrors(const std::string& program, const std::string& log_file);
// From now on the line goes to this log file. Call it from one thread at a time.
void TellBusErrorsIn(const std::string& log_file);

}  // namespace erda::tools
