# motley_add_module(NAME SOURCES … [PUBLIC_HEADERS …] [HEADERS …] [PUBLIC …] [PRIVATE …] [COLD])
#
# One static library a module, alias motley::NAME. PUBLIC_HEADERS are those that programs outside
# Motley include: they install with the package, and include no other headers of Motley (tested by
# tests/install/public_headers.cmake). HEADERS are the others; they belong to motley_NAME_headers.
# Each of both is checked to compile alone (MOTLEY_CHECK_HEADERS). PUBLIC and PRIVATE name the modules
# and libraries it uses: the edges of ARCHITECTURE.md, tested by tests/base/layers_test.
# COLD: its speed does not matter, so it is compiled in two thirds of the time.
include(GNUInstallDirs)

function(motley_add_module name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;PUBLIC_HEADERS;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  set(target motley_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(motley::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MOTLEY_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} motley_warnings)
  if(ARG_COLD)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()

  # A target of their own: an exported one must install every set of headers of its interface, and
  # only those sets are checked.
  add_library(${target}_headers INTERFACE)
  target_link_libraries(${target}_headers INTERFACE ${target})
  target_sources(${target}_headers INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
                                             FILES ${ARG_HEADERS})
  if(ARG_PUBLIC_HEADERS)
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
                                    FILES ${ARG_PUBLIC_HEADERS})
    set_property(GLOBAL APPEND PROPERTY motley_public_modules ${target})
  endif()
  set_target_properties(${target} ${target}_headers PROPERTIES
                        VERIFY_INTERFACE_HEADER_SETS ${MOTLEY_CHECK_HEADERS})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endfunction()

# motley_test_computes(TEST…)
#
# Tests that take a core. scripts/test gives ctest a file of two (tests/cores.json), so that no more
# of these run at once; ctest alone does not count them.
function(motley_test_computes)
  set_tests_properties(${ARGV} PROPERTIES RESOURCE_GROUPS "cores:1")
endfunction()

# motley_add_test(NAME LABEL label SOURCES … LIBRARIES … [DEFINITIONS …] [TIMEOUT seconds] [PRECOMPILED] [IDLE])
#
# One GoogleTest program, one ctest entry. Labels: fast (no LibTorch, no processes), torch,
# multiproc (starts worker processes), lan (needs root and network namespaces). PRECOMPILED shares
# motley_torch's header (Torch.cmake). IDLE: it waits nearly all of its time, and takes no core.
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
    # At the optimisation that the header was made with: GCC 14 warns of it at another, and reads all anew.
    target_precompile_headers(${name} REUSE_FROM motley_torch)
  else()
    # A quarter of the time to compile less; what is tested is optimised as ever.
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
                       SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\] [1-9][0-9]* test.*\n.*\\[  PASSED  \\] 0 tests")
  if(NOT ARG_IDLE)
    motley_test_computes(${name})
  endif()
endfunction()
