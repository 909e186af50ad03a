# oneDNN as the target tidepool::onednn. Not its own package file: Debian's asks for OpenCL's headers, which nothing here
# needs. Used by this build, and by projects that find the installed package.
find_path(OneDNN_INCLUDE_DIR dnnl.hpp)
find_library(OneDNN_LIBRARY dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR)
if(OneDNN_FOUND AND NOT TARGET tidepool::onednn)
  add_library(tidepool::onednn UNKNOWN IMPORTED)
  set_target_properties(tidepool::onednn PROPERTIES IMPORTED_LOCATION ${OneDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${OneDNN_INCLUDE_DIR})
endif()
