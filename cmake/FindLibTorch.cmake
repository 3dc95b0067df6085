# The parts of LibTorch that Motley uses: ATen's headers and the libraries c10 and torch_cpu, found without
# LibTorch's own CMake files. In a CUDA build those fail without a CUDA toolkit, which Motley does not need:
# the program loads the GPU libraries at run time if a job names a GPU.
#
# MOTLEY_TORCH selects it: "debian" (the system's packages), "python" (the PyTorch that MOTLEY_PYTHON, else
# python3, imports), or a folder: an unpacked libtorch or Python's torch package. Defines LibTorch::LibTorch,
# LibTorch_VERSION, and LibTorch_OWN_LIBRARIES: true if LibTorch bundles a oneDNN, a BLAS, an OpenMP and a
# Gloo of its own. The system's copies must then not be loaded (the symbols of two copies would conflict).
# LibTorch_HAS_CUDA: whether it supports NVIDIA GPUs.
set(MOTLEY_TORCH "debian" CACHE STRING "debian, python or the folder of a LibTorch")
set(MOTLEY_PYTHON "python3" CACHE STRING "The Python that is asked where MOTLEY_TORCH is python")

set(LibTorch_root "")
set(LibTorch_REASON_FAILURE_MESSAGE "")
if(MOTLEY_TORCH STREQUAL "debian")
  set(LibTorch_OWN_LIBRARIES FALSE)
elseif(MOTLEY_TORCH STREQUAL "python")
  set(LibTorch_OWN_LIBRARIES TRUE)
  # Located, not imported: an import takes seconds and may print warnings.
  execute_process(
    COMMAND ${MOTLEY_PYTHON} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE LibTorch_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE LibTorch_status)
  if(NOT LibTorch_status EQUAL 0)
    message(FATAL_ERROR "${MOTLEY_PYTHON} finds no torch: pip install torch, or name another with -DMOTLEY_PYTHON=PATH")
  endif()
else()
  set(LibTorch_OWN_LIBRARIES TRUE)
  set(LibTorch_root ${MOTLEY_TORCH})
endif()

if(LibTorch_root)
  if(NOT LibTorch_root STREQUAL LibTorch_found_root)
    # The LibTorch has changed since the last configure run: the cached paths are invalid.
    unset(LibTorch_INCLUDE_DIR CACHE)
    unset(LibTorch_c10_LIBRARY CACHE)
    unset(LibTorch_cpu_LIBRARY CACHE)
    set(LibTorch_found_root ${LibTorch_root} CACHE INTERNAL "")
  endif()
  find_path(LibTorch_INCLUDE_DIR ATen/ATen.h PATHS ${LibTorch_root}/include NO_DEFAULT_PATH)
  find_library(LibTorch_c10_LIBRARY c10 PATHS ${LibTorch_root}/lib NO_DEFAULT_PATH)
  find_library(LibTorch_cpu_LIBRARY torch_cpu PATHS ${LibTorch_root}/lib NO_DEFAULT_PATH)
  set(LibTorch_missing "")
  set(LibTorch_files ATen/ATen.h libc10 libtorch_cpu)
  set(LibTorch_places LibTorch_INCLUDE_DIR LibTorch_c10_LIBRARY LibTorch_cpu_LIBRARY)
  foreach(file place IN ZIP_LISTS LibTorch_files LibTorch_places)
    if(NOT ${place})
      list(APPEND LibTorch_missing ${file})
    endif()
  endforeach()
  if(LibTorch_missing)
    list(JOIN LibTorch_missing ", " LibTorch_missing)
    message(FATAL_ERROR "${LibTorch_root} is no LibTorch, it lacks ${LibTorch_missing}: -DMOTLEY_TORCH=FOLDER names an "
                        "unpacked one or a torch package, =python that of -DMOTLEY_PYTHON=PATH, =debian the system's")
  endif()
  # Debian's Python package contains links to the system's headers and libraries.
  if(LibTorch_c10_LIBRARY)
    file(REAL_PATH ${LibTorch_c10_LIBRARY} LibTorch_real)
    if(LibTorch_real MATCHES "^/usr/lib/[^/]+/libc10")
      set(LibTorch_OWN_LIBRARIES FALSE)
    endif()
  endif()
else()
  find_path(LibTorch_INCLUDE_DIR ATen/ATen.h)
  find_library(LibTorch_c10_LIBRARY c10)
  find_library(LibTorch_cpu_LIBRARY torch_cpu)
endif()

foreach(header torch/headeronly/version.h torch/version.h torch/csrc/api/include/torch/version.h)
  if(LibTorch_INCLUDE_DIR AND EXISTS "${LibTorch_INCLUDE_DIR}/${header}")
    set(LibTorch_VERSION "")
    foreach(part MAJOR MINOR PATCH)
      file(STRINGS "${LibTorch_INCLUDE_DIR}/${header}" LibTorch_line REGEX "define TORCH_VERSION_${part} ")
      if(LibTorch_line MATCHES "([0-9]+)$")
        list(APPEND LibTorch_VERSION ${CMAKE_MATCH_1})
      endif()
    endforeach()
    list(JOIN LibTorch_VERSION "." LibTorch_VERSION)
    break()
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_cpu_LIBRARY LibTorch_c10_LIBRARY LibTorch_INCLUDE_DIR LibTorch_VERSION
  VERSION_VAR LibTorch_VERSION)
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_c10_LIBRARY LibTorch_cpu_LIBRARY)
if(NOT LibTorch_FOUND)
  return()
endif()

# Programs of a current g++ cannot be linked with libraries of the old string ABI (most wheels up to 2.6).
set(LibTorch_config ${LibTorch_root}/share/cmake/Torch/TorchConfig.cmake)
if(LibTorch_root AND EXISTS ${LibTorch_config})
  file(STRINGS ${LibTorch_config} LibTorch_old_strings REGEX "_GLIBCXX_USE_CXX11_ABI=0")
  if(LibTorch_old_strings)
    message(FATAL_ERROR "LibTorch ${LibTorch_VERSION} in ${LibTorch_root} is built with the C++ library's old strings, "
                        "which cannot be linked: pip install 'torch>=2.7', or use -DMOTLEY_TORCH=debian")
  endif()
endif()

set(LibTorch_headers ${LibTorch_INCLUDE_DIR})
if(LibTorch_OWN_LIBRARIES)
  # Its folder also holds headers of fmt, oneDNN and others, which must not come before the system's.
  set(LibTorch_headers ${CMAKE_BINARY_DIR}/libtorch_headers)
  file(MAKE_DIRECTORY ${LibTorch_headers})
  foreach(folder ATen c10 caffe2 torch)
    if(EXISTS ${LibTorch_INCLUDE_DIR}/${folder})
      file(CREATE_LINK ${LibTorch_INCLUDE_DIR}/${folder} ${LibTorch_headers}/${folder} SYMBOLIC)
    endif()
  endforeach()
endif()

cmake_path(GET LibTorch_cpu_LIBRARY PARENT_PATH LibTorch_folder)
set(LibTorch_HAS_CUDA FALSE)
if(EXISTS ${LibTorch_folder}/libtorch_cuda.so)
  set(LibTorch_HAS_CUDA TRUE)
endif()

if(NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::c10 UNKNOWN IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_c10_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES
                        "${LibTorch_headers};${LibTorch_headers}/torch/csrc/api/include")
  add_library(LibTorch::LibTorch UNKNOWN IMPORTED)
  set_target_properties(LibTorch::LibTorch PROPERTIES IMPORTED_LOCATION ${LibTorch_cpu_LIBRARY}
                        INTERFACE_LINK_LIBRARIES LibTorch::c10)
  if(LibTorch_OWN_LIBRARIES)
    # torch_cpu finds its own dependencies in its folder; the linker does not look them up there.
    set_property(TARGET LibTorch::LibTorch PROPERTY INTERFACE_LINK_OPTIONS LINKER:--allow-shlib-undefined)
  endif()
endif()
