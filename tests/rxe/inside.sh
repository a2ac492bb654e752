#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# inside.sh [--long] BUILD DATA STATUS - what run_rxe.sh runs on the machine with the RDMA device:
# first that the device works for others, then our tests, whose TAP lines pass through. DATA
# has a few images to train with. It exits with STATUS, whatever fails: so run_rxe.sh knows that
# the end was reached.
# shellcheck disable=SC2317 # functions are called through check
set -u
here=$(dirname "$0")
# shellcheck source=tests/rxe/rxelib.sh
. "$here/rxelib.sh"
long=
[ "${1-}" != --long ] || { long=yes && shift; }
built=$1 data=$2 port=18514
direct "$built" "$(mktemp -d)" examples/sum perf/trib-perf tests/comm/plan/test_deterministic tests/comm/test_matrix \
    tests/transport/test_conformance tests/agg/daemon/late tests/agg/daemon/steps tools/trib-info \
    tools/trib-run train/program/trib-train agg/daemon/tribd
transport=verbs
export CMOCKA_MESSAGE_OUTPUT=TAP
export CONFORMANCE_CASE_MS=100000 # the machine may be an emulated one
export TRIBTEST_SLOWNESS=5

# program NAME PATH [ARGUMENT]... - one that prints TAP lines of its own.
program() {
    local name=$1 status

    shift
    timeout -k 5 600 "$@" >"$log" 2>&1 </dev/null
    status=$?
    cat "$log"
    if ! grep -q '^ok ' "$log"; then
        echo "not ok 1 - $name prints no TAP line, exit status $status"
    elif [ $status != 0 ] && ! grep -q '^not ok ' "$log"; then
        echo "not ok 1 - $name, exit status $status"
    fi
}

device() {
    ibv_devinfo -d "$RXE_DEVICE" | tee /dev/stderr | grep -q 'PORT_ACTIVE'
}

mtu() { # BYTES
    ibv_devinfo -d "$RXE_DEVICE" | tee /dev/stderr | grep -q "active_mtu:[[:space:]]*$1 "
}

listens() {
    ss -Hltn "sport = $port" | grep -q .
}

next_port() { # one that nobody uses
    port=$((port + 1))
    while listens; do port=$((port + 1)); done
}

# perftest PROGRAM COLUMN UNIT ARGUMENT... - between two processes; the figure must be
# above 0. Ports differ, so that no run meets the end of the one before.
perftest() {
    local name=$1 column=$2 unit=$3 server status
    shift 3

    next_port
    timeout 60 "$name" -d "$RXE_DEVICE" -p "$port" "$@" >"$log.server" 2>&1 &
    server=$!
    for_seconds 20 listens
    timeout 60 "$name" -d "$RXE_DEVICE" -p "$port" "$@" "$RXE_ADDRESS" >"$log.client" 2>&1 &&
        wait "$server"
    status=$?
    cat "$log.server" "$log.client"
    awk -v column="$column" -v what="figure: $name $unit" \
        '/^ *[0-9]+ +[0-9]/ { print what, $column; good = $column ~ /^[0-9.]+$/ && $column > 0 } END { exit !good }' \
        "$log.client" && [ "$status" = 0 ]
}

# On a busy machine perftest now and then fails to learn the clock's rate, and then says
# that everything takes 0 or endless time: not the device's fault.
often() { # PERFTEST-ARGUMENT...
    perftest "$@" || perftest "$@" || perftest "$@" || perftest "$@"
}

cm_listens() {
    rdma resource show cm_id | grep -q 'state LISTEN'
}

pings() {
    local server status

    timeout 60 rping -s -a "$RXE_ADDRESS" -C 10 -v >"$log.server" 2>&1 &
    server=$!
    for_seconds 20 cm_listens
    timeout 60 rping -c -a "$RXE_ADDRESS" -C 10 -v >"$log.client" 2>&1
    status=$?
    wait "$server"
    cat "$log.server" "$log.client"
    [ "$status" = 0 ] && [ "$(grep -c 'ping data: ' "$log.client")" = 10 ]
}

# ranks N COMMAND... - over $transport.
ranks() {
    local n=$1
    shift

    TRIB_TRANSPORT=$transport "$build/tools/trib-run" -n "$n" --timeout 300 -- "$@"
}

sums() { # RANKS SIZES [OPTION]...
    local n=$1 sizes=$2
    shift 2

    ranks "$n" "$build/perf/trib-perf" allreduce --sizes "$sizes" --iters 3 --warmup 1 --check "$@"
}

info() {
    "$build/tools/trib-info" --transports | tee /dev/stderr | grep -q "^  verbs .*$RXE_DEVICE"
}

by_gids() {
    transport=verbs:connect=gid sums 2 8,64K
}

# As in a container that has the devices and not the connection manager.
no_manager() {
    # shellcheck disable=SC2016 # the inner shell's
    unshare -m bash -c 'there=$(mktemp -d /dev/trib.XXXXXX) || exit
        trap "rmdir $there" EXIT
        mount -t tmpfs tmpfs "$there" && cp -a /dev/infiniband/uverbs* "$there" &&
            mount --move "$there" /dev/infiniband && [ ! -e /dev/infiniband/rdma_cm ] || exit
        "$@"' bash env TRIB_TRANSPORT=verbs "$build/tools/trib-run" -n 2 --timeout 300 -- \
        "$build/perf/trib-perf" allreduce --sizes 8,64K --iters 3 --warmup 1 --check
}

# limited KIB COMMAND... - that may lock so much memory, though root.
limited() {
    local kib=$1
    shift

    (ulimit -l "$kib" && exec setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock "$@")
}

# The slots shrink, and a line says so.
little_memory() { # KIB SIZES
    limited "$1" env TRIB_TRANSPORT=verbs "$build/tools/trib-run" -n 2 --timeout 300 -- \
        "$build/perf/trib-perf" allreduce --sizes "$2" --iters 3 --warmup 1 --check &&
        grep -q 'may lock .*: all ranks have .* slots\? of .*ulimit -l unlimited' "$log"
}

# Not enough for slots: auto goes by sockets, and says why. It takes each rank for a host.
no_memory() {
    limited 64 env TRIB_TRANSPORT=auto:ranks_per_host=1 "$build/tools/trib-run" -n 2 \
        --timeout 300 -- "$build/perf/trib-perf" allreduce --sizes 8,64K --iters 3 --warmup 1 \
        --check && grep -q 'verbs: cannot register.*may lock 64K.*ulimit -l' "$log"
}

# A tribd over $transport, process $daemon, whose output goes to $log.tribd.
start_tribd() {
    next_port
    head -c 32 /dev/urandom >"$log.key"
    chmod 600 "$log.key"
    : >"$log.tribd" # of the tribd before
    TRIB_TRANSPORT=$transport TRIBD_LISTEN=127.0.0.1:$port TRIBD_AUTH=key TRIBD_KEY=$log.key \
        TRIBD_HTTP='' "$build/agg/daemon/tribd" >"$log.tribd" 2>&1 &
    daemon=$!
    for_seconds 20 grep -q listening "$log.tribd"
}

# served_ranks COMMAND... - three of it at this tribd, process $own, whose output goes to $log.rank.
served_ranks() {
    : >"$log.rank" # of the job before, which summing would see
    TRIB_SERVICE=127.0.0.1:$port TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$log.key \
        TRIB_TRANSPORT=$transport "$build/tools/trib-run" -n 3 --timeout 300 -- "$@" \
        >"$log.rank" 2>&1 &
    own=$!
}

# served SIGNAL|none [OPTION]... - three ranks, and a tribd that SIGNAL ends while they sum.
served() {
    local how=$1 daemon status
    shift

    start_tribd
    served_ranks "$build/perf/trib-perf" allreduce --check "$@"
    [ "$how" = none ] || { summing && kill -s "$how" "$daemon"; }
    wait "$own"
    status=$?
    kill "$daemon" 2>/dev/null
    kill -s CONT "$daemon" 2>/dev/null
    wait "$daemon"
    cat "$log.tribd" "$log.rank"
    [ "$status" = 0 ] && grep -q 'tribd: job .* 3 ranks' "$log.tribd" || return
    case $how in
    none) ! grep -q 'without aggregators' "$log.rank" ;;
    *) grep -q 'continue without aggregators' "$log.rank" ;;
    esac
}

said_by_ranks() { # WORDS, TIMES: so often by now, or they have ended
    [ "$(grep -c "$1" "$log.rank")" -ge "$2" ] || ! kill -0 "$own" 2>/dev/null
}

# Sums with a quorum: a rank is stopped, the others know that it is missing and go on; then it
# goes on, and all that was given comes out.
quorum() {
    local daemon status late before
    local -x TRIB_STOP_TIMEOUT_MS=60000

    start_tribd
    served_ranks "$build/tests/agg/daemon/late" "$log.stop"
    for_seconds 100 said_by_ranks 'rank 2 is process' 1
    late=$(sed -n 's/.*rank 2 is process \([0-9]*\).*/\1/p' "$log.rank")
    before=$(grep -c 'lacks rank 2' "$log.rank") # a slow machine has late ones anyway
    touch "$log.stop.2"
    for_seconds 100 grep -q '^State:[[:space:]]T' "/proc/$late/status"
    for_seconds 50 said_by_ranks 'lacks rank 2' $((before + 1))
    kill -s CONT "$late"
    touch "$log.stop"
    wait "$own"
    status=$?
    kill "$daemon"
    wait "$daemon"
    cat "$log.tribd" "$log.rank"
    [ "$status" = 0 ] && grep -q 'tribd: job .* 3 ranks' "$log.tribd" &&
        ! grep -q 'without aggregators' "$log.rank" &&
        [ "$(grep -c 'lacks rank 2' "$log.rank")" -gt "$before" ] &&
        grep -q 'steps, all right' "$log.rank"
}

# all_sum COUNT - so many jobs of tribd have done some operations, and go on: nobody told them to end.
all_sum() {
    curl -sf -m 20 "http://127.0.0.1:$((port + 1))/status" >"$log.status" &&
        [ "$(grep -o '"operations":[0-9]*' "$log.status" | awk -F : '$2 > 3' | wc -l)" = $(($1 + 1)) ] # and in all
}

# several TRANSPORT... - one tribd, which may take these, and a job over each of them at once.
several() {
    local daemon kind pids=() kinds=("$@") good=0

    next_port
    rm -f "$log.enough"
    head -c 32 /dev/urandom >"$log.key"
    chmod 600 "$log.key"
    : >"$log.tribd" # of the tribd before
    TRIBD_LISTEN=127.0.0.1:$port TRIBD_AUTH=key TRIBD_KEY=$log.key TRIBD_HTTP=127.0.0.1:$((port + 1)) \
        TRIBD_TRANSPORTS=$(IFS=, && echo "$*") "$build/agg/daemon/tribd" >"$log.tribd" 2>&1 &
    daemon=$!
    for_seconds 20 grep -q listening "$log.tribd"
    for kind in "${kinds[@]}"; do
        TRIB_SERVICE=127.0.0.1:$port TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$log.key UCX_TLS=tcp,self \
            TRIB_SERVICE_JOB=$kind TRIB_TRANSPORT=$kind "$build/tools/trib-run" -n 2 --timeout 300 -- \
            "$build/tests/agg/daemon/steps" "$log.enough" 50 >"$log.$kind" 2>&1 &
        pids+=($!)
    done
    for_seconds 100 all_sum ${#kinds[@]} && good=1
    touch "$log.enough"
    wait "${pids[@]}"
    kill "$daemon"
    wait "$daemon"
    cat "$log.tribd" "$log.status"
    echo "figure: jobs over ${kinds[*]} at once"
    for kind in "${kinds[@]}"; do
        cat "$log.$kind"
        grep -q 'steps, all right' "$log.$kind" && ! grep -q warning "$log.$kind" || good=0
    done
    [ "$good" = 1 ]
}

put() {
    timeout 100 "$build/perf/trib-perf" put --transport verbs --sizes 8,5000,64K --iters 200 --check
}

# The weights are alike on all ranks, and more is right than a guess would be.
train() { # CODEC
    [ -s "$data/train-images-idx3-ubyte.gz" ] || { echo "no images" && return 1; }
    OPENBLAS_NUM_THREADS=1 ranks 2 "$build/train/program/trib-train" mlp --data "$data" --steps 8 --batch 8 \
        --codec "$1" --seed 1 --progress none --csv "$log.csv" || return
    cat "$log.csv"
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        END { print "figure: test accuracy " $at["value"] " %"
              exit !($at["identical"] == "yes" && $at["value"] > 30) }' "$log.csv"
}

# A rank that is killed while all sum: the other names it. trib-run would end them all.
death() {
    local most since status victim job

    next_port
    job=(env TRIB_TRANSPORT=verbs TRIB_SIZE=2 "TRIB_ROOT=127.0.0.1:$port"
        TRIB_BOOT_TIMEOUT_MS=100000 "$build/perf/trib-perf" allreduce
        --sizes "$(many 500 8,64K)" --iters 20)
    : >"$log.rank" # of the job before, which summing would see
    TRIB_RANK=1 "${job[@]}" >"$log.dead" 2>&1 &
    victim=$!
    TRIB_RANK=0 timeout -k 5 150 "${job[@]}" >"$log.rank" 2>&1 &
    own=$!
    summing
    most=$(allowed 2)
    since=$EPOCHREALTIME
    kill -9 "$victim"
    wait "$own"
    status=$?
    cat "$log.rank"
    since "$since" "$EPOCHREALTIME" "$most" && [ "$status" != 0 ] &&
        grep -q 'rank 1 (.*process [0-9]*) is lost: process [0-9]* \(has died\|closed its connection\|has ended, or closed\)' "$log.rank"
}

every_test() {
    check "the device is there and active" device
    check "RDMA packets of ${RXE_MTU:-4096} bytes" mtu "${RXE_MTU:-4096}"
    check "perftest: latency of writes" often ib_write_lat 5 "of 8 bytes, us" -s 8 -n 300
    check "perftest: bandwidth of writes" often ib_write_bw 4 "of 64 KiB, MB/s" -s 65536 -n 200
    check "rping: ten pings through the connection manager" pings
    check "trib-info knows the transport" info
    check "two ranks sum over verbs" ranks 2 "$build/examples/sum"
    check "writes over verbs, checked" put
    check "all-reduce over verbs" sums 2 8,1000,64K,1M
    check "all-reduce over verbs, 4 ranks" sums 4 8,300K
    check "all-reduce over verbs, qsgd codec" sums 2 1000,64K --codec qsgd:bits=8
    check "all-reduce over verbs, int8 codec" sums 3 1000,64K --codec int8
    check "all-reduce over verbs, connections by GIDs" by_gids
    check "all-reduce over verbs, no connection manager" no_manager
    check "1 MiB that may be locked: smaller slots" little_memory 1024 8,64K
    check "64 KiB that may be locked: by sockets, with the reason" no_memory
    check "a rank that is killed is named" death
    check "the demo trains over verbs" train none
    program test_matrix "$build/tests/comm/test_matrix" --transport verbs --every "$1" --ranks 3
    program test_deterministic "$build/tests/comm/plan/test_deterministic" --transport verbs --every "${3:-1}"
    abs_top_builddir=$built program test_tribd_faults "$built/tests/fault/test_tribd_faults" \
        --transport verbs ${2:+--only "$2" --at-once 1}
    export CONFORMANCE_TRANSPORT=verbs
    CONFORMANCE_FILTER="*processes]" program verbs "$build/tests/transport/test_conformance"
}

more_tests() {
    local algorithm dtype codec i

    check "64 KiB that may be locked: one small slot" little_memory 64 8,1000
    check "tribd is killed, over verbs" served KILL --sizes "$(many 5 8,64K)" --iters 20
    check "a quorum at tribd, over verbs: a rank is stopped" quorum
    check "one tribd sums over verbs and others at once" several verbs shm
    for algorithm in $("$build/tools/trib-info" --algorithms |
        awk '/allreduce/ && !/^ *(service|hierarchical|doubling) / { print $1 }'); do # one host; pairs
        check "all-reduce over verbs, $algorithm" sums 4 8,64K --algorithm "$algorithm"
    done
    for dtype in f64 f16 bf16 i8 i32 i64; do
        check "all-reduce over verbs, $dtype" sums 3 8,1000,64K,1M --dtype "$dtype"
    done
    for codec in $("$build/tools/trib-info" --codecs | awk '/^  [a-z]/ { print $1 }') \
        topk:ratio=0.25+int8 qsgd:shared=1 terngrad:shared=1 \
        gradiveq:slice=64,kept=8,train=1,coded=9 \
        gradiveq:slice=64,kept=8,train=1,coded=9+int8:bucket=64; do
        case $codec in
        lgc | lgc-ps) codec=$codec:ratio=0.5,dense=0,train=1 ;; # of chunks so small
        esac
        sizes=1000,64K
        case $codec in
        lgc*) sizes=1000,4K ;; # an emulated processor learns slowly
        esac
        check "all-reduce over verbs, $codec" sums 3 "$sizes" --codec "$codec"
    done
    for codec in none int8 topk:ratio=0.05 qsgd:bits=4; do
        check "tribd sums over verbs, $codec" served none --sizes 1000,64K --iters 3 --codec "$codec"
    done
    ! "$build/tools/trib-info" --transports | grep -q "^  ucx  *UCX [0-9]" ||
        check "one tribd sums over verbs, shm and ucx at once" several verbs shm ucx
    check "tribd is stopped, over verbs" served STOP --sizes "$(many 12 8,64K)" --iters 20
    for codec in bf16 topk:ratio=0.01 qsgd:bits=4; do
        check "the demo trains over verbs, $codec" train "$codec"
    done
    for ((i = 0; i < 5; i++)); do
        check "sums once more" sums 2 8,1000,64K,4M
        check "a rank that is killed is named, once more" death
    done
    program test_matrix "$build/tests/comm/test_matrix" --transport verbs --every 8 --ranks 2
    program test_matrix "$build/tests/comm/test_matrix" --transport verbs --seed 2 --every 8
    CONFORMANCE_FILTER="*threads]" program verbs "$build/tests/transport/test_conformance"
}

if [ -n "$long" ]; then
    every_test 8
    more_tests
else
    # A tribd that is killed, stopped, started again, while ranks sum or plans are under way.
    every_test 96 10,16,17 16
fi
rm -rf "$log" "$log".* "$build"
exit "$3"
