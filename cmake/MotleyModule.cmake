# motley_add_module(NAME SOURCES … [PUBLIC_HEADERS …] [HEADERS …] [PUBLIC …] [PRIVATE …] [COLD])
#
# One static library per module, alias motley::NAME. PUBLIC_HEADERS are those included by programs
# outside Motley: they are installed with the package, and include no other headers of Motley (tested
# by tests/install/public_headers.cmake). HEADERS are the others; they belong to motley_NAME_headers.
# Each header is checked to compile alone (MOTLEY_CHECK_HEADERS). PUBLIC and PRIVATE name the modules
# and libraries it uses: the dependencies of ARCHITECTURE.md, tested by tests/base/layers_test. COLD: its
# speed does not matter, so it is compiled at -O1 in two thirds of the time.
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

  # A separate target: an exported target must install every header set of its interface, and only
  # those sets are checked.
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
