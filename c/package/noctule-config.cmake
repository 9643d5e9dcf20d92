# The targets noctule::noctule (shared) and noctule::static, for C99 and C++17, and the function noctule_generate. The folder may be moved as a whole.
get_filename_component(_noctule_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)

if(NOT TARGET noctule::noctule)
  add_library(noctule::noctule SHARED IMPORTED)
  set_target_properties(noctule::noctule PROPERTIES
    IMPORTED_LOCATION "${_noctule_prefix}/lib/libnoctule.so.0"
    IMPORTED_SONAME "libnoctule.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_noctule_prefix}/include")

  add_library(noctule::static STATIC IMPORTED)
  set_target_properties(noctule::static PROPERTIES
    IMPORTED_LOCATION "${_noctule_prefix}/lib/libnoctule.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_noctule_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
set(NOCTULE_PREFIX "${_noctule_prefix}")
unset(_noctule_prefix)
include("${CMAKE_CURRENT_LIST_DIR}/noctule-generate.cmake")
