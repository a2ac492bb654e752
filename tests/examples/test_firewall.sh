#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/firewall: three ranks meet at a port of a range, of which a file tells.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

meet() { # HOST:PORTS
    local rank jobs=() code=0
    rm -f "$dir/place"
    for rank in 0 1 2; do
        timeout $((60 * slow)) "$build/examples/firewall" "$dir/place" "$1" $rank 3 &
        jobs+=($!)
    done
    for rank in 0 1 2; do wait "${jobs[rank]}" || code=1; done
    return $code
}

first=$((12000 + $$ % 20000))
for place in ":$first-$((first + 20))" "127.0.0.1:$first-$((first + 20))" localhost; do
    meet "$place" >"$said" 2>&1
    result $? "$place: all ranks do well"
    [ "$(grep -c "^rank [012] of 3$" "$said")" = 3 ]
    result $? "$place: they are three"
done
"$build/examples/firewall" "$dir/place" "192.0.2.1:$first" 0 1 >"$said" 2>&1
[ $? = 1 ] && grep -q "192.0.2.1 is no address of" "$said"
result $? "an address of another host is refused"
finish
