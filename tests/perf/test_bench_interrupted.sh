#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A bench interrupted by Ctrl-C prints tables of the finished launches, with their number.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${abs_top_srcdir:-.}/perf

gone() { # FILE with a process id: succeed when it has ended, even as a zombie
    local state
    for _ in {1..100}; do
        state=$(ps -o stat= -p "$(cat "$1")")
        [[ $state = [!Z]* ]] || return 0
        sleep 0.02
    done
    return 1
}

mkdir -p "$dir/build/perf" "$dir/out"
printf '#!/bin/sh\necho near\n' >"$dir/build/perf/probe"
cp "$dir/build/perf/probe" "$dir/build/perf/trib-perf"
chmod +x "$dir"/build/perf/*
cat >"$dir/bench" <<'SCRIPT'
#!/usr/bin/env bash
# shellcheck source=perf/bench/driver.sh
. "$1/bench/driver.sh"
rounds=50
take_arguments "$2/build" "$2/out"
launch() { # the third launch waits for its child, as a long one does
    if [ "$round" = 3 ]; then
        sleep 3601 &
        echo $! >"$to/child"
        mktemp -d "$to/store.XXXXXX" >"$to/store"
        # shellcheck disable=SC2064 # like the launches of gloo
        trap "rm -rf '$(cat "$to/store")'" EXIT
        trap 'exit 143' TERM
        kill -INT "$script"
        wait
    fi
    echo "row,$round,1"
}
export -f launch
export round script=$$ to=$2
trap 'exit 130' INT
for ((round = 1; round <= rounds; round++)); do
    launch_probed "$round" all guarded launch
done
absent_lines
cat "$2/out/runs.csv"
SCRIPT
chmod +x "$dir/bench"
touch "$dir/out/runs.csv"
began=$SECONDS
"$dir/bench" "$perf" "$dir" >"$said" 2>&1
result $? "an interrupted bench ends well"
grep -q "Interrupted: the tables contain 2 launches" "$said"
result $? "it says how many launches its tables have"
[ "$(grep -c ",row," "$said")" = 2 ]
result $? "half a launch is none"
[ $((SECONDS - began)) -lt 30 ]
result $? "it does not wait for the launch under way"
gone "$dir/child" && within 20 test ! -e "$(cat "$dir/store")"
result $? "neither a process of the launch under way is left nor a folder"

# --- tables ---

cat >"$dir/table.md" <<'MD'
A line that is so long that it cannot stand in forty columns.

| size | tributary | another | µs of a third |
|---|--:|--:|--:|
| 8 B | 0.67 [0.67-0.67] | 1.5 | 179.5 [179.5-179.5] |
MD
LC_ALL=C awk -v width=40 -f "$perf/bench/show.awk" "$dir/table.md" >"$said"
[ "$(grep -c "^size " "$said")" = 2 ] && grep -qE "^8 B +0.67 \[0.67-0.67\] +1.5$" "$said" && LC_ALL=C.UTF-8 awk 'length > 40 { exit 1 }' "$said"
result $? "on a terminal a wide table stands in parts"

# --- trib-perf ---

real=$build/perf/trib-perf
mkdir -p "$dir/peers"
cat >"$dir/peers/run-peer.sh" <<'SH'
#!/bin/sh
echo "$2" >"$(dirname "$0")/folder"
[ "$1" = build ] && printf 'one\tOne 1.2\n' && exit
echo x >>"$(dirname "$0")/launches"
echo "$3,$4,8,3,1,100.5,1.5,900"
[ "$(wc -l <"$(dirname "$0")/launches")" = 2 ] || exit 0
sleep 3602 &
echo $! >"$(dirname "$0")/child"
kill -INT "$PPID"
wait
SH
chmod +x "$dir/peers/run-peer.sh"
expect "--peers that Ctrl-C ends in the second round" 130 "interrupted: at most 2 launches of each" "$real" allreduce -n 2 \
    --sizes 8 --iters 3 --sample 1ms --warmup 1 --peers="$dir/peers" --json "$dir/peers.json" --html "$dir/peers.html"
grep -qE '^ +8 B +[0-9.]+ +100\.5 ' "$said" && [ -s "$dir/peers.html" ] && grep -q '"interrupted": true' "$dir/peers.json" &&
    grep -q '"rounds": 1' "$dir/peers.json"
result $? "its table, page and json have the first round of the peer"
gone "$dir/peers/child" && [ ! -e "$(cat "$dir/peers/folder")" ]
result $? "and neither a process is left nor a folder"
env --default-signal=INT "$real" allreduce -n 2 --sizes 8,64,512 --iters 20000 --sample 5ms --json "$dir/some.json" >"$said" 2>&1 &
pid=$!
for ((i = 0; i < 200; i++)); do
    ! grep -q "^ *size" "$said" || break
    sleep 0.05
done
sleep 0.3 # after its first samples
kill -INT "$pid"
wait "$pid"
[ $? = 130 ] && grep -qE "interrupted: only [12] of 3 sizes" "$said" && grep -q '"interrupted": true' "$dir/some.json"
result $? "an interrupted measurement prints its results so far"
finish
