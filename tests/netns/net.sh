#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Several hosts on one machine: source this file. A host is a process with name spaces
# of its own: network, processes, IPC, mounts and host name. It also has its own
# /dev/shm, /etc/hosts and boot id. Each host has one link, eth0, to one switch, which
# is a bridge in another network name space. Nothing here has a name on the real
# machine, so concurrent runs are independent. The hosts end with their first processes,
# at the latest with the shell.
#
#     . tests/netns/net.sh
#     why=$(net_refused) && echo "not here: $why" && exit 77
#     net_open 2 && net_on 1 ping host0
#     net_close
#
# Host I has the name hostI and the addresses 10.77.0.(I+1) and fd77::(I+1).

net_dir='' # files that the hosts mount
net_switch_pid='' net_pids=()
net_key=$(od -An -N32 -tx1 /dev/urandom | tr -d " \n") # the secret of all jobs here
net_port=7000

# net_refused - print why this machine cannot make such hosts; fail if it can.
net_refused() {
    local tool

    for tool in unshare nsenter setpriv ip tc; do
        command -v "$tool" >/dev/null || { echo "$tool is not installed"; return 0; }
    done
    [ -e /etc/hosts ] || { echo "there is no /etc/hosts for the names of the hosts"; return 0; }
    [ "$(id -u)" = 0 ] || { echo "only root may make network name spaces"; return 0; }
    ! unshare --net --uts --ipc --pid --mount --fork --mount-proc \
        ip link add trib0 type veth peer name trib1 >/dev/null 2>&1 ||
        return 1
    echo "no permission to make name spaces, or links in them (CAP_SYS_ADMIN, CAP_NET_ADMIN)"
}

net_address() { # HOST [6]
    if [ "${2:-4}" = 6 ]; then
        echo "fd77::$(($1 + 1))"
    else
        echo "10.77.0.$(($1 + 1))"
    fi
}

# Set up the name spaces of a new host; its first process calls this.
# shellcheck disable=SC2317 # net_hold calls it, in another shell
net_be_host() { # FOLDER NAME
    mount -t tmpfs -o size=256m tmpfs /dev/shm &&
        mount --bind "$1/hosts" /etc/hosts &&
        hostname "$2" && ip link set lo up || exit 1
    # The kernel looks like another one. /sys is useful, but not required.
    mount --bind "$1/$2.boot_id" /proc/sys/kernel/random/boot_id || exit 1
    mount -t sysfs sysfs /sys 2>/dev/null
    echo ready >"$1/$2.ready"
    exec sleep infinity
}

# net_bound PID COMMAND... - become a command that ends with its parent PID. The shell
# checks the parent, which may have ended before the signal was requested. (sh would
# drop exported functions.)
# shellcheck disable=SC2016
net_bound() {
    exec setpriv --pdeathsig KILL bash -c '[ "$PPID" = "$0" ] || exit 1; exec "$@"' "$@"
}

# net_hold NAME - start the first process of a host; its pid becomes the last of
# net_pids.
net_hold() {
    cat /proc/sys/kernel/random/uuid >"$net_dir/$1.boot_id"
    local me=$BASHPID
    export -f net_be_host
    net_bound "$me" unshare --net --uts --ipc --pid --mount --fork \
        --kill-child --mount-proc bash -c 'net_be_host "$@"' - "$net_dir" "$1" \
        >"$net_dir/$1.log" 2>&1 &
    net_pids+=($!)
    net_await "$net_dir/$1.ready" $! || {
        sed "s/^/net: $1: /" "$net_dir/$1.log" >&2
        return 1
    }
}

# Wait for 20 ms without a process: starting sleep costs more than the rest of a loop that polls.
exec {net_nothing}<> <(:)
net_pause() {
    read -rt 0.02 -u "$net_nothing" || :
}

net_await() { # FILE, PID of its writer
    local end=$((SECONDS + 100))

    until [ -e "$1" ]; do
        [ -e "/proc/$2" ] && [ "$SECONDS" -lt "$end" ] || return 1
        net_pause
    done
}

# net_switch COMMAND... - run a command in the network name space of the switch. Port I
# connects host I.
net_switch() {
    nsenter --net="/proc/$net_switch_pid/ns/net" -- "$@"
}

# net_on HOST COMMAND... - run a command on a host, in this folder. nsenter does not
# forward signals: use net_kill.
net_on() {
    local pid=${net_pids[$1]}

    shift
    # shellcheck disable=SC2016 # the inner shell expands them
    nsenter --target "$pid" --net --uts --ipc --mount \
        --pid="/proc/$pid/ns/pid_for_children" -- \
        sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

# net_link HOST LINK PORT - join the host's LINK to the switch's PORT.
net_link() {
    net_switch ip link add "$3" mtu "$net_mtu" type veth \
        peer name "$2" mtu "$net_mtu" netns "${net_pids[$1]}" &&
        net_switch ip link set "$3" master switch up &&
        net_on "$1" ip link set "$2" up
}

# net_open HOSTS [MTU [4|6|46]] - make the hosts. The last argument selects the IP
# versions of the addresses.
net_open() {
    local n=$1 i

    net_mtu=${2:-1500}
    net_families=${3:-46}
    net_dir=$(mktemp -d) || return 1
    {
        echo 127.0.0.1 localhost
        for ((i = 0; i < n; i++)); do
            [[ $net_families != *4* ]] || echo "$(net_address "$i") host$i"
            [[ $net_families != *6* ]] || echo "$(net_address "$i" 6) host$i"
        done
    } >"$net_dir/hosts"
    local me=$BASHPID
    # shellcheck disable=SC2016
    net_bound "$me" unshare --net sh -c 'echo >"$0/ready"; exec sleep infinity' \
        "$net_dir" &
    net_switch_pid=$!
    net_await "$net_dir/ready" $! || return 1
    net_switch ip link add switch mtu "$net_mtu" type bridge &&
        net_switch ip link set switch up || return 1
    # A switch is no firewall: turn off the kernel's rules for IP packets on bridges.
    [ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] ||
        net_switch sh -c 'echo 0 >/proc/sys/net/bridge/bridge-nf-call-iptables' 2>/dev/null || :
    for ((i = 0; i < n; i++)); do
        net_hold "host$i" && net_link "$i" eth0 "port$i" || return 1
        [[ $net_families != *4* ]] ||
            net_on "$i" ip address add "$(net_address "$i")/24" dev eth0 || return 1
        [[ $net_families != *6* ]] ||
            net_on "$i" ip address add "$(net_address "$i" 6)/64" dev eth0 nodad || return 1
    done
}

# net_rate RATE - limit the rate of each host in both directions, for example to 1gbit.
# The burst holds one large segment of a virtual link, and at 10gbit less than a frame
# more. A token bucket (tbf) with such a small burst would split the segments.
net_rate() {
    local i

    for i in "${!net_pids[@]}"; do
        net_shape "$1" eth0 net_on "$i" && net_shape "$1" "port$i" net_switch || return 1
    done
}

net_shape() { # RATE LINK COMMAND… - COMMAND runs tc where the link is
    local rate=$1 link=$2

    shift 2
    "$@" tc qdisc add dev "$link" root handle 1: htb default 1 &&
        "$@" tc class add dev "$link" parent 1: classid 1:1 htb rate "$rate" \
            burst 64kb cburst 64kb quantum 60000
}

# net_congestion NAME - set the congestion control of TCP between the hosts: cubic, bbr.
# The routes set it: the setting of a name space accepts only algorithms for all users.
net_congestion() {
    local i

    for i in "${!net_pids[@]}"; do
        net_on "$i" ip route change 10.77.0.0/24 dev eth0 proto kernel scope link \
            src "$(net_address "$i")" congctl "$1" || return 1
    done
}

# net_rule HOST RULE... - add an nft rule for the packets that the host receives.
net_rule() {
    local host=$1

    shift
    net_on "$host" nft -f - <<NFT
add table inet trouble
add chain inet trouble in { type filter hook input priority 0; }
add rule inet trouble in $*
NFT
}

# net_drop HOST MATCH... - the host's firewall silently drops packets that match the nft
# expression MATCH.
net_drop() {
    net_rule "$@" drop
}

# net_lose PERCENT - every host drops this percentage of its received packets at random.
net_lose() {
    local i

    for i in "${!net_pids[@]}"; do
        net_rule "$i" numgen random mod 100 '<' "$1" counter drop || return 1
    done
}

# net_drop_frames BYTES - the switch silently drops larger frames. A virtual link joins
# many segments; from now on it sends each by itself, as a wire does.
net_drop_frames() {
    local i

    for i in "${!net_pids[@]}"; do
        net_on "$i" ip link set dev eth0 gso_max_segs 1 || return 1
    done
    net_switch nft -f - <<NFT
add table bridge trouble
add chain bridge trouble through { type filter hook forward priority 0; }
add rule bridge trouble through meta length > $1 drop
NFT
}

# net_mend - remove all rules of net_rule, net_drop, net_lose and net_drop_frames.
net_mend() {
    local i

    net_switch nft flush ruleset
    for i in "${!net_pids[@]}"; do
        net_on "$i" nft flush ruleset
    done
}

# net_rank HOST RANK SIZE COMMAND... - run a rank on a host; net_kill finds it by its
# number. A shell runs between the two: nsenter stops with its child, and then never
# reaps it.
net_rank() {
    local host=$1 rank=$2 size=$3 root

    shift 3
    root=$(net_address 0)
    [[ $net_families == *4* ]] || root="[$(net_address 0 6)]"
    # shellcheck disable=SC2016
    net_on "$host" env TRIB_RANK="$rank" TRIB_SIZE="$size" \
        TRIB_ROOT="${TRIB_ROOT:-$root:$net_port}" \
        TRIB_KEY="${TRIB_KEY-$net_key}" \
        sh -c '"$@" & echo $! >"$0"; wait $!' "$net_dir/rank$rank.pid" "$@"
}

# net_kill SIGNAL HOST RANK
net_kill() {
    net_on "$2" kill -s "$1" "$(cat "$net_dir/rank$3.pid")"
}

# net_job COMMAND... - start $net_job_ranks ranks (1) on each host, or on the first
# $net_job_hosts hosts, in the background. The output of rank I goes to
# $net_dir/rankI.out, and at the end its exit status to $net_dir/rankI.status.
net_job() {
    local rank size

    size=$(net_job_size)
    for ((rank = 0; rank < size; rank++)); do
        net_job_start "$rank" "$@"
    done
}

# The number of ranks of a job, and the host of a rank.
net_job_size() { echo $((${net_job_hosts:-${#net_pids[@]}} * ${net_job_ranks:-1})); }
net_job_host() { echo $(($1 / ${net_job_ranks:-1})); } # RANK

# net_job_start RANK COMMAND... - start one rank of a job.
net_job_start() {
    local rank=$1 size

    shift
    size=$(net_job_size)
    rm -f "$net_dir/rank$rank".*
    {
        net_rank "$(net_job_host "$rank")" "$rank" "$size" "$@" >"$net_dir/rank$rank.out" 2>&1 </dev/null
        echo $? >"$net_dir/rank$rank.end"
        mv "$net_dir/rank$rank.end" "$net_dir/rank$rank.status"
    } 2>/dev/null &
}

# net_ended SECONDS RANK... - wait until these ranks have ended; fail on a time-out.
# TRIBTEST_SLOWNESS multiplies the seconds for slow builds.
net_ended() {
    local end=$((SECONDS + $1 * ${TRIBTEST_SLOWNESS:-1})) rank

    shift
    for rank; do
        until [ -e "$net_dir/rank$rank.status" ]; do
            [ "$SECONDS" -le "$end" ] || return 1
            net_pause
        done
    done
}

# net_status RANK - print the exit status of a rank that has ended.
net_status() {
    cat "$net_dir/rank$1.status"
}

# The kernel ends all processes of a host with the first one.
net_close() {
    local pid

    for pid in "${net_pids[@]}" $net_switch_pid; do
        kill -KILL "$pid" 2>/dev/null || :
    done
    for pid in "${net_pids[@]}" $net_switch_pid; do
        wait "$pid" 2>/dev/null || : # killed above
    done
    [ -z "$net_dir" ] || rm -rf "$net_dir"
    net_pids=() net_switch_pid='' net_dir=''
}
