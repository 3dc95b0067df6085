# motley_add_module(NAME SOURCES … HEADERS … [PUBLIC …] [PRIVATE …] [COLD])
#
# One static library a module, alias motley::NAME. Headers are a file set, so they install with the
# package and each is checked to compile alone (MOTLEY_CHECK_HEADERS). PUBLIC and PRIVATE name the
# modules and libraries it uses: the edges of ARCHITECTURE.md, tested by tests/base/layers_test.
# COLD: nobody waits for what it computes, so it is compiled in two thirds of the time.
# Those that use LibTorch, themselves or through another, are the package's component "torch"; a
# program that finds the package without it needs no LibTorch.
include(GNUInstallDirs)

function(motley_add_module name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  set(target motley_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(motley::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MOTLEY_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
                                  FILES ${ARG_HEADERS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} motley_warnings)
  if(ARG_COLD)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name}
                        VERIFY_INTERFACE_HEADER_SETS ${MOTLEY_CHECK_HEADERS})
  get_property(with_torch GLOBAL PROPERTY motley_with_torch)
  set(export motleyTargets)
  set(component dev)
  foreach(used IN LISTS ARG_PUBLIC ARG_PRIVATE)
    if(used STREQUAL "LibTorch::LibTorch" OR used IN_LIST with_torch)
      set(export motleyTorchTargets)
      set(component dev_torch)
    endif()
  endforeach()
  if(export STREQUAL "motleyTorchTargets")
    set_property(GLOBAL APPEND PROPERTY motley_with_torch motley::${name})
  endif()
  install(TARGETS ${target} EXPORT ${export}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/motley COMPONENT ${component}
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/motley COMPONENT ${component})
endfunction()
