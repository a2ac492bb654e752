#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A link is no faster than the rate of net_rate: the figures of perf/bench/hosts.sh
# depend on this. The test sets no lower limit, because a busy machine makes a link
# slower.
# shellcheck disable=SC2317 # at_exit is called through a trap
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/netns/net.sh
. "${abs_top_srcdir:-.}/tests/netns/net.sh"
perf=$build/perf/trib-perf
! why=$(net_refused) || skip_all "$why"
unset TRIB_ROOT TRIB_RANK TRIB_SIZE
at_exit() { net_close; }
net_open 2 1500 4 || exit 1

# Each of two ranks sends the vector once: 83.9 ms for 1 MiB at 100 Mbit/s.
net_rate 100mbit
result $? "links get a rate"
net_job "$perf" allreduce --sizes 1M --iters 5 --warmup 1 --csv -
net_ended 60 0 1
result $? "ranks run over them"
least=$(awk -F, '$1 == "collective" { for (i = 1; i <= NF; i++) column[$i] = i }
    $1 == "allreduce" { print int($column["min_us"]) }' "$net_dir/rank0.out")
[ "${least:-0}" -ge 72000 ]
result $? "1 MiB takes the time that it must ($least us)"

net_congestion reno && net_on 1 ip route get "$(net_address 0)" | grep -qw "congctl reno"
result $? "and connections the congestion control that was asked for"
finish
