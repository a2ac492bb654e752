#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# allreduce.sh - compare Tributary with Open MPI, MPICH and Gloo on this host, interleaved.
#
#   perf/bench/allreduce.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           3 rounds, few sizes, short samples
#   --rounds N        launches of each program [5]
#   --ranks LIST      such as "2 4" [2 4]; more ranks than cores run unbound and yield
#   --sizes LIST      bytes, comma-separated
#   --sample MS       a sample is as many calls as fit this time [50]
#   --samples N       samples a size and launch [7]
#   --rewrite         each rank writes its input before each sample, of one call
#   --tcp             over sockets on the loopback, plain and encrypted (TRIB_SEAL=1); default:
#                     the preferred transport of each library
#   --unbound         do not bind ranks to cores [bound if there are enough cores]
#   --out-of-place    separate buffers for input and result [in place]
#   --collective NAME a collective other than allreduce, as run by collectives.sh: out of place,
#                     against Open MPI and MPICH only; sizes are of the longest buffer
#   --only LIST       contenders, comma-separated
#
# BUILD_DIR has perf/trib-perf, perf/membw and perf/probe. A round launches every
# contender once, each with the core probe before and after it. The files in OUT_DIR are
# runs.csv (all launches), limit.csv (copy bandwidth), bench.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 ranks_list="2 4" sample_ms=50 samples=7 place=in only='' rewrite='' over=best collective=allreduce
limit=180 # seconds for a launch
sizes=8,64,512,4096,32768,262144,1048576,2097152,16777216,67108864

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [ranks]=ranks_list [sizes]=sizes [sample]=sample_ms
    [samples]=samples [only]=only [collective]=collective)
on_quick() { rounds=3 sizes=8,4096,262144,2097152,16777216 sample_ms=20 samples=5; }
on_tcp() { over=tcp; }
on_unbound() { cores_bound=0; }
on_out_of_place() { place=out; }
on_rewrite() { rewrite=yes samples=31; }
take_arguments "$@"
cores=$(nproc)
: "${cores_bound:=$cores}"
if [ "$collective" != allreduce ]; then
    place=out
    [ "$sizes" != 8,64,512,4096,32768,262144,1048576,2097152,16777216,67108864 ] ||
        sizes=64,512,4096,32768,262144,2097152,16777216
    [ "$sizes" != 8,4096,262144,2097152,16777216 ] || sizes=64,4096,262144,2097152,16777216
fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# --- peers ------------------------------------------------------------------------

# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"
contenders=(trib-alloc trib-malloc)
if [ "$over" = tcp ] && TRIB_SEAL=1 TRIB_TRANSPORT=tcp "$build/perf/trib-perf" allreduce -n 2 --sizes 8 --iters 1 >/dev/null 2>&1; then
    contenders+=(trib-sealed) # with TRIB_SEAL=1, which needs libsodium
fi
if build_openmpi; then
    contenders+=(openmpi)
    [ "$over" = tcp ] || contenders+=(openmpi-ucx)
fi
! build_mpich || contenders+=(mpich)
[ "$collective" != allreduce ] || ! build_gloo || contenders+=(gloo)

# --- one launch -------------------------------------------------------------------

# Rows "contender,ranks,bytes,samples,batch,p50,min,max" on standard output.

trib() { # RANKS MEMORY [LABEL]
    local bind=core transport=auto options
    [ "$1" -le "$cores_bound" ] || bind=none
    mapfile -t options < <(trib_options)
    [ "$over" != tcp ] || transport=tcp
    env -u TRIB_CODEC TRIB_TRANSPORT=$transport "$build/perf/trib-perf" "$collective" \
        -n "$1" --memory "$2" --bind "$bind" "${options[@]}" | trib_rows "${3:-trib-$2}"
}

launch() { # CONTENDER RANKS
    case $1 in
    trib-alloc) trib "$2" alloc ;;
    trib-malloc) trib "$2" malloc ;;
    trib-sealed) TRIB_SEAL=1 trib "$2" alloc trib-sealed ;;
    openmpi) openmpi "$2" openmpi ;;
    openmpi-ucx)
        openmpi "$2" openmpi-ucx --mca pml ucx --mca pml_ucx_tls any \
            --mca pml_ucx_devices any
        ;;
    mpich) mpich "$2" ;;
    gloo) gloo "$2" ;;
    esac
}

export build out collective place rewrite sizes samples sample_ms cores cores_bound over
export -f trib trib_options trib_rows peer_options openmpi mpich gloo launch

# --- limits, rounds, tables -------------------------------------------------------

big=$(tr , '\n' <<<"$sizes" | awk '$1 >= 262144' | paste -sd, -)
both=2
[ "$cores" -ge 2 ] || both=1
if [ -n "$big" ] && [ "$over" != tcp ] && [ "$collective" = allreduce ]; then
    say "copy bandwidth of this machine"
    "$build/perf/membw" "$big" "$both" >"$out/limit.csv"
else
    echo "bytes,cores,kernel,GBps,min_GBps,max_GBps" >"$out/limit.csv"
fi

# shellcheck disable=SC2034,SC2086 # say reads it; lists of words
planned=$((rounds * $(count_of $ranks_list) * ${#contenders[@]}))
echo "round,before,after,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us" >"$runs"
for ((round = 1; round <= rounds; round++)); do
    for ranks in $ranks_list; do
        for contender in "${contenders[@]}"; do
            ! wanted "$contender" ||
                launch_probed "$round" "$ranks ranks, $contender" \
                    guarded launch "$contender" "$ranks"
        done
    done
done
[ ! -t 2 ] || printf '\r\033[K' >&2

{
    machine_line
    [ "$over" = best ] || echo "Over TCP on the loopback (congestion control: $(congestion))."
    echo "$collective of float32, ${place/#out/out of} place, $rounds launches of each program, interleaved;"
    if [ -n "$rewrite" ]; then
        echo "a launch takes $samples samples a size, each of one call after a barrier, before"
        echo "which each rank rewrote its input; timed on the slowest rank."
    else
        echo "a launch takes $samples samples a size, each as many calls as fit $sample_ms ms"
        echo "(at least one), timed on the slowest rank."
    fi
    absent_lines
    echo
    awk -v place="$place" -v cores="$both" -v over="$over" \
        -f "$here/bench/medians.awk" -f "$here/bench/allreduce.awk" "$out/limit.csv" "$runs"
} >"$out/bench.md"
show_tables "$out/bench.md"
echo "written to $out: bench.md, runs.csv, limit.csv, errors.log" >&2

# Two ranks read two vectors and write two: at most a quarter of the bandwidth is possible.
awk -F, -v cores="$both" 'FNR > 1 && $2 == cores && $3 != "update" && $6 > best[$1] { best[$1] = $6 }
    END { for (b in best) print "2,copy of memory," b "," best[b] / 4 }' "$out/limit.csv" >>"$out/limits.csv"
write_page split_by=ranks name=contender own='^trib-' key=way \
    "run=\"collective\": \"$collective\", \"dtype\": \"f32\", \"in_place\": $([ "$place" = in ] && echo true || echo false), \"over\": \"$over\""
