# COIN-OR's CLP as the target tidepool::clp: it comes without a package file for CMake. Used by this build, and by
# projects that find the installed package.
find_path(CLP_INCLUDE_DIR Clp_C_Interface.h PATH_SUFFIXES coin)
find_library(CLP_LIBRARY Clp)
find_library(CLP_COINUTILS_LIBRARY CoinUtils)
mark_as_advanced(CLP_INCLUDE_DIR CLP_LIBRARY CLP_COINUTILS_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CLP REQUIRED_VARS CLP_LIBRARY CLP_COINUTILS_LIBRARY CLP_INCLUDE_DIR)
if(CLP_FOUND AND NOT TARGET tidepool::clp)
  add_library(tidepool::clp UNKNOWN IMPORTED)
  set_target_properties(tidepool::clp PROPERTIES IMPORTED_LOCATION ${CLP_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${CLP_INCLUDE_DIR} INTERFACE_LINK_LIBRARIES ${CLP_COINUTILS_LIBRARY})
endif()
