# Debian packages, by CPack. A component is a package, and has its name. tools/packages makes them.
#
# This file declares how they depend on each other. dpkg-shlibdeps finds the other packages that they need.
if(NOT CPACK_PACKAGE_CONTACT)  # whoever publishes packages says who answers for them
  set(CPACK_PACKAGE_CONTACT "Erda's maintainers <maintainers@erda.invalid>")
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME erda)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each has its own
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_SET_DESTDIR ON)  # for what is in /etc
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/tools/debian/finish.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")  # soname 0: the next version may be another one
set(same "(= ${PROJECT_VERSION})")

find_program(GZIP gzip REQUIRED)
execute_process(COMMAND ${GZIP} -9nc ${PROJECT_SOURCE_DIR}/tools/debian/changelog
  OUTPUT_FILE ${PROJECT_BINARY_DIR}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)

# Arguments: <name> <section> <those of these packages that it needs> <description in a line> <longer description>
set(CPACK_COMPONENTS_ALL)
macro(erda_package name section needs summary description)
  list(APPEND CPACK_COMPONENTS_ALL ${name})
  string(TOUPPER ${name} upper)
  set(depends ${needs})
  list(TRANSFORM depends APPEND " ${same}")
  list(JOIN depends ", " CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}")
  install(FILES tools/debian/copyright ${PROJECT_BINARY_DIR}/changelog.gz DESTINATION share/doc/${name}
    COMPONENT ${name} EXCLUDE_FROM_ALL)
endmacro()

erda_package(liberda-client0 libs "" "client library of the Erda key-value store"
"It reads a server's pool with one-sided RDMA, or over shared memory, and
checks what it reads. The library is for C++ and C.")
erda_package(liberda-server0 libs "" "server library of the Erda key-value store"
"It owns a pool of non-volatile memory, and serves it to clients over RDMA
and shared memory. The library is for C++ and C.")
erda_package(liberda-dev libdevel "liberda-client0;liberda-server0" "development files of the Erda key-value store"
"Headers for C++ and C, examples, and what CMake and pkg-config need.")
erda_package(python3-erda python "liberda-client0;liberda-server0" "Erda key-value store for Python"
"A module over the libraries for C; it is not compiled.")
erda_package(erda-server database liberda-server0 "key-value store for non-volatile memory, server"
"It serves a pool to clients, as a service of systemd or by hand. With it
comes what creates pools, checks them and looks into them.
The service is neither enabled nor started when this is installed: choose
the pool and its size first, in /etc/erda/erda-server.toml.")
erda_package(erda-cli database liberda-client0 "key-value store for non-volatile memory, command line"
"It gets, puts, scans, dumps and loads the keys of a server, and shows how
the server is doing.")
erda_package(erda-bench database "liberda-client0;liberda-server0"
  "key-value store for non-volatile memory, benchmarks"
"YCSB's workloads, and what measures latency, cleaning and growth.")
if(ERDA_VERBS)
  erda_package(erda-verbs libs "" "RDMA for the Erda key-value store"
"The module that servers and clients load for addresses of verbs://. Without
it they talk over shared memory.")
  foreach(library CLIENT0 SERVER0)
    set(CPACK_DEBIAN_LIBERDA-${library}_PACKAGE_SUGGESTS "erda-verbs ${same}")
  endforeach()
  set(CPACK_DEBIAN_ERDA-VERBS_PACKAGE_RECOMMENDS "rdma-core, ibverbs-providers")
endif()

set(CPACK_DEBIAN_PYTHON3-ERDA_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON3-ERDA_PACKAGE_SHLIBDEPS OFF)
string(APPEND CPACK_DEBIAN_PYTHON3-ERDA_PACKAGE_DEPENDS ", python3 (>= 3.9)")
set(CPACK_DEBIAN_ERDA-SERVER_PACKAGE_SUGGESTS "erda-cli ${same}")
string(APPEND CPACK_DEBIAN_ERDA-SERVER_PACKAGE_DEPENDS ", passwd")
set(control conffiles postinst prerm postrm)
list(TRANSFORM control PREPEND ${PROJECT_SOURCE_DIR}/tools/debian/
  OUTPUT_VARIABLE CPACK_DEBIAN_ERDA-SERVER_PACKAGE_CONTROL_EXTRA)
install(FILES tools/erda-server/erda-server.toml DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/erda
  COMPONENT erda-server EXCLUDE_FROM_ALL)

# For finish.cmake.
set(CPACK_ERDA_SBOM ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/supply/sbom.py
  --version ${PROJECT_VERSION} --readelf ${CMAKE_READELF})
include(CPack)
