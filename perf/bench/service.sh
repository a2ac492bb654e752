#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# service.sh - compare the aggregation service and hierarchical sums with the ring, Gloo and Open MPI.
#
#   perf/bench/service.sh [OPTION]… [PART]… BUILD_DIR OUT_DIR
#
#   --quick           1 round, small vectors, few samples: a smoke test
#   --rounds N        launches of each program [5]
#   --sizes LIST      bytes of dense and blocks, comma-separated [25000000,100000000]
#   --levels LIST     bytes of hierarchy, comma-separated [4 KiB to 64 MiB, by 4]
#   --rate RATE       rate of each host's link, each way, except in hierarchy [1gbit]
#   --rates LIST      the same for hierarchy [1gbit 10gbit]
#   --congestion NAME congestion control of TCP, such as bbr [cubic]
#   --samples N       samples a size and launch [3]
#   --sample MS       a sample is as many calls as fit this time [20]
#   --limit S         time limit of a launch, in seconds [120]
#   --only LIST       contenders, comma-separated, by the names in the progress output
#   --write           also write the tables to perf/results/service.md
#
# Parts; default: all:
#
#   dense      f32 through tribd, one shard for each of 4 workers: on 4 separate hosts, and
#              co-located on the workers' hosts. B is the rate of iperf3; each worker sends
#              and receives the vector of S bytes once: the bound is S / B
#   blocks     inputs with a fraction of zero blocks, through tribd with codec blocks,
#              compared with dense vectors
#   codecs     25 MB through tribd with each codec, and its error, compared with dense
#   hierarchy  2 hosts of 4 ranks: algorithm hierarchical with 1, 2, 4 leaders per host, or
#              the number that it chooses, compared with the flat ring
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they
# share its cores. A round launches every contender once; the first one compares the
# results of tribd with an oracle. A job that continues without the service counts as failed. The files in OUT_DIR are
# PART.csv (all launches), PART.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 sizes=25000000,100000000 codec_bytes=25000000 rate=1gbit rates="1gbit 10gbit"
levels=4096,16384,65536,262144,1048576,4194304,16777216,67108864
samples=3 sample_ms=20 only='' write='' congestion=cubic
limit=120
workers=4
# shellcheck disable=SC2034 # peers.sh reads them
place=in rewrite=''

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"
# shellcheck source=tests/netns/net.sh
. "$here/../tests/netns/net.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [sizes]=sizes [levels]=levels [rate]=rate [rates]=rates
    [congestion]=congestion [samples]=samples [sample]=sample_ms [limit]=limit
    [only]=only)
on_quick() {
    rounds=1 sizes=1000000 codec_bytes=1000000 levels=4096,1048576 samples=2 sample_ms=5 limit=60
}
on_write() { write=yes; }
parts=() words=()
for word; do
    case $word in
    dense | blocks | codecs | hierarchy) parts+=("$word") ;;
    *) words+=("$word") ;;
    esac
done
take_arguments "${words[@]}"
[ ${#parts[@]} -gt 0 ] || parts=(dense blocks codecs hierarchy)
! why=$(net_refused) || die "$why"
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_LEADERS TRIB_SERVICE

# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"
# shellcheck source=perf/bench/between_hosts.sh
. "$here/bench/between_hosts.sh"
has_gloo='' has_openmpi='' has_iperf=''
if [[ " ${parts[*]} " =~ \ (dense|blocks)\  ]]; then
    ! build_gloo || has_gloo=yes
fi
if [[ " ${parts[*]} " == *" dense "* ]]; then
    ! build_openmpi || has_openmpi=yes
    if command -v iperf3 >/dev/null; then has_iperf=yes; else missing+=(iperf3); fi
fi

# --- one launch -------------------------------------------------------------------

# Rows "case,contender,ranks,bytes,samples,batch,p50,min,max[,nmse,wire bytes]".

# A warning, for example about an unavailable service, makes it fail.
ours() { # LABEL ARGUMENT…
    local options rows
    mapfile -t options < <(trib_options)
    rows=$(job "$build/perf/trib-perf" allreduce --memory alloc "${options[@]}" "${@:2}") ||
        return 1
    if grep '^tributary: ' <<<"$rows" >&2; then return 1; fi
    trib_rows "$1" nmse wire_bytes <<<"$rows"
}

served() { # LABEL SERVICES ARGUMENT…
    local check=()
    [ "$round" -gt 1 ] || check=(--check)
    TRIB_SERVICE=$2 TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$net_dir/key \
        ours "$1" --algorithm service "${check[@]}" "${@:3}"
}

# Run each contender once; the command after its name prints its rows.
contend() { # CASE CONTENDER COMMAND…
    ! wanted "$2" || launch_probed "$round" "$part, $1, $2" launch "$1" "${@:3}"
}

# --- parts ------------------------------------------------------------------------

# 4 workers on the first hosts; tribd on 4 others and, for dense, also on the same ones.
open_star() {
    open_hosts $((2 * workers))
    net_job_hosts=$workers net_job_ranks=1
    start_daemons 4 5 6 7 || die "tribd does not start"
    apart=$(services 4 5 6 7)
}

round_dense() {
    [ -z "$has_iperf" ] || launch_probed "$round" "$part, $rate, iperf3" launch "$rate" iperf
    contend "$rate" tribd served tribd "$apart"
    contend "$rate" tribd-here served tribd-here "$together"
    contend "$rate" ring ours ring --algorithm ring
    [ -z "$has_gloo" ] || contend "$rate" gloo gloo
    [ -z "$has_openmpi" ] || contend "$rate" openmpi openmpi
}

round_blocks() {
    local density
    contend dense tribd served tribd "$apart"
    [ -z "$has_gloo" ] || contend dense gloo gloo
    for density in 0.01 0.1 0.5 1; do
        contend "$density-same" sparse served sparse "$apart" --codec blocks --density "$density,same"
    done
    for density in 0.01 0.1 0.5; do
        contend "$density-own" sparse served sparse "$apart" --codec blocks --density "$density"
    done
}

round_codecs() {
    local codec sizes=$codec_bytes
    contend none tribd served tribd "$apart"
    for codec in int8 int8:result=requantised thc qsgd topk:ratio=0.01; do
        contend "$codec" tribd served tribd "$apart" --codec "$codec"
    done
}

# The chosen number of leaders for each size, instead of a time.
chosen() {
    local said
    said=$(job "$build/perf/trib-perf" allreduce --algorithm hierarchical --sizes "$sizes" \
        --iters 1 --warmup 0 --explain) || return 1
    awk '$1 == "allreduce" && $2 == "of" { bytes = 4 * $3 }
        / leaders of a host: / { print "chosen,8," bytes ",1,1," $NF "," $NF "," $NF }' <<<"$said"
}

round_hierarchy() {
    local leaders sizes=$levels
    [ "$round" -gt 1 ] || contend "$rate" chosen chosen
    contend "$rate" ring ours ring --algorithm ring
    for leaders in 1 2 4; do
        TRIB_LEADERS=$leaders contend "$rate" "leaders-$leaders" ours "leaders-$leaders" \
            --algorithm hierarchical
    done
    contend "$rate" leaders-auto ours leaders-auto --algorithm hierarchical
    contend "$rate" auto ours auto --algorithm auto
}

# Run all rounds of a part on open hosts.
run_rounds() {
    for ((round = 1; round <= rounds; round++)); do "round_$part"; done
    net_close
}

run_part() {
    local rate=$rate rates=$rates
    if [ "$part" != hierarchy ]; then
        open_star
        [ "$part" != dense ] || start_daemons 0 1 2 3 || die "tribd does not start"
        together=$(services 0 1 2 3)
        run_rounds
        return
    fi
    for rate in $rates; do
        open_hosts 2
        net_job_hosts=2 net_job_ranks=4
        run_rounds
    done
}

tables() {
    machine_line
    echo "All hosts are network namespaces on it. float32 sum in place over TCP ($congestion), $rounds"
    echo "launches of each program, interleaved; a launch takes $samples samples a size, each as"
    echo "many calls as fit $sample_ms ms (at least one), timed on the slowest rank."
    absent_lines
    awk -v part="$part" -v workers="$workers" -f "$here/bench/medians.awk" \
        -f "$here/bench/service.awk" "$runs"
}

# --- all --------------------------------------------------------------------------

trap net_close EXIT
trap 'exit 130' INT TERM HUP
for part in "${parts[@]}"; do
    runs=$out/$part.csv
    echo "round,before,after,case,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us,nmse,wire_bytes" \
        >"$runs"
    run_part
    [ ! -t 2 ] || printf '\r\033[K' >&2
    tables >"$out/$part.md"
    show_tables "$out/$part.md"
    [ -z "$write" ] || write_section "service $part" "$out/$part.md"
done
part_page() { # PART
    grep -v ',chosen,' "$out/$1.csv" >"$out/part.csv"
    rows=$out/part.csv page=$out/$1.html write_page split_by="case ranks" name=contender key=way \
        own="^(tribd|tribd-here|sparse|ring|leaders-.*|auto)$" run="$allreduce_run, \"part\": \"$1\""
    rm "$out/part.csv"
}

echo "written to $out: ${parts[*]/%/.md}, ${parts[*]/%/.csv}, errors.log" >&2
for part in "${parts[@]}"; do part_page "$part"; done
