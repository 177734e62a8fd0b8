#!/usr/bin/env bash
# Installs packages, builds vllmcli, and runs it on the bundled model: a batch of prompts, then one prompt.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_packages.sh
cmake --preset release
cmake --build --preset release --target vllmcli

echo
echo "== build/release/vllmcli batch scripts/try_prompts.txt --format text --ordered"
build/release/vllmcli batch scripts/try_prompts.txt --format text --ordered
echo
echo "== build/release/vllmcli run 'What does exit status 3 mean?'"
build/release/vllmcli run 'What does exit status 3 mean?'
