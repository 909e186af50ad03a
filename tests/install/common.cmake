# For the scripts beside it. SOURCE, BUILD: this project's folders; WORK: an own one; COMPILER, LAUNCHER, GENERATOR: as this
# build has them.
cmake_minimum_required(VERSION 3.25)
set(INSTALLED ${WORK}/moved)

# must(COMMAND...): its output, on both channels, in `output`.
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}\ngave ${code}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# must_say(PATTERN): in `output`.
function(must_say pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "'${pattern}' is not in:\n${output}")
  endif()
endfunction()

# must_build(FOLDER): a project that finds the installed package and nothing of this one, in WORK/build_NAME.
function(must_build project)
  get_filename_component(name ${project} NAME)
  must(${CMAKE_COMMAND} -S ${project} -B ${WORK}/build_${name} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${INSTALLED}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  must(${CMAKE_COMMAND} --build ${WORK}/build_${name} --parallel 2)
endfunction()
