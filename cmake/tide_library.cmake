# tide_library(NAME DEPENDS a b EXCLUDE c): the folder NAME under src/ as the target tide_NAME,
# without its subfolder c (whose sources that folder's own CMakeLists.txt adds when they can be built).
#
# Every folder gets an include root of its own that holds nothing but a link to it, so a
# source can include only the folders its target is linked with: the pipeline's direction
# is checked by the compiler. The objects of all of them are what users link (tide_install.cmake).
add_library(tide_warnings INTERFACE)
set(TIDE_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
# nvcc hands its host compiler code with line markers, which -Wpedantic refuses.
string(REPLACE ";" "," TIDE_CUDA_WARNINGS "${TIDE_WARNINGS}")
target_compile_options(tide_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${TIDE_WARNINGS};-Wpedantic>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${TIDE_CUDA_WARNINGS};--Werror=all-warnings>")
# GCC takes what a sanitizer adds for uses of uninitialized memory.
if(TIDE_SANITIZE)
  target_compile_options(tide_warnings INTERFACE -Wno-maybe-uninitialized)
endif()
if(TIDE_SANITIZE STREQUAL "address")
  target_compile_options(tide_warnings INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tide_warnings INTERFACE -fsanitize=address,undefined)
elseif(TIDE_SANITIZE STREQUAL "thread")
  target_compile_options(tide_warnings INTERFACE -fsanitize=thread)
  target_link_options(tide_warnings INTERFACE -fsanitize=thread)
endif()

function(tide_library name)
  cmake_parse_arguments(arg "" "" "DEPENDS;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  foreach(subfolder ${arg_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "/${name}/${subfolder}/")
  endforeach()
  set(root ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${name} ${root}/${name} SYMBOLIC)
  if(sources)
    add_library(tide_${name} STATIC ${sources})
    set_property(GLOBAL APPEND PROPERTY TIDE_OBJECTS $<TARGET_OBJECTS:tide_${name}>)
    target_include_directories(tide_${name} PUBLIC ${root})
    target_link_libraries(tide_${name} PUBLIC fmt::fmt PRIVATE tide_warnings)
    tide_compile_together(tide_${name} tide_precompiled)
    foreach(dependency ${arg_DEPENDS})
      target_link_libraries(tide_${name} PUBLIC tide_${dependency})
    endforeach()
  else()
    add_library(tide_${name} INTERFACE)
    target_include_directories(tide_${name} INTERFACE ${root})
    foreach(dependency ${arg_DEPENDS})
      target_link_libraries(tide_${name} INTERFACE tide_${dependency})
    endforeach()
  endif()
endfunction()
