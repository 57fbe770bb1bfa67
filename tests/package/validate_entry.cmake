cmake_minimum_required(VERSION 3.25)

find_program(validator desktop-file-validate)
if(NOT validator)
  message("desktop-file-validate is not installed")
  return()
endif()
execute_process(COMMAND ${validator} ${ENTRY} RESULT_VARIABLE status OUTPUT_VARIABLE words ERROR_VARIABLE words)
# Hints, too: the entry is ours to get right.
if(NOT status EQUAL 0 OR NOT "${words}" STREQUAL "")
  message(FATAL_ERROR "${ENTRY}: ${words}")
endif()
