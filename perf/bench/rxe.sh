#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# rxe.sh - compare writes and all-reduce over soft-RoCE with perftest and Open MPI, interleaved.
#
# Two processes with a soft-RoCE device, of this machine if its kernel supports it, otherwise in an
# emulated guest (tests/rxe), where only ratios are meaningful.
#
# Latency is half of a round trip of trib-perf put, ib_write_lat and ib_send_lat, as the median of a
# launch. The target of our write and of ib_send_lat gets a completion; the target of ib_write_lat
# polls the last byte. Bandwidth is with 64 concurrent writes in one direction, of trib-perf put and
# ib_write_bw. trib-perf put busy-polls, like perftest. All-reduce is a sum of f32, in place; bound is
# the time in which trib-perf put moves the same bytes with both sides writing. Open MPI over the
# device, with UCX and openib, is tried after the rounds.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=perf/bench/driver.sh
. "$(dirname "$0")/driver.sh"
quick "1 round, few sizes, short runs: a smoke test" rounds=1 small=8,4096 large=65536 pings=200 moved=5000000 samples=3
options rounds
option only '' LIST "contenders, comma-separated, of trib, ib_write_lat, ib_send_lat, ib_write_bw, bound, trib-tcp, trib-shm, openmpi-tcp, openmpi-sm, -ucx, -openib"
option inside '' '' "this is the guest, or the host with the device"
small=8,64,512,4096 large=16384,65536,262144,1048576 vector=1048576
pings=2000 moved=25000000 # round trips; bytes of a bandwidth measurement, at least 64 writes
sizes=$vector samples=10 sample_ms=10
words=("${@:1:$#>1?$#-2:0}") # without the folders
take_arguments "$@"

# --- one launch, with the device --------------------------------------------------

# Each prints one number: latency in µs, bandwidth in GB/s, all-reduce in µs.

put() { # BYTES CSV-COLUMN OPTION…
    local bytes=$1 column=$2
    shift 2
    timeout -k 5 "$limit" "$build/perf/trib-perf" put --transport verbs --sizes "$bytes" \
        --bind core --csv - "$@" | csv_columns "$column"
}

put_bound() { # BYTES - the time of a vector each way, in writes of this size
    put "$1" GBps --bandwidth --bidirectional --iters "$(writes "$1")" |
        awk -v bytes="$vector" '{ print 2 * bytes / $1 / 1e3 }'
}

allreduce() { # TRANSPORT
    local options
    mapfile -t options < <(trib_options)
    TRIB_TRANSPORT=$1 timeout -k 5 "$limit" "$build/perf/trib-perf" allreduce -n 2 \
        --memory alloc --bind core "${options[@]}" | csv_columns p50_us
}

# One program of perftest on each core; a column of what the client prints.
perftest() { # COLUMN PROGRAM OPTION…
    next_port
    pair "$2" -d "$RXE_DEVICE" -p "$port" -F "${@:3}" -- "$2" -d "$RXE_DEVICE" -p "$port" -F "${@:3}" "$RXE_ADDRESS" |
        awk -v column="$1" '/^ *[0-9]+ +[0-9]/ { print $column }'
}

bandwidth_of() { # PROGRAM BYTES
    perftest 4 "$1" -s "$2" -n "$(writes "$2")" -t 64 | awk '{ print $1 * 1.048576e-3 }'
}

openmpi() { # CONTENDER OPTION…
    local options label=$1
    shift
    mapfile -t options < <(peer_options "$label")
    timeout -k 5 "$limit" mpirun.openmpi -np 2 --allow-run-as-root --bind-to core \
        "$@" "$out/peers/openmpi" "${options[@]}" |
        awk -F, '$3 + 0 > 0 { print $6 }'
}

# --- rounds, with the device ------------------------------------------------------

writes() { # BYTES
    echo $((moved / $1 > 64 ? moved / $1 : 64))
}

# A program that exceeded the limit is not launched again.
declare -A failures=()

launch() { # CONTENDER WHAT BYTES COMMAND…
    local kind="$1, $2, $3 B" row="$round,$1,$2,$3" value status=0
    if ! wanted "$1" || [ -n "${late[$kind]:-}" ]; then return; fi
    shift 3
    value=$("$@") || status=$?
    if [[ $status = 0 && $value =~ ^[0-9.e+-]+$ ]]; then
        echo "row: $row,$value"
        return
    fi
    failures[$kind]=$((${failures[$kind]:-0} + 1))
    [ "$status" -lt 124 ] || late[$kind]=$limit
    echo "## round $round, $kind failed: exit $status${late[$kind]:+, not launched again}" >&2
    return 1
}

one_round() {
    local size
    say "round $round of $rounds: latency ($SECONDS s)"
    for size in ${small//,/ }; do
        TRIB_SPIN_US=1000000 launch trib latency "$size" put "$size" p50_us --latency --iters "$pings"
        launch ib_write_lat latency "$size" perftest 5 ib_write_lat -s "$size" -n "$pings"
        launch ib_send_lat latency "$size" perftest 5 ib_send_lat -s "$size" -n "$pings"
    done
    say "round $round of $rounds: bandwidth ($SECONDS s)"
    for size in ${large//,/ }; do
        TRIB_SPIN_US=1000000 launch trib bandwidth "$size" put "$size" GBps --bandwidth \
            --iters "$(writes "$size")"
        launch ib_write_bw bandwidth "$size" bandwidth_of ib_write_bw "$size"
    done
    say "round $round of $rounds: all-reduce ($SECONDS s)"
    TRIB_SPIN_US=1000000 launch bound all-reduce "$vector" put_bound 65536
    launch trib all-reduce "$vector" allreduce verbs
    launch trib-tcp all-reduce "$vector" allreduce tcp
    launch trib-shm all-reduce "$vector" allreduce shm
    [ -x "$out/peers/openmpi" ] || return 0
    launch openmpi-tcp all-reduce "$vector" openmpi openmpi-tcp --mca pml ob1 \
        --mca btl self,tcp
    launch openmpi-sm all-reduce "$vector" openmpi openmpi-sm --mca pml ob1 \
        --mca btl self,vader
}

repeat() { # COMMAND… - run once a round, until it fails
    for ((round = 1; round <= rounds; round++)); do "$@" || return 0; done
}

# Run each once, and if it succeeds as often as the others. A failed one may leave processes, so
# nothing is measured after these.
openmpi_over_device() {
    [ -x "$out/peers/openmpi" ] || return 0
    say "Open MPI over the device ($SECONDS s)"
    limit=20
    repeat launch openmpi-openib all-reduce "$vector" openmpi openmpi-openib --mca pml ob1 \
        --mca btl self,openib --mca btl_openib_allow_ib 1
    UCX_TLS=rc,ud,self UCX_NET_DEVICES=$RXE_DEVICE:1 repeat launch openmpi-ucx all-reduce \
        "$vector" openmpi openmpi-ucx --mca pml ucx
}

# Rows go to standard output: files in a guest are lost.
measure_inside() {
    local kind
    server_log=$(mktemp)
    trap 'rm -f "$server_log"' EXIT
    # shellcheck source=perf/bench/two_processes.sh
    . "$here/bench/two_processes.sh"
    for ((round = 1; round <= rounds; round++)); do one_round || true; done
    openmpi_over_device
    echo "machine: $(machine_line)"
    for kind in "${!failures[@]}"; do echo "failed: $kind (launches: ${failures[$kind]})"; done | sort
}

# --- on the host ------------------------------------------------------------------

measure() {
    # The guest's default clock is a device shared by all processors and takes 2.6 µs to read.
    local bed=("$here/../tests/rxe/guest" --memory 1500 --kernel tsc=reliable) status=0 folder=$out
    [[ $build/ != /tmp/* ]] || folder=$build # a guest has its own /tmp, unless it starts in a folder there
    where="a guest, emulated by qemu: only ratios mean something"
    if "$here/../tests/rxe/host" --check 2>/dev/null; then
        bed=("$here/../tests/rxe/host")
        where="this machine"
    fi
    trap 'interrupted=yes' INT # the signal also ends the guest, which has printed its rows
    (cd "$folder" && exec "${bed[@]}" --timeout 3000 -- bash "$here/bench/rxe.sh" --inside "${words[@]}" "$build" "$out") \
        >"$out/said" 2> >(tee -a "$errors" |
            grep --line-buffered '^round\|^##\|^Open MPI over\|^rxe/' >&2) || status=$?
    echo "round,contender,what,bytes,value" >"$runs"
    sed -n 's/^row: //p' "$out/said" >>"$runs"
    [ "$(wc -l <"$runs")" -gt 1 ] || die "nothing was measured, exit $status: see $errors"
    [ "$status" = 0 ] || [ -n "$interrupted" ] ||
        echo "failed: all remaining launches, exit $status" >>"$out/said"
}

if [ -n "$inside" ]; then
    measure_inside
    exit
fi
build_openmpi || true
measure
machine_line() { sed -n 's/^machine: //p' "$out/said"; }
absent_lines() {
    local name
    [ -z "$interrupted" ] || echo "Interrupted: the tables contain only completed launches."
    for name in "${missing[@]}"; do echo "Not measured here: $name."; done
    sed -n 's/^failed: \(.*\)/Failed: \1; see errors.log./p' "$out/said"
}
about="Two processes over soft-RoCE in $where. $rounds launches of each program, interleaved.
Latency is half of a round trip, median of a launch; bandwidth is with 64 concurrent writes
in one direction; all-reduce is of two ranks, f32, in place. Bound: both vectors at the rate of
trib-perf put --bidirectional."
make_tables
rm -f "$out/said"
! grep '^Failed: all' "$out/bench.md" >&2 || exit 1
echo "written to $out: $files" >&2
page_rows() {
    awk -F, 'NR == 1 { print "contender,test,bytes,us"; next } $3 != "bandwidth" { print $2 "," $3 "," $4 "," $5 }' "$runs"
}
write_page split_by=test name=contender own='^trib' key=way run='"command": "soft-RoCE"'
