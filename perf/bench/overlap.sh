#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# overlap.sh - compare all-reduces between hosts with the limit of their slowest stage, and with a computation.
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they share
# its cores; each rank has its own core if there are enough.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
# shellcheck source=/dev/null
. "$here/bench/between_hosts.sh"
quick "1 round, 1 MB: a smoke test" rounds=1 sizes=1000000 samples=2 limit=60
options rounds hosts=2 rates congestion sizes=25000000 samples=9 limit=120
option only '' LIST "codecs, comma-separated"
options write
take_arguments "$@"
need_hosts
unset TRIB_CALIBRATION

stages="encode_GBps link_GBps sum_GBps decode_GBps bound_GBps reached_GBps part core_part hidden hidden_elsewhere"
columns=rate,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us,${stages// /,}
codecs="none bf16 int8:result=requantised topk:ratio=0.01 dgc:ratio=0.001"
one_round() {
    local codec name wrapper=()
    # shellcheck disable=SC2016 # each rank's shell expands it
    [ "$n" -gt "$(nproc)" ] || wrapper=(sh -c 'exec taskset -c "$TRIB_RANK" "$@"' sh)
    for codec in $codecs; do
        name=${codec%%:*}
        contend "$name" "$rate, $n hosts, $name" launch "$rate" sum_on_hosts "$name" "$stages" --overlap \
            --codec "$codec" --link "$rate" --json "$out/results/$rate-$n-$name.json"
    done
}
mkdir -p "$out/results"
rm -f "$out/results/"*.json # keep only the newest launch of each
rates_and_hosts
measure
about="$(hosts_line codec), $samples samples each; a core for each rank where there are enough."
# shellcheck disable=SC2119 # no page
finish
documents=()
for spot in "${places[@]}"; do
    for codec in $codecs; do
        document=$out/results/${spot/ /-}-${codec%%:*}.json
        [ ! -e "$document" ] || documents+=("$document")
    done
done
page_of "${documents[@]}"
