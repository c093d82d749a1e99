# cmake -DCOMMAND="program;--option;..." -DFILE=picture.svg -P check_picture.cmake
# Runs the program with --picture and --counters: it must succeed, and the picture must be whole and below 300 KB.
file(REMOVE ${FILE})
execute_process(COMMAND ${COMMAND} --counters --picture ${FILE} RESULT_VARIABLE status OUTPUT_VARIABLE page ERROR_VARIABLE error)
message("${page}${error}")
if(error MATCHES "only the CPU device")
  return()  # as it should be where accesses are not seen
endif()
if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit status ${status}")
endif()
if(NOT page MATCHES "\nRequests of step[0-9]+::")
  message(FATAL_ERROR "no table of requests")
endif()
file(SIZE ${FILE} bytes)
file(READ ${FILE} picture)
if(bytes GREATER_EQUAL 300000 OR NOT picture MATCHES "^<svg .*</svg>\n$")
  message(FATAL_ERROR "a picture of ${bytes} bytes, must be a whole <svg> below 300,000")
endif()
