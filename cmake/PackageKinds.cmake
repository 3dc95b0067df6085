# Read by cpack before each kind of package: its content, and whether it can be made.
if(CPACK_GENERATOR STREQUAL "DEB")
  if(CPACK_MOTLEY_LIBTORCH STREQUAL "none")
    message(FATAL_ERROR "this build is without LibTorch, so that its package could not train: configure with "
                        "-DMOTLEY_WITH_TORCH=ON, as scripts/package does")
  elseif(NOT CPACK_MOTLEY_LIBTORCH STREQUAL "debian")
    message(FATAL_ERROR "this build uses the LibTorch in ${CPACK_MOTLEY_LIBTORCH}, which is in no package of Debian that a "
                        ".deb could depend on: configure with -DMOTLEY_TORCH=debian, as scripts/package does")
  endif()
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_COMPONENTS_ALL programs debian dev dev_debian)
else()
  set(CPACK_COMPONENTS_ALL programs archive dev)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
endif()
