# Options of the command line. CLI11 is headers only, and every file that includes it compiles all of it anew;
# where its definitions lie in headers of their own (2.3 and later), they are compiled once for all.
find_package(CLI11 CONFIG REQUIRED)

get_target_property(cli11_folder CLI11::CLI11 INTERFACE_INCLUDE_DIRECTORIES)
file(GLOB cli11_definitions ${cli11_folder}/CLI/impl/*_inl.hpp)
if(cli11_definitions)
  set(cli11_source "")
  foreach(header ${cli11_definitions})
    string(APPEND cli11_source "#include \"${header}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cli11.cpp CONTENT "${cli11_source}" @ONLY)
  add_library(vitrine_cli11 STATIC ${PROJECT_BINARY_DIR}/cli11.cpp)
  target_compile_definitions(vitrine_cli11 PUBLIC CLI11_COMPILE)
  target_link_libraries(vitrine_cli11 PUBLIC CLI11::CLI11)
else()
  add_library(vitrine_cli11 INTERFACE)
  target_link_libraries(vitrine_cli11 INTERFACE CLI11::CLI11)
endif()
