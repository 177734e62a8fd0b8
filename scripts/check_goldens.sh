#!/usr/bin/env bash
# Runs the scripts in tests/golden again and compares the files that they write with the committed ones in tests/data,
# byte for byte. Names every file that differs, and fails if there is one.
#
#   scripts/check_goldens.sh [SCRIPT...]
#
# SCRIPT is the name of a script in the table below; without arguments all of them run. They run with the exact packages
# of tests/golden/requirements.txt, in a virtual environment that the first run creates in build/golden_venv (6 GB; set
# GOLDEN_VENV to use another directory). The new files go to build/goldens. tests/data is only read.
#
# torch picks its kernels by instruction set, and the committed files come from a machine with AVX-512. With AVX2 the
# weights are the same, but float32 results (golden.safetensors, golden.json, sampler_golden.json) differ by up to 1e-5.
# For each tensor file that differs, the script prints the tensors and their largest difference.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${GOLDEN_VENV:-build/golden_venv}
output=build/goldens
requirements=tests/golden/requirements.txt

# Each script and the directory of the committed files that it writes.
table=(
  "chat_template_golden tests/data/chat_template"
  "json_schema_golden tests/data"
  "safetensors_verdicts tests/data"
  "ngram_drafts tests/data/spec_decode"
  "beam_search_golden tests/data"
  "perplexity_golden tests/data"
  "sampler_golden tests/data"
  "tokenizer_golden tests/data/tokenizer"
  "tokenizer_models_golden tests/data/tokenizer"
  "tokenizer_sentencepiece_golden tests/data/tokenizer/sentencepiece"
  "tokenizer_tiktoken_golden tests/data/tokenizer/tiktoken"
  "quant_blocks_golden tests/data/quant/blocks"
  "quant_models_golden tests/data/quant/models"
  "llama_golden tests/data/llama"
  "gguf_golden tests/data/gguf"
  "models_golden tests/data/models"
  "lora_golden tests/data/lora"
  "pooling_golden tests/data/pooling"
)
# Files that are not compared, with the reasons.
not_compared="Not compared:
  chat_template_fresh.py, models_fresh.py: they test the program on random inputs and write no files
  converted_gguf_golden.py, pooling_gguf_golden.py: they need a copy of llama.cpp's converter
  vocabularies of tokenizer/unigram.json and tokenizer/word_piece.json: their trainers' results differ from run to run,
    so tokenizer_models_golden.py reads them from the committed files
  tests/data/quant/layers: quant_layers_golden.py needs the packages that its first lines name
  tests/data/fuzz: inputs that the fuzzers found
  tests/data/sched: recorded from vLLM's scheduler"

selected=("$@")
if ((${#selected[@]} == 0)); then
  for row in "${table[@]}"; do selected+=("${row% *}"); done
fi
for name in "${selected[@]}"; do
  if [[ " ${table[*]} " != *" $name "* || ! -f tests/golden/$name.py ]]; then
    echo "check_goldens.sh: no such script: $name (see the table in this file)" >&2
    exit 2
  fi
done

# The copy of the requirements is written last, so that an interrupted installation is repeated.
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
  echo "installing the packages of $requirements in $venv"
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --require-hashes -r "$requirements"
  cp "$requirements" "$venv/requirements.txt"
fi

export HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1
rm -rf "$output"
num_bad=0
for row in "${table[@]}"; do
  read -r name directory <<<"$row"
  [[ " ${selected[*]} " == *" $name "* ]] || continue
  mkdir -p "$output/$name"
  start=$SECONDS
  if ! nice "$venv/bin/python" "tests/golden/$name.py" --output "$output/$name" \
    >"$output/$name.log" 2>&1 </dev/null; then
    echo "$name: failed:"
    tail -n 5 "$output/$name.log" | sed 's/^/    /'
    num_bad=$((num_bad + 1))
    continue
  fi
  mapfile -t files < <(cd "$output/$name" && find . -type f | sed 's|^\./||' | LC_ALL=C sort)
  differing=()
  for file in "${files[@]}"; do
    cmp -s "$output/$name/$file" "$directory/$file" || differing+=("$file")
  done
  echo "$name: ${#files[@]} files, ${#differing[@]} differ ($((SECONDS - start)) s)"
  for file in "${differing[@]}"; do
    committed=$directory/$file
    echo "  differs: $committed"
    if [[ $file == *.safetensors && -f $committed ]]; then
      "$venv/bin/python" tests/golden/compare_tensors.py "$committed" "$output/$name/$file" | sed 's/^/    /'
    fi
  done
  num_bad=$((num_bad + ${#differing[@]}))
  ((${#files[@]} > 0)) || num_bad=$((num_bad + 1))
  printf '%s\n' "${files[@]/#/$directory/}" >>"$output/made.txt"
done

# A committed file that no script writes is left over from a script that has changed.
if (($# == 0)); then
  while read -r file; do
    echo "no script writes $file"
    num_bad=$((num_bad + 1))
  done < <(find tests/data -type f -not -path 'tests/data/fuzz/*' -not -path 'tests/data/sched/*' \
    -not -path 'tests/data/pooling/gguf_*' -not -path 'tests/data/quant/layers/*' \
    -not -path 'tests/data/gguf/bailingmoe*' -not -path 'tests/data/gguf/gemma3n*' \
    -not -path 'tests/data/gguf/qwen*vl/*' | LC_ALL=C sort |
    LC_ALL=C comm -23 - <(LC_ALL=C sort "$output/made.txt"))
fi
echo "$not_compared"
if ! grep -qm 1 avx512f /proc/cpuinfo; then echo "This machine has no AVX-512: see the top of this script."; fi
((num_bad == 0))
