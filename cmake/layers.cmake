# qwench_layer(NAME LINK libs...): the static library qwench_NAME from src/NAME.
function(qwench_layer name)
  cmake_parse_arguments(LAYER "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  add_library(qwench_${name} STATIC ${sources})
  target_include_directories(qwench_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(qwench_${name} PUBLIC ${LAYER_LINK})
endfunction()

# libqwench: all layers in one archive, with include/qwench as its interface.
function(qwench_library)
  set(objects)
  set(links)
  foreach(layer ${ARGN})
    list(APPEND objects $<TARGET_OBJECTS:qwench_${layer}>)
  endforeach()
  add_library(libqwench STATIC ${objects})
  set_target_properties(libqwench PROPERTIES OUTPUT_NAME qwench)
  target_include_directories(libqwench PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(libqwench PUBLIC fmt::fmt nlohmann_json::nlohmann_json Threads::Threads simdjson::simdjson
                                         PkgConfig::pcre2 PkgConfig::utf8proc PkgConfig::hwy)
endfunction()

# The program qwench from src/cli; its commands also as a library, for their tests.
function(qwench_program)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(qwench_cli STATIC ${sources})
  target_include_directories(qwench_cli PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(qwench_cli PUBLIC QWENCH_VERSION="${PROJECT_VERSION}")
  target_link_libraries(qwench_cli PUBLIC libqwench CLI11::CLI11 PkgConfig::edit)
  add_executable(qwench ${PROJECT_SOURCE_DIR}/src/cli/main.cpp)
  target_link_libraries(qwench PRIVATE qwench_cli)
endfunction()
