#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What trib-perf makes of results: compare, --compare and --plot.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=$build/perf/trib-perf

document() { # median of 8 bytes, of 1 MiB, format; prints a result of two sizes
    cat <<JSON
{"format": ${3:-1}, "tributary": "0.1.0", "time": "2026-01-02T03:04:05Z", "argv": ["trib-perf", "allreduce"],
 "machine": {"host": "a <b>", "cpu": "c & d"}, "settings": {"TRIB_SPIN_US": {"value": "5", "unit": "µs", "origin": "environment"}},
 "run": {"collective": "allreduce", "dtype": "f32", "op": "sum", "codec": "none", "ranks": 2},
 "results": [
  {"bytes": 8, "iters": 9, "p25_us": $1, "p50_us": $1, "p75_us": $1, "p99_us": $1, "min_us": $1, "algbw_GBps": 1, "busbw_GBps": 1},
  {"bytes": 1048576, "iters": 9, "p25_us": $2, "p50_us": $2, "p75_us": $2, "p99_us": $2, "min_us": $2, "algbw_GBps": 9, "busbw_GBps": 9}]}
JSON
}
document 0.5 100 >"$dir/old.json"
document 0.5 130 >"$dir/slow.json"
document 0.5 100 2 >"$dir/other.json"
sed 's/"bytes": /"bytes": 1/' "$dir/old.json" >"$dir/sizes.json"
echo '{"format": 1, "tributary": "0.1.0", "results": []}' >"$dir/none.json"
echo '{"a": 1}' >"$dir/strange.json"
head -c 300 "$dir/old.json" >"$dir/half.json"

compare() { # NAME, expected exit code, words that must be said, arguments
    expect "$1" "$2" "$3" "$perf" compare "${@:4}"
}
compare "the same" 0 "2 rows: 0 slower beyond the spread, 0 faster" "$dir/old.json" "$dir/old.json" --fail-above 1.1
compare "slower, without a limit" 0 "2 rows: 1 slower beyond the spread, 0 faster" "$dir/old.json" "$dir/slow.json"
grep -qE '^ +1 MiB +100\.0 +130\.0 +1\.30 +0 %  slower$' "$said"
result $? "its row says how much"
compare "slower than the limit" 1 "1 row is slower than 1.2 times $dir/old.json" "$dir/old.json" "$dir/slow.json" --fail-above 1.2
compare "slower, within the limit" 0 "1 slower beyond the spread" "$dir/old.json" "$dir/slow.json" --fail-above 1.4
compare "faster" 0 "0 slower beyond the spread, 1 faster" "$dir/slow.json" "$dir/old.json" --fail-above 1
sed 's/"ranks": 2/"ranks": 4/; s/"value": "5"/"value": "6"/' "$dir/old.json" >"$dir/more.json"
compare "what was not alike" 0 "not alike: ranks 2 and 4" "$dir/old.json" "$dir/more.json"
grep -qF 'not alike: TRIB_SPIN_US "5" and "6"' "$said"
result $? "settings, too"
awk 'length > 80 && !/^(old|new): / { exit 1 }' "$said"
result $? "it fits 80 columns"
compare "no size in common" 2 "no row in common" "$dir/old.json" "$dir/sizes.json"
compare "half a document" 2 "half.json is no JSON: line" "$dir/old.json" "$dir/half.json"
compare "a document of another kind" 2 "is no result of trib-perf" "$dir/strange.json" "$dir/old.json"
compare "a document of another format" 2 "has format 2" "$dir/other.json" "$dir/old.json"
compare "no results" 2 "none.json has no results" "$dir/none.json" "$dir/old.json"
compare "no such file" 2 "cannot read $dir/absent.json: No such file" "$dir/old.json" "$dir/absent.json"
compare "a folder" 2 "$dir is no JSON" "$dir/old.json" "$dir"
compare "one file" 2 "OLD.json NEW.json" "$dir/old.json"
compare "three files" 2 "compare takes two files" a b c
compare "a limit below 1" 2 "is not a number of at least 1" "$dir/old.json" "$dir/old.json" --fail-above 0.5
refuse_full "a comparison onto a full disk" "$perf" compare "$dir/old.json" "$dir/old.json"

# --- behind a measurement ---

sum=(allreduce -n 2 --sizes "8,1M" --iters 3 --warmup 1)
expect "a measurement beside a file" 0 "2 rows:" "$perf" "${sum[@]}" --compare "$dir/old.json" --json "$dir/new.json"
compare "its file is compared with itself" 0 "2 rows: 0 slower beyond the spread, 0 faster" "$dir/new.json" "$dir/new.json"
document 0.000001 0.000001 >"$dir/quick.json"
expect "a measurement that is too slow" 1 "2 rows are slower than 1.1 times" \
    "$perf" "${sum[@]}" --compare "$dir/quick.json" --fail-above 1.1
"$perf" "${sum[@]}" --compare "$dir/old.json" --csv - 2>"$said" | awk 'END { exit NR != 3 }' && grep -q "2 rows:" "$said"
result $? "beside csv on standard output it goes to standard error"
expect "nothing is measured where the file is missing" 2 "cannot read $dir/absent.json" \
    "$perf" "${sum[@]}" --compare "$dir/absent.json"
! grep -q "1 MiB" "$said"
result $? "and no row is printed"
expect "a limit of nothing" 2 "--fail-above goes with --compare" "$perf" "${sum[@]}" --fail-above 1.1
expect "compare is no second word" 2 "compare stands first" "$perf" -n 2 compare
LC_ALL=C expect "bars in ASCII" 0 "time: # up to p50, . on to p99" "$perf" "${sum[@]}" --plot
grep -qE '^ +1 MiB +[0-9.]+  #+' "$said" && ! sed 1,3d "$said" | LC_ALL=C grep -q '[^ -~]'
result $? "and nothing else"
if locale -a | grep -qix 'c.utf-\?8'; then
    LC_ALL=C.UTF-8 expect "bars in blocks" 0 "time: █ up to p50, ░ on to p99" "$perf" "${sum[@]}" --plot
else
    skip "bars in blocks" "there is no locale C.UTF-8"
fi
finish
