# The installed package: find_package(motley) brings motley::base, motley::plan, … without LibTorch;
# the torch modules come along when this build had them.
include(CMakePackageConfigHelpers)

set(MOTLEY_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/motley)
install(EXPORT motleyTargets NAMESPACE motley:: DESTINATION ${MOTLEY_PACKAGE_DIR})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/motleyConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/motleyConfig.cmake
                              INSTALL_DESTINATION ${MOTLEY_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/motleyConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/motleyConfig.cmake
              ${PROJECT_BINARY_DIR}/motleyConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake DESTINATION ${MOTLEY_PACKAGE_DIR})
