#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench-hosts.sh - Tributary beside Open MPI, MPICH and Gloo between several hosts, interleaved.
#
#   perf/bench-hosts.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round, small sizes, short samples: does everything run?
#   --rounds N        launches of each program [5]
#   --hosts LIST      such as "2 4" [2 4]
#   --rates LIST      of each host's link, both ways [1gbit 10gbit]
#   --congestion NAME how TCP finds its rate, such as bbr [cubic]
#   --sizes LIST      bytes, with commas [1048576,10485760,104857600]
#   --sample MS       a sample is as many calls as fit this time [50]
#   --samples N       samples a size and launch [5]
#   --only LIST       contenders, with commas
#
# The hosts are name spaces on this machine (tests/netns/net.sh), so root is needed, and all
# share its cores: where links are fast the figures are of these. A round launches every
# contender once, and iperf3 from host 1 to host 0, whose rate B is that of the bound: each
# host must send and receive 2(N-1)/N of the vector. Into OUT_DIR go runs.csv (all
# launches), bench.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

rounds=5 hosts_list="2 4" rates="1gbit 10gbit" sizes=1048576,10485760,104857600
sample_ms=50 samples=5 only='' congestion=cubic limit=120 # seconds for a launch
# shellcheck disable=SC2034 # peers.sh reads them
place=in rewrite=''

# shellcheck source=perf/benchlib.sh
. "$here/benchlib.sh"
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
! build_openmpi || contenders+=(openmpi)
! build_mpich || contenders+=(mpich)
! build_gloo || contenders+=(gloo)

# --- one launch -------------------------------------------------------------------

# Rows "rate,contender,ranks,bytes,samples,batch,p50,min,max" on standard output.

# A rank of COMMAND on each host; rank 0's output.
job() { # COMMAND…
    local rank failed=0
    net_job "$@"
    for rank in "${!net_pids[@]}"; do
        net_ended "$limit" "$rank" || net_kill KILL "$rank" "$rank"
    done
    for rank in "${!net_pids[@]}"; do
        net_ended 10 "$rank" && [ "$(net_status "$rank")" = 0 ] && continue
        failed=1
        cat "$net_dir/rank$rank.out" >&2
    done
    cat "$net_dir/rank0.out"
    return "$failed"
}

trib() {
    local options
    mapfile -t options < <(trib_options)
    job "$build/perf/trib-perf" allreduce --memory alloc "${options[@]}" |
        grep -v '^tributary: ' | trib_rows trib
}

gloo() {
    local options store failed=0
    mapfile -t options < <(peer_options gloo)
    store=$(mktemp -d)
    # shellcheck disable=SC2016 # each rank's shell expands them
    job sh -c 'store=$0; exec "$@" -x "$TRIB_RANK:$TRIB_SIZE:$store:eth0"' "$store" \
        "$out/peers/gloo" "${options[@]}" || failed=1
    rm -rf "$store"
    return "$failed"
}

# A program that enters host number $1, or that of the rank where it is "rank", or, told
# its name, as mpirun does, the host hostN.
make_doors() {
    cat >"$net_dir/door" <<DOOR
#!/bin/bash
pids=(${net_pids[*]})
case \$1 in
rank) host=\$PMI_RANK command=("\${@:2}") ;;
*) host=\${1#host} command=(sh -c "\${*:2}") ;;
esac
pid=\${pids[host]}
exec nsenter --target "\$pid" --net --uts --ipc --mount \\
    --pid="/proc/\$pid/ns/pid_for_children" -- "\${command[@]}"
DOOR
    chmod +x "$net_dir/door"
}

# mpirun stays among this machine's processes, to find the others' name spaces, and has
# host 0's network and name.
openmpi() {
    local n=${#net_pids[@]} i list='' yield=() options
    mapfile -t options < <(peer_options openmpi)
    for ((i = 0; i < n; i++)); do list+=${list:+,}host$i:1; done
    [ "$n" -le "$(nproc)" ] || yield=(--mca mpi_yield_when_idle 1)
    timeout -k 5 "$limit" nsenter --target "${net_pids[0]}" --net --uts -- mpirun.openmpi -np "$n" \
        --host "$list" --map-by node --bind-to none --mca plm rsh \
        --mca plm_rsh_agent "$net_dir/door" --mca oob_tcp_if_include eth0 \
        --mca btl_tcp_if_include eth0 --mca pml ob1 --mca btl self,tcp "${yield[@]}" \
        "$out/peers/openmpi" "${options[@]}"
}

mpich() {
    local options
    mapfile -t options < <(peer_options mpich)
    timeout -k 5 "$limit" mpirun.mpich -n "${#net_pids[@]}" -genv MPIR_CVAR_NOLOCAL 1 \
        -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0 "$net_dir/door" rank \
        "$out/peers/mpich" "${options[@]}"
}

# Its rate in Gbit/s stands where others have their time.
iperf() {
    local server gbps
    net_on 0 timeout 60 iperf3 -s -1 >/dev/null 2>&1 &
    server=$!
    sleep 1
    gbps=$(net_on 1 timeout 60 iperf3 -c "$(net_address 0)" -t 2 -f m |
        awk '/receiver/ { for (i = 2; i <= NF; i++) if ($i == "Mbits/sec") print $(i - 1) / 1e3 }')
    wait "$server"
    echo "iperf3,${#net_pids[@]},0,1,1,$gbps,$gbps,$gbps"
}

# Launchers speak on standard output, too: only rows count.
launch() { # RATE CONTENDER
    "$2" | grep -E '^[a-z0-9-]+(,[0-9.]+){7}$' | sed "s/^/$1,/"
}

# --- rounds, tables ---------------------------------------------------------------

echo "round,before,after,rate,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us" >"$runs"
trap net_close EXIT
trap 'exit 130' INT TERM HUP
for rate in $rates; do
    for n in $hosts_list; do
        net_open "$n" 1500 4 || die "the hosts cannot be made"
        net_rate "$rate" || die "the rate $rate cannot be set"
        net_congestion "$congestion" || die "congestion control '$congestion' cannot be set"
        make_doors
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
    echo "All hosts are name spaces on it. float32 sum in place over TCP ($congestion), $rounds"
    echo "launches of each program, interleaved; a launch takes $samples samples a size, each as"
    echo "many calls as fit $sample_ms ms (at least one), timed on the slowest rank."
    absent_lines
    echo
    awk -f "$here/benchlib.awk" -f "$here/bench-hosts.awk" "$runs"
} >"$out/bench.md"
cat "$out/bench.md"
echo "written to $out: bench.md, runs.csv, errors.log" >&2
