# Fails unless a shared library exports members of one class of namespace erda, and nothing else.
# cmake -DNM=<nm> -DLIBRARY=<file> -DCLASS=<erda::Name> -P check_exports.cmake
execute_process(COMMAND ${NM} --dynamic --defined-only --extern-only --demangle ${LIBRARY}
  OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE ";" "," listing "${listing}")
string(REGEX REPLACE "\n" ";" lines "${listing}")
set(members 0)
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^[0-9a-f]* [A-Za-z] " "" symbol "${line}")
  if(symbol MATCHES "^${CLASS}::" AND NOT symbol MATCHES "^${CLASS}::Impl")
    math(EXPR members "${members} + 1")
  elseif(NOT symbol MATCHES "^((typeinfo|typeinfo name|vtable) for ${CLASS}(@|$)|ERDA_[0-9]+(@|$)|$)")
    message(SEND_ERROR "${LIBRARY} exports ${symbol}")
  endif()
endforeach()
if(members EQUAL 0)
  message(SEND_ERROR "${LIBRARY} exports nothing of ${CLASS}")
endif()
message(STATUS "${LIBRARY} exports ${members} members of ${CLASS}")
