#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A bench that Ctrl-C ends has its tables: of the launches that were through, with their number.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${abs_top_srcdir:-.}/perf

mkdir -p "$dir/build/perf" "$dir/out"
printf '#!/bin/sh\necho near\n' >"$dir/build/perf/probe"
cp "$dir/build/perf/probe" "$dir/build/perf/trib-perf"
chmod +x "$dir"/build/perf/*
cat >"$dir/bench" <<'SCRIPT'
#!/usr/bin/env bash
set -euo pipefail
rounds=50 limit=60 only='' missing=()
# shellcheck source=perf/benchlib.sh
. "$1/benchlib.sh"
declare -A settings=()
take_arguments "$2/build" "$2/out"
launch() { # the third one waits, as a long one does
    [ "$round" -lt 3 ] || { kill -INT "$script"; sleep 60; }
    echo "row,$round,1"
}
export -f launch
export round script=$$
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
grep -q "Interrupted: the tables are of 2 launches" "$said"
result $? "it says how many launches its tables have"
[ "$(grep -c ",row," "$said")" = 2 ]
result $? "half a launch is none"
[ $((SECONDS - began)) -lt 30 ]
result $? "it does not wait for the launch under way"
finish
