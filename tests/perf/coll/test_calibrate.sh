#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# trib-perf calibrate: it measures, all ranks or none use its file, and it reports missing
# capabilities.

# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${PERF:-$build/perf/trib-perf}
run=${RUN:-$build/tools/trib-run}
file=$dir/calibration.json
unset TRIB_CALIBRATION
export TRIB_TRANSPORT=tcp

expect "two ranks measure their network" 0 "for TRIB_TRANSPORT=tcp on one host" \
    "$perf" calibrate -n 2 --out "$file"
links() { # NUMBER
    python3 -c 'import json, sys
f = json.load(open(sys.argv[1]))
assert f["machine"]["cores"] > 0 and len(f["links"]) == int(sys.argv[2]), f
for l in f["links"]:
    assert 0.1 < l["hop_us"] < 1e5 and 0.01 < l["message_us"] < 1e5, l
    assert 1e6 < l["wire_Bps"] < 1e12 and 1e8 < l["sum_Bps"] < 1e12, l' "$file" "$1"
}
links 1
result $? "the file has this link"
expect "measured again" 0 "slowest" "$perf" calibrate -n 2 --out "$file"
links 1
result $? "it stands there once"

# RANKS' PROGRAM: run it and check the algorithm that a plan explains.
explained() { # NAME WORDS COMMAND...
    expect "$1" 0 "$2" "${@:3}" "$perf" allreduce --sizes 64K --iters 3 --explain
}
explained "plans go by it" "network calibrated on 20" env TRIB_CALIBRATION="$file" "$run" -n 2 --tag none --
without() { # NAME COMMAND...
    "${@:2}" "$perf" allreduce --sizes 64K --iters 3 --explain >"$said" 2>&1 &&
        ! grep -q "network calibrated" "$said"
    result $? "$1"
}
# shellcheck disable=SC2016 # each rank's shell expands it
without "but not where one rank has none" env file="$file" "$run" -n 2 --tag none -- \
    sh -c '[ "$TRIB_RANK" = 0 ] || export TRIB_CALIBRATION="$file"; exec "$@"' rank
sed 's/"cores": [0-9]*/"cores": 99999/' "$file" >"$dir/other.json"
without "nor by another machine's" env TRIB_CALIBRATION="$dir/other.json" "$run" -n 2 --tag none --
grep -q "TRIB_CALIBRATION: .*another machine.*run trib-perf calibrate here" "$said"
result $? "which is said"

expect "memory that ranks share is no network" 2 "these ranks share none" \
    env TRIB_TRANSPORT=shm "$perf" calibrate -n 2 --out "$file"
expect "a folder that is not there" 1 "does the folder exist" "$perf" calibrate -n 2 \
    --out "$dir/none/x.json"
expect "a word" 2 "accepts only options" "$perf" calibrate now
finish
