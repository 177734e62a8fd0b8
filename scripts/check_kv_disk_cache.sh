#!/usr/bin/env bash
# Checks that nothing that happens to the KV cache on disk changes an answer. Runs vllmcli with --kv-disk-cache many times:
# kills it with SIGKILL at random moments, flips random bits of the files and cuts them, and compares each complete answer
# with that of a run without the cache. Takes about five minutes with the bundled model.
#
# Usage: scripts/check_kv_disk_cache.sh [VLLMCLI [MODEL [NUM_KILLS]]]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
vllmcli=${1:-$root/build/release/vllmcli}
model=${2:-$root/app/guide_model}
num_kills=${3:-200}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache XDG_DATA_HOME=$work/data XDG_STATE_HOME=$work/state
RANDOM=7

prompt() {
  local i
  for ((i = 0; i <= $1 % 5; ++i)); do echo "How do I run a batch of prompts from a file, and where do the answers go?"; done
  echo "This is question $(($1 % 7))."
}

run() { # NUMBER SIZE
  prompt "$1" | "$vllmcli" run -m "$model" -t 0 -n 16 --ignore-eos --json --kv-disk-cache "$2" 2>"$work/errors" |
    python3 -c 'import json, sys; print([o["token_ids"] for o in json.load(sys.stdin)["outputs"]])'
}

damage() { # Flips a bit of a random segment, or cuts the segment.
  python3 - "$XDG_CACHE_HOME/vllmcli/kv" "$RANDOM" <<'PYTHON'
import os, random, sys
directory, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
names = sorted(n for n in os.listdir(directory) if n.endswith(".kvseg"))
if names:
    path = os.path.join(directory, rng.choice(names))
    size = os.path.getsize(path)
    if size and rng.random() < 0.15:
        os.truncate(path, rng.randrange(size))
    elif size:
        with open(path, "r+b") as file:
            at = rng.randrange(size)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ (1 << rng.randrange(8))]))
PYTHON
}

declare -A expected
for ((i = 0; i < 35; ++i)); do expected[$i]=$(run "$i" off); done

num_wrong=0
num_compared=0
for ((kill = 1; kill <= num_kills; ++kill)); do
  number=$((RANDOM % 35))
  prompt "$number" | "$vllmcli" run -m "$model" -t 0 -n 16 --ignore-eos --json --kv-disk-cache 2M >"$work/out" 2>&1 &
  pid=$!
  sleep "0.$(printf '%03d' $((RANDOM % 120)))"
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  if [ -d "$XDG_CACHE_HOME/vllmcli/kv" ] && [ $((kill % 2)) -eq 0 ]; then damage; fi
  answer=$(run "$number" 2M)
  num_compared=$((num_compared + 1))
  if [ "$answer" != "${expected[$number]}" ]; then
    echo "kill $kill, question $number: the answer differs" >&2
    num_wrong=$((num_wrong + 1))
  fi
  bytes=$(du --bytes --summarize "$XDG_CACHE_HOME/vllmcli/kv" | cut -f1)
  if [ "$bytes" -gt 2044096 ]; then # 2 MB, and the directory itself
    echo "kill $kill: the directory has $bytes bytes" >&2
    num_wrong=$((num_wrong + 1))
  fi
done
"$vllmcli" cache verify >&2 || true
echo "$num_kills kills, $num_compared answers compared, $num_wrong wrong"
[ "$num_wrong" -eq 0 ]
