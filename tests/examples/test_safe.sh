#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/safe: a run continues where the previous one stopped; tribctl shows and removes its
# snapshots.
# shellcheck source-path=SCRIPTDIR/../.. disable=SC2317 # called indirectly
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
if missing curl "snapshots"; then
    finish
fi
key_of_job=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export TRIB_SERVICE_JOB=safe TRIB_TRANSPORT=shm
mkdir -m 700 "$dir/snapshots"
start_daemon one "snapshots = $dir/snapshots" "socket = $dir/one.socket" || finish
safe() {
    service one timeout $((60 * slow)) "$build/tools/trib-run" -n 2 -- "$build/examples/safe" "$key_of_job" >"$said" 2>&1
}

safe && [ "$(grep -c 'version 2000, 2000 steps: success' "$said")" = 2 ]
result $? "a run from the beginning"
"$build/agg/daemon/tribctl" --config "$dir/one.conf" snapshots >"$said" 2>&1
grep -q "^safe .* steps  *2000 " "$said"
result $? "tribctl snapshots shows its vector"
curl -sf "http://127.0.0.1:${daemon_http[one]}/metrics" >"$said"
grep -q '^tribd_snapshot_failures_total 0' "$said" && grep -q '^tribd_snapshots_held 1' "$said" && grep -q '^tribd_snapshots_total [1-9]' "$said"
result $? "Prometheus shows it"
kill -KILL "${daemon_pid[one]}"
wait "${daemon_pid[one]}"
again one
safe && [ "$(grep -c 'version 4000, 4000 steps: success' "$said")" = 2 ]
result $? "the next run continues from there, also after kill -9"
"$build/agg/daemon/tribctl" --config "$dir/one.conf" forget safe steps >"$said" 2>&1
no_snapshots() { [ -z "$(ls "$dir/snapshots")" ]; }
grep -q "1 snapshot removed" "$said" && no_snapshots
result $? "tribctl forget removes it"
safe && [ "$(grep -c 'version 2000, 2000 steps: success' "$said")" = 2 ]
result $? "a run from the beginning again"
finish
