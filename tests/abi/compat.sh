#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# compat.sh BUILD_OF_ANOTHER_RELEASE - mix its ranks, trib-run and tribd with those of this build. In each job all ranks
# sum, or all report which release to install. A job whose tribd is from another release sums without it. ./dev compat
# REVISION builds a release and runs this.

cd "${abs_top_srcdir:-$(dirname "$0")/../..}" || exit 1
# shellcheck source=tests/harness/tap.sh
. tests/harness/tap.sh
[ -d "${1:-}" ] || { echo "usage: tests/abi/compat.sh BUILD_OF_ANOTHER_RELEASE" >&2; exit 2; }
other=$1 new=$dir/new old=$dir/old

gather() { # BUILD, folder: copy the files of a release
    mkdir "$2"
    cp "$1/.libs/libtributary.so.0" "$1/tools/.libs/trib-run" "$1/agg/daemon/tribd" "$2/" &&
        cc -O1 -I "$1/include" -I "$3/include" tests/abi/mixed_sum.c "$2/libtributary.so.0" -o "$2/sum"
}
gather "$build" "$new" . && gather "$other" "$old" "$other/.." || exit 1
program=$new/sum old_program=$old/sum
# If a release cannot open the other's rendezvous, it reports the cause; the others report that it
# has ended.
words="install the same version\|says itself why it cannot join" warned="install the same version"
if [ "$(LD_LIBRARY_PATH=$old "$old/sum" | tail -n 1)" = "$(LD_LIBRARY_PATH=$new "$new/sum" | tail -n 1)" ]; then
    # Between releases, builds with the same number do not name a release in their messages.
    words+="\|install the same build\|not a meeting place of this version\|do all run the same version\|ended before it"
    warned=""
fi
words="\($words\)"
# shellcheck source=tests/abi/mixed.sh
. tests/abi/mixed.sh

port=$((20000 + RANDOM % 12000))
show() { # print each message once
    sed -E 's/^\[[0-9]+\] //; s/process [0-9]+/process N/g; s,/proc/[0-9]+,/proc/N,g' "$said" |
        grep -vE '^trib-run: rank|^tributary: .* info:' | sort | uniq -c | sed 's/^ */# /'
}
for by in new old; do
    for ranks in "" 0 1 "0 1 2"; do
        for root in "" --root; do
            for transport in shm tcp; do
                port=$((port + 1))
                TRIB_TRANSPORT=$transport mixed "trib-run of $by, old ranks: ${ranks:-none}, $transport${root:+, over TCP}" \
                    either "$ranks" "${!by}/trib-run" -n 3 ${root:+--root "127.0.0.1:$port"}
                show
            done
        done
    done
done
for transport in shm tcp; do
    TRIB_TRANSPORT=$transport with_tribd "old tribd, new ranks, $transport" "$warned" "" "$old/tribd" may
    show
    starter=$old TRIB_TRANSPORT=$transport with_tribd "new tribd, old ranks, $transport" "$warned" "0 1" "$new/tribd" may
    show
done
finish
