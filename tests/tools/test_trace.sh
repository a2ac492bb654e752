#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Traces of all ranks in one file: complete, with a lane for each stage, on one clock.
# The ranks expand their scripts.
# shellcheck disable=SC2016
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
run=$build/tools/trib-run
info=$build/tools/trib-info
perf=$build/perf/trib-perf
command -v python3 >/dev/null || skip_all "no python3 to read JSON with"
unset TRIB_TRACE TRIB_TRACE_FILE
export TRIB_TRANSPORT=tcp
sum=(allreduce --codec int8 --algorithm direct --sizes 1M --iters 2 --warmup 1)

cat >"$dir/look.py" <<'PYTHON'
"""FILE RANKS LANE... - is it a trace of so many ranks that have these lanes?

Spans of a lane nest, none is shorter than nothing, and sums of 1 MiB overlap on all
ranks, as they are on one clock. Prints the message about each clock."""
import collections, json, sys

events = json.load(open(sys.argv[1]))["traceEvents"]
ranks, wanted = int(sys.argv[2]), set(sys.argv[3:])
within = 0  # microseconds by which clocks may differ
names, spans, operations = {}, collections.defaultdict(list), collections.defaultdict(list)
for e in events:
    lane = e["pid"], e["tid"]
    if e["ph"] == "M":
        if e["name"] == "thread_name":
            names[lane] = e["args"]["name"]
        if e["name"] == "process_labels":
            print(e["pid"], e["args"]["labels"])
            within += int(e["args"]["labels"].split()[-2])
        continue
    assert e["ts"] >= 0, e
    if e["ph"] == "X":
        assert e["dur"] >= 0, e
        spans[lane].append((e["ts"], -e["dur"]))
        if e["name"] == "operation" and e["args"]["value"] == 1 << 18:
            operations[e["pid"]].append((e["ts"], e["ts"] + e["dur"]))
assert {p for p, _ in names} == set(range(ranks)), names
for rank in range(ranks):
    has = {names[l] for l in names if l[0] == rank}
    assert wanted <= has, (rank, wanted - has)
for lane, of in spans.items():
    assert lane in names, lane
    open_until = []
    for begin, minus in sorted(of):
        while open_until and open_until[-1] <= begin + 0.002:
            open_until.pop()
        assert not open_until or begin - minus <= open_until[-1] + 0.002, (lane, begin)
        open_until.append(begin - minus)
for same in zip(*(sorted(operations[rank], reverse=True) for rank in range(ranks))):
    assert max(b for b, _ in same) < min(e for _, e in same) + within, same
PYTHON
look() { # NAME, FILE RANKS LANE...
    local name=$1
    shift
    python3 "$dir/look.py" "$@" >"$said" 2>&1
    result $? "$name"
}
stages=(operation encode send receive reduce decode wait)

expect "trib-run --trace" 0 "" "$run" -n 3 --trace "$dir/run.json" -- "$perf" "${sum[@]}"
look "each rank has a lane for each stage, and spans nest" "$dir/run.json" 3 "${stages[@]}"
[ "$(grep -c 'clock +0 us, within' "$said")" = 3 ]
result $? "ranks of one host have one clock"
[ -z "$(find "$dir" -name 'run.json.*')" ]
result $? "nothing else is left"
TRIB_ENCODE_THREADS=1 expect "trib-perf --trace" 0 "" "$perf" "${sum[@]}" -n 2 --trace "$dir/perf.json"
look "a thread that encodes ahead has a lane" "$dir/perf.json" 2 "${stages[@]}" "encode ahead 1"
TRIB_TRACE=64 expect "a short trace" 0 "" "$run" -n 2 --trace "$dir/short.json" -- "$perf" "${sum[@]}"
look "a ring that has lost begins is a trace all the same" "$dir/short.json" 2 operation

mkdir "$dir/parts"
TRIB_TRACE=10000 TRIB_TRACE_FILE=$dir/parts/t expect "TRIB_TRACE" 0 "" "$run" -n 2 -- \
    "$perf" "${sum[@]}"
expect "trib-info --merge-trace" 0 "" "$info" --merge-trace "$dir/merged.json" "$dir"/parts/t.*.json
look "what ranks have written is put together" "$dir/merged.json" 2 "${stages[@]}"
head -c 2000 "$dir/parts/t.0.json" >"$dir/cut.json"
expect "half a trace" 1 "cut.json is not a complete TRIB_TRACE file" "$info" --merge-trace "$dir/no.json" \
    "$dir/cut.json"
expect "no trace" 1 "cannot read" "$info" --merge-trace "$dir/no.json" "$dir/none-such"
expect "no parts" 2 "needs an output file" "$info" --merge-trace "$dir/no.json"
expect "ranks that leave none" 125 "no rank wrote a trace" "$run" -n 1 --trace "$dir/no.json" -- true
expect "a failed rank" 3 "" "$run" -n 1 --trace "$dir/no.json" -- sh -c 'exit 3'
expect "a folder that is not there" 125 "cannot write" "$run" -n 1 --trace "$dir/none/t" -- true
expect "trib-perf --trace below a launcher" 2 "trib-run --trace" "$perf" "${sum[@]}" --trace "$dir/no.json"

# A rank whose clock is 1000 s ahead, like that on another host.
if unshare --fork --time --monotonic 1000 true 2>"$said"; then
    expect "a rank with another clock" 0 "" "$run" -n 2 --trace "$dir/clock.json" -- sh -c '
        [ "$TRIB_RANK" = 0 ] || exec unshare --fork --time --monotonic 1000 "$@"
        exec "$@"' sh "$perf" "${sum[@]}"
    look "its operations are beside those of rank 0" "$dir/clock.json" 2 "${stages[@]}"
    grep -qE '^1 clock \+(999|1000)[0-9]{6} us, within' "$said"
    result $? "and its offset is printed"
else
    skip "a rank with another clock" "$(head -n 1 "$said")"
fi
finish
