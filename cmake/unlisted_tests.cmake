# cmake -D PROGRAM=FILE -D LISTED=PATTERN:… [-D EMULATOR=…] -P unlisted_tests.cmake
#
# Fails if a GoogleTest program has a case that none of the patterns matches: no ctest entry runs it.
execute_process(COMMAND ${EMULATOR} ${PROGRAM} --gtest_list_tests --gtest_filter=-${LISTED}
                OUTPUT_VARIABLE cases ERROR_VARIABLE errors RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "cannot list the cases of ${PROGRAM}: ${status}\n${errors}")
endif()
if(cases MATCHES "\n  ")
  message(FATAL_ERROR "no ctest entry runs these cases of ${PROGRAM}:\n${cases}"
                      "hint: motley_test_suites (cmake/MotleyTest.cmake) reads suites from the lines that begin with a "
                      "test macro it knows; a suite of parameters needs an INSTANTIATE_TEST_SUITE_P")
endif()
