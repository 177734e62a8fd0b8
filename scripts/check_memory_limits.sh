#!/usr/bin/env bash
# Runs the program under address-space limits that grow step by step and checks that a higher limit never gives less:
# a run that fails ends with exit status 4 and a message that names the limit, and once a run succeeds, every higher
# limit succeeds with at least as many KV blocks.
#
#   scripts/check_memory_limits.sh [PROGRAM [MODEL...]]
#
# PROGRAM defaults to build/release/vllmcli; without MODEL the model that ships is used. LIMITS_MIB overrides the list
# of limits.
set -uo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/release/vllmcli}
if (($# > 0)); then shift; fi
models=("$@")
if ((${#models[@]} == 0)); then models=(app/guide_model); fi
limits=${LIMITS_MIB:-$(seq 20 10 190) $(seq 200 20 980) $(seq 1000 250 3750) $(seq 4000 1000 8000)}
output=$(mktemp) errors=$(mktemp)
trap 'rm -f "$output" "$errors"' EXIT
failures=0

complain() {
  echo "FAILED: $model at $limit MiB: $1"
  sed 's/^/    /' "$errors"
  failures=$((failures + 1))
}

for model in "${models[@]}"; do
  blocks_before=0
  first_success=none
  for limit in $limits; do
    # Without the packed cache, so that one run does not change what the next one maps.
    prlimit --as=$((limit << 20)) "$program" run -m "$model" --packed-cache-size 0 -n 4 -t 0 --stats hello \
      >"$output" 2>"$errors" </dev/null
    status=$?
    if ((status == 0)); then
      blocks=$(sed -n 's/.* of \([0-9]*\) blocks$/\1/p' "$errors")
      if ((blocks < blocks_before)); then complain "$blocks KV blocks, fewer than $blocks_before at a lower limit"; fi
      blocks_before=$blocks
      if [[ $first_success == none ]]; then first_success=$limit; fi
    elif [[ $first_success != none ]]; then
      complain "exit status $status, but $first_success MiB was enough"
    elif ((status == 127 || status == 126)) || { ((status >= 128)) && [[ ! -s $errors ]]; }; then
      # The dynamic loader itself did not fit.
      :
    elif ((status != 4)); then
      complain "exit status $status, not 4"
    elif ! grep -q 'RLIMIT_AS' "$errors"; then
      complain "the message does not name the limit"
    fi
  done
  echo "$model: runs from $first_success MiB on, $blocks_before KV blocks at the end"
  if [[ $first_success == none ]]; then failures=$((failures + 1)); fi
done
((failures == 0))
