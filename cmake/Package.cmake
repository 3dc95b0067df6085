# The installed files besides programs and modules, and the packages built by cpack: two .deb and
# an archive. docs/install.md lists their content; scripts/package builds and tests them.
include(CMakePackageConfigHelpers)

# find_package(motley): the modules with public headers, and their dependencies.
set(installed)
get_property(left GLOBAL PROPERTY motley_public_modules)
while(left)
  list(POP_FRONT left module)
  if(module IN_LIST installed)
    continue()
  endif()
  list(APPEND installed ${module})
  get_target_property(used ${module} LINK_LIBRARIES)
  if("LibTorch::LibTorch" IN_LIST used)
    message(FATAL_ERROR "${module} cannot be installed, since it uses LibTorch: remove it from the dependencies of the "
                        "modules with PUBLIC_HEADERS")
  endif()
  list(FILTER used INCLUDE REGEX "^motley::")
  list(TRANSFORM used REPLACE "^motley::" "motley_")
  list(APPEND left ${used})
endwhile()
install(TARGETS ${installed} EXPORT motleyTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/motley COMPONENT dev
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/motley COMPONENT dev)
set(MOTLEY_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/motley)
install(EXPORT motleyTargets NAMESPACE motley:: DESTINATION ${MOTLEY_PACKAGE_DIR} COMPONENT dev)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/motley-config.cmake.in
                              ${PROJECT_BINARY_DIR}/motley-config.cmake
                              INSTALL_DESTINATION ${MOTLEY_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/motley-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/motley-config.cmake ${PROJECT_BINARY_DIR}/motley-config-version.cmake
        DESTINATION ${MOTLEY_PACKAGE_DIR} COMPONENT dev)

# Documentation. The help and the pages refer to configs/ and docs/, which are installed here.
set(doc ${CMAKE_INSTALL_DATADIR}/doc)
# README.md without its links to files that are not installed.
set(readme ${PROJECT_SOURCE_DIR}/README.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${readme})
file(READ ${readme} readme_text)
foreach(absent ARCHITECTURE.md CONTRIBUTING.md docs/decisions/)
  string(REPLACE "[${absent}](${absent})" "${absent}" readme_text "${readme_text}")
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/installed/README.md "${readme_text}")
install(FILES ${PROJECT_BINARY_DIR}/installed/README.md DESTINATION ${doc}/motley COMPONENT programs)
install(DIRECTORY docs DESTINATION ${doc}/motley COMPONENT programs PATTERN decisions EXCLUDE)
install(DIRECTORY configs/ examples/ DESTINATION ${doc}/motley/examples COMPONENT programs
        PATTERN __pycache__ EXCLUDE)
file(CREATE_LINK examples ${PROJECT_BINARY_DIR}/configs SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/configs DESTINATION ${doc}/motley COMPONENT programs)
install(FILES LICENSE CHANGELOG.md DESTINATION ${doc}/motley COMPONENT archive)

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

set(CPACK_PACKAGE_NAME motley)
set(CPACK_PACKAGE_VENDOR "Motley")
set(CPACK_PACKAGE_CONTACT "Motley maintainers <maintainers@users.noreply.a-seed-bc603c7d.example>")
# cpack would prepend one summary to both packages' descriptions, which have separate summaries.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/PackageKinds.cmake)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
# The worker's LibTorch, for PackageKinds.cmake: debian's, none, or the folder of another.
set(CPACK_MOTLEY_LIBTORCH none)
if(MOTLEY_WITH_TORCH AND LibTorch_OWN_LIBRARIES)
  set(CPACK_MOTLEY_LIBTORCH ${LibTorch_folder})
elseif(MOTLEY_WITH_TORCH)
  set(CPACK_MOTLEY_LIBTORCH debian)
endif()

# Packages of different Debian releases must have different versions: 1~deb12 sorts before 1~deb13.
set(MOTLEY_DEBIAN_REVISION 1 CACHE STRING "Revision of Debian's packages")
set(CPACK_DEBIAN_PACKAGE_RELEASE ${MOTLEY_DEBIAN_REVISION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_MOTLEY_PACKAGE_NAME motley)
set(CPACK_DEBIAN_MOTLEY_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MOTLEY_PACKAGE_SHLIBDEPS ON)
# LibTorch works with any BLAS; without this one matrix products are tens of times slower.
set(CPACK_DEBIAN_MOTLEY_PACKAGE_DEPENDS libopenblas0-pthread)
set(CPACK_DEBIAN_MOTLEY_PACKAGE_RECOMMENDS openssh-client)
set(CPACK_DEBIAN_MOTLEY_DESCRIPTION "train one model on heterogeneous machines
Motley measures how fast each machine computes each layer of a model and how
fast the links are, plans which machine computes what, and trains the model
as a pipeline over machines of any speed, joined by an ordinary network.")
set(CPACK_DEBIAN_LIBMOTLEY_PACKAGE_NAME libmotley-dev)
set(CPACK_DEBIAN_LIBMOTLEY_PACKAGE_SECTION libdevel)
set(dev_packages libfmt-dev libspdlog-dev nlohmann-json3-dev libzstd-dev libssl-dev libxxhash-dev libhwy-dev)
foreach(format gif jpeg png tiff webp)
  if(TARGET motley_${format})
    list(APPEND dev_packages lib${format}-dev)
  endif()
endforeach()
list(JOIN dev_packages ", " CPACK_DEBIAN_LIBMOTLEY_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_LIBMOTLEY_DESCRIPTION "planner and checkpoint libraries of Motley
Motley's planner, the formats of its plans and checkpoints, and its codecs, as
static libraries with headers for C++20. CMake finds them by
find_package(motley); they need no LibTorch.")
include(DebianTexts)

include(CPack)
cpack_add_component_group(motley)
cpack_add_component_group(libmotley)
cpack_add_component(programs GROUP motley)
cpack_add_component(debian GROUP motley)
cpack_add_component(dev GROUP libmotley)
cpack_add_component(dev_debian GROUP libmotley)
