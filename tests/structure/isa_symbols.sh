#!/usr/bin/env bash
# Usage: isa_symbols.sh NM ISA ARCHIVE. Fails if the archive of an instruction set has a weak symbol that other objects may
# define too. The linker keeps one copy of a weak symbol, and that copy may use instructions that the machine lacks. Weak
# symbols that name a type or function in the namespace of the instruction set are allowed: no other archive has them.
set -euo pipefail
nm=$1 isa=$2 archive=$3
symbols=$("$nm" -C "$archive")
# An archive without a symbol in this namespace is not the one for ISA.
grep -q "vllm::kernels::$isa::" <<<"$symbols"
weak=$(grep -E '^[0-9a-f]+ [WVu] ' <<<"$symbols" | grep -v "vllm::kernels::$isa::" | grep -v 'DW\.ref\.' || true)
[ -z "$weak" ] && exit 0
echo "$archive has weak symbols outside of vllm::kernels::$isa:"
echo "$weak"
exit 1
