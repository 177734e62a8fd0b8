#!/usr/bin/env bash
# Runs the program under growing address-space limits. A run that fails must end with exit status 4 and a message that
# names the limit. After the first run that succeeds, every higher limit must succeed with at least as many KV blocks.
#
#   scripts/check_memory_limits.sh [PROGRAM [MODEL...]]
#
# PROGRAM defaults to build/release/vllmcli, MODEL to app/guide_model. LIMITS_MIB overrides the list of limits.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
program=${1:-build/release/vllmcli}
if (($# > 0)); then shift; fi
models=("$@")
if ((${#models[@]} == 0)); then models=(app/guide_model); fi
limits=${LIMITS_MIB:-$(seq 20 10 190) $(seq 200 20 980) $(seq 1000 250 3750) $(seq 4000 1000 8000)}
output=$(mktemp) errors=$(mktemp)
trap 'rm -f "$output" "$errors"' EXIT
failures=0

report_failure() {
  echo "FAILED: $model at $limit MiB: $1"
  sed 's/^/    /' "$errors"
  failures=$((failures + 1))
}

for model in "${models[@]}"; do
  blocks_before=0
  first_success=none
  for limit in $limits; do
    # The packed cache is off, so that a run cannot change what the next one maps.
    prlimit --as=$((limit << 20)) "$program" run -m "$model" --packed-cache-size 0 -n 4 -t 0 --stats hello \
      >"$output" 2>"$errors" </dev/null
    status=$?
    if ((status == 0)); then
      blocks=$(sed -n 's/.* of \([0-9]*\) blocks$/\1/p' "$errors")
      if ((blocks < blocks_before)); then
        report_failure "$blocks KV blocks, fewer than $blocks_before at a lower limit"
      fi
      blocks_before=$blocks
      if [[ $first_success == none ]]; then first_success=$limit; fi
    elif [[ $first_success != none ]]; then
      report_failure "exit status $status, but $first_success MiB was enough"
    elif ((status == 127 || status == 126)) || { ((status >= 128)) && [[ ! -s $errors ]]; }; then
      # The limit is too low for the dynamic loader.
      :
    elif ((status != 4)); then
      report_failure "exit status $status, not 4"
    elif ! grep -q 'RLIMIT_AS' "$errors"; then
      report_failure "the message does not name the limit"
    fi
  done
  echo "$model: the first limit that succeeds is $first_success MiB; the last limit gives $blocks_before KV blocks"
  if [[ $first_success == none ]]; then failures=$((failures + 1)); fi
done
((failures == 0))
