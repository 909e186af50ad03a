# hwloc as the target tidepool::hwloc: it comes without a package file for CMake. Used by this build, and by projects
# that find the installed package.
find_path(HWLOC_INCLUDE_DIR hwloc.h)
find_library(HWLOC_LIBRARY hwloc)
mark_as_advanced(HWLOC_INCLUDE_DIR HWLOC_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HWLOC REQUIRED_VARS HWLOC_LIBRARY HWLOC_INCLUDE_DIR)
if(HWLOC_FOUND AND NOT TARGET tidepool::hwloc)
  add_library(tidepool::hwloc UNKNOWN IMPORTED)
  set_target_properties(tidepool::hwloc PROPERTIES IMPORTED_LOCATION ${HWLOC_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${HWLOC_INCLUDE_DIR})
endif()
