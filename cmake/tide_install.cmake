# The library as users have it: one archive (or, with BUILD_SHARED_LIBS, one shared library) of the objects of all
# folders, its headers, a CMake package, a file for pkg-config, and the program.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(TIDE_HEADERS ${PROJECT_BINARY_DIR}/public)
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h)
add_custom_command(OUTPUT ${TIDE_HEADERS}/made
  COMMAND ${CMAKE_COMMAND} -DSOURCES=${PROJECT_SOURCE_DIR}/src -DHEADERS=${TIDE_HEADERS}
    -P ${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${TIDE_HEADERS}/made
  DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake
  COMMENT "Collecting the headers that users get" VERBATIM)
add_custom_target(tidepool_headers DEPENDS ${TIDE_HEADERS}/made)

get_property(objects GLOBAL PROPERTY TIDE_OBJECTS)
add_library(tidepool ${objects})
add_library(tidepool::tidepool ALIAS tidepool)
add_dependencies(tidepool tidepool_headers)
target_compile_features(tidepool PUBLIC cxx_std_20)
target_include_directories(tidepool INTERFACE $<BUILD_INTERFACE:${TIDE_HEADERS}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(tidepool PUBLIC fmt::fmt PRIVATE ${TIDE_LIBRARIES})
# Versions before 1.0 promise nothing to each other.
set_target_properties(tidepool PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS tidepool EXPORT tidepool)
if(TIDE_CLI)
  set_target_properties(tide PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS tide)
endif()
install(DIRECTORY ${TIDE_HEADERS}/tidepool TYPE INCLUDE FILES_MATCHING PATTERN *.h)

# An archive's users link what it needs; a shared library has it already.
get_target_property(type tidepool TYPE)
set(needed fmt)
if(type STREQUAL "STATIC_LIBRARY")
  list(APPEND needed ${TIDE_PACKAGES})
endif()
set(TIDE_FIND_DEPENDENCIES "")
foreach(package ${needed})
  string(APPEND TIDE_FIND_DEPENDENCIES "find_dependency(${package})\n")
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tidepool)
set(written ${PROJECT_BINARY_DIR}/package)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/package/tidepool-config.cmake.in
  ${written}/tidepool-config.cmake INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${written}/tidepool-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT tidepool DESTINATION ${package} NAMESPACE tidepool:: FILE tidepool-targets.cmake)
install(FILES ${written}/tidepool-config.cmake ${written}/tidepool-config-version.cmake DESTINATION ${package})
foreach(module OneDNN CLP CUDNN)
  if(module IN_LIST needed)
    install(FILES ${PROJECT_SOURCE_DIR}/cmake/package/Find${module}.cmake DESTINATION ${package})
  endif()
endforeach()

# For pkg-config: a library as -l, with -L where linkers do not look by themselves.
function(tide_link_flags variable library)
  cmake_path(GET library PARENT_PATH folder)
  cmake_path(GET library STEM name)
  string(REGEX REPLACE "^lib" "" name ${name})
  get_filename_component(real ${folder} REALPATH)
  set(found "-l${name}")
  if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES AND NOT real IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    string(PREPEND found "-L${folder} ")
  endif()
  set(${variable} "${${variable}} ${found}" PARENT_SCOPE)
endfunction()

set(flags "")
if(TIDE_ONEDNN)
  tide_link_flags(flags ${OneDNN_LIBRARY})
  foreach(name ${OpenMP_CXX_LIB_NAMES})
    tide_link_flags(flags ${OpenMP_${name}_LIBRARY})
  endforeach()
endif()
if(TIDE_CLP_FOUND)
  tide_link_flags(flags ${CLP_LIBRARY})
  tide_link_flags(flags ${CLP_COINUTILS_LIBRARY})
endif()
if(TIDE_CUDA_FOUND)
  foreach(library ${CUDA_cudart_static_LIBRARY} ${CUDA_cublasLt_LIBRARY} ${CUDNN_LIBRARY})
    tide_link_flags(flags ${library})
  endforeach()
  string(APPEND flags " -ldl -lrt")
endif()
string(APPEND flags " -pthread")
string(STRIP "${flags}" flags)
if(type STREQUAL "STATIC_LIBRARY")
  set(TIDE_PC_LIBS ${flags})
  set(TIDE_PC_LIBS_PRIVATE "")
else()
  set(TIDE_PC_LIBS "")
  set(TIDE_PC_LIBS_PRIVATE ${flags})
endif()

# Wherever the files are moved to, the prefix is found from the place of tidepool.pc, unless folders were given in full.
set(TIDE_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
set(TIDE_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(TIDE_PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" up ${up})
  set(TIDE_PC_PREFIX "\${pcfiledir}/${up}")
  set(TIDE_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  set(TIDE_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/package/tidepool.pc.in ${written}/tidepool.pc @ONLY)
install(FILES ${written}/tidepool.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
