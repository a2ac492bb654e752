#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# hosts.sh - compare Tributary with Open MPI, MPICH and Gloo between several hosts, interleaved.
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they
# share its cores, which limit the results on fast links. A round launches every contender
# once, and iperf3 from host 1 to host 0. Its rate B determines the bound: each host must
# send and receive 2(N-1)/N of the vector.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
# shellcheck source=/dev/null
. "$here/bench/between_hosts.sh"
quick "1 round, small sizes, short samples: a smoke test" rounds=1 sizes=4096,1048576 sample_ms=10 samples=3 limit=60
options rounds hosts rates congestion sizes=1048576,10485760,104857600 sample samples only
limit=120
take_arguments "$@"
need_hosts
contenders=()
! build_openmpi || contenders+=(openmpi)
! build_mpich || contenders+=(mpich)
! build_gloo || contenders+=(gloo)

columns=rate,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us
one_round() {
    local who
    contend "${only%%,*}" "$rate, $n hosts, iperf" launch "$rate" iperf
    contend trib "$rate, $n hosts, trib" launch "$rate" sum_on_hosts trib '' --memory alloc
    for who in "${contenders[@]}"; do contend "$who" "$rate, $n hosts, $who" launch "$rate" "$who"; done
}
rates_and_hosts
measure
iperf_limits
about="$(hosts_line program); a launch takes $samples samples a size, each as
many calls as fit $sample_ms ms (at least one), timed on the slowest rank."
finish split_by="rate ranks" name=contender own='^trib$' key= run="$allreduce_run, \"in_place\": true"
