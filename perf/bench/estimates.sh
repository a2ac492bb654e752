#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# estimates.sh - compare the timing model of pipelined training with measured steps.
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they share
# its cores, and the model measures this. runs.csv has a line for each row of perf/estimates.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
# shellcheck source=tests/netns/net.sh
. "$here/../tests/netns/net.sh"
quick "one rate, one compute time, few steps: a smoke test" rates=1gbit compute=5 steps=10
options "rates=100mbit 1gbit 10gbit"
option compute "3 5 8" LIST "ms of a gradient"
option steps 60 N "steps of each row; a fifth of it below 1gbit"
option codecs 'none|int8:result=requantised|qsgd:bits=4|topk:ratio=0.001+natural' LIST "separated by |"
option hosts 4 N "hosts with one rank each"
option priority 0 N "SCHED_FIFO priority of the ranks, for busy machines; 0: none"
files='runs.csv, inputs.txt, bench.md (tables), errors.log' limit=300
take_arguments "$@"
! why=$(net_refused) || die "$why"
[ -x "$build/perf/estimates" ] || die "$build/perf/estimates is missing: build first"

steps_of() { # RATE COMPUTE
    local few=$steps first=()
    [ "$priority" = 0 ] || first=(chrt -f "$priority")
    [[ $1 != *kbit && $1 != ?mbit && $1 != ??mbit && $1 != ???mbit ]] || few=$(((steps + 4) / 5))
    "${first[@]}" "$here/../tests/netns/hosts" --hosts "$hosts" --rate "$1" --ipv4 --timeout "$limit" \
        -- "$build/perf/estimates" "$2" "$few" "$codecs" | sed -n "s/^\[0\] //p"
}

echo "rate,compute_ms,codec,width,estimated_ms,measured_ms,error,gain,measured_gain,at_most,chosen" >"$runs"
: >"$out/inputs.txt"
trap interrupt INT
for rate in $rates; do
    for ms in $compute; do
        [ -z "$interrupted" ] || continue
        say "$rate, $ms ms"
        run_launch steps_of "$rate" "$ms"
        [ "$status" = 0 ] || [ -n "$interrupted" ] || die "a launch failed: see $errors"
        { grep -v '^#' "$out/launch.csv" || :; } | sed "s/^/$rate,/" >>"$runs"
        sed -n "s/^# /$rate, $ms ms: /p" "$out/launch.csv" >>"$out/inputs.txt"
    done
done
rm -f "$out/launch.csv"
clear_progress
about="$hosts hosts of one rank, $steps steps a row; a gradient of 535 818 elements is a sleep. Times
in ms; gains over the dense synchronous step, estimated and measured."
[ -z "$interrupted" ] || about+=$'\n'"The last launch is incomplete."
tables() {
    echo "| link | compute | codec | width | estimated | measured | error | gain | measured | at most |"
    echo "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    awk -F'"' 'NR > 1 { split($1, a, ","); split($3, b, ",")
        printf "| %s | %s | %s`%s` | %s | %s | %s | %s | %s | %s | %s |\n", a[1], a[2],
            b[9] == 1 ? "**chosen** " : "", $2, b[2], b[3], b[4], b[5], b[6], b[7], b[8] }' "$runs"
}
# The fastest width of each codec.
page_rows() {
    awk -F'"' 'NR == 1 { print "rate,compute_ms,codec,ms"; next }
        { split($1, a, ","); split($3, b, ","); gsub(/,/, ";", $2); key = a[1] "," a[2] "," $2
          if (!(key in least)) order[++n] = key
          if (!(key in least) || b[4] < least[key]) least[key] = b[4] }
        END { for (i = 1; i <= n; i++) print order[i] "," least[order[i]] }' "$runs"
}
finish split_by="rate compute_ms" name=codec own=. key=codec bytes=2143272 run='"command": "steps of training"'
