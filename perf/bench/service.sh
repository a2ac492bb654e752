#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# service.sh - compare the aggregation service and hierarchical sums with the ring, Gloo and Open MPI.
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
# results of tribd with an oracle. A job that continues without the service counts as failed.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
# shellcheck source=/dev/null
. "$here/bench/between_hosts.sh"
quick "1 round, small vectors, few samples: a smoke test" rounds=1 sizes=1000000 codec_bytes=1000000 \
    levels=4096,1048576 samples=2 sample_ms=5 limit=60
options rounds
option sizes 25000000,100000000 LIST "bytes of dense and blocks, comma-separated"
option levels 4096,16384,65536,262144,1048576,4194304,16777216,67108864 LIST "bytes of hierarchy, comma-separated"
option rate 1gbit RATE "rate of each host's link, each way, except in hierarchy"
option rates "1gbit 10gbit" LIST "the same for hierarchy"
options congestion samples=3 sample=20 limit=120
option only '' LIST "contenders, comma-separated, by the names in the progress output"
options write
more_arguments='[PART]… ' files='PART.csv (all launches), PART.md (tables), errors.log'
codec_bytes=25000000 workers=4 strict=yes
parts=() words=()
for word; do
    case $word in
    dense | blocks | codecs | hierarchy) parts+=("$word") ;;
    *) words+=("$word") ;;
    esac
done
take_arguments "${words[@]}"
[ ${#parts[@]} -gt 0 ] || parts=(dense blocks codecs hierarchy)
need_hosts
unset TRIB_LEADERS
has_gloo='' has_openmpi='' has_iperf=''
if [[ " ${parts[*]} " =~ \ (dense|blocks)\  ]]; then
    ! build_gloo || has_gloo=yes
fi
if [[ " ${parts[*]} " == *" dense "* ]]; then
    ! build_openmpi || has_openmpi=yes
    if command -v iperf3 >/dev/null; then has_iperf=yes; else missing+=(iperf3); fi
fi

columns=case,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us,nmse,wire_bytes
ours() { # LABEL OPTION…
    sum_on_hosts "$1" "nmse wire_bytes" --memory alloc "${@:2}"
}

served() { # LABEL SERVICES ARGUMENT…
    local check=()
    [ "$round" -gt 1 ] || check=(--check)
    TRIB_SERVICE=$2 TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$net_dir/key \
        ours "$1" --algorithm service "${check[@]}" "${@:3}"
}

compete() { # CASE CONTENDER COMMAND…
    contend "$2" "$part, $1, $2" launch "$1" "${@:3}"
}

# --- parts ------------------------------------------------------------------------

round_dense() {
    [ -z "$has_iperf" ] || contend "${only%%,*}" "$part, $rate, iperf3" launch "$rate" iperf
    compete "$rate" tribd served tribd "$apart"
    compete "$rate" tribd-here served tribd-here "$together"
    compete "$rate" ring ours ring --algorithm ring
    [ -z "$has_gloo" ] || compete "$rate" gloo gloo
    [ -z "$has_openmpi" ] || compete "$rate" openmpi openmpi
}

round_blocks() {
    local density
    compete dense tribd served tribd "$apart"
    [ -z "$has_gloo" ] || compete dense gloo gloo
    for density in 0.01 0.1 0.5 1; do
        compete "$density-same" sparse served sparse "$apart" --codec blocks --density "$density,same"
    done
    for density in 0.01 0.1 0.5; do
        compete "$density-own" sparse served sparse "$apart" --codec blocks --density "$density"
    done
}

round_codecs() {
    local codec sizes=$codec_bytes
    compete none tribd served tribd "$apart"
    for codec in int8 int8:result=requantised thc qsgd topk:ratio=0.01; do
        compete "$codec" tribd served tribd "$apart" --codec "$codec"
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
    [ "$round" -gt 1 ] || compete "$rate" chosen chosen
    compete "$rate" ring ours ring --algorithm ring
    for leaders in 1 2 4; do
        TRIB_LEADERS=$leaders compete "$rate" "leaders-$leaders" ours "leaders-$leaders" \
            --algorithm hierarchical
    done
    compete "$rate" leaders-auto ours leaders-auto --algorithm hierarchical
    compete "$rate" auto ours auto --algorithm auto
}

# 4 workers on the first hosts; tribd on 4 others and, for dense, also on the same ones.
place_names=rate
open_place() {
    if [ "$part" = hierarchy ]; then
        open_hosts 2
        net_job_hosts=2 net_job_ranks=4
        return
    fi
    open_hosts $((2 * workers))
    net_job_hosts=$workers net_job_ranks=1
    start_daemons 4 5 6 7 || die "tribd does not start"
    [ "$part" != dense ] || start_daemons 0 1 2 3 || die "tribd does not start"
    apart=$(services 4 5 6 7) together=$(services 0 1 2 3)
}
one_round() { "round_$part"; }

run_part() { # RATE…
    places=("$@")
    tables_file=$part.md runs=$out/$part.csv table_variables=(-v "part=$part" -v "workers=$workers")
    measure
    make_tables
    [ -z "$write" ] || write_section "service $part" "$out/$part.md"
}

apart='' together='' rate_of_all=$rate
about="$(hosts_line program); a launch takes $samples samples a size, each as
many calls as fit $sample_ms ms (at least one), timed on the slowest rank."
for part in "${parts[@]}"; do
    # shellcheck disable=SC2086 # a list
    if [ "$part" = hierarchy ]; then run_part $rates; else run_part "$rate_of_all"; fi
done
echo "written to $out: $files" >&2
page_rows() { grep -v ',chosen,' "$runs"; }
for part in "${parts[@]}"; do
    runs=$out/$part.csv page=$out/$part.html write_page split_by="case ranks" name=contender key=way \
        own="^(tribd|tribd-here|sparse|ring|leaders-.*|auto)$" run="$allreduce_run, \"part\": \"$part\""
done
