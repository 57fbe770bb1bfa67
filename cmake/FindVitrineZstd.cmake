# libzstd as a target: its own package file is there only where it was built with CMake.
find_path(VitrineZstd_INCLUDE_DIR zstd.h)
find_library(VitrineZstd_LIBRARY NAMES zstd)
mark_as_advanced(VitrineZstd_INCLUDE_DIR VitrineZstd_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(VitrineZstd REQUIRED_VARS VitrineZstd_LIBRARY VitrineZstd_INCLUDE_DIR)

if(VitrineZstd_FOUND AND NOT TARGET VitrineZstd::zstd)
  add_library(VitrineZstd::zstd UNKNOWN IMPORTED)
  set_target_properties(VitrineZstd::zstd PROPERTIES IMPORTED_LOCATION ${VitrineZstd_LIBRARY}
                                                     INTERFACE_INCLUDE_DIRECTORIES ${VitrineZstd_INCLUDE_DIR})
endif()
