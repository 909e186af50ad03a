# MPI's C interface as the target tidepool::mpi: CMake's own module, asked for C++, adds the old C++ bindings, and asked
# for C needs that language. Used by this build, and by projects that find the installed package.
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  set(MPIC_LIBRARIES ${MPI_CXX_LIBRARIES})
  list(FILTER MPIC_LIBRARIES EXCLUDE REGEX "libmpi_cxx|libmpicxx|libmpichcxx")
  set(MPIC_INCLUDE_DIRS ${MPI_CXX_INCLUDE_DIRS})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MPIC REQUIRED_VARS MPIC_LIBRARIES MPI_CXX_FOUND)
if(MPIC_FOUND AND NOT TARGET tidepool::mpi)
  add_library(tidepool::mpi INTERFACE IMPORTED)
  set_target_properties(tidepool::mpi PROPERTIES INTERFACE_LINK_LIBRARIES "${MPIC_LIBRARIES}"
    INTERFACE_INCLUDE_DIRECTORIES "${MPIC_INCLUDE_DIRS}")
endif()
