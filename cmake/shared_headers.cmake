# TIDE_SHARED_HEADERS: the headers of the standard library, fmt and GoogleTest are compiled once per
# build, which takes a fifth off its time. Most presets switch it on. `debug` and `tsan` do not, so that a source
# which forgets an include does not compile there.
option(TIDE_SHARED_HEADERS "Compile the headers of libraries once, not in every source" OFF)

# A target that holds nothing but these headers, for others to use.
function(tide_precompiled_headers name)
  cmake_parse_arguments(arg "" "" "LINKS;HEADERS" ${ARGN})
  set(empty ${CMAKE_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "")
  add_library(${name} STATIC ${empty})
  target_link_libraries(${name} PRIVATE tide_warnings ${arg_LINKS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

function(tide_use_precompiled target name)
  if(TIDE_SHARED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

if(TIDE_SHARED_HEADERS)
  set(standard <algorithm> <array> <cmath> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <optional>
    <random> <set> <span> <string> <string_view> <utility> <vector> <fmt/format.h>)
  tide_precompiled_headers(tide_precompiled LINKS fmt::fmt HEADERS ${standard})
  if(TIDE_TESTS)
    find_package(GTest REQUIRED)
    tide_precompiled_headers(tide_precompiled_tests LINKS fmt::fmt GTest::gtest HEADERS ${standard} <gtest/gtest.h>)
  endif()
endif()
