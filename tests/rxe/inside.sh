#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# inside.sh [--long] BUILD DATA STATUS - run_rxe.sh runs this on the machine with the
# RDMA device. It checks the device with other programs, then runs our tests and prints
# their TAP lines. DATA has a few images for training. The exit status is STATUS even if
# tests fail: it tells run_rxe.sh that the script reached its end.
# shellcheck disable=SC2317 # functions are called indirectly
set -u
here=$(dirname "$0")
# shellcheck source=tests/rxe/rxelib.sh
. "$here/rxelib.sh"
long='' limit=300 # seconds of a job; it only ends what hangs
[ "${1-}" != --long ] || { long=yes limit=1200 && shift; }
built=$1 data=$2 port=18514
direct "$built" "$(mktemp -d)" examples/sum perf/trib-perf tests/comm/plan/test_deterministic tests/comm/test_matrix \
    tests/transport/test_conformance tests/agg/daemon/late tests/agg/daemon/steps tools/trib-info \
    tools/trib-run train/program/trib-train agg/daemon/tribd
transport=verbs
export CMOCKA_MESSAGE_OUTPUT=TAP
export CONFORMANCE_CASE_MS=100000 # the machine may be emulated
export TRIBTEST_SLOWNESS=5

# program NAME PATH [ARGUMENT]... - run a test program that prints its own TAP lines.
program() {
    local name=$1 status

    shift
    timeout -k 5 $((2 * limit)) "$@" >"$log" 2>&1 </dev/null
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

next_port() { # find an unused port
    port=$((port + 1))
    while listens; do port=$((port + 1)); done
}

# perftest PROGRAM COLUMN UNIT ARGUMENT... - run PROGRAM as two processes; the figure
# must be above 0. Each run has another port, so that it does not reach the server of
# the previous run.
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

# On a busy machine, perftest sometimes fails to measure the clock's rate. Its figures
# are then 0 or infinite, which is not a fault of the device.
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

# ranks N COMMAND... - run N ranks over $transport.
ranks() {
    local n=$1
    shift

    TRIB_TRANSPORT=$transport "$build/tools/trib-run" -n "$n" --timeout "$limit" -- "$@"
}

sums() { # RANKS SIZES [OPTION]...
    local n=$1 sizes=$2
    shift 2

    ranks "$n" "$build/perf/trib-perf" allreduce --sizes "$sizes" --iters 3 --warmup 1 --check "$@"
}

info() {
    "$build/tools/trib-info" --transports | tee /dev/stderr | grep -q "^  verbs .*$RXE_DEVICE"
}

# Long ones are written into the receiver's memory.
messages() { # MEMORY
    transport=verbs:cache=1024 ranks 2 "$build/perf/trib-perf" sendrecv --sizes 8,64K,1M --memory "$1" \
        --iters 5 --warmup 3 --check
}

by_gids() {
    transport=verbs:connect=gid sums 2 8,64K
}

# A container may have the devices, but not the connection manager.
no_manager() {
    # shellcheck disable=SC2016 # the inner shell expands them
    unshare -m bash -c 'there=$(mktemp -d /dev/trib.XXXXXX) || exit
        trap "rmdir $there" EXIT
        mount -t tmpfs tmpfs "$there" && cp -a /dev/infiniband/uverbs* "$there" &&
            mount --move "$there" /dev/infiniband && [ ! -e /dev/infiniband/rdma_cm ] || exit
        "$@"' bash env TRIB_TRANSPORT=verbs "$build/tools/trib-run" -n 2 --timeout "$limit" -- \
        "$build/perf/trib-perf" allreduce --sizes 8,64K --iters 3 --warmup 1 --check
}

# limited KIB COMMAND... - run a command that can lock only KIB of memory, even as root.
limited() {
    local kib=$1
    shift

    (ulimit -l "$kib" && exec setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock "$@")
}

# The slots become smaller; a warning reports this.
little_memory() { # KIB SIZES
    limited "$1" env TRIB_TRANSPORT=verbs "$build/tools/trib-run" -n 2 --timeout "$limit" -- \
        "$build/perf/trib-perf" allreduce --sizes "$2" --iters 3 --warmup 1 --check &&
        grep -q 'may lock .*: all ranks have .* slots\? of .*ulimit -l unlimited' "$log"
}

# The memory is too small for slots: auto uses sockets, and reports the reason. It
# treats each rank as a host.
no_memory() {
    limited 64 env TRIB_TRANSPORT=auto:ranks_per_host=1 "$build/tools/trib-run" -n 2 \
        --timeout "$limit" -- "$build/perf/trib-perf" allreduce --sizes 8,64K --iters 3 --warmup 1 \
        --check && grep -q 'verbs: cannot register.*may lock 64K.*ulimit -l' "$log"
}

# Start a tribd over $transport. $daemon is its process; its output goes to $log.tribd.
start_tribd() {
    next_port
    head -c 32 /dev/urandom >"$log.key"
    chmod 600 "$log.key"
    : >"$log.tribd" # remove output of the previous tribd
    TRIB_TRANSPORT=$transport TRIBD_LISTEN=127.0.0.1:$port TRIBD_AUTH=key TRIBD_KEY=$log.key \
        TRIBD_HTTP='' "$build/agg/daemon/tribd" >"$log.tribd" 2>&1 &
    daemon=$!
    for_seconds 20 grep -q listening "$log.tribd"
}

# served_ranks COMMAND... - start three ranks that use this tribd. $own is the process;
# its output goes to $log.rank.
served_ranks() {
    : >"$log.rank" # remove the previous output, which summing would read
    TRIB_SERVICE=127.0.0.1:$port TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$log.key \
        TRIB_TRANSPORT=$transport "$build/tools/trib-run" -n 3 --timeout "$limit" -- "$@" \
        >"$log.rank" 2>&1 &
    own=$!
}

# served SIGNAL|none [OPTION]... - run three ranks with a tribd, which gets SIGNAL while
# they sum.
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

said_by_ranks() { # WORDS, TIMES: the ranks have printed WORDS this often, or have ended
    [ "$(grep -c "$1" "$log.rank")" -ge "$2" ] || ! kill -0 "$own" 2>/dev/null
}

# Run sums with a quorum. A rank is stopped: the others report it as missing and
# continue. Then it continues, and the results include all inputs.
quorum() {
    local daemon status late before
    local -x TRIB_STOP_TIMEOUT_MS=60000

    start_tribd
    served_ranks "$build/tests/agg/daemon/late" "$log.stop"
    for_seconds 100 said_by_ranks 'rank 2 is process' 1
    late=$(sed -n 's/.*rank 2 is process \([0-9]*\).*/\1/p' "$log.rank")
    before=$(grep -c 'lacks rank 2' "$log.rank") # ranks may be late anyway
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

# all_sum COUNT - COUNT jobs of tribd have done some operations; the status has one
# count more, the total. The jobs continue until the file $log.enough exists.
all_sum() {
    curl -sf -m 20 "http://127.0.0.1:$((port + 1))/status" >"$log.status" &&
        [ "$(grep -o '"operations":[0-9]*' "$log.status" | awk -F : '$2 > 3' | wc -l)" = $(($1 + 1)) ]
}

# several TRANSPORT... - run one tribd that accepts these transports, and concurrently
# one job over each of them.
several() {
    local daemon kind pids=() kinds=("$@") good=0

    next_port
    rm -f "$log.enough"
    head -c 32 /dev/urandom >"$log.key"
    chmod 600 "$log.key"
    : >"$log.tribd" # remove output of the previous tribd
    TRIBD_LISTEN=127.0.0.1:$port TRIBD_AUTH=key TRIBD_KEY=$log.key TRIBD_HTTP=127.0.0.1:$((port + 1)) \
        TRIBD_TRANSPORTS=$(IFS=, && echo "$*") "$build/agg/daemon/tribd" >"$log.tribd" 2>&1 &
    daemon=$!
    for_seconds 20 grep -q listening "$log.tribd"
    for kind in "${kinds[@]}"; do
        TRIB_SERVICE=127.0.0.1:$port TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$log.key UCX_TLS=tcp,self \
            TRIB_SERVICE_JOB=$kind TRIB_TRANSPORT=$kind "$build/tools/trib-run" -n 2 --timeout "$limit" -- \
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
    timeout 100 "$build/perf/trib-perf" put --transport verbs --sizes 8,5000,64K --iters 40 --check
}

# All ranks end with equal weights, and the accuracy is better than by chance.
train() { # CODEC, STEPS
    [ -s "$data/train-images-idx3-ubyte.gz" ] || { echo "no images" && return 1; }
    OPENBLAS_NUM_THREADS=1 ranks 2 "$build/train/program/trib-train" mlp --data "$data" --steps "$2" --batch 8 \
        --codec "$1" --seed 1 --progress none --csv "$log.csv" || return
    cat "$log.csv"
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        END { print "figure: test accuracy " $at["value"] " %"
              exit !($at["identical"] == "yes" && $at["value"] > 30) }' "$log.csv"
}

# A rank is killed while both sum: the other rank names it. Without trib-run, because
# trib-run would end both.
death() {
    local most since status victim job

    next_port
    job=(env TRIB_TRANSPORT=verbs TRIB_SIZE=2 "TRIB_ROOT=127.0.0.1:$port"
        TRIB_BOOT_TIMEOUT_MS=100000 "$build/perf/trib-perf" allreduce
        --sizes "$(many 500 8,64K)" --iters 20)
    : >"$log.rank" # remove the previous output, which summing would read
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
    check "rping: ten pings through the connection manager" pings
    check "trib-info knows the transport" info
    check "two ranks sum over verbs" ranks 2 "$build/examples/sum"
    check "writes over verbs, checked" put
    check "all-reduce over verbs" sums 2 8,1000,64K,1M
    check "messages over verbs" messages alloc
    check "messages over verbs, memory of malloc" messages malloc
    check "all-reduce over verbs, connections by GIDs" by_gids
    check "all-reduce over verbs, no connection manager" no_manager
    check "64 KiB that may be locked: by sockets, with the reason" no_memory
    check "a rank that is killed is named" death
    check "the demo trains over verbs" train none 8
    program test_matrix "$build/tests/comm/test_matrix" --transport verbs --every "$1" --ranks 3
    program test_deterministic "$build/tests/comm/plan/test_deterministic" --transport verbs --every "${3:-1}"
    abs_top_builddir=$built program test_tribd_faults "$built/tests/fault/test_tribd_faults" \
        --transport verbs ${2:+--only "$2" --at-once 1}
    export CONFORMANCE_TRANSPORT=verbs
    CONFORMANCE_FILTER="*processes]" program verbs "$build/tests/transport/test_conformance"
}

more_tests() {
    local algorithm dtype codec i

    check "perftest: latency of writes" often ib_write_lat 5 "of 8 bytes, us" -s 8 -n 300
    check "perftest: bandwidth of writes" often ib_write_bw 4 "of 64 KiB, MB/s" -s 65536 -n 200
    check "all-reduce over verbs, 4 ranks" sums 4 8,300K
    check "all-reduce over verbs, qsgd codec" sums 2 1000,64K --codec qsgd:bits=8
    check "all-reduce over verbs, int8 codec" sums 3 1000,64K --codec int8
    check "1 MiB that may be locked: smaller slots" little_memory 1024 8,64K
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
        lgc | lgc-ps) codec=$codec:ratio=0.5,dense=0,train=1 ;; # chunks are small here
        esac
        sizes=1000,64K
        case $codec in
        lgc*) sizes=1000,4K ;; # training is slow on an emulated processor
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
        # After 8 steps with a hundredth of each gradient, the accuracy is just 30 %.
        check "the demo trains over verbs, $codec" train "$codec" 16
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
    # A tribd is killed and started again while ranks sum.
    every_test 96 17 16
fi
rm -rf "$log" "$log".* "$build"
exit "$3"
