#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# put.sh - compare one-sided writes with ucx_perftest and perftest on this host, interleaved.
#
# Over TCP on the loopback: trib (trib-perf put), ucx-put and ucx-am (ucx_perftest: UCP put,
# and UCP active messages, which notify the target like our writes). With an RDMA device also
# trib over verbs and perftest (ib_write_lat, ib_write_bw). All busy-poll.
# A round launches each contender once, with the core probe before and after it.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
quick "3 rounds, few sizes, short runs" rounds=3 sizes=8,65536 share=10
options rounds sizes=8,1024,8192,65536,1048576
option depth 64 N "concurrent writes in bandwidth measurements"
options only
export share=1 device=
limit=120
take_arguments "$@"
server_log=$out/server.log
trap 'rm -f "$server_log"' EXIT
# shellcheck source=/dev/null
. "$here/bench/two_processes.sh"

contenders=(tcp/trib)
if command -v ucx_perftest >/dev/null; then
    contenders+=(tcp/ucx-put tcp/ucx-am)
else
    missing+=("ucx_perftest (package ucx-utils)")
fi
for path in /sys/class/infiniband/*; do
    [ -n "$device" ] || [ ! -e "$path" ] || device=${path##*/}
done
if [ -z "$device" ]; then
    missing+=("perftest: there is no RDMA device")
elif ! command -v ib_write_lat >/dev/null; then
    missing+=("ib_write_lat (package perftest)")
else
    ! "$build/tools/trib-info" --transports | grep -q '^  verbs .*(by ' || contenders+=(verbs/trib)
    contenders+=(verbs/perftest)
fi

columns=fabric,contender,what,bytes,value # latency in µs one way, bandwidth in GB/s
count() { # BYTES: print a number of round trips or writes that takes about half a second
    awk -v b="$1" -v share="$share" 'BEGIN { n = 20000 / (1 + b / 16384) / share; print int(n < 200 ? 200 : n) }'
}

trib() { # TRANSPORT SIZE
    TRIB_SPIN_US=1000000 "$build/perf/trib-perf" put --transport "$1" --sizes "$2" \
        --depth "$depth" --iters "$(count "$2")" --bind core --csv - | csv_columns p50_us GBps |
        awk -F, -v row="$1,trib" -v b="$2" '{ print row ",latency," b "," $1; print row ",bandwidth," b "," $2 }'
}

ucx() { # TEST SIZE: put or am
    local measure=(ucx_perftest 127.0.0.1 -s "$2" -n "$(count "$2")" -w 100 -f -v)
    export UCX_TLS=tcp,self UCX_NET_DEVICES=lo
    next_port
    pair ucx_perftest -p "$port" -- "${measure[@]}" -p "$port" -t "ucp_$1_lat" |
        awk -F, -v row="tcp,ucx-$1,latency,$2" '/^ *[0-9]/ { print row "," $2 }'
    next_port
    pair ucx_perftest -p "$port" -- "${measure[@]}" -p "$port" -t "ucp_$1_bw" -O "$depth" |
        awk -F, -v row="tcp,ucx-$1,bandwidth,$2" '/^ *[0-9]/ { print row "," $6 * 1.048576e-3 }'
}

perftest() { # SIZE
    local to=${RXE_ADDRESS:-localhost} options=(-d "$device" -F -s "$1" -n "$(count "$1")")
    next_port
    pair ib_write_lat "${options[@]}" -p "$port" -- ib_write_lat "${options[@]}" -p "$port" "$to" |
        awk -v row="verbs,perftest,latency,$1" '/^ *[0-9]+ +[0-9]/ { print row "," $5 }'
    next_port
    options+=(-t "$depth" -p "$port")
    pair ib_write_bw "${options[@]}" -- ib_write_bw "${options[@]}" "$to" |
        awk -v row="verbs,perftest,bandwidth,$1" '/^ *[0-9]+ +[0-9]/ { print row "," $4 * 1.048576e-3 }'
}

launch() { # FABRIC/CONTENDER
    local size
    for size in ${sizes//,/ }; do
        case $1 in
        */trib) trib "${1%/*}" "$size" ;;
        tcp/ucx-*) ucx "${1#*-}" "$size" ;;
        verbs/perftest) perftest "$size" ;;
        esac
    done
}

one_round() {
    local who
    for who in "${contenders[@]}"; do contend "$who" "$who" guarded launch "$who"; done
}
measure
about="One-sided writes between two processes, each on its own core; $rounds launches of
each program, interleaved. Latency is half of a round trip, a launch's median;
bandwidth is with $depth concurrent writes in one direction."
finish split_by=fabric name=contender own='^trib$' key= run='"command": "put"'
