#!/usr/bin/env bash
# Usage: isa_symbols.sh NM ISA ARCHIVE. Fails if the archive of an instruction set has a weak symbol that other objects may
# share: the linker keeps one copy, and that one may use instructions that the machine lacks. Weak symbols that name a
# type or function of the instruction set's own namespace are unique to it.
set -euo pipefail
nm=$1 isa=$2 archive=$3
symbols=$("$nm" -C "$archive")
# A list without the namespace is not the archive of this instruction set.
grep -q "vllm::kernels::$isa::" <<<"$symbols"
weak=$(grep -E '^[0-9a-f]+ [WVu] ' <<<"$symbols" | grep -v "vllm::kernels::$isa::" | grep -v 'DW\.ref\.' || true)
[ -z "$weak" ] && exit 0
echo "$archive has weak symbols outside of vllm::kernels::$isa:"
echo "$weak"
exit 1
