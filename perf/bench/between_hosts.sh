#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# between_hosts.sh - functions of the benches between hosts of tests/netns/net.sh. They source it after driver.sh, and
# call need_hosts. net_job_hosts and net_job_ranks are the number of hosts of a job and of ranks per host.
# shellcheck disable=SC2034,SC2154 # of net.sh, driver.sh and peers.sh

# shellcheck source=tests/netns/net.sh
. "$here/../tests/netns/net.sh"

# Fail if there can be no hosts; close them at the end of the bench.
need_hosts() {
    local why
    ! why=$(net_refused) || die "$why"
    trap close_place EXIT
    trap 'exit 130' INT TERM HUP
}

# Run ranks on hosts; print the output of rank 0 and of failed ranks.
job() { # COMMAND…
    local rank failed=0 ranks
    net_job "$@"
    ranks=$(net_job_size)
    for ((rank = 0; rank < ranks; rank++)); do
        net_ended "$limit" "$rank" || net_kill KILL "$(net_job_host "$rank")" "$rank"
    done
    for ((rank = 0; rank < ranks; rank++)); do
        net_ended 10 "$rank" && [ "$(net_status "$rank")" = 0 ] && continue
        failed=1
        cat "$net_dir/rank$rank.out" >&2
    done
    cat "$net_dir/rank0.out"
    return "$failed"
}

# Rows "contender,ranks,bytes,samples,batch,p50,min,max" on standard output, of one launch each.

gloo() {
    local options store failed=0
    mapfile -t options < <(peer_options gloo)
    store=$(mktemp -d "$out/gloo.XXXXXX")
    # shellcheck disable=SC2064 # it is local, and gone at the end of this process
    trap "rm -rf '$store'" EXIT
    trap 'exit 143' TERM
    # shellcheck disable=SC2016 # each rank's shell expands them
    job sh -c 'store=$0; exec "$@" -x "$TRIB_RANK:$TRIB_SIZE:$store:eth0"' "$store" \
        "$out/peers/gloo" "${options[@]}" || failed=1
    return "$failed"
}

# Write a program that enters the host of the rank if its first argument is "rank", and otherwise the host
# with that number or with that name, hostN, as given by mpirun.
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

# Open hosts with links of rate $rate and congestion control $congestion.
open_hosts() { # HOSTS
    [ -z "$interrupted" ] || return 0 # nothing is launched any more
    net_open "$1" 1500 4 || die "the hosts cannot be made"
    net_rate "$rate" || die "the rate $rate cannot be set"
    net_congestion "$congestion" || die "congestion control '$congestion' cannot be set"
    make_doors
}

# mpirun runs with the network and name of host 0, but in this machine's PID namespace, to find the
# other namespaces. One rank on each host of a job.
openmpi() {
    local n i list='' yield=() options
    n=${net_job_hosts:-${#net_pids[@]}}
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

# iperf3 from host 1 to host 0; the row has its rate in Gbit/s in place of a time.
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

# Print only rows, each after HEAD: launchers also write to standard output.
launch() { # HEAD CONTENDER [ARGUMENT…]
    "${@:2}" | grep -E '^[a-z0-9-]+(,[0-9.]+){7}(,[-+0-9.einfa]*)*$' | sed "s/^/$1,/"
}

daemon_up() { # HOST: it listens, or has ended
    grep -qs "listening at" "$net_dir/tribd$1.log" || ! kill -0 "${daemon_pid[$1]}" 2>/dev/null
}

# Start a tribd on each of these hosts; they end with the hosts.
start_daemons() { # HOST…
    local host end=$((SECONDS + 30))
    [ -z "$interrupted" ] || return 0
    [ -e "$net_dir/key" ] || (umask 077 && head -c 32 /dev/urandom >"$net_dir/key")
    for host; do
        net_on "$host" env "TRIBD_LISTEN=$(net_address "$host"):4700" TRIBD_HTTP= TRIBD_AUTH=key \
            TRIBD_KEY="$net_dir/key" TRIBD_THREADS=1 "$build/agg/daemon/tribd" \
            >"$net_dir/tribd$host.log" 2>&1 </dev/null &
        daemon_pid[host]=$!
    done
    for host; do
        until daemon_up "$host" || [ "$SECONDS" -gt "$end" ]; do sleep 0.05; done
        grep -qs "listening at" "$net_dir/tribd$host.log" && continue
        cat "$net_dir/tribd$host.log" >&2
        return 1
    done
}
daemon_pid=()

# Print the value of TRIB_SERVICE for the tribd of these hosts.
services() { # HOST…
    local host list=''
    for host; do list+=${list:+,}$(net_address "$host"):4700; done
    echo "$list"
}

hosts_line() { # WHAT: program or codec
    printf '%s\n%s' "All hosts are network namespaces on it. float32 sum in place over TCP ($congestion), $rounds" \
        "launches of each $1, interleaved"
}

# A place is a rate and a number of hosts.
place_names="rate n"
open_place() { open_hosts "$n"; }
close_place() { net_close; }
rates_and_hosts() {
    local rate n
    places=()
    for rate in $rates; do
        for n in $hosts_list; do places+=("$rate $n"); done
    done
}

strict='' wrapper=()
# Rows of trib-perf on the open hosts: "contender,ranks,bytes,samples,batch,p50,min,max[,COLUMN…]". If `strict`
# is set, a warning, for example about an unavailable service, makes it fail.
sum_on_hosts() { # CONTENDER "COLUMN…" OPTION…
    local options said
    mapfile -t options < <(trib_options)
    said=$(job "${wrapper[@]}" "$build/perf/trib-perf" allreduce "${options[@]}" "${@:3}") || return 1
    if grep '^tributary: ' <<<"$said" >&2 && [ -n "$strict" ]; then return 1; fi
    # shellcheck disable=SC2086 # names
    grep -v '^tributary: ' <<<"$said" | trib_rows "$1" $2
}
