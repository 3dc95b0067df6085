# The programs in a wheel (`pip install .`): in the folder motley/bin of the Python package, found by its module
# motley_programs. They load the libraries of the torch that the environment has.
#
# MOTLEY_WHEEL_SITE: the folder that contains torch; empty if it is the one where the wheel is installed.
set(MOTLEY_WHEEL_SITE "" CACHE STRING "The folder that contains torch, if it is another than that of the wheel")

if(NOT MOTLEY_WITH_TORCH)
  message(FATAL_ERROR "a wheel needs the worker: configure with -DMOTLEY_WITH_TORCH=ON")
endif()
string(REGEX MATCH "^[0-9]+[.][0-9]+" MOTLEY_WHEEL_TORCH_RELEASE ${LibTorch_VERSION})
set(bin motley/bin)
set(MOTLEY_WHEEL_TORCH_FOLDER "$folder/../../torch")
set(rpath "$ORIGIN/../../torch/lib;$ORIGIN/../../torch.libs")
if(MOTLEY_WHEEL_SITE)
  set(MOTLEY_WHEEL_TORCH_FOLDER ${MOTLEY_WHEEL_SITE}/torch)
  set(rpath ${MOTLEY_WHEEL_SITE}/torch/lib ${MOTLEY_WHEEL_SITE}/torch.libs)
endif()
if(NOT LibTorch_OWN_LIBRARIES)
  set(rpath "")  # the system's libraries, which the loader finds
endif()

# motley-stage is a script that refuses another torch, since a program fails before its main function if a
# library lacks a symbol. The worker itself has another name.
set_target_properties(motley-stage PROPERTIES OUTPUT_NAME motley-stage-torch INSTALL_RPATH "${rpath}")
install(TARGETS motley motley-stage motley-store RUNTIME DESTINATION ${bin} COMPONENT wheel)
configure_file(${CMAKE_CURRENT_LIST_DIR}/motley-stage.in ${PROJECT_BINARY_DIR}/wheel/motley-stage @ONLY)
install(PROGRAMS ${PROJECT_BINARY_DIR}/wheel/motley-stage DESTINATION ${bin} COMPONENT wheel)
file(WRITE ${PROJECT_BINARY_DIR}/wheel/torch-version "${MOTLEY_WHEEL_TORCH_RELEASE}\n")
install(FILES ${PROJECT_BINARY_DIR}/wheel/torch-version DESTINATION ${bin} COMPONENT wheel)
# Not by scikit-build-core, which would leave it in the repository for `pip install -e .`, far from the programs.
install(FILES python/motley_programs.py DESTINATION . COMPONENT wheel)
