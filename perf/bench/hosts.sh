#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# hosts.sh - compare Tributary with Open MPI, MPICH and Gloo between several hosts, interleaved.
#
#   perf/bench/hosts.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round, small sizes, short samples: a smoke test
#   --rounds N        launches of each program [5]
#   --hosts LIST      such as "2 4" [2 4]
#   --rates LIST      rates of each host's link, each way [1gbit 10gbit]
#   --congestion NAME congestion control of TCP, such as bbr [cubic]
#   --sizes LIST      bytes, comma-separated [1048576,10485760,104857600]
#   --sample MS       a sample is as many calls as fit this time [50]
#   --samples N       samples a size and launch [5]
#   --only LIST       contenders, comma-separated
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they
# share its cores, which limit the results on fast links. A round launches every contender
# once, and iperf3 from host 1 to host 0. Its rate B determines the bound: each host must
# send and receive 2(N-1)/N of the vector. The files in OUT_DIR are runs.csv (all
# launches), bench.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 hosts_list="2 4" rates="1gbit 10gbit" sizes=1048576,10485760,104857600
sample_ms=50 samples=5 only='' congestion=cubic limit=120 # seconds for a launch
# shellcheck disable=SC2034 # peers.sh reads them
place=in rewrite=''

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"
# shellcheck source=tests/netns/net.sh
. "$here/../tests/netns/net.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [hosts]=hosts_list [rates]=rates [congestion]=congestion
    [sizes]=sizes [sample]=sample_ms [samples]=samples [only]=only)
on_quick() { rounds=1 sizes=4096,1048576 sample_ms=10 samples=3 limit=60; }
take_arguments "$@"
! why=$(net_refused) || die "$why"
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE

contenders=(trib)
# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"
# shellcheck source=perf/bench/between_hosts.sh
. "$here/bench/between_hosts.sh"
! build_openmpi || contenders+=(openmpi)
! build_mpich || contenders+=(mpich)
! build_gloo || contenders+=(gloo)

# --- one launch -------------------------------------------------------------------

# Rows "rate,contender,ranks,bytes,samples,batch,p50,min,max" on standard output.

trib() {
    local options
    mapfile -t options < <(trib_options)
    job "$build/perf/trib-perf" allreduce --memory alloc "${options[@]}" |
        grep -v '^tributary: ' | trib_rows trib
}

# --- rounds, tables ---------------------------------------------------------------

# shellcheck disable=SC2034,SC2086 # say reads it; lists of words
planned=$((rounds * $(count_of $rates) * $(count_of $hosts_list) * (1 + ${#contenders[@]})))
echo "round,before,after,rate,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us" >"$runs"
trap net_close EXIT
trap 'exit 130' INT TERM HUP
for rate in $rates; do
    for n in $hosts_list; do
        open_hosts "$n"
        for ((round = 1; round <= rounds; round++)); do
            for contender in iperf "${contenders[@]}"; do
                [ "$contender" = iperf ] || wanted "$contender" || continue
                launch_probed "$round" "$rate, $n hosts, $contender" launch "$rate" "$contender"
            done
        done
        net_close
    done
done
[ ! -t 2 ] || printf '\r\033[K' >&2

{
    machine_line
    echo "All hosts are network namespaces on it. float32 sum in place over TCP ($congestion), $rounds"
    echo "launches of each program, interleaved; a launch takes $samples samples a size, each as"
    echo "many calls as fit $sample_ms ms (at least one), timed on the slowest rank."
    absent_lines
    echo
    awk -f "$here/bench/medians.awk" -f "$here/bench/hosts.awk" "$runs"
} >"$out/bench.md"
show_tables "$out/bench.md"
echo "written to $out: bench.md, runs.csv, errors.log" >&2

iperf_limits
write_page split_by="rate ranks" name=contender own='^trib$' key= run="$allreduce_run, \"in_place\": true"
