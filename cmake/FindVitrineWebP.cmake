# libwebp and its demultiplexer as targets, for CMake and distributions of any age: the libraries' own
# package files differ between releases, and some distributions leave them out.
find_path(VitrineWebP_INCLUDE_DIR webp/demux.h)
find_library(VitrineWebP_LIBRARY NAMES webp)
find_library(VitrineWebP_DEMUX_LIBRARY NAMES webpdemux)
mark_as_advanced(VitrineWebP_INCLUDE_DIR VitrineWebP_LIBRARY VitrineWebP_DEMUX_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(VitrineWebP REQUIRED_VARS VitrineWebP_LIBRARY VitrineWebP_DEMUX_LIBRARY
                                  VitrineWebP_INCLUDE_DIR)

if(VitrineWebP_FOUND AND NOT TARGET VitrineWebP::demux)
  add_library(VitrineWebP::webp UNKNOWN IMPORTED)
  set_target_properties(VitrineWebP::webp PROPERTIES IMPORTED_LOCATION ${VitrineWebP_LIBRARY}
                                                     INTERFACE_INCLUDE_DIRECTORIES ${VitrineWebP_INCLUDE_DIR})
  add_library(VitrineWebP::demux UNKNOWN IMPORTED)
  set_target_properties(VitrineWebP::demux PROPERTIES IMPORTED_LOCATION ${VitrineWebP_DEMUX_LIBRARY}
                                                      INTERFACE_LINK_LIBRARIES VitrineWebP::webp)
endif()
