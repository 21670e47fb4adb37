# CPack calls this when the files of all packages are in place. It compresses the manual pages. It removes the programs'
# paths to the libraries, since the loader finds these itself. It writes the list of Erda's parts with the checksums of
# the packaged files.
file(GLOB_RECURSE programs ${CPACK_TEMPORARY_DIRECTORY}/*/usr/bin/*)
foreach(program IN LISTS programs)
  file(RPATH_REMOVE FILE ${program})
endforeach()
file(GLOB_RECURSE list ${CPACK_TEMPORARY_DIRECTORY}/*/erda.spdx.json)
file(GLOB_RECURSE libraries ${CPACK_TEMPORARY_DIRECTORY}/*/usr/lib/*.so.*.* ${CPACK_TEMPORARY_DIRECTORY}/*/erda/liberda-*.so)
execute_process(COMMAND ${CPACK_ERDA_SBOM} --out ${list} ${libraries} ${programs} COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*)
execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
