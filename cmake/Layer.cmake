# add_layer(DIRECTORY FILES file... [LINK library...]): one library per directory of the product.
#
# FILES lists every header and source of the directory. LINK lists the libraries that it may include: directories
# ("tokenizer/unicode") and imported targets. A directory must be added before another one links it, so there are no
# circles. The include path of a library holds its own headers and, through LINK, those of the libraries below it: an
# #include of anything else does not compile (tests/structure tries).
function(add_layer directory)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "FILES;LINK")
  set(source_dir ${CMAKE_SOURCE_DIR}/${directory})
  string(REPLACE "/" "_" target vllmcli_${directory})
  set(include_dir ${CMAKE_BINARY_DIR}/include/${target})

  file(GLOB present RELATIVE ${source_dir} ${source_dir}/*.h ${source_dir}/*.cc ${source_dir}/*.inl)
  foreach(file IN LISTS present)
    if(NOT file IN_LIST ARG_FILES AND NOT file STREQUAL "main.cc")
      message(FATAL_ERROR "${directory}/${file} is not listed in add_layer(${directory})")
    endif()
  endforeach()

  set(sources)
  file(REMOVE_RECURSE ${include_dir})
  file(MAKE_DIRECTORY ${include_dir}/${directory})
  foreach(file IN LISTS ARG_FILES)
    if(file MATCHES "\\.cc$")
      list(APPEND sources ${source_dir}/${file})
    else()
      file(CREATE_LINK ${source_dir}/${file} ${include_dir}/${directory}/${file} SYMBOLIC)
      set_property(GLOBAL APPEND PROPERTY VLLMCLI_HEADERS ${directory}/${file})
    endif()
  endforeach()

  set(links)
  foreach(library IN LISTS ARG_LINK)
    if(EXISTS ${CMAKE_SOURCE_DIR}/${library})
      string(REPLACE "/" "_" library vllmcli_${library})
    endif()
    if(library MATCHES "^vllmcli_|::" AND NOT TARGET ${library})
      message(FATAL_ERROR "add_layer(${directory}) links ${library}, which is not defined before it")
    endif()
    list(APPEND links ${library})
  endforeach()

  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${include_dir}>)
  target_link_libraries(${target} ${scope} ${links})
  set_property(GLOBAL APPEND PROPERTY VLLMCLI_LAYERS ${target})
endfunction()
