# Every installed header compiles by itself, without warnings. Behind install.cmake.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
must_build(${CMAKE_CURRENT_LIST_DIR}/headers)
