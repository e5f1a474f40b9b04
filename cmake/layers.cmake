# qwench_precompile(TARGET headers...): large headers of libraries, read once for all of a target's files.
function(qwench_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  qwench_precompile_options(${target})
endfunction()

# qwench_precompile_as(TARGET OTHER): what is precompiled for OTHER, whose compile options are the same.
function(qwench_precompile_as target other)
  target_precompile_headers(${target} REUSE_FROM ${other})
  qwench_precompile_options(${target})
endfunction()

function(qwench_precompile_options target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Lets ccache see what the header holds. The warnings are false alarms inside the standard library, which GCC
    # no longer knows for a system header once it is precompiled.
    target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds -Wno-stringop-overflow
                                             -Wno-maybe-uninitialized)
  endif()
endfunction()

# qwench_unity(TARGET [BATCH]): its files are compiled several at a time where QWENCH_UNITY asks for it. Not the kernels:
# Highway includes each of their files once for every instruction set.
function(qwench_unity target)
  if(QWENCH_UNITY AND NOT target STREQUAL "qwench_kernels")
    set(batch ${QWENCH_UNITY_BATCH})
    if(ARGN)
      set(batch ${ARGN})
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      # GCC takes a file that is included for a header, whose unnamed namespaces others could include too.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# qwench_layer(NAME LINK libs...): the static library qwench_NAME from src/NAME.
function(qwench_layer name)
  cmake_parse_arguments(LAYER "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  if(NOT sources)
    add_library(qwench_${name} INTERFACE)
    return()
  endif()
  add_library(qwench_${name} STATIC ${sources})
  target_include_directories(qwench_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(qwench_${name} PUBLIC ${LAYER_LINK})
  # The fuzzers see which of the code that reads outside input they reach.
  set(readers core checkpoint hub text grammar model server)
  if(QWENCH_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES Clang AND name IN_LIST readers)
    target_compile_options(qwench_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  qwench_unity(qwench_${name})
endfunction()

# libqwench: all layers in one archive, with include/qwench as its interface.
function(qwench_library)
  set(objects)
  set(links)
  foreach(layer ${ARGN})
    get_target_property(type qwench_${layer} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND objects $<TARGET_OBJECTS:qwench_${layer}>)
    endif()
  endforeach()
  add_library(libqwench STATIC ${objects})
  set_target_properties(libqwench PROPERTIES OUTPUT_NAME qwench)
  target_include_directories(libqwench PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(libqwench PUBLIC fmt::fmt nlohmann_json::nlohmann_json Threads::Threads simdjson::simdjson
                                         PkgConfig::pcre2 PkgConfig::utf8proc PkgConfig::hwy PkgConfig::curl PkgConfig::crypto PkgConfig::ssl)
endfunction()

# The program qwench from src/cli; its commands also as a library, for their tests.
function(qwench_program)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(NOT sources)
    return()
  endif()
  add_library(qwench_cli STATIC ${sources})
  target_include_directories(qwench_cli PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(qwench_cli PUBLIC QWENCH_VERSION="${PROJECT_VERSION}")
  target_link_libraries(qwench_cli PUBLIC libqwench PkgConfig::edit)
  target_link_libraries(qwench_cli PRIVATE CLI11::CLI11)
  qwench_unity(qwench_cli)
  add_executable(qwench ${PROJECT_SOURCE_DIR}/src/cli/main.cpp)
  target_link_libraries(qwench PRIVATE qwench_cli)
endfunction()
