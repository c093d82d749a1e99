# ladder_rung(NN_name [tests...]) adds a rung: its program, build/<preset>/NN_name, from steps/NN_name/main.cu.
# ladder_bench(NN_name) adds bench_NN from steps/NN_name/bench.cu, built when asked for: `benches` is all of them.
# ladder_test(name source... [LABELS label...]) adds a doctest program of its own and registers it with ctest, twice:
#   as `name`, and as `shift_name`, where each test case must notice references that are wrong on purpose.
# ladder_program_test(name label command...) registers a call of a rung's program: it must exit with 0, which it does
#   when the rung behaved as the ladder says.

add_custom_target(steps)  # all rungs' programs, without the tests

function(ladder_rung name)
  set(main ${PROJECT_SOURCE_DIR}/steps/${name}/main.cu)
  ladder_kernel_sources(${main})
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE ladder_harness ladder_kernel_flags)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  add_dependencies(steps ${name})
endfunction()

find_package(benchmark QUIET)  # here, where common/ and steps/ see it
if(NOT benchmark_FOUND)
  message(STATUS "Google Benchmark was not found: the benchmarks are left out")
endif()
add_custom_target(benches)

function(ladder_bench name)
  if(NOT benchmark_FOUND)
    return()
  endif()
  string(SUBSTRING ${name} 0 2 number)
  set(source ${PROJECT_SOURCE_DIR}/steps/${name}/bench.cu)
  ladder_kernel_sources(${source})
  add_executable(bench_${number} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(bench_${number} PRIVATE ladder_bench ladder_kernel_flags)
  set_target_properties(bench_${number} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  add_dependencies(benches bench_${number})
endfunction()

set(LADDER_TEST_SECONDS 300)
if(LADDER_SANITIZE)
  set(LADDER_TEST_SECONDS 1200)
endif()

function(ladder_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "LABELS")
  set(kernels ${test_UNPARSED_ARGUMENTS})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  set(target test_${name})
  add_executable(${target} ${test_UNPARSED_ARGUMENTS})
  target_link_libraries(${target} PRIVATE ladder_test_main ladder_harness)
  if(kernels)
    ladder_kernel_sources(${kernels})
    target_link_libraries(${target} PRIVATE ladder_kernel_flags)
  endif()
  # Test files are large: without these they take half as long again to compile. Line tables are all that reports need.
  target_compile_definitions(${target} PRIVATE DOCTEST_CONFIG_SUPER_FAST_ASSERTS)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-g1>)
  add_test(NAME ${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # RapidCheck draws the same cases each time, so that a red test stays red; RC_PARAMS="seed=N" by hand draws others.
  # 77: the device is missing. ctest then reports the test as skipped, not as passed.
  set_tests_properties(${name} PROPERTIES LABELS "${LADDER_DEVICE};${test_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT ${LADDER_TEST_SECONDS}
                       ENVIRONMENT "RC_PARAMS=seed=20260907")
  if(NOT rapidcheck_FOUND)
    return()  # a test case of properties alone would compare nothing
  endif()
  # Once more with wrong references: tests/shift.hpp. A property that fails is not to be made smaller.
  add_test(NAME shift_${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(shift_${name} PROPERTIES LABELS "${LADDER_DEVICE};shift" SKIP_RETURN_CODE 77 TIMEOUT ${LADDER_TEST_SECONDS}
                       ENVIRONMENT "LADDER_SHIFT_REFERENCES=1;RC_PARAMS=seed=20260907 noshrink=1")
endfunction()

function(ladder_program_test name label)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${LADDER_DEVICE};${label}" TIMEOUT 300
                       SKIP_REGULAR_EXPRESSION "error: no CUDA device")
endfunction()
