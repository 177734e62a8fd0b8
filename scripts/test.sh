#!/usr/bin/env bash
# Installs packages, builds everything and runs the tests. An argument names another preset: asan, tsan or clang.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/install_packages.sh
cmake --preset "$preset"
cmake --build --preset "$preset"
ctest --preset "$preset"
