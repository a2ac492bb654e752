#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# put.sh - compare one-sided writes with ucx_perftest and perftest on this host, interleaved.
#
#   perf/bench/put.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           3 rounds, few sizes, short runs
#   --rounds N        launches of each program [5]
#   --sizes LIST      bytes, comma-separated [8,1024,8192,65536,1048576]
#   --depth N         concurrent writes in bandwidth measurements [64]
#   --only LIST       contenders, comma-separated
#
# Over TCP on the loopback: trib (trib-perf put), ucx-put and ucx-am (ucx_perftest: UCP put,
# and UCP active messages, which notify the target like our writes). With an RDMA device also
# trib over verbs and perftest (ib_write_lat, ib_write_bw). All busy-poll.
# A round launches each contender once, with the core probe before and after it. The files in
# OUT_DIR are runs.csv (all launches), bench.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 sizes=8,1024,8192,65536,1048576 depth=64 share=1 only=
limit=120 # seconds for a launch
server_log=

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [sizes]=sizes [depth]=depth [only]=only)
on_quick() { rounds=3 sizes=8,65536 share=10; }
take_arguments "$@"
server_log=$out/server.log
trap 'rm -f "$server_log"' EXIT
mapfile -t cores < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
    awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }')
client_core=${cores[0]} server_core=${cores[1]:-${cores[0]}}

# --- contenders -------------------------------------------------------------------

contenders=(tcp/trib)
missing=()
if command -v ucx_perftest >/dev/null; then
    contenders+=(tcp/ucx-put tcp/ucx-am)
else
    missing+=("ucx_perftest (package ucx-utils)")
fi
device=
for path in /sys/class/infiniband/*; do
    if [ -e "$path" ]; then
        device=${path##*/}
        break
    fi
done
if [ -z "$device" ]; then
    missing+=("perftest: there is no RDMA device")
elif ! command -v ib_write_lat >/dev/null; then
    missing+=("ib_write_lat (package perftest)")
else
    contenders+=(verbs/perftest)
    if "$build/tools/trib-info" --transports | grep -q '^  verbs .*(by '; then
        contenders=("${contenders[@]:0:${#contenders[@]}-1}" verbs/trib verbs/perftest)
    fi
fi

# --- one launch -------------------------------------------------------------------

# Rows "fabric,contender,what,bytes,value": latency in µs one way, bandwidth in GB/s.

# Print a number of round trips or writes that takes about half a second.
count() { # BYTES
    awk -v b="$1" -v share="$share" 'BEGIN { n = 20000 / (1 + b / 16384) / share; print int(n < 200 ? 200 : n) }'
}

trib() { # TRANSPORT
    local size
    for size in ${sizes//,/ }; do
        TRIB_SPIN_US=1000000 "$build/perf/trib-perf" put --transport "$1" --sizes "$size" \
            --depth "$depth" --iters "$(count "$size")" --bind core --csv -
    done | awk -F, -v fabric="$1" '
        $1 == "transport" { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { print fabric ",trib,latency," $column["bytes"] "," $column["p50_us"]
          print fabric ",trib,bandwidth," $column["bytes"] "," $column["GBps"] }'
}

listens() { # PORT
    local hex
    hex=$(printf %04X "$1")
    grep -qE "^ *[0-9]+: [0-9A-F]+:$hex 0+:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# Starts a server and, once it listens, a client, which writes to standard output.
pair() { # SERVER_COMMAND… -- CLIENT_COMMAND…
    local server=() pid tries
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    taskset -c "$server_core" timeout 60 "${server[@]}" >"$server_log" 2>&1 &
    pid=$!
    for ((tries = 0; tries < 200; tries++)); do
        ! listens "$port" || break
        sleep 0.05
    done
    local failed=0
    taskset -c "$client_core" timeout 60 "$@" || failed=1
    wait "$pid" || failed=1
    [ "$failed" = 0 ] || cat "$server_log" >&2
    return "$failed"
}

# Print an unused port.
next_port() {
    port=$((20000 + (RANDOM + $$) % 12000))
    while listens "$port"; do port=$((port + 1)); done
}

ucx() { # CONTENDER TEST: ucp_put or ucp_am
    local size
    for size in ${sizes//,/ }; do
        next_port
        pair ucx_perftest -p "$port" -- ucx_perftest 127.0.0.1 -p "$port" -t "$2_lat" \
            -s "$size" -n "$(count "$size")" -w 100 -f -v |
            awk -F, -v row="tcp,$1,latency,$size" '/^ *[0-9]/ { print row "," $2 }'
        next_port
        pair ucx_perftest -p "$port" -- ucx_perftest 127.0.0.1 -p "$port" -t "$2_bw" \
            -s "$size" -n "$(count "$size")" -w 100 -O "$depth" -f -v |
            awk -F, -v row="tcp,$1,bandwidth,$size" '/^ *[0-9]/ { print row "," $6 * 1.048576e-3 }'
    done
}

perftest() {
    local size to=${RXE_ADDRESS:-localhost}
    for size in ${sizes//,/ }; do
        next_port
        pair ib_write_lat -d "$device" -p "$port" -F -s "$size" -n "$(count "$size")" -- \
            ib_write_lat -d "$device" -p "$port" -F -s "$size" -n "$(count "$size")" "$to" |
            awk -v row="verbs,perftest,latency,$size" '/^ *[0-9]+ +[0-9]/ { print row "," $5 }'
        next_port
        pair ib_write_bw -d "$device" -p "$port" -F -s "$size" -n "$(count "$size")" \
            -t "$depth" -- \
            ib_write_bw -d "$device" -p "$port" -F -s "$size" -n "$(count "$size")" \
            -t "$depth" "$to" |
            awk -v row="verbs,perftest,bandwidth,$size" \
                '/^ *[0-9]+ +[0-9]/ { print row "," $4 * 1.048576e-3 }'
    done
}

launch() { # FABRIC/CONTENDER
    export UCX_TLS=tcp,self UCX_NET_DEVICES=lo
    case $1 in
    */trib) trib "${1%/*}" ;;
    tcp/ucx-put) ucx ucx-put ucp_put ;;
    tcp/ucx-am) ucx ucx-am ucp_am ;;
    verbs/perftest) perftest ;;
    esac
}

export build sizes depth share server_log client_core server_core device
export -f count trib listens pair next_port ucx perftest launch

# --- rounds, tables ---------------------------------------------------------------

# shellcheck disable=SC2034 # say reads it
planned=$((rounds * ${#contenders[@]}))
echo "round,before,after,fabric,contender,what,bytes,value" >"$runs"
for ((round = 1; round <= rounds; round++)); do
    for contender in "${contenders[@]}"; do
        ! wanted "$contender" ||
            launch_probed "$round" "$contender" guarded launch "$contender"
    done
done
[ ! -t 2 ] || printf '\r\033[K' >&2

{
    machine_line
    echo "One-sided writes between two processes, each on its own core; $rounds launches of"
    echo "each program, interleaved. Latency is half of a round trip, a launch's median;"
    echo "bandwidth is with $depth concurrent writes in one direction."
    absent_lines
    echo
    awk -f "$here/bench/medians.awk" -f "$here/bench/put.awk" "$runs"
} >"$out/bench.md"
show_tables "$out/bench.md"
echo "written to $out: bench.md, runs.csv, errors.log" >&2
write_page split_by=fabric name=contender own='^trib$' key= run='"command": "put"'
