#!/usr/bin/env bash
# Fuzzes one parser, starting from the committed corpus: scripts/fuzz.sh TARGET [SECONDS]. If the run finds no bug, a
# minimal set of the inputs that reached new code is added to the corpus. Needs clang. tests/fuzz/dictionaries has the
# words of some formats. RUNS=N ends the run after N inputs, MAX_LEN=N limits the size of an input.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=$(cd tests/fuzz && printf '%s, ' *_fuzz.cc | sed 's/_fuzz\.cc//g; s/, $//')
target=${1:?TARGET is one of $targets}
seconds=${2:-3600}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${target}_fuzz"
corpus=tests/data/fuzz/$target
work=build/fuzz/corpus/$target
mkdir -p "$work" "$corpus"
program=build/fuzz/tests/${target}_fuzz
options=()
dictionary=tests/fuzz/dictionaries/$target.dict
[ ! -f "$dictionary" ] || options+=(-dict="$dictionary")
# Without scaling, a few slow inputs take most of the time of a run.
options+=(-entropic_scale_per_exec_time=1)
"$program" "$work" "$corpus" "${options[@]}" -max_total_time="$seconds" -runs="${RUNS:--1}" -timeout=10 \
  -rss_limit_mb=2048 -max_len="${MAX_LEN:-16384}" -artifact_prefix="build/fuzz/$target-" -print_final_stats=1
rm -rf "$work.minimized"
mkdir -p "$work.minimized"
"$program" -merge=1 -use_counters=0 -artifact_prefix="build/fuzz/$target-" "$work.minimized" "$corpus" "$work"
# Add only small inputs, because every test run replays the corpus.
find "$work.minimized" -type f -size -4k -exec cp -n {} "$corpus/" \;
