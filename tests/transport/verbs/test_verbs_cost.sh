#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Instructions of a frame on the sending side, without those of the fake device.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
loop=$build/tests/transport/verbs/verbs_post_loop
command -v valgrind >/dev/null || skip_all "valgrind is not installed"
built_by() { grep -q "^$1" "$build/Makefile"; }
if ! built_by 'CC = .*gcc' || ! built_by 'CFLAGS = .*-O2' || built_by 'CFLAGS = .*-f\(sanitize\|lto\)'; then
    skip_all "the limits are for gcc -O2"
fi
"$loop" 4 0 || skip_all "the loop does not run alone"

# Collection is on in a write, and off again in the device's function below it.
instructions() { # FRAMES, PAYLOAD
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=$write \
        --toggle-collect=post_send "$loop" "$1" "$2" "$transport" 2>&1 | sed -n 's/.*Collected : //p'
}

cost() { # PAYLOAD, LIMIT
    local few many frame
    few=$(instructions 64 "$1")
    many=$(instructions 1064 "$1")
    frame=$(((many - few) / 1000))
    echo "# $transport, payload of $1 bytes: $frame instructions a frame"
    [ "$frame" -gt 50 ] && [ "$frame" -le "$2" ]
    result $? "$transport posts a frame with a payload of $1 bytes in at most $2 instructions"
}

# With gcc 12 they take 161 and 293; other versions may take some more.
transport=verbs:reconnect=0 write=trib_verbs_write
cost 0 180
cost 65536 320
# Of one rail, which keeps each write until it is acknowledged.
transport=verbs write=trib_multirail_write
cost 0 400
finish
