# The files that Debian requires besides the programs: the changelog, made from CHANGELOG.md, and the
# copyright. CHANGELOG.md has "## VERSION, YYYY-MM-DD" and "- " lines below it, the newest version first;
# that one must be this project's. Lines above the first version ("## Unreleased") are left out.
set(changelog ${PROJECT_SOURCE_DIR}/CHANGELOG.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${changelog})
set(texts ${PROJECT_BINARY_DIR}/debian)
file(MAKE_DIRECTORY ${texts})

file(STRINGS ${changelog} lines ENCODING UTF-8)
set(changes "")
set(version "")
set(newest "")
function(motley_end_of_version)
  execute_process(COMMAND date -u -R -d ${date} OUTPUT_VARIABLE when OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  set(changes "${changes}\n -- ${CPACK_PACKAGE_CONTACT}  ${when}\n" PARENT_SCOPE)
endfunction()
foreach(line IN LISTS lines)
  if(line MATCHES "^## ([0-9.]+), ([0-9-]+)$")
    if(version)
      motley_end_of_version()
      string(APPEND changes "\n")
    else()
      set(newest ${CMAKE_MATCH_1})
    endif()
    set(version ${CMAKE_MATCH_1})
    set(date ${CMAKE_MATCH_2})
    string(APPEND changes
           "motley (${version}-${MOTLEY_DEBIAN_REVISION}) unstable; urgency=medium\n\n")
  elseif(NOT version)
    continue()
  elseif(line MATCHES "^- (.*)$")
    string(APPEND changes "  * ${CMAKE_MATCH_1}\n")
  elseif(line MATCHES "^  (.*)$")
    string(APPEND changes "    ${CMAKE_MATCH_1}\n")
  endif()
endforeach()
if(NOT newest STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "CHANGELOG.md begins with version '${newest}', the project is ${PROJECT_VERSION}: write what is new")
endif()
motley_end_of_version()
file(WRITE ${texts}/changelog "${changes}")
execute_process(COMMAND ${MOTLEY_GZIP} -9nc ${texts}/changelog
                OUTPUT_FILE ${texts}/changelog.Debian.gz COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${MOTLEY_GZIP} -9nc ${changelog}
                OUTPUT_FILE ${texts}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)

# README.md refers to LICENSE, whose text is in the copyright.
file(CREATE_LINK copyright ${texts}/LICENSE SYMBOLIC)
install(FILES ${texts}/LICENSE DESTINATION ${doc}/motley COMPONENT debian)

foreach(part debian:motley dev_debian:libmotley-dev)
  string(REGEX MATCH "^(.*):(.*)$" whole ${part})
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/debian-copyright RENAME copyright
          DESTINATION ${doc}/${CMAKE_MATCH_2} COMPONENT ${CMAKE_MATCH_1})
  install(FILES ${texts}/changelog.Debian.gz ${texts}/changelog.gz DESTINATION ${doc}/${CMAKE_MATCH_2}
          COMPONENT ${CMAKE_MATCH_1})
endforeach()
