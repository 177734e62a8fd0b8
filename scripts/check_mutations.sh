#!/usr/bin/env bash
# Checks that the tests find bugs. Each tests/mutations/NAME.patch adds one bug. Its first line is
#   AREA...: DESCRIPTION
# where each AREA is a test program. At least one of them must find the bug. For each patch this script patches a copy of
# the tree (never the tree itself), builds these test programs, and runs them until a test fails or hangs. It prints one
# line per bug, and also the description of a bug that was not caught. It fails if more than two bugs are missed, or if a
# patch no longer applies or compiles.
#
# Usage: scripts/check_mutations.sh [--no-baseline | --apply-only] [NAME...]
#   NAME           runs only these patches; the default is all
#   --no-baseline  skips the baseline run without a bug, in which all tests must pass
#   --apply-only   only checks that the patches apply, which takes a second
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
max_missed=2
# Time limit in seconds of a test program that the baseline run has not measured. A program that exceeds its limit hangs.
test_seconds=600
declare -A area_seconds

work=$root/build/mutations
source=$work/source
build=$source/build/release
# Without this, git treats the copy as part of this repository and applies nothing.
export GIT_CEILING_DIRECTORIES=$work

baseline=1
apply_only=0
names=()
for argument in "$@"; do
  case $argument in
    --no-baseline) baseline=0 ;;
    --apply-only) apply_only=1 ;;
    *) names+=("$argument") ;;
  esac
done
if [ ${#names[@]} -eq 0 ]; then
  for patch in "$root"/tests/mutations/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi

if [ "$apply_only" -eq 1 ]; then
  status=0
  for name in "${names[@]}"; do
    if ! (cd "$root" && git apply --check "tests/mutations/$name.patch"); then
      echo "tests/mutations/$name.patch no longer applies"
      status=1
    fi
  done
  exit "$status"
fi

# Copies the tree with its modification times, so that a second run builds only what has changed.
copy_source() {
  # Files that the repository no longer has must not stay in the copy. tar keeps the times of the others.
  find "$source" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  (cd "$root" && git ls-files -z --cached --others --exclude-standard |
    tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null) | tar -C "$source" -xf -
  # A killed run may have left object files of patched sources. They are newer than the sources that were just copied, so
  # the sources must be touched.
  if [ -f "$work/applied" ]; then
    (cd "$source" && git apply --numstat "$(cat "$work/applied")" | cut -f3 | xargs -r touch)
    rm "$work/applied"
  fi
}

areas_of() { head -n 1 "$root/tests/mutations/$1.patch" | cut -d: -f1; }
title_of() { head -n 1 "$root/tests/mutations/$1.patch" | cut -d: -f2-; }

build_areas() {
  local targets=()
  for area in "$@"; do targets+=("${area}_test"); done
  nice cmake --build "$build" --target "${targets[@]}" >"$work/build.log" 2>&1
}

# Runs test programs until one fails. Returns 0 if all pass. Otherwise sets `failing` to AREA.TEST of the first failure and
# returns 1. Sets `last_seconds` to the duration of the last program.
run_areas() {
  local area status start
  for area in "$@"; do
    status=0
    start=$SECONDS
    (cd "$build/tests" &&
      nice timeout "${area_seconds[$area]:-$test_seconds}" "./${area}_test" --gtest_fail_fast --gtest_brief=1) \
      >"$work/test.log" 2>&1 </dev/null || status=$?
    last_seconds=$((SECONDS - start))
    [ "$status" -eq 0 ] && continue
    local name
    name=$(grep -a -m 1 -o '^\[  FAILED  \] [^ ,]*' "$work/test.log" | cut -c14- || true)
    [ "$status" -ne 124 ] || name="hangs"
    failing=$area.${name:-ends with status $status}
    return 1
  done
}

mkdir -p "$source"
copy_source
export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER:-$(command -v ccache || true)}
# The flags are those of scripts/test.sh, so that ccache has most objects. There is no reference data, as in a plain clone.
(cd "$source" && cmake --preset release -DVLLMCLI_WERROR=ON -DVLLMCLI_REALDATA=/nonexistent) >"$work/configure.log"

if [ "$baseline" -eq 1 ]; then
  mapfile -t all_areas < <(for name in "${names[@]}"; do areas_of "$name" | tr ' ' '\n'; done | sort -u)
  build_areas "${all_areas[@]}" || { tail -n 20 "$work/build.log"; exit 1; }
  for area in "${all_areas[@]}"; do
    run_areas "$area" || { echo "the baseline run fails: $failing"; exit 1; }
    area_seconds[$area]=$((30 + 4 * last_seconds))
  done
fi

num_caught=0
num_missed=0
num_broken=0
for name in "${names[@]}"; do
  patch=$root/tests/mutations/$name.patch
  read -r -a areas <<<"$(areas_of "$name")"
  result=
  echo "$patch" >"$work/applied"
  if ! (cd "$source" && git apply "$patch") 2>"$work/apply.log"; then
    result="BROKEN: does not apply"
    num_broken=$((num_broken + 1))
  else
    if ! build_areas "${areas[@]}"; then
      result="BROKEN: does not compile"
      num_broken=$((num_broken + 1))
    elif run_areas "${areas[@]}"; then
      result="MISSED"
      num_missed=$((num_missed + 1))
    else
      result="caught by $failing"
      num_caught=$((num_caught + 1))
    fi
    (cd "$source" && git apply -R "$patch")
  fi
  rm "$work/applied"
  printf '%-34s %s\n' "$name" "$result"
  case $result in caught*) ;; *) echo "   $(title_of "$name")" ;; esac
done

echo "caught $num_caught of ${#names[@]}, missed $num_missed (limit $max_missed), broken $num_broken"
[ "$num_missed" -le "$max_missed" ] && [ "$num_broken" -eq 0 ]
