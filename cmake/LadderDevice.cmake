# Which device the kernels are compiled for, and with which flags.
#   LADDER_DEVICE   cpu or cuda; at first cuda where a CUDA compiler of version 12.3 or newer is found, else cpu
#   LADDER_CHECKED  the CPU device sees every access of a kernel (on), or runs it bare (off)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Kind of build" FORCE)  # debug information: reports name lines
endif()

option(LADDER_CHECKED "CPU device: see every load and store of a kernel" ON)
option(LADDER_WERROR "Treat warnings as errors" OFF)
option(LADDER_COVERAGE "Measure with gcov which lines run" OFF)
set(LADDER_SANITIZE "" CACHE STRING "Sanitizers for host and kernels, as in -fsanitize=, e.g. address,undefined")

# A user's architectures win, also those of the environment, which CMake itself reads only later.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES "$ENV{CUDAARCHS}" CACHE STRING "CUDA architectures")
endif()

if(NOT DEFINED LADDER_DEVICE)
  include(CheckLanguage)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80)  # only for the check: CMake 3.25 would try sm_52, which CUDA 13 no longer knows
    check_language(CUDA)
    unset(CMAKE_CUDA_ARCHITECTURES)
  else()
    check_language(CUDA)
  endif()
  set(found cpu)
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    if(nvcc_version MATCHES "release ([0-9]+\\.[0-9]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 12.3)
      set(found cuda)
    endif()
  endif()
  set(LADDER_DEVICE ${found} CACHE STRING "Device that kernels are compiled for: cpu or cuda")
endif()
set_property(CACHE LADDER_DEVICE PROPERTY STRINGS cpu cuda)
if(NOT LADDER_DEVICE MATCHES "^(cpu|cuda)$")
  message(FATAL_ERROR "LADDER_DEVICE is '${LADDER_DEVICE}', must be cpu or cuda")
endif()
message(STATUS "Kernels are compiled for: ${LADDER_DEVICE}")

if(LADDER_DEVICE STREQUAL "cuda")
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # Those of the GPUs that are here ("9.0"), else a list that any machine can compile.
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE capabilities ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" CMAKE_CUDA_ARCHITECTURES "${capabilities}")
    list(REMOVE_DUPLICATES CMAKE_CUDA_ARCHITECTURES)
    list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "\\." "")
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80 90)
    endif()
  endif()
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.3)
    message(FATAL_ERROR "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is too old: 12.3 or newer is needed. -DLADDER_DEVICE=cpu does without")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc 12 and newer speak C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
endif()

# Flags of all our code, host and kernels.
add_library(ladder_flags INTERFACE)
target_include_directories(ladder_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_features(ladder_flags INTERFACE cxx_std_20)
# Messages and debug information name files as they stand in the repository.
target_compile_options(ladder_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion;-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow;-lineinfo>)
# g++ 11 warns of copies that cannot happen, in the library's own headers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  target_compile_options(ladder_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>)
endif()
if(LADDER_WERROR)
  target_compile_options(ladder_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>)
endif()
if(LADDER_SANITIZE)
  target_compile_options(ladder_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${LADDER_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>)
  # What the sanitizers add to the code makes g++ warn of variables inside std::regex; it says itself not to combine them.
  target_compile_options(ladder_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  target_link_options(ladder_flags INTERFACE -fsanitize=${LADDER_SANITIZE})
endif()
if(LADDER_COVERAGE)
  target_compile_options(ladder_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--coverage;-fprofile-update=atomic>)
  target_link_options(ladder_flags INTERFACE --coverage)
endif()

# Flags of files that hold kernels, when they are compiled for the CPU device.
#   -ffp-contract=off            g++ and clang give the same bits
#   -Wno-pass-failed             clang tells of a loop that it was asked to unroll, for a GPU's sake, and cannot
#   -fstack-clash-protection     a large local array touches the guard below a thread's stack, and does not jump it
#   -fno-ipa-icf                 two rungs with the same kernel: g++ would merge them and lose the lines of one
#   -fsanitize=thread, bounds, alignment    the compiler tells the device of each access (common/cpu_device/access.cpp)
# ladder_bare_kernel_flags are those without the last: kernels that the device does not see, even in a checked build.
add_library(ladder_bare_kernel_flags INTERFACE)
add_library(ladder_kernel_flags INTERFACE)
target_link_libraries(ladder_kernel_flags INTERFACE ladder_bare_kernel_flags)
if(LADDER_DEVICE STREQUAL "cpu")
  target_compile_options(ladder_bare_kernel_flags INTERFACE
    -ffp-contract=off -fstack-clash-protection -Wno-unknown-pragmas $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
  target_compile_definitions(ladder_bare_kernel_flags INTERFACE LADDER_BARE_KERNELS)  # see launch.hpp
  if(LADDER_CHECKED)
    target_compile_options(ladder_kernel_flags INTERFACE -fsanitize=thread,bounds,alignment
      -fno-lto                      # which would leave the callbacks out
      -fno-optimize-sibling-calls   # a callback in the last place would be told with the caller's line
      -U_FORTIFY_SOURCE)            # with which g++ puts memset and memcpy of known size in place, unseen
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(ladder_kernel_flags INTERFACE --param=tsan-instrument-func-entry-exit=0 -fno-ipa-icf
        -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset)  # g++ would put them in place, unseen
    else()
      # clang leaves out a read before a write of the same cell, unless told otherwise.
      target_compile_options(ladder_kernel_flags INTERFACE
        "SHELL:-mllvm -tsan-instrument-func-entry-exit=0" "SHELL:-mllvm -tsan-instrument-read-before-write=1"
        -fno-vectorize -fno-slp-vectorize  # one access for each that the kernel makes, and not one for four neighbours
        -gdwarf-aranges  # without this index libdw does not find the line of an address
        -fdebug-compilation-dir=.)
    endif()
  endif()
endif()

# Sources that hold kernels end in .cu. nvcc takes them as they are; a C++ compiler must be told.
function(ladder_kernel_sources)
  if(LADDER_DEVICE STREQUAL "cpu")
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  endif()
endfunction()
