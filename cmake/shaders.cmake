# The shaders of src/backend/vulkan/shaders: compiled by glslc and embedded into the library, once for each type of
# weights or cells that they read. Without glslc or the headers of Vulkan the backend is left out.
find_program(QWENCH_GLSLC glslc)
find_path(QWENCH_VULKAN_HEADERS vulkan/vulkan.h)
option(QWENCH_VULKAN "Build the Vulkan backend, where glslc and the headers of Vulkan are found" ON)

# qwench_shaders(TARGET): adds the embedded shaders, or what stands in for the backend.
function(qwench_shaders target)
  get_target_property(sources ${target} SOURCES)
  if(NOT QWENCH_VULKAN OR NOT QWENCH_GLSLC OR NOT QWENCH_VULKAN_HEADERS)
    message(STATUS "Vulkan backend: left out (it needs glslc and vulkan/vulkan.h)")
    list(FILTER sources EXCLUDE REGEX "/src/backend/vulkan/")
    set_target_properties(${target} PROPERTIES SOURCES "${sources}")
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/backend/vulkan/vulkan_absent.cpp
                                     ${PROJECT_SOURCE_DIR}/src/backend/vulkan/weight_layout.cpp)
    return()
  endif()
  list(FILTER sources EXCLUDE REGEX "/vulkan_absent\\.cpp$")
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
  target_include_directories(${target} SYSTEM PRIVATE ${QWENCH_VULKAN_HEADERS})
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})

  set(folder ${PROJECT_SOURCE_DIR}/src/backend/vulkan/shaders)
  file(GLOB includes CONFIGURE_DEPENDS ${folder}/*.glsl)
  set(shaders rms_norm silu_mul add gather_rows argmax top_k attention_merge speed_read speed_fma)
  foreach(type f32 f16 q8_0 q4_0 q4_1 q4_k q6_k)
    list(APPEND shaders embed.${type} linear_rows.${type} linear_tile.${type})
  endforeach()
  foreach(type f32 f16 bf16 q8_0)
    list(APPEND shaders rope.${type} attention.${type})
  endforeach()
  set(out ${PROJECT_BINARY_DIR}/shaders)
  file(MAKE_DIRECTORY ${out})
  set(compiled)
  foreach(shader ${shaders})
    string(REGEX MATCH "^[a-z_]+" source ${shader})
    string(REGEX REPLACE "^([a-z_]+)\\.?(.*)$" "\\2" type ${shader})
    set(definitions)
    if(type)
      string(TOUPPER ${type} upper)
      set(definitions -DWEIGHT_${upper} -DCELL_${upper})
    endif()
    add_custom_command(
      OUTPUT ${out}/${shader}.spv
      COMMAND ${QWENCH_GLSLC} --target-env=vulkan1.2 -O -Werror ${definitions} -o ${out}/${shader}.spv
              ${folder}/${source}.comp
      DEPENDS ${folder}/${source}.comp ${includes}
      VERBATIM)
    list(APPEND compiled ${out}/${shader}.spv)
  endforeach()
  add_custom_command(
    OUTPUT ${out}/embedded_shaders.cpp
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${out} "-DSHADERS=${shaders}" -DOUTPUT=${out}/embedded_shaders.cpp
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_shaders.cmake
    DEPENDS ${compiled} ${PROJECT_SOURCE_DIR}/cmake/embed_shaders.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/embedded_shaders.cpp)
  set_source_files_properties(${out}/embedded_shaders.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
