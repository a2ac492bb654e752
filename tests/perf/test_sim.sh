#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-sim: times compared with the closed form, bytes with trib-info --schedule, and rejected
# arguments.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
sim=$build/perf/sim/trib-sim
info=$build/tools/trib-info
# No processor time and no TCP headers: only links of 1.25e8 B/s and 500 us.
links=(--message-time 0us --copy-rate 1e6 --sum-rate 1e6 --mtu 0 --rate 1gbit --latency 500us)

# field COLUMN ARGUMENT… - print it from the only row
field() {
    "$sim" --csv - "${@:2}" | sed 's/"[^"]*"/codec/' | awk -F, -v name="$1" \
        'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at[name] }'
}

# near WANTED GOT PERCENT
near() {
    awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d <= a * p / 100) }'
}

# 2 (p - 1) hops of two links, each with a part of the vector and two headers of 32 bytes.
for p in 3 16; do
    wanted=$(awk -v p=$p 'BEGIN { print 2 * (p - 1) * (1e-3 + (4194304 / p + 64) / 1.25e8) }')
    near "$wanted" "$(field time_s --ranks $p --bytes 4M --chunk 4M "${links[@]}")" 1
    result $? "a ring of $p takes 2 (p - 1) (alpha + n beta / p)"
done
# The slots of a star's aggregator fill its link: the vectors of all ranks pass through it.
wanted=$(awk 'BEGIN { print 8 * 4194304 / 1.25e8 }')
near "$wanted" "$(field time_s --algorithm service --aggregators 1 --ranks 8 --bytes 4M "${links[@]}")" 3
result $? "8 vectors into one aggregator take 8 vectors' time"

for way in "ring 8 1 0" "direct 6 1 0" "halving-doubling 8 1 0" "hierarchical 8 4 1" "tree 7 1 0"; do
    read -r algorithm ranks per_host leaders <<<"$way"
    wanted=$("$info" --schedule "$algorithm" "$ranks" 4194304 --per-host "$per_host" --leaders "$leaders" |
        sed -n 's/^sent: .*, of these \([0-9]*\) to other hosts/\1/p')
    [ "$wanted" = "$(field far_payload_bytes --algorithm "$algorithm" --ranks "$ranks" \
        --per-host "$per_host" --leaders "$leaders" --bytes 4M)" ]
    result $? "$algorithm sends the bytes that trib-info says ($wanted)"
done

alone=$(field time_s --ranks 8 --bytes 1M "${links[@]}")
near "$(awk -v t="$alone" 'BEGIN { print t + 0.5 }')" \
    "$(field time_s --ranks 8 --bytes 1M --late 3:500ms "${links[@]}")" 2
result $? "all wait for a rank that is late"
[ "$(field fabric_bytes_most --ranks 16 --bytes 1M --topology fat-tree:4)" -gt 0 ]
result $? "a fat tree has links between its switches"
# The union of 64 selections of 1 % has 1 - (1 - 0.01)^64 of the elements: two floats in five.
awk -v few="$(field host_bytes_mean --algorithm direct --ranks 2 --bytes 1M --codec topk:ratio=0.01)" \
    -v many="$(field host_bytes_mean --algorithm direct --ranks 64 --bytes 1M --codec topk:ratio=0.01)" \
    'BEGIN { exit !(many > 20 * few) }'
result $? "the union of selections fills in"
# 3 connections share each link: bytes take longer by 0.4 * 2 / 4.
wanted=$(field time_s --algorithm direct --ranks 4 --bytes 16M --crowding 0 "${links[@]}" | awk '{ print $1 * 1.2 }')
near "$wanted" "$(field time_s --algorithm direct --ranks 4 --bytes 16M --crowding 0.4 "${links[@]}")" 4
result $? "connections that meet at both ends crowd"
[ "$(field time_s --ranks 4 --bytes 4M --crowding 0)" = "$(field time_s --ranks 4 --bytes 4M --crowding 0.4)" ]
result $? "those of a ring do not"
near "$(awk -v t="$(field time_s --ranks 4 --bytes 16M "${links[@]}")" 'BEGIN { print 4 * t }')" \
    "$(field time_s --ranks 4 --bytes 16M --slow-link 1:4 "${links[@]}")" 5
result $? "all wait for a slow link"
wanted=$(field time_s --ranks 8 --bytes 64K --chunk 64K "${links[@]}" | awk '{ print $1 + 14 * 0.01 }')
near "$wanted" "$(field time_s --ranks 8 --bytes 64K --chunk 64K --wake-time 10ms "${links[@]}")" 10
result $? "a rank that sleeps is awake later"
near "$(field time_s --ranks 8 --bytes 16M)" "$(field time_s --ranks 8 --bytes 16M --messages 400)" 10
result $? "larger chunks in place of many rounds take about as long"

# 40 ranks send to one aggregator: without a limit 40 windows are under way; with one, never more.
many=(--algorithm service --aggregators 1 --ranks 40 --bytes 4M --chunk 64K --rate 10gbit --mtu 0)
awk -v a="$(field backlog_bytes_most "${many[@]}" --in-flight 0)" \
    -v b="$(field backlog_bytes_most "${many[@]}" --in-flight 1M)" 'BEGIN { exit !(a > 8e6 && b > 9e5 && b <= 1048576) }'
result $? "bytes in flight to one rank are limited"
near "$(field time_s "${many[@]}" --in-flight 0)" "$(field time_s "${many[@]}" --in-flight 1M)" 3
result $? "its link stays busy"
awk -v a="$(field held "${many[@]}" --in-flight 0 --buffer 2M)" -v b="$(field held "${many[@]}" --in-flight 1M --buffer 2M)" \
    'BEGIN { exit !(a > 0 && b == 0) }'
result $? "then a small buffer suffices"
lost=$(field time_s "${many[@]}" --in-flight 0 --buffer 2M --resend 100ms)
awk -v a="$lost" -v b="$(field time_s "${many[@]}" --in-flight 1M --buffer 2M --resend 100ms)" 'BEGIN { exit !(a > 2 * b) }'
result $? "and messages that found no room would come late"

expect "a time without a buffer" 2 "--resend: needs --buffer" "$sim" --resend 1ms
expect "a table" 0 "codec int8, algorithm ring, dragonfly:1,4,2" "$sim" --ranks 4,8 --codec int8 \
    --bytes 100000 --topology dragonfly:1,4,2
expect "json" 0 '"peers_most": 2' "$sim" --ranks 4 --bytes 100000 --json -
expect "too many ranks" 2 "--ranks: 1 to 4096" "$sim" --ranks 5000
expect "uplinks of a star" 2 "a fat-tree has uplinks" "$sim" --oversubscribed 2
expect "a leaf without uplinks" 1 "has no uplink left" "$sim" --ranks 4 --topology fat-tree:4 --oversubscribed 8
expect "too many groups" 1 "a chassis needs" "$sim" --ranks 64 --topology dragonfly:1,2,2
expect "messages that are not alike" 1 "differ in size" "$sim" --ranks 32 --bytes 4096 --codec int8 --messages 100
expect "no such algorithm" 1 "did you mean" "$sim" --ranks 4 --algorithm rong
expect "no such topology" 1 "use star, fat-tree" "$sim" --ranks 4 --topology torus
expect "what auto would choose" 0 "8 ranks: ring, estimated " "$sim" --choose --ranks 8 --rate 1gbit
expect "the choice as csv" 0 '8,"none",4096,1.25e+09,flat,' "$sim" --choose --csv - --bytes 4096 --ranks 8 --rate 10gbit
expect "a slow link of a tree" 2 "only the hosts of a star" "$sim" --slow-link 1:4 --topology fat-tree:4
expect "no such rate" 2 "--rate '5' is not RATE" "$sim" --rate 5
expect "no such option" 2 "unknown option '--rnks'; did you mean --ranks?" "$sim" --rnks 5
expect "help" 0 "what is modelled" "$sim" --help
