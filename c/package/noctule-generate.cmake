# noctule_generate(NAME TOPICS topics.toml [TEMPLATES folder])
#
# Generates the types and endpoints of a topics.toml when CMake configures, and again whenever it, a definition or a template
# has changed; only files whose content changes are written. Makes the targets that the project has languages for:
#
#   NAME_c    a static library: types in C, headers `PACKAGE.h` and `program_PROGRAM.h`
#   NAME_cpp  headers only: `PACKAGE.hpp` and `program_PROGRAM.hpp`
#
# NAME_OUT is set to the folder with all that was generated. The program: NOCTULE_GEN, or noctule-gen beside the library, or
# `noctule gen` or `noctule-gen` on the path.
include(CMakeParseArguments)

function(noctule_generate NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TOPICS;TEMPLATES" "")
  if(NOT ARG_TOPICS OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "noctule_generate: write noctule_generate(NAME TOPICS topics.toml [TEMPLATES folder])")
  endif()
  find_program(NOCTULE_GEN noctule-gen HINTS "${NOCTULE_PREFIX}/bin")
  if(NOT NOCTULE_GEN)
    message(FATAL_ERROR "noctule_generate: there is no program noctule-gen; install it with the library, or set NOCTULE_GEN to it")
  endif()
  get_filename_component(topics "${ARG_TOPICS}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(out "${CMAKE_CURRENT_BINARY_DIR}/noctule/${NAME}")
  set(words "${topics}" --out "${out}" --print-inputs)
  if(ARG_TEMPLATES)
    get_filename_component(templates "${ARG_TEMPLATES}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND words --templates "${templates}")
  endif()
  execute_process(COMMAND "${NOCTULE_GEN}" ${words} RESULT_VARIABLE result OUTPUT_VARIABLE inputs ERROR_VARIABLE said
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  # The file that is wrong may be mended: then it is configured again.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${topics}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "noctule_generate:\n${said}")
  endif()
  message(STATUS "${said}")
  string(REPLACE "\n" ";" inputs "${inputs}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})
  set(${NAME}_OUT "${out}" PARENT_SCOPE)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  file(GLOB sources "${out}/c/*.c")
  if(sources AND "C" IN_LIST languages)
    add_library(${NAME}_c STATIC ${sources})
    target_include_directories(${NAME}_c PUBLIC "${out}/c")
    target_link_libraries(${NAME}_c PUBLIC noctule::noctule)
    target_compile_features(${NAME}_c PUBLIC c_std_99)
  endif()
  if(EXISTS "${out}/cpp" AND "CXX" IN_LIST languages)
    add_library(${NAME}_cpp INTERFACE)
    target_include_directories(${NAME}_cpp INTERFACE "${out}/cpp")
    target_link_libraries(${NAME}_cpp INTERFACE noctule::noctule)
    target_compile_features(${NAME}_cpp INTERFACE cxx_std_17)
  endif()
endfunction()
