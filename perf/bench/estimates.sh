#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# estimates.sh - compare the timing model of pipelined training with measured steps.
#
#   perf/bench/estimates.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           one rate, one compute time, few steps: a smoke test
#   --rates LIST      rates of each host's link, each way [100mbit 1gbit 10gbit]
#   --compute LIST    ms of a gradient [3 5 8]
#   --steps N         steps of each row; a fifth of it below 1gbit [60]
#   --codecs LIST     separated by | [none|int8:result=requantised|qsgd:bits=4|…]
#   --hosts N         hosts with one rank each [4]
#   --priority N      SCHED_FIFO priority of the ranks, for busy machines; 0: none [0]
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they share
# its cores, and the model measures this. The files in OUT_DIR are runs.csv (a line a row, of
# perf/estimates), inputs.txt and bench.md.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

# shellcheck disable=SC2034 # driver.sh reads them
rounds=1 limit=300 only='' missing=''
rates="100mbit 1gbit 10gbit" compute="3 5 8" steps=60 hosts=4 priority=0
codecs='none|int8:result=requantised|qsgd:bits=4|topk:ratio=0.001+natural'

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"
# shellcheck source=tests/netns/net.sh
. "$here/../tests/netns/net.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rates]=rates [compute]=compute [steps]=steps [codecs]=codecs
    [hosts]=hosts [priority]=priority)
on_quick() { rates=1gbit compute=5 steps=10; }
take_arguments "$@"
! why=$(net_refused) || die "$why"
# shellcheck disable=SC2154 # take_arguments sets build, out, runs and errors
[ -x "$build/perf/estimates" ] || die "$build/perf/estimates is missing: build first"

launch() { # RATE COMPUTE
    local few=$steps first=()
    [ "$priority" = 0 ] || first=(chrt -f "$priority")
    [[ $1 != *kbit && $1 != ?mbit && $1 != ??mbit && $1 != ???mbit ]] || few=$(((steps + 4) / 5))
    "${first[@]}" "$here/../tests/netns/hosts" --hosts "$hosts" --rate "$1" --ipv4 --timeout "$limit" \
        -- "$build/perf/estimates" "$2" "$few" "$codecs" 2>>"$errors" | sed -n "s/^\[0\] //p"
}

echo "rate,compute_ms,codec,width,estimated_ms,measured_ms,error,gain,measured_gain,at_most,chosen" >"$runs"
: >"$out/inputs.txt"
trap interrupt INT
for rate in $rates; do
    for ms in $compute; do
        [ -z "$interrupted" ] || continue
        say "$rate, $ms ms"
        status=0
        launch "$rate" "$ms" >"$out/launch.txt" &
        launch_pid=$!
        wait "$launch_pid" || status=$?
        [ "$status" = 0 ] || [ -n "$interrupted" ] || die "a launch failed: see $errors"
        { grep -v '^#' "$out/launch.txt" || :; } | sed "s/^/$rate,/" >>"$runs"
        sed -n "s/^# /$rate, $ms ms: /p" "$out/launch.txt" >>"$out/inputs.txt"
    done
done
rm -f "$out/launch.txt"
[ ! -t 2 ] || printf '\r\033[K' >&2
{
    echo "$hosts hosts of one rank, $steps steps a row; a gradient of 535 818 elements is a sleep. Times"
    [ -z "$interrupted" ] || echo "Interrupted: the last launch is incomplete."
    echo "in ms; gains over the dense synchronous step, estimated and measured."
    echo
    echo "| link | compute | codec | width | estimated | measured | error | gain | measured | at most |"
    echo "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    awk -F'"' 'NR > 1 { split($1, a, ","); split($3, b, ",")
        printf "| %s | %s | %s`%s` | %s | %s | %s | %s | %s | %s | %s |\n", a[1], a[2],
            b[9] == 1 ? "**chosen** " : "", $2, b[2], b[3], b[4], b[5], b[6], b[7], b[8] }' "$runs"
} >"$out/bench.md"
show_tables "$out/bench.md"
echo "written to $out: bench.md, runs.csv, inputs.txt, errors.log" >&2
# The fastest width of each codec.
awk -F'"' 'NR == 1 { print "rate,compute_ms,codec,ms"; next }
    { split($1, a, ","); split($3, b, ","); gsub(/,/, ";", $2); key = a[1] "," a[2] "," $2
      if (!(key in least)) order[++n] = key
      if (!(key in least) || b[4] < least[key]) least[key] = b[4] }
    END { for (i = 1; i <= n; i++) print order[i] "," least[order[i]] }' "$runs" >"$out/steps.csv"
rows=$out/steps.csv write_page split_by="rate compute_ms" name=codec own=. key=codec bytes=2143272 \
    run='"command": "steps of training"'
rm "$out/steps.csv"
