# Package file for find_package(vllmcli). Defines the target vllmcli::engine, the engine library. See docs/example.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(nlohmann_json)
find_dependency(PkgConfig)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(ONIGURUMA REQUIRED IMPORTED_TARGET oniguruma)
include(${CMAKE_CURRENT_LIST_DIR}/vllmcliTargets.cmake)
