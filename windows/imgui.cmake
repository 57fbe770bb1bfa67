# Dear ImGui's sources have no build of their own: what Debian's package of it has that the desktop app asks for.
cmake_minimum_required(VERSION 3.25)
project(imgui CXX)
find_package(glfw3 REQUIRED)
add_library(imgui STATIC imgui.cpp imgui_demo.cpp imgui_draw.cpp imgui_tables.cpp imgui_widgets.cpp backends/imgui_impl_glfw.cpp
                         misc/cpp/imgui_stdlib.cpp)
target_include_directories(imgui PRIVATE . backends)
target_link_libraries(imgui PRIVATE glfw)
install(TARGETS imgui)
file(GLOB headers *.h misc/cpp/*.h)
install(FILES ${headers} DESTINATION include/imgui)
install(FILES backends/imgui_impl_glfw.h DESTINATION include/imgui/backends)
