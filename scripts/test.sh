#!/usr/bin/env bash
# Installs packages, builds everything, runs the tests and lists those that were skipped. An argument names another
# preset: debug, asan, tsan or clang. Fails when a test fails, or is skipped for another reason than missing reference data.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/install_packages.sh
cmake --preset "$preset" -DVLLMCLI_WERROR=ON
cmake --build --preset "$preset"
status=0
ctest --preset "$preset" || status=$?
scripts/list_skipped_tests.sh "build/$preset/Testing/Temporary/LastTest.log" || status=$?
exit "$status"
