# `cmake --install` and what find_package(vitrine) finds afterwards: the targets vitrine::runtime,
# vitrine::model, vitrine::images and vitrine::train, their headers under include/vitrine, the
# programs, and what the desktop app shows without being given anything. tests/package proves it.
include(CMakePackageConfigHelpers)

set(VITRINE_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/vitrine)
set(installed_targets vitrine_runtime)
foreach(target vitrine_model vitrine_images vitrine_train vitrine)
  if(TARGET ${target})
    list(APPEND installed_targets ${target})
  endif()
endforeach()
install(TARGETS ${installed_targets} EXPORT vitrineTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT vitrineTargets NAMESPACE vitrine:: DESTINATION ${VITRINE_CONFIG_DIR})
install(DIRECTORY runtime model images train shaders DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vitrine FILES_MATCHING PATTERN *.h)

configure_package_config_file(cmake/vitrineConfig.cmake.in ${PROJECT_BINARY_DIR}/vitrineConfig.cmake
                              INSTALL_DESTINATION ${VITRINE_CONFIG_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vitrineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vitrineConfig.cmake ${PROJECT_BINARY_DIR}/vitrineConfigVersion.cmake
              cmake/FindVitrineWebP.cmake
              cmake/FindVitrineZstd.cmake
        DESTINATION ${VITRINE_CONFIG_DIR})

# What the names of classes inside the programs ask to be handed on.
install(FILES model/labels/LICENCES.txt DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(FILES assets/digits/config.json assets/digits/model.safetensors assets/digits/preprocessor_config.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/vitrine/digits)
install(DIRECTORY assets/samples configs devices DESTINATION ${CMAKE_INSTALL_DATADIR}/vitrine)
if(TARGET vitrine-desktop)
  install(TARGETS vitrine-desktop RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES assets/desktop/vitrine-desktop.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
  install(FILES assets/desktop/vitrine-desktop.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
endif()
