# Compiles shaders/GROUP/*.comp and shaders/GROUP/TARGET/*.comp to SPIR-V and makes one C++ table of them (runtime/vk/shader_table.h).
#
# A shader is plain GLSL. Lines at its top declare its variants:
#   //! variant NAME [MACRO=VALUE ...] [needs=a,b] [bind=addresses access=rrw]
# Each becomes one SPIR-V module. `needs` are the names of vitrine::Need; variants that need something
# which this glslang can't compile (cmake/probes/NEED.comp fails) are left out of the table.

set(VITRINE_GLSL_FLAGS -V --target-env vulkan1.3 --quiet)

function(vitrine_probe_need need result)
  set(probe ${PROJECT_SOURCE_DIR}/cmake/probes/${need}.comp)
  if(NOT EXISTS ${probe})
    set(${result} TRUE PARENT_SCOPE)
    return()
  endif()
  if(NOT DEFINED VITRINE_GLSLANG_HAS_${need})
    execute_process(COMMAND ${VITRINE_GLSLANG} ${VITRINE_GLSL_FLAGS} -o ${CMAKE_BINARY_DIR}/probe_${need}.spv ${probe}
                    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      set(VITRINE_GLSLANG_HAS_${need} TRUE CACHE INTERNAL "glslang compiles cmake/probes/${need}.comp")
    else()
      set(VITRINE_GLSLANG_HAS_${need} FALSE CACHE INTERNAL "glslang compiles cmake/probes/${need}.comp")
      message(STATUS "glslang can't compile ${need} shaders: their variants are left out")
    endif()
  endif()
  set(${result} ${VITRINE_GLSLANG_HAS_${need}} PARENT_SCOPE)
endfunction()

function(vitrine_compile_shaders table_out)
  set(dir ${PROJECT_BINARY_DIR}/shaders)
  file(MAKE_DIRECTORY ${dir})
  file(GLOB shaders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/*/*.comp
       ${PROJECT_SOURCE_DIR}/shaders/*/*/*.comp)
  set(includes "")
  set(rows "")
  set(headers "")
  set(count 0)
  foreach(shader ${shaders})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shader})
    get_filename_component(name ${shader} NAME_WE)
    file(STRINGS ${shader} declarations REGEX "^//! variant ")
    if(NOT declarations)
      message(FATAL_ERROR "${shader} declares no variant: its first lines need `//! variant NAME ...`")
    endif()
    foreach(declaration ${declarations})
      string(REGEX REPLACE "^//! variant +" "" declaration "${declaration}")
      string(REGEX REPLACE " +" ";" words "${declaration}")
      list(POP_FRONT words variant)
      set(defines "")
      set(needs "Need::none")
      set(bind descriptors)
      set(access "")
      set(possible TRUE)
      foreach(word ${words})
        if(word MATCHES "^needs=(.+)$")
          string(REPLACE "," ";" need_list "${CMAKE_MATCH_1}")
          foreach(need ${need_list})
            string(APPEND needs " | Need::${need}")
            vitrine_probe_need(${need} compiles)
            if(NOT compiles)
              set(possible FALSE)
            endif()
          endforeach()
        elseif(word MATCHES "^bind=(descriptors|addresses)$")
          set(bind ${CMAKE_MATCH_1})
        elseif(word MATCHES "^access=([rwx]+)$")
          set(access ${CMAKE_MATCH_1})
        elseif(word MATCHES "^[A-Z][A-Za-z0-9_]*=.+$")
          list(APPEND defines -D${word})
        else()
          message(FATAL_ERROR "${shader}: variant ${variant}: can't read '${word}'")
        endif()
      endforeach()
      if(NOT possible)
        continue()
      endif()
      set(symbol spirv_${name}_${variant})
      set(header ${dir}/${symbol}.h)
      add_custom_command(
        OUTPUT ${header}
        COMMAND ${VITRINE_GLSLANG} ${VITRINE_GLSL_FLAGS} -I${PROJECT_SOURCE_DIR}/shaders ${defines} --vn ${symbol}
                --depfile ${header}.d -o ${header} ${shader}
        DEPENDS ${shader}
        DEPFILE ${header}.d
        COMMENT "Compiling shader ${name} (${variant})"
        VERBATIM)
      list(APPEND headers ${header})
      string(APPEND includes "#include \"${header}\"\n")
      string(APPEND rows "    {\"${name}\", \"${variant}\", ${needs}, BindMode::${bind}, \"${access}\", ${symbol}},\n")
      math(EXPR count "${count} + 1")
    endforeach()
  endforeach()
  set(table ${dir}/shader_table.cpp)
  file(CONFIGURE OUTPUT ${table} @ONLY CONTENT
"// Made by cmake/shaders.cmake.
#include \"runtime/vk/shader_table.h\"

#include <array>
#include <cstdint>

namespace vitrine {
namespace {
@includes@
constexpr std::array<ShaderVariant, @count@> table{{
@rows@}};
}  // namespace

std::span<const ShaderVariant> all_shaders() { return table; }

}  // namespace vitrine
")
  set_source_files_properties(${table} PROPERTIES OBJECT_DEPENDS "${headers}")
  set(${table_out} ${table} PARENT_SCOPE)
endfunction()
