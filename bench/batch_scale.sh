#!/usr/bin/env bash
# Measures how a batch scales with its number of rows: bench/batch_scale.sh [ROWS [MODEL]]. Prints rows/s, the peak memory
# of 1,000 rows and of all rows, and the time in which --resume recognizes a finished job. Each row generates one token,
# so that the time per row outside the engine counts.
set -euo pipefail
program=$(dirname "$0")/../build/release/vllmcli
num_rows=${1:-1000000}
model=${2:-guide}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# Runs a batch and sets seconds and peak_kib.
run() {
  local start
  start=$(date +%s.%N)
  "$program" batch -m "$model" -n 1 --quiet "$@" &
  local pid=$!
  peak_kib=0
  while kill -0 "$pid" 2>/dev/null; do
    local now
    now=$(awk '/VmHWM/ {print $2}' "/proc/$pid/status" 2>/dev/null || true)
    if [ -n "$now" ]; then peak_kib=$now; fi
    sleep 0.02
  done
  wait "$pid"
  seconds=$(awk "BEGIN {print $(date +%s.%N) - $start}")
}

awk "BEGIN {for (i = 0; i < $num_rows; ++i)
  printf \"{\\\"custom_id\\\":\\\"request-%d\\\",\\\"prompt_token_ids\\\":[1,%d,%d],\\\"label\\\":%d}\\n\", i, 3 + i % 500, 3 + i % 400, i}" \
  >"$directory/all.jsonl"
head -n 1000 "$directory/all.jsonl" >"$directory/few.jsonl"
run "$directory/few.jsonl" -o "$directory/few.out"
few_kib=$peak_kib
run "$directory/all.jsonl" -o "$directory/all.out"
awk "BEGIN {printf \"%d rows: %.0f rows/s, peak memory %.0f MiB (1,000 rows: %.0f MiB)\\n\", $num_rows, $num_rows / $seconds, $peak_kib / 1024, $few_kib / 1024}"
run "$directory/all.jsonl" -o "$directory/all.out" --resume
awk "BEGIN {printf \"resume scan of the finished job: %.2f s, peak memory %.0f MiB\\n\", $seconds, $peak_kib / 1024}"
