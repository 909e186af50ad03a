# cuDNN 9 as the target tidepool::cudnn: it comes without a package file for CMake. Used by this build, and by projects
# that find the installed package. REQUIRES: find_package(CUDAToolkit) was called.
find_path(CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR)
if(CUDNN_FOUND AND NOT TARGET tidepool::cudnn)
  add_library(tidepool::cudnn UNKNOWN IMPORTED)
  set_target_properties(tidepool::cudnn PROPERTIES IMPORTED_LOCATION ${CUDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${CUDNN_INCLUDE_DIR})
endif()
