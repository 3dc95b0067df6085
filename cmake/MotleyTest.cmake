# Test programs and their ctest entries: one entry per source file with tests, so that `ctest -R FILE` finds it.

# motley_test_computes(TEST…)
#
# Declares tests that use a full core. scripts/test gives ctest a resource file of two cores (tests/cores.json),
# so that at most two of these run at once; plain ctest has no such limit.
function(motley_test_computes)
  set_tests_properties(${ARGV} PROPERTIES RESOURCE_GROUPS "cores:1")
endfunction()

# motley_test_suites(SOURCE OUT)
#
# Sets OUT to the suites of a source: the first arguments of the macros below at the beginning of a line.
function(motley_test_suites source out)
  file(READ ${source} text)
  string(REGEX MATCHALL "(^|\n)(TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\\([ \n]*[A-Za-z0-9_]+"
         suites "${text}")
  list(TRANSFORM suites REPLACE ".*[^A-Za-z0-9_]" "")
  list(REMOVE_DUPLICATES suites)
  set(${out} ${suites} PARENT_SCOPE)
endfunction()

# motley_add_test_entries(PROGRAM OUT SOURCE…)
#
# Adds the ctest entries of a GoogleTest program and sets OUT to their names. Tests in one source:
# PROGRAM. Tests in several: PROGRAM.FILE for each FILE_test.cc, which runs the suites of that file,
# and PROGRAM.unlisted, which fails if the program has a case that none of the others runs. Changed
# sources configure again. A suite in two sources is an error: both entries would run all of it.
function(motley_add_test_entries program out)
  set(entries)
  set(listed)
  if(ARGC GREATER 3)
    foreach(source ${ARGN})
      cmake_path(ABSOLUTE_PATH source NORMALIZE)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
      motley_test_suites(${source} suites)
      set(patterns)
      foreach(suite ${suites})
        if(DEFINED source_of_${suite})
          message(SEND_ERROR "${program} has the suite ${suite} in two sources, whose ctest entries would both run "
                             "it: ${source_of_${suite}} and ${source}. Rename one of them.")
        endif()
        set(source_of_${suite} ${source})
        list(APPEND patterns "${suite}.*" "*/${suite}.*")
      endforeach()
      if(suites)
        cmake_path(GET source STEM file)
        string(REGEX REPLACE "_test$" "" file ${file})
        list(JOIN patterns ":" filter)
        list(APPEND entries ${program}.${file})
        list(APPEND listed ${filter})
      endif()
    endforeach()
  endif()
  list(LENGTH entries count)
  if(count LESS 2)
    set(entries ${program})
    add_test(NAME ${program} COMMAND ${program})
  else()
    foreach(entry filter IN ZIP_LISTS entries listed)
      add_test(NAME ${entry} COMMAND ${program} --gtest_filter=${filter})
    endforeach()
    list(JOIN listed ":" listed)
    list(APPEND entries ${program}.unlisted)
    add_test(NAME ${program}.unlisted
      COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${program}> -D LISTED=${listed}
              -D EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}
              -P ${PROJECT_SOURCE_DIR}/cmake/unlisted_tests.cmake)
  endif()
  set(${out} ${entries} PARENT_SCOPE)
endfunction()

# motley_add_test(NAME LABEL label SOURCES … LIBRARIES … [DEFINITIONS …] [TIMEOUT seconds] [PRECOMPILED] [IDLE])
#
# One GoogleTest program with the ctest entries of motley_add_test_entries. Labels: fast (no LibTorch, no
# processes), torch, multiproc (starts worker processes), lan (needs root and network namespaces). PRECOMPILED
# shares motley_torch's header (Torch.cmake). IDLE: it waits nearly all of its time and uses no core. An entry
# without a case, or whose cases all skip themselves, is reported as skipped.
function(motley_add_test name)
  cmake_parse_arguments(ARG "PRECOMPILED;IDLE" "LABEL;TIMEOUT" "SOURCES;LIBRARIES;DEFINITIONS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(MOTLEY_LIBCXX AND "rapidcheck" IN_LIST ARG_LIBRARIES)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} motley_warnings GTest::gmock_main)
  target_compile_definitions(${name} PRIVATE ${ARG_DEFINITIONS})
  if(ARG_PRECOMPILED)
    # At the header's optimization level: with another, GCC 14 warns and parses the header again.
    target_precompile_headers(${name} REUSE_FROM motley_torch)
  else()
    # Saves a quarter of the compile time; the tested libraries are optimized as usual.
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  motley_add_test_entries(${name} entries ${ARG_SOURCES})
  set_tests_properties(${entries} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} SKIP_REGULAR_EXPRESSION
    "\\[  SKIPPED \\] [1-9][0-9]* test.*\n.*\\[  PASSED  \\] 0 tests|Running 0 tests from 0 test suites")
  if(NOT ARG_IDLE)
    motley_test_computes(${entries})
  endif()
endfunction()
