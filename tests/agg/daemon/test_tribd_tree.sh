#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Trees of tribds: four hosts with a rank each in two racks, each rack with a tribd, and
# two above them. What is summed, which hosts communicate, and the loss of one tribd.
# Finally two hosts of two ranks with a tribd on each.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/netns/net.sh
. "${abs_top_srcdir:-.}/tests/netns/net.sh"
perf=$build/perf/trib-perf
! why=$(net_refused) || skip_all "$why"
unset TRIB_ROOT TRIB_RANK TRIB_SIZE
declare -A tribd_pid
at_exit() { net_close; }
net_open 7 || exit 1
export TRIB_TRANSPORT=tcp TRIB_STOP_TIMEOUT_MS=30000 # this machine may be busy for seconds
net_job_hosts=4

(umask 077; head -c 32 /dev/urandom >"$dir/key")
export TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$dir/key TRIB_SERVICE_JOB=job

# --- daemons ---

is_up() { # NAME: it listens, or has ended
    grep -q "listening at\|needs libsodium" "$dir/$1.log"
}

# A leaf notices that a root is stopped after 12 s.
start() { # NAME HOST PORT
    printf '%s\n' "listen = host$2:$3" "http =" "auth = key" "key = $dir/key" "threads = 1" \
        >"$dir/$1.conf"
    : >"$dir/$1.log"
    # shellcheck disable=SC2016
    TRIB_STOP_TIMEOUT_MS=12000 net_on "$2" sh -c '"$@" & echo $! >"$0"; wait $!' "$dir/$1.pid" \
        "$build/agg/daemon/tribd" --config "$dir/$1.conf" >>"$dir/$1.log" 2>&1 </dev/null &
    within 20 is_up "$1"
    ! grep -q "needs libsodium" "$dir/$1.log" || skip_all "built without libsodium"
    tribd_pid[$1]=$2
}

end() { # SIGNAL NAME
    net_on "${tribd_pid[$2]}" kill -s "$1" "$(cat "$dir/$2.pid")"
}

start leaf1 4 4700
start leaf2 5 4700
start root1 6 4701
start root2 6 4702
roots=host6:4701,host6:4702

# --- jobs ---

jobs_of() { # DAEMON: number of jobs it has had
    grep -c "ranks, " "$dir/$1.log"
}

# NAME, arguments of trib-perf: it ends with correct sums and without warnings
run() {
    shown=("$net_dir/rank0.out" "$dir/root1.log" "$dir/leaf1.log")
    net_job "$perf" allreduce --check --iters 20 --warmup 2 "${@:2}"
    net_ended 100 0 1 2 3 && [ "$(net_status 0)" = 0 ] && right
    result $? "$1: right"
    ! grep -q warning "$net_dir/rank0.out"
    result $? "$1: no word of trouble"
}

# every row of trib-perf has 0 wrong elements, and there is at least one row
right() {
    awk '/^ *[0-9.]+ [KMG]?i?B / { rows++; if ($NF != 0) bad = 1 } END { exit bad || !rows }' \
        "$net_dir/rank0.out"
}

have_had() { # "NAME jobs..." - each daemon has had this many more jobs, and logs it
    local name wanted=$1 got=""
    for name in root1 root2 leaf1 leaf2; do
        got+="$(($(jobs_of $name) - ${had[$name]})) "
        had[$name]=$(jobs_of $name)
    done
    [ "$got" = "$wanted " ] || echo "root1 root2 leaf1 leaf2 have had $got jobs" >>"$net_dir/rank0.out"
    [ "$got" = "$wanted " ]
}
declare -A had=([root1]=0 [root2]=0 [leaf1]=0 [leaf2]=0)

received() { # HOST: bytes on its link so far
    net_on "$1" cat /sys/class/net/eth0/statistics/rx_bytes
}

written="$roots+host4:4700=host[0-1]+host5:4700=host[2-3]"
for codec in none topk:ratio=0.05 int8; do
    TRIB_SERVICE=$written run "$codec" --codec "$codec" --sizes 8,4K,300004
done
TRIB_SERVICE=$written run "pairs" --call pairs --density 0.05 --sizes 4K,300004
have_had "4 4 4 4"
result $? "both roots and both leaves sum"

before=$(received 6)
TRIB_SERVICE=$written run "a tree" --sizes 1M
tree=$(($(received 6) - before))
before=$(received 6)
TRIB_SERVICE=$roots run "a star" --sizes 1M
star=$(($(received 6) - before))
echo "# the roots' host is sent $tree bytes in a tree, $star in a star"
[ $((tree * 10)) -lt $((star * 6)) ]
result $? "a root is sent one vector a rack"
have_had "2 2 1 1"
result $? "a star leaves the leaves alone"

# Sums without rounding have the same bits in a tree, in a star and without a service.
hash_by() { # SERVICE, arguments of the example: the hash of the sum that rank 0 prints
    shown=("$net_dir/rank0.out")
    TRIB_SERVICE=$1 net_job "$build/examples/exact" "${@:2}"
    net_ended 60 0 1 2 3 && [ "$(net_status 0)" = 0 ] &&
        sed -n 's/.*: sum \([0-9a-f]*\) of.*/\1/p' "$net_dir/rank0.out"
}
hashes="$(hash_by "$written") $(hash_by "$roots" --shift 1) $(hash_by "" --shift 3)"
[ "$hashes" = "$(awk '{ print $1, $1, $1 }' <<<"$hashes")" ] && [ ${#hashes} = 26 ]
result $? "exact: a tree, a star and no service make the same bits ($hashes)"
have_had "2 2 1 1"

# A rank of another rack has no link to a leaf, and the leaves have none to each other.
links() { # HOST HOST: TCP connections except those to the port of a tribd
    net_on "$1" ss -Htn "dst $(net_address "$2") and not sport = 4700" | wc -l
}
TRIB_SERVICE=$written net_job "$perf" allreduce --iters 10000000 --sizes 64K
under_way() { [ "$(links 4 0)" -gt 0 ] && [ "$(links 5 2)" -gt 0 ] && [ "$(links 4 6)" -gt 0 ]; }
within 30 under_way
result $? "a leaf has links to its ranks and to the roots"
[ "$(links 4 2) $(links 4 3) $(links 4 5) $(links 5 1) $(links 6 1) $(links 6 3)" = "0 0 0 0 0 0" ]
result $? "and to nobody else"
for rank in 0 1 2 3; do net_kill KILL $rank $rank; done
net_ended 20 0 1 2 3
have_had "1 1 1 1"

# --- racks ---

printf '%s\n' "rack1: host0 host1 host4" "rack2: host[2-3] host5" >"$dir/racks"
export TRIB_RACKS=$dir/racks
TRIB_SERVICE="$roots,host[4-5]:4700" run "racks" --sizes 8,300004
have_had "1 1 1 1"
result $? "racks: the tribds of no rack are above those of racks"
TRIB_SERVICE="host[4-5]:4700" run "tribds of racks alone" --sizes 8,300004
have_had "0 0 1 1"
result $? "tribds of racks alone are the root together"
printf '%s\n' "rack1: host[0-3] host4" "rack2: host5" >"$dir/racks"
TRIB_SERVICE="$roots,host[4-5]:4700" run "one rack" --sizes 8,300004
have_had "0 0 1 0"
result $? "of one rack's ranks nobody else needs to know"
printf '%s\n' "rack1: host[0-1] host4" "rack2: host5" >"$dir/racks"
TRIB_SERVICE="$roots,host[4-5]:4700" run "ranks in no rack" --sizes 8,300004
have_had "1 1 1 0"
result $? "ranks in no rack send to the roots"
unset TRIB_RACKS

# --- mistakes ---

refused() { # NAME, TRIB_SERVICE, words
    shown=("$net_dir/rank0.out")
    TRIB_SERVICE=$2 net_job "$perf" allreduce --check --sizes 4K
    net_ended 60 0 1 2 3 && [ "$(net_status 0)" = 0 ] && right && grep -qF -- "$3" "$net_dir/rank0.out"
    result $? "$1: the ranks sum without aggregators, and say why"
}
refused "a host in two racks" "$roots+host4:4700=host[0-2]+host5:4700=host[2-3]" \
    "host host2 is in two groups"
TRIB_RACKS=$dir/none refused "no such file" "$roots" "$dir/none"

# --- losses ---

lost() { # NAME, SIGNAL, DAEMON
    shown=("$net_dir/rank0.out" "$dir/$3.log")
    TRIB_STOP_TIMEOUT_MS=4000 TRIB_SERVICE=$written net_job "$perf" allreduce --check --iters 250 --sizes 1M
    before=$(received 6)
    within 60 has_summed
    end "$2" "$3"
    net_ended 120 0 1 2 3 && [ "$(net_status 0)" = 0 ] && right
    result $? "$1: the run ends, and is right"
    grep -q "continue without aggregators" "$net_dir/rank0.out"
    result $? "$1: the run says so"
}
has_summed() { [ $(($(received 6) - before)) -gt 40000000 ]; } # some dozens of vectors

lost "a leaf is killed" KILL leaf2
start leaf2 5 4700
lost "a root is stopped" STOP root1
end CONT root1
lost "a leaf gets SIGTERM" TERM leaf1

# --- a quorum ---

# A plan with a quorum is created while a leaf is away; it cannot move when the tree is
# complete.
shown=("$net_dir/rank0.out" "$dir/leaf1.log")
TRIB_LOG=info TRIB_SERVICE_RETRY_MS=100 TRIB_SERVICE=$written net_job "$perf" allreduce --check \
    --quorum 0.5,deadline=5ms --iters 500 --sizes 1M
said() { grep -qF -- "$1" "$net_dir/rank0.out" || net_ended 0 0; }
within 30 said "sum without aggregators"
start leaf1 4 4700
within 30 said "aggregators are reachable only as a tree, and a plan uses a quorum"
net_ended 120 0 1 2 3 && [ "$(net_status 0)" = 0 ] && right
result $? "a quorum, and the tree is completed later: the ranks continue with correct sums"
[ "$(grep -c "which trees do not support" "$net_dir/rank0.out")" = 1 ] &&
    ! grep -qE "from operation|continue without aggregators" "$net_dir/rank0.out"
result $? "that is said once, and not tried"
# --- leaves on the hosts of the ranks ---

# Two hosts of two ranks, each with a tribd that they reach through shared memory, and a
# root by TCP.
export TRIB_TRANSPORT=auto
net_job_hosts=2 net_job_ranks=2
start near0 0 4700
start near1 1 4700
start above 6 4700
above=host6:4700
within_hosts="$above+host0:4700=host0+host1:4700=host1"

link_bytes() { # HOST: "sent received" on its link so far
    net_on "$1" cat /sys/class/net/eth0/statistics/tx_bytes /sys/class/net/eth0/statistics/rx_bytes |
        xargs
}

# NAME, arguments of trib-perf: bytes each way per start on the links of both hosts, in
# thousandths of a vector of 1 MiB. The setup of a run costs the same in both.
vectors() {
    local host i before after sent=()

    for i in 20 60; do
        before="$(link_bytes 0) $(link_bytes 1)"
        run "$1, $i starts" --iters $i --sizes 1M
        after="$(link_bytes 0) $(link_bytes 1)"
        sent+=("$(paste -d' ' <(tr ' ' '\n' <<<"$before") <(tr ' ' '\n' <<<"$after") |
            awk '{ printf "%d ", $2 - $1 }')")
    done
    paste -d' ' <(xargs -n1 <<<"${sent[0]}") <(xargs -n1 <<<"${sent[1]}") |
        awk '{ printf "%d ", ($2 - $1) * 1000 / 40 / 1048576 }' >"$dir/vectors"
    echo "# $1: $(cat "$dir/vectors")thousandths of a vector a start: up, down of host0, of host1"
}

each_within() { # LEAST MOST: range for the results of vectors, of which there are four
    awk -v least="$1" -v most="$2" \
        '{ n += NF; for (i = 1; i <= NF; i++) bad += $i < least || $i > most } END { exit bad || n != 4 }' \
        "$dir/vectors"
}

TRIB_SERVICE=$within_hosts vectors "within hosts first"
each_within 1000 1150
result $? "one vector a host goes up its link, and one comes down"
TRIB_SERVICE=$above vectors "all at the root"
each_within 1000 1150
result $? "so it is at a root alone: the ranks of a host sum first"
TRIB_TRANSPORT=tcp TRIB_SERVICE=$above vectors "all at the root over tcp"
each_within 2000 2300
result $? "without shared memory there are two"

# The leaf of host0 shares memory with its two ranks, and uses TCP only to the root.
# Ports 4700 are for admission.
shown=("$net_dir/rank0.out" "$dir/near0.log")
TRIB_SERVICE=$within_hosts net_job "$perf" allreduce --iters 10000000 --sizes 64K
shared_by() { # DAEMON: number of memory segments that it shares
    # shellcheck disable=SC2016
    net_on "${tribd_pid[$1]}" sh -c 'cat "/proc/$0/maps"' "$(cat "$dir/$1.pid")" |
        awk '/memfd:tributary/ { seen[$5] = 1 } END { for (i in seen) n++; print n + 0 }'
}
tcp_of() { # DAEMON: the addresses to which it has connections
    net_on "${tribd_pid[$1]}" ss -Htnp |
        awk -v pid="pid=$(cat "$dir/$1.pid")," 'index($0, pid) && $4 $5 !~ /:4700/ { print $5 }' |
        sed 's/:[0-9]*$//; s/^\[::ffff:\(.*\)\]$/\1/' | sort -u | xargs
}
both_at_once() { [ "$(shared_by near0)" -ge 3 ] && [ "$(tcp_of near0)" = "$(net_address 6)" ]; }
within 30 both_at_once
result $? "a leaf shares memory with its ranks, and has TCP to the root alone, at once"
[ "$(shared_by above)" = 0 ] && [ "$(tcp_of above)" = "$(net_address 0) $(net_address 1)" ]
result $? "the root has TCP alone"
for rank in 0 1 2 3; do net_kill KILL $((rank / 2)) $rank 2>/dev/null; done
net_ended 20 0 1 2 3
finish
