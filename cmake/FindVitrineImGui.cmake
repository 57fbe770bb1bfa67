# Dear ImGui as distributions package it: the core and its GLFW backend in one static library. The backend's
# calls into Vulkan are not used: only what is called gets linked.
find_path(VitrineImGui_INCLUDE_DIR imgui.h PATH_SUFFIXES imgui)
find_path(VitrineImGui_BACKEND_DIR imgui_impl_glfw.h HINTS ${VitrineImGui_INCLUDE_DIR} PATH_SUFFIXES backends imgui/backends)
find_library(VitrineImGui_LIBRARY NAMES imgui)
find_library(VitrineImGui_TrueType_LIBRARY NAMES stb)
mark_as_advanced(VitrineImGui_INCLUDE_DIR VitrineImGui_BACKEND_DIR VitrineImGui_LIBRARY VitrineImGui_TrueType_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(VitrineImGui REQUIRED_VARS VitrineImGui_LIBRARY VitrineImGui_INCLUDE_DIR
                                  VitrineImGui_BACKEND_DIR)

if(VitrineImGui_FOUND AND NOT TARGET VitrineImGui::glfw)
  add_library(VitrineImGui::glfw UNKNOWN IMPORTED)
  set_target_properties(VitrineImGui::glfw PROPERTIES IMPORTED_LOCATION ${VitrineImGui_LIBRARY})
  target_include_directories(VitrineImGui::glfw SYSTEM INTERFACE ${VitrineImGui_INCLUDE_DIR} ${VitrineImGui_BACKEND_DIR})
  target_link_libraries(VitrineImGui::glfw INTERFACE glfw)
  # Debian builds it with its own copy of the TrueType reader left out.
  if(VitrineImGui_TrueType_LIBRARY)
    target_link_libraries(VitrineImGui::glfw INTERFACE ${VitrineImGui_TrueType_LIBRARY})
  endif()
endif()
