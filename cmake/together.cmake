# TIDE_TOGETHER: sources of a folder are compiled several at a time, and the headers of the standard library, fmt and
# GoogleTest once per build, which takes half off its time. All presets but `debug` switch it on; there, and for
# scripts/tidy, a source which forgets an include does not compile. Names in the sources of a folder must differ, those
# in unnamed namespaces too.
option(TIDE_TOGETHER "Compile several sources at a time, and headers of libraries once" OFF)

# A target that holds nothing but these headers, for others to use.
function(tide_precompiled_headers name)
  cmake_parse_arguments(arg "" "" "LINKS;HEADERS" ${ARGN})
  set(empty ${CMAKE_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "")
  add_library(${name} STATIC ${empty})
  target_link_libraries(${name} PRIVATE tide_warnings ${arg_LINKS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

function(tide_compile_together target name)
  if(TIDE_TOGETHER)
    target_precompile_headers(${target} REUSE_FROM ${name})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

if(TIDE_TOGETHER)
  # So that ccache sees which precompiled header a source was compiled with.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  set(standard <algorithm> <array> <cmath> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <optional>
    <random> <set> <span> <string> <string_view> <utility> <vector> <fmt/format.h>)
  tide_precompiled_headers(tide_precompiled LINKS fmt::fmt HEADERS ${standard})
  if(TIDE_TESTS)
    tide_precompiled_headers(tide_precompiled_tests LINKS fmt::fmt GTest::gtest HEADERS ${standard} <gtest/gtest.h>)
    if(CMAKE_POSITION_INDEPENDENT_CODE)  # programs use them, which CMake compiles with -fPIE then
      set_target_properties(tide_precompiled_tests PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(tide_precompiled_tests PRIVATE -fPIE)
    endif()
  endif()
endif()
