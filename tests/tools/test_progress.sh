#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# On a terminal, operations that take over two seconds show their progress; output to a file does
# not.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
top=$(cd "${abs_top_srcdir:-.}" && pwd)
shown+=("$dir/seen")

# Commands that wait, each on a private terminal until Ctrl-C, all at once.
waits() { # NAME COMMAND…
    local name=$1
    shift
    timeout -k 5 $((60 * slow)) "$top/tests/harness/terminal.py" --said "$dir/$name" --signal $((5 * slow)) 80 "$@" >/dev/null 2>&1 &
}
alone=(env TRIB_RANK=1 TRIB_SIZE=2 TRIB_ROOT=127.0.0.1:9)
cat >"$dir/bench" <<'SCRIPT'
#!/usr/bin/env bash
# shellcheck source=perf/bench/driver.sh
. "$1/perf/bench/driver.sh"
rounds=40 build=$2 out=$2/out errors=$2/errors runs=$2/runs planned=40
launch() { sleep 0.5; }
for ((round = 1; round <= rounds; round++)); do launch_probed "$round" all launch; done
SCRIPT
mkdir -p "$dir/perf" "$dir/out"
printf '#!/bin/sh\necho near\n' >"$dir/perf/probe"
chmod +x "$dir/bench" "$dir/perf/probe"
waits reach "${alone[@]}" "$build/tools/trib-info" --reach
waits doctor "${alone[@]}" "$build/tools/trib-info" doctor
waits bench "$dir/bench" "$top" "$dir"
"${alone[@]}" timeout 4 "$build/tools/trib-info" --reach >"$dir/plain" 2>&1
wait

says() { # NAME FILE PATTERN: the line is rewritten in place
    cp "$dir/$2" "$dir/seen"
    grep -qE $'\r\033\\[K'"$3" "$dir/$2"
    result $? "$1"
}
says "trib-info --reach waits for other ranks" reach 'trib-info: waiting for the other ranks, [2-9] s'
says "trib-info doctor" doctor 'trib-info doctor: .*, [2-9] s'
says "a bench says which round it is, and what is left" bench 'round [0-9]+ of 40, all \(cores: near\), about 0 min [0-9]+ s left'
! grep -q "waiting" "$dir/plain"
result $? "a file has nothing of it"

mkdir "$dir/peers"
# shellcheck disable=SC2016 # the script expands them
printf '#!/bin/sh\n[ "$1" = build ] && printf "one\\tOne 1.2\\n" && exit\necho "$3,$4,8,3,1,100.5,1.5,900"\n' >"$dir/peers/run-peer.sh"
chmod +x "$dir/peers/run-peer.sh"
timeout -k 5 $((60 * slow)) "$top/tests/harness/terminal.py" --said "$dir/rounds" 80 "$build/perf/trib-perf" allreduce -n 2 --sizes 8 \
    --iters 3 --sample 1ms --peers="$dir/peers" >"$said" 2>&1
says "--peers says which round it is, and what is left" rounds 'round 2 of 3: One 1.2, [0-9]+ s left'
grep -q "^building the programs of the peers" "$dir/rounds"
result $? "and that it builds them first"
finish
