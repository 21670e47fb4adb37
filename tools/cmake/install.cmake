# The installed files beside the targets: headers, the CMake package, pkg-config files, the Python module, the list of
# components.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/erda DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT liberda-dev FILES_MATCHING PATTERN "*.h")
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/erda)
configure_package_config_file(tools/cmake/erda-config.cmake.in erda-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(erda-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/erda-config.cmake ${PROJECT_BINARY_DIR}/erda-config-version.cmake
  DESTINATION ${package_dir} COMPONENT liberda-dev)
install(EXPORT erda-targets NAMESPACE erda:: DESTINATION ${package_dir} COMPONENT liberda-dev)
# Relative to the .pc file, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
foreach(name client server)
  if(TARGET erda_${name})
    configure_file(tools/cmake/erda-${name}.pc.in erda-${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/erda-${name}.pc
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT liberda-dev)
  endif()
endforeach()

# The Python module, over the C API of both libraries.
if(ERDA_CLIENT AND ERDA_SERVER)
  configure_file(tools/cmake/install_python.cmake.in install_python.cmake @ONLY)
  install(SCRIPT ${PROJECT_BINARY_DIR}/install_python.cmake COMPONENT python3-erda)
endif()

add_custom_target(uninstall VERBATIM
  COMMAND ${CMAKE_COMMAND} -D MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt -P ${PROJECT_SOURCE_DIR}/tools/cmake/uninstall.cmake)

# The list of components in SPDX, which is installed. (A build with sanitizers stays on its machine.)
get_property(binaries GLOBAL PROPERTY ERDA_BINARIES)
list(TRANSFORM binaries REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE binary_files)
if(NOT ERDA_SANITIZE)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  set(ERDA_SBOM ${PROJECT_BINARY_DIR}/erda.spdx.json)
  add_custom_command(OUTPUT ${ERDA_SBOM} VERBATIM
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/supply/sbom.py --version ${PROJECT_VERSION}
      --readelf ${CMAKE_READELF} --out ${ERDA_SBOM} ${binary_files}
    DEPENDS ${PROJECT_SOURCE_DIR}/tools/supply/sbom.py ${binaries}
    COMMENT "What it is made of: erda.spdx.json")
  add_custom_target(sbom ALL DEPENDS ${ERDA_SBOM})
  install(FILES ${ERDA_SBOM} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT liberda-dev)
endif()
