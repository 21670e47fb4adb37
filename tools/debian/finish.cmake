# CPack calls it when the files of all packages are in place. Manual pages are compressed. The libraries are where the loader looks, so programs have no
# path of their own to them. The list of what Erda is made of has the checksums of the files in the packages.
file(GLOB_RECURSE programs ${CPACK_TEMPORARY_DIRECTORY}/*/usr/bin/*)
foreach(program IN LISTS programs)
  file(RPATH_REMOVE FILE ${program})
endforeach()
file(GLOB_RECURSE list ${CPACK_TEMPORARY_DIRECTORY}/*/erda.spdx.json)
file(GLOB_RECURSE libraries ${CPACK_TEMPORARY_DIRECTORY}/*/usr/lib/*.so.*.* ${CPACK_TEMPORARY_DIRECTORY}/*/erda/liberda-*.so)
execute_process(COMMAND ${CPACK_ERDA_SBOM} --out ${list} ${libraries} ${programs} COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*)
execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
