#!/usr/bin/env bash
# Prints the number of skipped tests, and each reason with its number of tests. Fails if a reason does not begin with
# "reference data not found" or "needs root".
#
#   scripts/list_skipped_tests.sh LOG
#
# LOG is the LastTest.log that ctest wrote.
set -euo pipefail
awk '
  /^[0-9]+\/[0-9]+ Testing: / { name = $3; for (i = 4; i <= NF; ++i) name = name " " $i; seen = 0 }
  takes_reason { reason = $0; takes_reason = 0; ++count[reason]; if (!(reason in first)) first[reason] = name }
  /: Skipped$/ && !seen { takes_reason = 1; seen = 1; ++total }
  END {
    printf "Skipped tests: %d\n", total
    for (reason in count) {
      printf "  %4d  %s (%s%s)\n", count[reason], reason, first[reason], (count[reason] > 1 ? ", ..." : "")
      if (reason !~ /^(reference data not found|needs root)/) { bad = 1 }
    }
    if (bad) print "A test may be skipped only if reference data is missing or it needs root (\"reference data not found: ...\", \"needs root: ...\")."
    exit bad
  }
' "$1"
