#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# allreduce.sh - compare Tributary with Open MPI, MPICH and Gloo on this host, interleaved.
#
# BUILD_DIR has perf/trib-perf and perf/probe. A round launches every
# contender once, each with the core probe before and after it. More ranks than cores run unbound and yield.
# Tributary's memory is of trib_alloc or of malloc; over TCP it is also encrypted (TRIB_SEAL=1).
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
every=8,64,512,4096,32768,262144,1048576,2097152,16777216,67108864 few=8,4096,262144,2097152,16777216
quick "3 rounds, few sizes, short samples" rounds=3 sizes=$few sample_ms=20 samples=5
options rounds ranks sizes=$every sample samples=7
option rewrite '' '' "each rank writes its input before each sample, of one call"
option tcp '' '' "over sockets on the loopback, plain and encrypted; default: the preferred transport of each library"
option unbound '' '' "do not bind ranks to cores [bound if there are enough cores]"
option out-of-place '' '' "separate buffers for input and result [in place]"
option collective allreduce NAME "another one, as run by collectives.sh: out of place, against Open MPI and MPICH only; sizes are of the longest buffer"
options only
files='runs.csv (all launches), limit.csv (copy bandwidth), bench.md (tables), errors.log'
over=best cores=$(nproc) cores_bound=$(nproc) limit=180
on_tcp() { over=tcp; }
on_unbound() { cores_bound=0; }
on_out_of_place() { place=out; }
on_rewrite() { rewrite=yes samples=31; }
take_arguments "$@"
if [ "$collective" != allreduce ]; then
    place=out
    [ "$sizes" != $every ] || sizes=64,512,4096,32768,262144,2097152,16777216
    [ "$sizes" != $few ] || sizes=64,4096,262144,2097152,16777216
fi
contenders=(trib-alloc trib-malloc)
if [ "$over" = tcp ] && TRIB_SEAL=1 TRIB_TRANSPORT=tcp "$build/perf/trib-perf" allreduce -n 2 --sizes 8 --iters 1 >/dev/null 2>&1; then
    contenders+=(trib-sealed) # needs libsodium
fi
if build_openmpi; then
    contenders+=(openmpi)
    [ "$over" = tcp ] || contenders+=(openmpi-ucx)
fi
! build_mpich || contenders+=(mpich)
[ "$collective" != allreduce ] || ! build_gloo || contenders+=(gloo)

columns=contender,ranks,bytes,samples,batch,p50_us,min_us,max_us
trib() { # RANKS MEMORY LABEL
    local bind=core transport=auto options
    [ "$1" -le "$cores_bound" ] || bind=none
    mapfile -t options < <(trib_options)
    [ "$over" != tcp ] || transport=tcp
    TRIB_TRANSPORT=$transport "$build/perf/trib-perf" "$collective" \
        -n "$1" --memory "$2" --bind "$bind" "${options[@]}" | trib_rows "$3"
}
launch() { # CONTENDER RANKS
    case $1 in
    trib-sealed) TRIB_SEAL=1 trib "$2" alloc "$1" ;;
    trib-*) trib "$2" "${1#trib-}" "$1" ;;
    openmpi) openmpi "$2" openmpi ;;
    openmpi-ucx) openmpi "$2" openmpi-ucx --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any ;;
    *) "$1" "$2" ;;
    esac
}
export cores cores_bound over

# copy_bandwidth BYTES - print GB/s read and written by $both cores at once.
copy_bandwidth() {
    local core

    for ((core = 0; core < both; core++)); do
        taskset -c "$core" mbw -q -t0 -n 15 $(($1 >> 20)) &
    done | awk -v mb=1.048576e-3 '$1 == "AVG" { rate += 2 * mb * $(NF - 1) } END { print rate }'
}
both=2
[ "$cores" -ge 2 ] || both=1
echo "bytes,cores,GBps" >"$out/limit.csv"
if [ "$over" != tcp ] && [ "$collective" = allreduce ]; then
    say "copy bandwidth of this machine"
    for size in $(tr , '\n' <<<"$sizes" | awk '$1 >= 1048576'); do
        echo "$size,$both,$(copy_bandwidth "$size")" >>"$out/limit.csv"
    done
fi

one_round() {
    local ranks who
    for ranks in $ranks_list; do
        for who in "${contenders[@]}"; do contend "$who" "$ranks ranks, $who" guarded launch "$who" "$ranks"; done
    done
}
measure
calls="each as many calls as fit $sample_ms ms
(at least one)"
[ -z "$rewrite" ] || calls="each of one call after a barrier, before
which each rank rewrote its input"
about="$collective of float32, ${place/#out/out of} place, $rounds launches of each program, interleaved;
a launch takes $samples samples a size, $calls, timed on the slowest rank."
[ "$over" = best ] || about="Over TCP on the loopback (congestion control: $(cat /proc/sys/net/ipv4/tcp_congestion_control)).
$about"
tables() {
    awk -v cores="$both" -v over="$over" -f "$here/bench/tables.awk" -f "$here/bench/allreduce.awk" \
        "$out/limit.csv" "$runs"
}
# Two ranks read two vectors and write two: at most a quarter of the bandwidth is possible.
awk -F, 'FNR > 1 { print "2,copy of memory," $1 "," $3 / 4 }' "$out/limit.csv" >>"$out/limits.csv"
finish split_by=ranks name=contender own='^trib-' key=way \
    "run=\"collective\": \"$collective\", \"dtype\": \"f32\", \"in_place\": $([ "$place" = in ] && echo true || echo false), \"over\": \"$over\""
