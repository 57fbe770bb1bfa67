# vitrine-desktop: built where Dear ImGui and GLFW are installed. All that needs neither is a library, so that tests
# can link it: the engine, the scripts, the state of the UI's thread and the actions on it.
option(VITRINE_BUILD_DESKTOP "Build the desktop app, where Dear ImGui and GLFW are found" ON)

file(GLOB engine_sources CONFIGURE_DEPENDS apps/desktop/engine/*.cpp apps/desktop/script/*.cpp)
set(windowless_sources actions desk_values drawing exports looking notices thumbnails training_samples words
                       gpu/color_image gpu/display_scale gpu/present_mode gpu/texture)
list(TRANSFORM windowless_sources REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/apps/desktop/\\1.cpp")
add_library(vitrine_desktop_engine STATIC ${engine_sources} ${windowless_sources})
target_link_libraries(vitrine_desktop_engine PUBLIC vitrine_train vitrine_model vitrine_images vitrine_runtime
                      PRIVATE vitrine_options nlohmann_json::nlohmann_json)
target_compile_definitions(vitrine_desktop_engine
                           PRIVATE VITRINE_SHARE_FOLDER="${CMAKE_INSTALL_FULL_DATADIR}/vitrine"
                                   VITRINE_SOURCE_FOLDER="${PROJECT_SOURCE_DIR}")
vitrine_precompile(vitrine_desktop_engine)
vitrine_optimise(vitrine_desktop_engine -O2)

if(NOT VITRINE_BUILD_DESKTOP)
  return()
endif()
find_package(glfw3 3.3 QUIET)
find_package(VitrineImGui QUIET)
if(NOT glfw3_FOUND OR NOT VitrineImGui_FOUND)
  message(STATUS "The desktop app is left out: it needs libimgui-dev and libglfw3-dev")
  return()
endif()

# The window's own shaders, as headers.
set(desktop_shader_headers "")
foreach(shader ui.vert ui.frag)
  string(REPLACE "." "_" symbol ${shader})
  set(header ${PROJECT_BINARY_DIR}/shaders/desktop/${symbol}.h)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/shaders/desktop
    COMMAND ${VITRINE_GLSLANG} ${VITRINE_GLSL_FLAGS} --vn spirv_${symbol} -o ${header}
            ${PROJECT_SOURCE_DIR}/apps/desktop/shaders/${shader}
    DEPENDS ${PROJECT_SOURCE_DIR}/apps/desktop/shaders/${shader}
    COMMENT "Compiling shader ${shader}"
    VERBATIM)
  list(APPEND desktop_shader_headers ${header})
endforeach()

file(GLOB desktop_sources CONFIGURE_DEPENDS apps/desktop/*.cpp apps/desktop/gpu/*.cpp apps/desktop/panels/*.cpp)
list(REMOVE_ITEM desktop_sources ${windowless_sources})
add_executable(vitrine-desktop ${desktop_sources} ${desktop_shader_headers})
target_include_directories(vitrine-desktop PRIVATE ${PROJECT_BINARY_DIR}/shaders/desktop)
target_link_libraries(vitrine-desktop PRIVATE vitrine_desktop_engine vitrine_train vitrine_options VitrineImGui::glfw glfw vitrine_cli11
                                              nlohmann_json::nlohmann_json)
target_compile_definitions(vitrine-desktop PRIVATE VITRINE_VERSION="${PROJECT_VERSION}" GLFW_INCLUDE_NONE)
if(WIN32)
  set_target_properties(vitrine-desktop PROPERTIES WIN32_EXECUTABLE ON)  # no console beside the window
  target_sources(vitrine-desktop PRIVATE windows/vitrine-desktop.rc)
  set_source_files_properties(windows/vitrine-desktop.rc PROPERTIES INCLUDE_DIRECTORIES ${VITRINE_ICON_FOLDER})
endif()
vitrine_precompile(vitrine-desktop)
vitrine_optimise(vitrine-desktop -O1)
