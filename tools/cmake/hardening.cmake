# Hardening: flags for all that is compiled and linked. They make it harder to turn a fault of memory into control of a
# process (docs/security.md, "Supply"). tests/tools/hardening_test.py checks that the results have them.
#
# A compiler that does not know a flag builds without it.
include(CheckCXXCompilerFlag)
include(CheckPIESupported)

check_pie_supported()  # Links programs as position independent, whatever the compiler's default.
set(hardening -fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i[3-6]86)$")
  list(APPEND hardening -fcf-protection)
endif()
foreach(flag IN LISTS hardening)
  string(MAKE_C_IDENTIFIER "ERDA_HAS${flag}" has)
  check_cxx_compiler_flag(${flag} ${has})
  if(${has})
    target_compile_options(erda_flags INTERFACE ${flag})
  endif()
endforeach()
# Calls of the C library check the size of memory if they know it. That needs an optimizer, and the sanitizers check
# more. (Some compilers define the macro themselves, and would warn of another value.)
set(ERDA_FORTIFIED OFF)
if(NOT ERDA_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  set(ERDA_FORTIFIED ON)
  target_compile_options(erda_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
# Tables of addresses are filled at the start, and are read-only after that. No memory is both writable and executable.
target_link_options(erda_flags INTERFACE LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:-z,text)
