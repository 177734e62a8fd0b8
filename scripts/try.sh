#!/usr/bin/env bash
# Installs packages, builds vllmcli, and runs the bundled model on a batch of prompts and then on one prompt.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_packages.sh
cmake --preset release -DVLLMCLI_TESTS=OFF -DVLLMCLI_BENCH=OFF
cmake --build --preset release --target vllmcli

echo
echo "== build/release/vllmcli batch scripts/try_prompts.txt --format text --ordered"
build/release/vllmcli batch scripts/try_prompts.txt --format text --ordered
echo
echo "== build/release/vllmcli run 'What does exit status 3 mean?'"
build/release/vllmcli run 'What does exit status 3 mean?'
