#!/usr/bin/env bash
# Usage: installed_engine.sh BUILD SOURCE CXX. Installs BUILD into a temporary prefix, builds docs/example with
# find_package(vllmcli), and compares the output of the example with that of the installed vllmcli.
set -euo pipefail
build=$1 source=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
# A program that links a sanitized archive must be built with the same sanitizers.
flags=$(sed -n 's/^VLLMCLI_SANITIZE:STRING=\(..*\)/-fsanitize=\1/p' "$build/CMakeCache.txt")
cmake -S "$source/docs/example" -B "$work/example" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release >"$work/configure.log"
cmake --build "$work/example" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
model=$source/app/guide_model
prompt="The exit status 3 means"
expected=$("$work/prefix/bin/vllmcli" complete -m "$model" -t 0 -n 32 --quiet "$prompt")
actual=$("$work/example/complete" "$model" "$prompt")
if [ "$actual" != "$expected" ]; then
  printf 'the example prints\n%s\nbut vllmcli complete prints\n%s\n' "$actual" "$expected"
  exit 1
fi
[ -n "$actual" ]
