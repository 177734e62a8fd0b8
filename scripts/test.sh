#!/usr/bin/env bash
# Installs packages, builds everything, runs the tests and lists the skipped ones. Fails if a test fails, or if a test is
# skipped for any reason except missing reference data or missing root privileges.
#
#   scripts/test.sh [PRESET]
#
# PRESET is release (the default), debug, asan, tsan or clang.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/install_packages.sh --tests
if [ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ] && command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
case "$preset" in
  release | clang) bench=ON ;;
  *) bench=OFF ;;
esac
# scripts/try.sh may have configured the same directory without tests.
cmake --preset "$preset" -DVLLMCLI_WERROR=ON -DVLLMCLI_TESTS=ON -DVLLMCLI_BENCH="$bench"
cmake --build --preset "$preset"
status=0
ctest --preset "$preset" || status=$?
scripts/list_skipped_tests.sh "build/$preset/Testing/Temporary/LastTest.log" || status=$?
exit "$status"
