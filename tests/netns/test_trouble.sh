#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The network or a neighbour has a fault: the ranks end in time and name the cause, or
# continue.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/netns/net.sh
. "${abs_top_srcdir:-.}/tests/netns/net.sh"
perf=$build/perf/trib-perf
! why=$(net_refused) || skip_all "$why"
unset TRIB_ROOT TRIB_RANK TRIB_SIZE
at_exit() { net_close; }
net_open 3 9000 || exit 1

# The ranks run on hosts 0 and 1; the neighbour is host 2.
net_job_hosts=2
shown=("$net_dir/rank0.out" "$net_dir/rank1.out" "$said")
ports=tcp:port=7100,ports=10

says() { # RANK WORDS...
    local out=$net_dir/rank$1.out word

    shift
    for word; do
        grep -qF -- "$word" "$out" || return 1
    done
}

# NAME, SECONDS: both ranks have failed within this time
both_fail() {
    net_ended "$2" 0 1 && [ "$(net_status 0)" = 1 ] && [ "$(net_status 1)" = 1 ]
    result $? "$1: both ranks fail in time"
}

both_succeed() { # NAME
    net_ended 100 0 1 && [ "$(net_status 0)" = 0 ] && [ "$(net_status 1)" = 0 ]
    result $? "$1"
}

# HOST PORT: a process listens at the port
listens() {
    net_on "$1" ss -Hltn "sport = $2" | grep -q .
}

connected() { # the ranks have a connection to one of their ports
    net_on 0 ss -Htn "( sport >= 7100 and sport <= 7110 ) or ( dport >= 7100 and dport <= 7110 )" |
        grep -q ESTAB
}

# HOST: print the port of its rank. (A rank does not reuse a port that was closed just
# before.)
port_of() {
    net_on "$1" ss -Hltn "sport >= 7100 and sport <= 7110" | sed -n 's/.*:\(71[0-9]*\) .*/\1/p'
}

# HOST PORT TEXT: a stranger on host 2 sends the text, and waits until the connection
# ends
stranger() {
    # shellcheck disable=SC2016
    net_on 2 timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf "$2" >&3
        head -c 100 <&3 >/dev/null' "$(net_address "$1")" "$2" "$3" >/dev/null 2>&1
}
noise='GET / HTTP/1.0\r\n\r\n\xff\xff\xff\xff\x00\x00\x00\x00noise noise noise noise'

# A rank is killed
export TRIB_TRANSPORT=$ports
net_job "$perf" allreduce --sizes 1M --iters 1000000
within 30 connected
sleep 0.3
net_kill KILL 1 1
killed=$EPOCHREALTIME
net_ended 60 0 1
took=$(((${EPOCHREALTIME/./} - ${killed/./}) / 1000))
[ "$(net_status 0)" = 1 ] && [ "$took" -lt 4000 ]
result $? "kill -9 of a rank: the other one ends in time ($took ms)"
says 0 "rank 1" host1 "closed its connection" allreduce
result $? "and names rank, host, what happened and when"

# A firewall drops packets to the rank's port
net_drop 1 tcp dport 7100-7110
net_job "$perf" allreduce --sizes 8,1M --iters 3
both_fail "a firewall before a rank's port" 20
says 0 "rank 1" host1 "port 71" "Connection timed out"
result $? "and rank 0 names rank, host, address and port"
net_mend

# A firewall rejects connections to the rank's port
net_rule 1 tcp dport 7100-7110 reject with tcp reset
net_job "$perf" allreduce --sizes 8,1M --iters 3
both_fail "a firewall that rejects before a rank's port" 20
says 0 "rank 1" host1 "port 71" "Connection refused"
result $? "and rank 0 names rank, host, address and port"
net_mend

# A firewall drops the heartbeats: the job runs on without them, with a warning
net_drop 1 meta l4proto udp
TRIB_STOP_TIMEOUT_MS=500 net_job "$perf" allreduce --sizes 64K --iters 10000000
within 30 says 1 "no heartbeat from rank 0" "allow UDP"
result $? "heartbeats are dropped: a rank that receives none logs it"
sleep 1
[ ! -e "$net_dir/rank0.status" ] && [ ! -e "$net_dir/rank1.status" ]
result $? "and both ranks continue"
net_kill TERM 0 0
net_ended 60 0 1
net_mend

# The network drops 1 % of the packets
net_lose 1
net_job "$perf" allreduce --check --sizes 8,64K,1M --iters 100
both_succeed "1 % of all packets are lost: the sums are right"
net_on 0 nft list ruleset | grep -q "counter packets [1-9]"
result $? "and packets were lost"
net_mend

# A firewall drops packets to the port of TRIB_ROOT
net_drop 0 tcp dport "$net_port"
TRIB_BOOT_TIMEOUT_MS=3000 net_job "$perf" allreduce --sizes 8 --iters 3
both_fail "a firewall before the port of TRIB_ROOT" 20
says 1 "no rank 0 at $(net_address 0) port $net_port" "Connection timed out" &&
    says 0 "rank 1 of 2 did not come"
result $? "and each says whom it misses"
net_mend

# The switch drops the large frames of both hosts
net_drop_frames 1514
TRIB_TIMEOUT_MS=3000 TRIB_BOOT_TIMEOUT_MS=5000 net_job "$perf" allreduce --sizes 8,1M --iters 3
both_fail "large frames are dropped on the way" 30
says 0 "rank 1" && says 1 "rank 0"
result $? "and each names the other"
net_mend

# Strangers connect to both ports
net_job_start 0 "$perf" allreduce --check --sizes 8,64K --iters 500
within 30 listens 0 "$net_port"
for i in 1 2 3; do stranger 0 "$net_port" "$noise"; done
net_job_start 1 "$perf" allreduce --check --sizes 8,64K --iters 500
both_succeed "a stranger at the port of TRIB_ROOT: the sums are right"

net_job "$perf" allreduce --sizes 64K --iters 1000000
within 30 connected
[ "$(net_on 0 ss -Hltn | wc -l) $(net_on 1 ss -Hltn | wc -l)" = "1 1" ]
result $? "each rank listens at one port"
stranger 0 "$(port_of 0)" "$noise"
# The first bytes of a connection between ranks, of a job with another key.
stranger 1 "$(port_of 1)" 'TrbT\x00\x00\x00\x00otherjob'
within 20 says 0 "rejected an unauthenticated peer" && within 20 says 1 "rejected an unauthenticated peer"
result $? "strangers at the ports of both ranks are turned away"
sleep 0.3
[ ! -e "$net_dir/rank0.status" ] && [ ! -e "$net_dir/rank1.status" ]
result $? "and both ranks continue"
net_kill TERM 0 0 # the other rank ends, too
net_ended 60 0 1

# A rank of another job uses this job's TRIB_ROOT
net_job_start 0 "$perf" allreduce --sizes 8 --iters 3
within 30 listens 0 "$net_port"
net_rank 2 1 3 "$perf" allreduce --sizes 8 --iters 3 >"$net_dir/rank1.out" 2>&1
[ $? = 1 ] && net_ended 60 0 && says 0 "3 ranks" host2 && says 1 "3 ranks" host0
result $? "a rank of a job of another size: both errors name the other rank"
finish
