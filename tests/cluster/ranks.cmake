# Ranks that are processes: a small program under mpirun, with 1, 2 and 4 of them. Where a build has MPI but this machine
# no mpirun, the tests are skipped and say so.
target_compile_definitions(cluster_test PRIVATE TIDE_HAS_MPI=$<BOOL:${TIDE_MPI_FOUND}>)
if(TIDE_MPI_FOUND AND NOT TIDE_SANITIZE STREQUAL "thread")  # which MPI itself was not made for
  add_executable(mpi_ranks cluster/mpi_ranks.cpp)
  target_include_directories(mpi_ranks PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(mpi_ranks PRIVATE tide_warnings tide_cluster)
  find_program(TIDE_MPIRUN mpirun)
  # Under a sanitizer: what MPI itself leaks is not looked for.
  set(environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_hwloc_base_binding_policy=none ASAN_OPTIONS=detect_leaks=0)
  function(tide_ranks_test what)
    foreach(ranks ${ARGN})
      set(name mpi_${what}_${ranks})
      if(TIDE_MPIRUN)
        add_test(NAME ${name} COMMAND ${TIDE_MPIRUN} -n ${ranks} $<TARGET_FILE:mpi_ranks> ${what})
      else()
        add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "there is no mpirun: install openmpi-bin")
      endif()
      set_tests_properties(${name} PROPERTIES LABELS mpi SKIP_REGULAR_EXPRESSION "there is no mpirun")
      set_property(TEST ${name} PROPERTY ENVIRONMENT ${environment})
    endforeach()
  endfunction()
  tide_ranks_test(calls 1 2 4)
  tide_ranks_test(pieces 2 4)
  tide_ranks_test(large 2)
  # Ranks that end without having left the job are a failure to mpirun.
  tide_ranks_test(interrupt 2 4)
  set_tests_properties(mpi_interrupt_2 PROPERTIES PASS_REGULAR_EXPRESSION "was interrupted.*was interrupted")
  set_tests_properties(mpi_interrupt_4 PROPERTIES
    PASS_REGULAR_EXPRESSION "was interrupted.*was interrupted.*was interrupted.*was interrupted")
  # As a program starts itself.
  add_test(NAME mpi_launch COMMAND mpi_ranks launch 3 pieces)
  set_tests_properties(mpi_launch PROPERTIES LABELS mpi SKIP_REGULAR_EXPRESSION "there is no mpirun"
    ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  # Ranks that are killed, stopped and so on.
  find_package(Python3 3.11 COMPONENTS Interpreter)
  if(Python3_FOUND AND TIDE_MPIRUN)
    set(faults Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/faults_test.py ${TIDE_MPIRUN} $<TARGET_FILE:mpi_ranks>)
    add_test(NAME mpi_faults COMMAND ${faults})
    add_test(NAME mpi_faults_long COMMAND ${faults} 3 CONFIGURATIONS Full)
    set_tests_properties(mpi_faults mpi_faults_long PROPERTIES LABELS mpi)
    set_property(TEST mpi_faults mpi_faults_long PROPERTY ENVIRONMENT ${environment})
  endif()
  # On two hosts that are namespaces of this one, asked for by itself: ctest -C Hosts. Where they cannot be had it says
  # so and is skipped.
  if(Python3_FOUND AND TIDE_MPIRUN AND TIDE_CLI AND NOT TIDE_SANITIZE)
    add_test(NAME mpi_two_hosts CONFIGURATIONS Hosts COMMAND Python3::Interpreter
      ${CMAKE_CURRENT_SOURCE_DIR}/cluster/two_hosts_test.py ${TIDE_MPIRUN} $<TARGET_FILE:tide> $<TARGET_FILE:mpi_ranks>)
    set_tests_properties(mpi_two_hosts PROPERTIES LABELS mpi SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endif()
  # As if a launcher of another MPI had started it.
  add_test(NAME mpi_alone COMMAND mpi_ranks alone)
  set_tests_properties(mpi_alone PROPERTIES LABELS mpi
    ENVIRONMENT "OMPI_COMM_WORLD_SIZE=2;OMPI_COMM_WORLD_RANK=0;ASAN_OPTIONS=detect_leaks=0"
    PASS_REGULAR_EXPRESSION "refused: mpirun started 2 processes, but MPI connects 1 of them: use the mpirun of")
endif()
