# weft_add_test(name target label... [ARGS args...]): one ctest test that runs one executable.
#
# gcc's thread sanitizer cannot place its shadow memory where the kernel randomizes addresses by many bits, so tests of
# such a build run with randomization off, if this system lets them.

set(weft_test_launcher "")
if(WEFT_SANITIZE STREQUAL "thread")
  find_program(WEFT_SETARCH setarch)
  if(WEFT_SETARCH)
    execute_process(COMMAND ${WEFT_SETARCH} -R true RESULT_VARIABLE setarch_failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT setarch_failed)
      set(weft_test_launcher ${WEFT_SETARCH} -R)
    endif()
  endif()
endif()

set(WEFT_STRESS_TIMEOUT 300 CACHE STRING "Seconds after which a stress test counts as hung")

function(weft_add_test name target)
  cmake_parse_arguments(arg "" "" "ARGS" ${ARGN})
  set(labels ${arg_UNPARSED_ARGUMENTS})
  # Only a bare target name makes ctest run it under the emulator of a cross build.
  if(weft_test_launcher)
    add_test(NAME ${name} COMMAND ${weft_test_launcher} $<TARGET_FILE:${target}> ${arg_ARGS})
  else()
    add_test(NAME ${name} COMMAND ${target} ${arg_ARGS})
  endif()
  set(timeout 300)
  if("stress" IN_LIST labels)
    set(timeout ${WEFT_STRESS_TIMEOUT})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout})
endfunction()
