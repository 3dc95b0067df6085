# Run by ctest: install, move the prefix, then configure, build and run the consumer against it.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(installed ${WORK_DIR}/installed)
set(prefix ${WORK_DIR}/moved)
set(consumer_build ${WORK_DIR}/build)
file(REMOVE_RECURSE ${WORK_DIR})

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${installed})
file(RENAME ${installed} ${prefix})  # the package must not contain absolute build or install paths

file(GLOB_RECURSE package_files ${prefix}/*.cmake)
if(NOT package_files)
  message(FATAL_ERROR "no package was installed in ${prefix}")
endif()
foreach(package_file IN LISTS package_files)
  file(READ ${package_file} text)
  foreach(folder ${BUILD_DIR} ${SOURCE_DIR} ${installed})
    string(FIND "${text}" "${folder}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${package_file} names ${folder}")
    endif()
  endforeach()
endforeach()

run(${CMAKE_COMMAND} -D ROOT=${prefix}/include/motley -D PAGE=${SOURCE_DIR}/docs/install.md
    -P ${CMAKE_CURRENT_LIST_DIR}/public_headers.cmake)

# The targets of the installed README.md's links exist.
set(pages ${prefix}/share/doc/motley)
file(READ ${pages}/README.md text)
string(REPLACE "](" "\nleads to " text "${text}")
string(REGEX MATCHALL "\nleads to [^)#\n]+" links "${text}")
if(NOT links)
  message(FATAL_ERROR "no links were found in ${pages}/README.md")
endif()
foreach(link IN LISTS links)
  string(REPLACE "\nleads to " "" link "${link}")
  if(NOT EXISTS ${pages}/${link})
    message(FATAL_ERROR "${pages}/README.md leads to ${link}, which is not installed")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${consumer_build} -G ${GENERATOR}
    -D CMAKE_BUILD_TYPE=${CONFIG} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_TOOLCHAIN_FILE=${TOOLCHAIN}
    -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${consumer_build} --config ${CONFIG})

execute_process(COMMAND ${EMULATOR} ${consumer_build}/consumer ${CHECKPOINT}
                OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed STREQUAL "2 ranks, 20 bytes, step 2\n")
  message(FATAL_ERROR "the consumer printed '${printed}'")
endif()
