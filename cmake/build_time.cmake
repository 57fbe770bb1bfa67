# What keeps a first build short on two cores.
include(${CMAKE_CURRENT_LIST_DIR}/compile_together.cmake)

# The headers that most of a target's files include, parsed once. Every file still includes what it uses; the
# dev preset precompiles nothing, so there one that doesn't fails.
function(vitrine_precompile target)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map>
                            <memory> <optional> <span> <string> <string_view> <utility> <vector> ${ARGN})
  vitrine_compile_together(${target})
endfunction()

# For code where -O3 only takes longer to compile: programs and tests ask, print and compare, and the libraries
# have their work done by the device. What loops over pixels (images) has -O3. Whoever names flags of their own
# gets those.
# Files that are named behind the level are those of the target that loop over pixels, too: they keep -O3, and have no
# precompiled header, whose own level GCC gives to functions for wider processors.
function(vitrine_optimise target level)
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG"
     AND NOT CMAKE_CXX_FLAGS MATCHES "-O")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
    if(ARGN)
      set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3> SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endif()
endfunction()
