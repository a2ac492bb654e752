#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# coded.sh - compare all-reduces with codecs between hosts with dense sums and Gloo, interleaved.
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they share
# its cores. Plans are timed after their codec has learned or chosen: 40 starts of auto
# and 110 of gradiveq are not counted.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
# shellcheck source=/dev/null
. "$here/bench/between_hosts.sh"
quick "1 round, 1 MB, few samples: a smoke test" rounds=1 sizes=1000000 samples=2 limit=60
options rounds hosts rates congestion sizes=25000000 samples limit=120 only write
take_arguments "$@"
need_hosts
unset TRIB_CALIBRATION
has_gloo=''
! build_gloo || has_gloo=yes

columns=rate,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us,nmse,wire_bytes
one_round() {
    local name codec warmup
    [ -z "$has_gloo" ] || contend gloo "$rate, $n hosts, gloo" launch "$rate" gloo
    while read -r name codec warmup; do
        contend "$name" "$rate, $n hosts, $name" launch "$rate" sum_on_hosts "$name" "nmse wire_bytes" \
            --memory alloc --call plan --codec "$codec" --warmup "$warmup"
    done <<'ROWS'
none none 2
auto auto:max_nmse=1e-3 40
bf16 bf16 2
int8 int8:result=requantised 2
topk topk:ratio=0.01 3
dgc dgc:ratio=0.001 3
powersgd powersgd:rank=4 3
gradiveq gradiveq:train=100 110
ROWS
}
rates_and_hosts
measure
about="$(hosts_line program), $samples samples each, timed on the slowest rank."
finish split_by="rate ranks" name=contender own="^(none|auto|bf16|int8|topk|dgc|powersgd|gradiveq)$" \
    key=codec run="$allreduce_run, \"in_place\": true"
