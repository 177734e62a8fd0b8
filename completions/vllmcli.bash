# bash completion for vllmcli
_vllmcli_model() {
  # $1: the program; $2: the word so far. Offers installed models and aliases and, unless $3 is set, paths.
  local name
  local -a paths=()
  while IFS= read -r name; do
    [[ $name == "$2"* ]] && COMPREPLY+=("$name")
  done < <("${1/#\~\//$HOME/}" models --names 2>/dev/null)
  [[ -n $3 ]] || mapfile -t paths < <(compgen -f -X '!*.gguf' -- "$2"; compgen -d -- "$2")
  if (( ${#COMPREPLY[@]} == 0 )); then
    compopt -o filenames
    COMPREPLY=("${paths[@]}")
    return
  fi
  for name in "${paths[@]}"; do
    [[ -d $name ]] && name+=/
    COMPREPLY+=("$(printf %q "$name")")
  done
  (( ${#COMPREPLY[@]} == 1 )) && [[ ${COMPREPLY[0]} == */ ]] && compopt -o nospace
  if [[ $2 == *:* && $COMP_WORDBREAKS == *:* ]]; then
    local -i i
    for (( i = 0; i < ${#COMPREPLY[@]}; ++i )); do
      COMPREPLY[i]=${COMPREPLY[i]#"${2%"${2##*:}"}"}
    done
  fi
}
_vllmcli() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local line=${COMP_LINE:0:COMP_POINT} command=
  local typed=${line##*[[:space:]]}
  if [[ $typed == --model=* ]]; then
    typed=${typed#--model=}
    previous=--model
  elif [[ $typed == *:* ]]; then
    line=${line%"$typed"}
    line=${line%"${line##*[![:space:]]}"}
    previous=${line##*[[:space:]]}
  fi
  (( COMP_CWORD > 1 )) && [[ ${COMP_WORDS[1]} != -* ]] && command=${COMP_WORDS[1]}
  COMPREPLY=()
  case $previous in
    --model|-m) _vllmcli_model "$1" "$typed"; return ;;
    --load-format) COMPREPLY=($(compgen -W 'auto safetensors gguf dummy' -- "$current")); return ;;
    --dtype) COMPREPLY=($(compgen -W 'auto float32 float16 bfloat16' -- "$current")); return ;;
    --quantization|-q) COMPREPLY=($(compgen -W 'none int8 int4' -- "$current")); return ;;
    --calibration) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --packed-cache-size) return ;;
    --kv-disk-cache) return ;;
    --lora) return ;;
    --max-loras) return ;;
    --max-cpu-loras) return ;;
    --max-lora-rank) return ;;
    --max-model-len) return ;;
    --reasoning-parser) return ;;
    --system) return ;;
    --preset) return ;;
    --param|-p) return ;;
    --chat-template) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --template-var) return ;;
    --tools) return ;;
    --tool-choice) return ;;
    --approve-tools) COMPREPLY=($(compgen -W 'never ask always' -- "$current")); return ;;
    --chain-limit) return ;;
    --mcp) return ;;
    --tool-call-parser) return ;;
    --think) COMPREPLY=($(compgen -W 'on off low medium high' -- "$current")); return ;;
    --file|-f) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --prompt-ids) return ;;
    --now) return ;;
    --max-tokens|-n) return ;;
    --generation-config) COMPREPLY=($(compgen -W 'auto vllm' -- "$current")); return ;;
    --temperature|-t) return ;;
    --top-p) return ;;
    --top-k) return ;;
    --min-p) return ;;
    --presence-penalty) return ;;
    --frequency-penalty) return ;;
    --repetition-penalty) return ;;
    --stop) return ;;
    --stop-token-ids) return ;;
    --min-tokens) return ;;
    --thinking-budget) return ;;
    --schema) return ;;
    --schema-multi) return ;;
    --json-schema) return ;;
    --json-whitespace) COMPREPLY=($(compgen -W 'compact flexible' -- "$current")); return ;;
    --regex) return ;;
    --choice) return ;;
    --grammar) return ;;
    --structural-tag) return ;;
    --n) return ;;
    --best-of) return ;;
    --beam-width) return ;;
    --length-penalty) return ;;
    --logprobs) return ;;
    --prompt-logprobs) return ;;
    --logit-bias) return ;;
    --allowed-token-ids) return ;;
    --bad-words) return ;;
    --seed) return ;;
    --revision) return ;;
    --include) return ;;
    --exclude) return ;;
    --resume) return ;;
    --context-shift) COMPREPLY=($(compgen -W 'half off' -- "$current")); return ;;
    --show-thinking) COMPREPLY=($(compgen -W 'full summary hidden' -- "$current")); return ;;
    --wrap) return ;;
    --interval) return ;;
    --output|-o) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --errors) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --fsync) COMPREPLY=($(compgen -W 'row second end' -- "$current")); return ;;
    --input-format) COMPREPLY=($(compgen -W 'txt jsonl csv tsv' -- "$current")); return ;;
    --template) return ;;
    --template-file) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --system-template) return ;;
    --id-column) return ;;
    --carry-column) return ;;
    --prompt) return ;;
    --limit) return ;;
    --sample) return ;;
    --shard) return ;;
    --format) COMPREPLY=($(compgen -W 'jsonl csv text' -- "$current")); return ;;
    --progress) COMPREPLY=($(compgen -W 'auto plain none json' -- "$current")); return ;;
    --input-len) return ;;
    --prefix-len) return ;;
    --output-len) return ;;
    --batch-size) return ;;
    --num-iters-warmup) return ;;
    --num-iters) return ;;
    --num-prompts) return ;;
    --dataset) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --output-json) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --compare) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --context) return ;;
    --stride) return ;;
    --kl-reference) _vllmcli_model "$1" "$typed"; return ;;
    --kl-reference-quantization) COMPREPLY=($(compgen -W 'none int8 int4' -- "$current")); return ;;
    --pooling) COMPREPLY=($(compgen -W 'mean cls last lasttoken max mean_sqrt_len_tokens weightedmean' -- "$current")); return ;;
    --dimensions) return ;;
    --prompt-name) return ;;
    --instruction) return ;;
    --vector-format) COMPREPLY=($(compgen -W 'jsonl npy sqlite' -- "$current")); return ;;
    --encoding-format) COMPREPLY=($(compgen -W 'float base64' -- "$current")); return ;;
    --top-n) return ;;
    --tensor-parallel-size) return ;;
    --threads-per-rank) return ;;
    --data-parallel-size) return ;;
    --max-num-seqs) return ;;
    --max-num-batched-tokens) return ;;
    --long-prefill-token-threshold) return ;;
    --block-size) return ;;
    --kv-cache-dtype) COMPREPLY=($(compgen -W 'auto float32 bfloat16 float16 int8' -- "$current")); return ;;
    --kv-cache-memory) return ;;
    --num-kv-blocks) return ;;
    --speculative-config) return ;;
    --scheduling-policy) COMPREPLY=($(compgen -W 'fcfs priority' -- "$current")); return ;;
    --max-logprobs) return ;;
    --logprobs-mode) COMPREPLY=($(compgen -W 'raw_logprobs processed_logprobs' -- "$current")); return ;;
    --max-output-memory) return ;;
    --linear-backend) COMPREPLY=($(compgen -W 'native openblas' -- "$current")); return ;;
    --isa) COMPREPLY=($(compgen -W 'auto generic avx2 avx2_vnni avx512 avx512_vnni avx512_bf16 avx512_amx neon neon_dotprod neon_i8mm neon_bf16' -- "$current")); return ;;
    --trace) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
    --config) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  if (( COMP_CWORD == 1 )) && [[ $current != -* ]]; then
    COMPREPLY=($(compgen -W 'chat chats run complete batch presets cache bench perplexity embed score rerank top tokenize render models pull show trace config completions' -- "$current"))
    return
  fi
  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --kv-disk-cache --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --max-model-len --reasoning-parser --system --preset --param -p --chat-template --template-var --tools --tool-choice --approve-tools --chain-limit --mcp --tool-call-parser --think --now --max-tokens -n --generation-config --temperature -t --top-p --top-k --min-p --presence-penalty --frequency-penalty --repetition-penalty --stop --stop-token-ids --ignore-eos --min-tokens --thinking-budget --schema --schema-multi --json-schema --json-object --any-order --json-whitespace --regex --choice --grammar --structural-tag --logit-bias --allowed-token-ids --bad-words --seed --include-stop-str-in-output --skip-special-tokens --no-skip-special-tokens --revision --continue -c --resume --save --no-save --ephemeral --context-shift --show-thinking --stats --markdown --no-markdown --wrap --stats-line --no-stats-line --quiet --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-prefix-caching --no-enable-prefix-caching --enable-chunked-prefill --no-enable-chunked-prefill --enable-in-reasoning --no-enable-in-reasoning --enable-jump-decoding --no-enable-jump-decoding --speculative-config --scheduling-policy --max-logprobs --logprobs-mode --max-output-memory --linear-backend --publish --no-publish --isa --trace --color --config --help -h --help-all --version -V' -- "$current"))
    return
  fi
  case $command in
    chat)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --kv-disk-cache --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --max-model-len --reasoning-parser --system --preset --param -p --chat-template --template-var --tools --tool-choice --approve-tools --chain-limit --mcp --tool-call-parser --think --now --max-tokens -n --generation-config --temperature -t --top-p --top-k --min-p --presence-penalty --frequency-penalty --repetition-penalty --stop --stop-token-ids --ignore-eos --min-tokens --thinking-budget --schema --schema-multi --json-schema --json-object --any-order --json-whitespace --regex --choice --grammar --structural-tag --logit-bias --allowed-token-ids --bad-words --seed --include-stop-str-in-output --skip-special-tokens --no-skip-special-tokens --revision --continue -c --resume --save --no-save --ephemeral --context-shift --show-thinking --stats --markdown --no-markdown --wrap --stats-line --no-stats-line --quiet --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-prefix-caching --no-enable-prefix-caching --enable-chunked-prefill --no-enable-chunked-prefill --enable-in-reasoning --no-enable-in-reasoning --enable-jump-decoding --no-enable-jump-decoding --speculative-config --scheduling-policy --max-logprobs --logprobs-mode --max-output-memory --linear-backend --publish --no-publish --isa --trace --color --config --help -h --help-all --version -V' -- "$current"))
      fi ;;
    chats)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--secure --json --quiet --color --config --help -h --help-all --version -V' -- "$current"))
      else
        COMPREPLY=($(compgen -W 'list search show export import rm' -- "$current"))
      fi ;;
    run)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --kv-disk-cache --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --max-model-len --reasoning-parser --system --preset --param -p --chat-template --template-var --tools --tool-choice --approve-tools --chain-limit --mcp --tool-call-parser --think --file -f --now --max-tokens -n --generation-config --temperature -t --top-p --top-k --min-p --presence-penalty --frequency-penalty --repetition-penalty --stop --stop-token-ids --ignore-eos --min-tokens --thinking-budget --schema --schema-multi --json-schema --json-object --any-order --json-whitespace --regex --choice --grammar --structural-tag --n --best-of --use-beam-search --beam-width --length-penalty --logprobs --prompt-logprobs --logit-bias --allowed-token-ids --bad-words --seed --include-stop-str-in-output --skip-special-tokens --no-skip-special-tokens --revision --continue -c --resume --save --no-save --ephemeral --json --stream-json --show-thinking --stats --markdown --no-markdown --wrap --quiet --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-prefix-caching --no-enable-prefix-caching --enable-chunked-prefill --no-enable-chunked-prefill --enable-in-reasoning --no-enable-in-reasoning --enable-jump-decoding --no-enable-jump-decoding --speculative-config --scheduling-policy --max-logprobs --logprobs-mode --max-output-memory --linear-backend --publish --no-publish --isa --trace --color --config --help -h --help-all --version -V' -- "$current"))
      fi ;;
    complete)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --kv-disk-cache --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --max-model-len --reasoning-parser --tool-call-parser --prompt-ids --max-tokens -n --generation-config --temperature -t --top-p --top-k --min-p --presence-penalty --frequency-penalty --repetition-penalty --stop --stop-token-ids --ignore-eos --min-tokens --thinking-budget --schema --schema-multi --json-schema --json-object --any-order --json-whitespace --regex --choice --grammar --structural-tag --n --best-of --use-beam-search --beam-width --length-penalty --logprobs --prompt-logprobs --logit-bias --allowed-token-ids --bad-words --seed --include-stop-str-in-output --skip-special-tokens --no-skip-special-tokens --revision --json --stream-json --stats --quiet --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-prefix-caching --no-enable-prefix-caching --enable-chunked-prefill --no-enable-chunked-prefill --enable-in-reasoning --no-enable-in-reasoning --enable-jump-decoding --no-enable-jump-decoding --speculative-config --scheduling-policy --max-logprobs --logprobs-mode --max-output-memory --linear-backend --publish --no-publish --isa --trace --color --config --help -h --help-all --version -V' -- "$current"))
      fi ;;
    batch)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --kv-disk-cache --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --max-model-len --reasoning-parser --system --preset --param -p --chat-template --template-var --tools --tool-choice --approve-tools --chain-limit --mcp --tool-call-parser --think --apply-chat-template --no-apply-chat-template --now --max-tokens -n --generation-config --temperature -t --top-p --top-k --min-p --presence-penalty --frequency-penalty --repetition-penalty --stop --stop-token-ids --ignore-eos --min-tokens --thinking-budget --schema --schema-multi --json-schema --json-object --any-order --json-whitespace --regex --choice --grammar --structural-tag --n --best-of --use-beam-search --beam-width --length-penalty --logprobs --prompt-logprobs --logit-bias --allowed-token-ids --bad-words --seed --include-stop-str-in-output --skip-special-tokens --no-skip-special-tokens --revision --save --no-save --ephemeral --json --stats --quiet --output -o --overwrite --resume --resume-anyway --retry-errors --errors --fsync --input-format --template --template-file --system-template --id-column --carry --no-carry --carry-column --prompt --limit --sample --shard --format --progress --ordered --chat --live --check --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-prefix-caching --no-enable-prefix-caching --enable-chunked-prefill --no-enable-chunked-prefill --enable-in-reasoning --no-enable-in-reasoning --enable-jump-decoding --no-enable-jump-decoding --speculative-config --scheduling-policy --max-logprobs --logprobs-mode --max-output-memory --linear-backend --publish --no-publish --isa --trace --color --config --help -h --help-all --version -V' -- "$current"))
      else
        compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))
      fi ;;
    presets)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--json --quiet --color --config --help -h --help-all --version -V' -- "$current"))
      else
        COMPREPLY=($(compgen -W 'list show edit rm' -- "$current"))
      fi ;;
    cache)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--json --quiet --color --config --help -h --help-all --version -V' -- "$current"))
      else
        COMPREPLY=($(compgen -W 'list clear verify' -- "$current"))
      fi ;;
    bench)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --kv-disk-cache --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --max-model-len --n --seed --revision --json --quiet --input-len --prefix-len --output-len --batch-size --num-iters-warmup --num-iters --num-prompts --dataset --output-json --compare --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-prefix-caching --no-enable-prefix-caching --enable-chunked-prefill --no-enable-chunked-prefill --enable-in-reasoning --no-enable-in-reasoning --enable-jump-decoding --no-enable-jump-decoding --speculative-config --scheduling-policy --max-logprobs --logprobs-mode --max-output-memory --linear-backend --publish --no-publish --isa --trace --color --config --help -h --help-all --version -V' -- "$current"))
      else
        COMPREPLY=($(compgen -W 'latency throughput' -- "$current"))
      fi ;;
    perplexity)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --revision --json --quiet --context --stride --kl-reference --kl-reference-quantization --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-chunked-prefill --no-enable-chunked-prefill --scheduling-policy --linear-backend --publish --no-publish --isa --color --config --help -h --help-all --version -V' -- "$current"))
      else
        compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))
      fi ;;
    embed)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --max-model-len --revision --quiet --jsonl --output -o --overwrite --pooling --dimensions --normalize --no-normalize --prompt-name --instruction --whole-files --vector-format --encoding-format --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-chunked-prefill --no-enable-chunked-prefill --scheduling-policy --linear-backend --publish --no-publish --isa --color --config --help -h --help-all --version -V' -- "$current"))
      else
        compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))
      fi ;;
    score)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --max-model-len --revision --quiet --jsonl --pooling --dimensions --normalize --no-normalize --prompt-name --instruction --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-chunked-prefill --no-enable-chunked-prefill --scheduling-policy --linear-backend --publish --no-publish --isa --color --config --help -h --help-all --version -V' -- "$current"))
      fi ;;
    rerank)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --dtype --quantization -q --calibration --packed-cache-size --lora --enable-lora --no-enable-lora --max-loras --max-cpu-loras --max-lora-rank --max-model-len --revision --quiet --jsonl --pooling --dimensions --normalize --no-normalize --prompt-name --instruction --top-n --tensor-parallel-size --threads-per-rank --data-parallel-size --max-num-seqs --max-num-batched-tokens --long-prefill-token-threshold --block-size --kv-cache-dtype --kv-cache-memory --num-kv-blocks --enable-chunked-prefill --no-enable-chunked-prefill --scheduling-policy --linear-backend --publish --no-publish --isa --color --config --help -h --help-all --version -V' -- "$current"))
      else
        compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))
      fi ;;
    top)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--json --quiet --interval --color --config --help -h --help-all --version -V' -- "$current"))
      fi ;;
    tokenize)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --skip-special-tokens --no-skip-special-tokens --revision --json --quiet --decode --count --add-special-tokens --no-add-special-tokens --jsonl --color --config --help -h --help-all --version -V' -- "$current"))
      fi ;;
    render)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --chat-template --template-var --tools --think --now --revision --json --quiet --jsonl --color --config --help -h --help-all --version -V' -- "$current"))
      else
        compopt -o filenames; COMPREPLY=($(compgen -f -- "$current"))
      fi ;;
    models)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--revision --json --quiet --yes --names --color --config --help -h --help-all --version -V' -- "$current"))
      elif (( COMP_CWORD == 2 )); then
        COMPREPLY=($(compgen -W 'list rm alias use' -- "$current"))
      else
        _vllmcli_model "$1" "$typed" names
      fi ;;
    pull)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--revision --include --exclude --list --dry-run --json --quiet --color --config --help -h --help-all --version -V' -- "$current"))
      fi ;;
    show)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --load-format --generation-config --revision --json --quiet --kv-cache-dtype --color --config --help -h --help-all --version -V' -- "$current"))
      else
        _vllmcli_model "$1" "$typed"
      fi ;;
    trace)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--json --quiet --color --config --help -h --help-all --version -V' -- "$current"))
      else
        COMPREPLY=($(compgen -W 'show replay' -- "$current"))
      fi ;;
    config)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--model -m --json --quiet --color --config --help -h --help-all --version -V' -- "$current"))
      fi ;;
    completions)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '--quiet --color --config --help -h --help-all --version -V' -- "$current"))
      else
        COMPREPLY=($(compgen -W 'bash zsh fish' -- "$current"))
      fi ;;
  esac
}
complete -F _vllmcli vllmcli
