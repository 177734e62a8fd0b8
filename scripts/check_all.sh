#!/usr/bin/env bash
# Runs every check that the project has. This takes several hours on two cores. CI (.ci/run) runs only format and release,
# and checks that the patches in tests/mutations still apply.
# Usage: scripts/check_all.sh [CHECK...]; without arguments all of them, in this order:
#   format     clang-format leaves every file unchanged
#   release    g++, warnings as errors, all tests
#   odr        no two types share a name (link-time optimization, because a compiler sees only one translation unit)
#   mutations  the tests notice each bug in tests/mutations
#   clang      clang++ with -Wthread-safety, all tests
#   newer      a newer compiler builds without warnings (NEWER_CXX, default clang++-19)
#   debug      unoptimized, with assertions, all tests
#   tidy       clang-tidy with the checks of .clang-tidy
#   goldens    the scripts in tests/golden reproduce the golden files (scripts/check_goldens.sh)
#   limits     the program respects address-space limits (scripts/check_memory_limits.sh)
#   allocations  the program survives the failure of any one allocation
#   kills      chats, batches and the terminal are killed, or get signals, at 1,300 random times
#   aarch64    the NEON kernels pass their tests in qemu
#   asan       AddressSanitizer with UndefinedBehaviorSanitizer, all tests
#   tsan       ThreadSanitizer, all tests but some that start no threads (of the kernels and of jinja)
# Needs these packages too: clang clang-19 clang-tidy clang-format g++-aarch64-linux-gnu qemu-user googletest.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_packages.sh --tests
launcher=$(command -v ccache || true)
export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER:-$launcher}

check_format() { git ls-files '*.cc' '*.h' '*.inl' | xargs clang-format --dry-run -Werror; }
check_release() { scripts/test.sh release; }
check_odr() { cmake --preset odr && cmake --build --preset odr; }
check_mutations() { scripts/check_mutations.sh; }
check_clang() { scripts/test.sh clang; }
# Newer versions of clang report std::stable_sort of libstdc++ 12, because it uses std::get_temporary_buffer, which C++17
# deprecates.
check_newer() {
  cmake --preset release -B build/newer -DVLLMCLI_WERROR=ON -DCMAKE_CXX_COMPILER="${NEWER_CXX:-clang++-19}" \
    -DCMAKE_CXX_FLAGS=-Wno-deprecated-declarations &&
    cmake --build build/newer
}
check_debug() { scripts/test.sh debug; }
check_tidy() {
  cmake --preset clang >/dev/null
  git ls-files 'app/*.cc' 'engine/*.cc' 'tokenizer/*.cc' 'kernels/*.cc' | grep -v '^kernels/isa/neon' |
    xargs -n 4 -P "$(nproc)" clang-tidy -p build/clang --quiet
}
check_goldens() { scripts/check_goldens.sh; }
check_limits() { scripts/check_memory_limits.sh; }
# Not run by ctest, which limits the time of each test.
check_allocations() { (cd build/release/tests && VLLMCLI_ALLOCATIONS=all ./program_test --gtest_filter='*AllocationFailure*'); }
check_kills() {
  (cd build/release/tests && VLLMCLI_KILLS=100 VLLMCLI_SIGNALS=1000 \
    ./program_test --gtest_filter='ChatsProgramTest.Killed*:ChatSignalsTest.*:BatchJobProgramTest.A*')
}
check_aarch64() { cmake --preset aarch64 && cmake --build --preset aarch64 && ctest --preset aarch64; }
check_asan() { scripts/test.sh asan; }
check_tsan() { scripts/test.sh tsan; }

all=(format release odr mutations clang newer debug tidy goldens limits allocations kills aarch64 asan tsan)
failed=()
for check in "${@:-${all[@]}}"; do
  begin=$SECONDS
  if "check_$check"; then result=passed; else result=FAILED; failed+=("$check"); fi
  echo "== $check: $result in $((SECONDS - begin)) s"
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
