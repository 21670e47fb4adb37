# Functions that add libraries and programs.

# Adds objects of one or more folders of sources, for the shared libraries and for the tests.
function(erda_add_objects name)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/\\1/*.h" OUTPUT_VARIABLE headers)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/\\1/*.cc" OUTPUT_VARIABLE sources)
  file(GLOB files CONFIGURE_DEPENDS ${headers} ${sources})
  add_library(${name} OBJECT ${files})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)  # Also for folders with headers alone.
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC erda_flags)
endfunction()

# Adds a shared library that exports the names in its map, and nothing else. Each library contains a hidden copy of
# erda_core, so that a process may load both.
function(erda_add_library name)
  add_library(erda_${name} SHARED)
  add_library(erda::${name} ALIAS erda_${name})
  set(map ${PROJECT_SOURCE_DIR}/tools/cmake/erda-${name}.map)
  set_target_properties(erda_${name} PROPERTIES
    OUTPUT_NAME erda-${name} EXPORT_NAME ${name} LINKER_LANGUAGE CXX LINK_DEPENDS ${map}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_link_libraries(erda_${name} PRIVATE erda_core erda_${name}_objects)
  target_link_options(erda_${name} PRIVATE LINKER:--version-script=${map} LINKER:--exclude-libs,ALL ${lto_link})
  if(NOT ERDA_SANITIZE)  # The sanitizers' runtime is in the program, so its names are undefined here.
    target_link_options(erda_${name} PRIVATE LINKER:--no-undefined)
  endif()
  target_compile_features(erda_${name} INTERFACE cxx_std_20)
  target_include_directories(erda_${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS erda_${name} EXPORT erda-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT liberda-${name}0 NAMELINK_COMPONENT liberda-dev)
  set_property(GLOBAL APPEND PROPERTY ERDA_BINARIES erda_${name})
endfunction()

# Finds the package (tools/debian/packages.cmake) that has a program and its man page.
function(erda_package_of name package)
  set(${package} erda-server PARENT_SCOPE)
  if(name STREQUAL "erda-cli")
    set(${package} erda-cli PARENT_SCOPE)
  elseif(name MATCHES "^erda-(bench|ycsb|scheme-server)$")
    set(${package} erda-bench PARENT_SCOPE)
  endif()
endfunction()

# Adds a program of the sources in the caller's folder.
function(erda_add_program name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_executable(${name} ${sources})
  target_compile_options(${name} PRIVATE ${command_line_options})
  if("${CMAKE_UNITY_BUILD}" STREQUAL "")  # All of them include the same large headers, for command lines and JSON.
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  target_link_libraries(${name} PRIVATE erda_program_flags erda::client erda::server ${ARGN})
  target_link_options(${name} PRIVATE LINKER:--as-needed)
  # Programs find the libraries in a build and in an installed tree, wherever that is moved.
  file(RELATIVE_PATH libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set(paths "$ORIGIN/../lib" "$ORIGIN/${libraries}")
  list(REMOVE_DUPLICATES paths)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "${paths}" BUILD_WITH_INSTALL_RPATH ON)
  erda_package_of(${name} component)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/tools/completion/erda.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${name} COMPONENT ${component})
  add_dependencies(programs ${name})
  set_property(GLOBAL APPEND PROPERTY ERDA_BINARIES ${name})
endfunction()
