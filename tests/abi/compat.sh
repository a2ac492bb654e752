#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# compat.sh BUILD_OF_ANOTHER_RELEASE: its ranks, trib-run and tribd beside those of this one. Each job sums, or all of its
# ranks say in one sentence what to install; where tribd is of another release, the job sums all the same. ./dev compat
# REVISION builds one and runs this.

cd "${abs_top_srcdir:-$(dirname "$0")/../..}" || exit 1
# shellcheck source=tests/harness/tap.sh
. tests/harness/tap.sh
[ -d "${1:-}" ] || { echo "usage: tests/abi/compat.sh BUILD_OF_ANOTHER_RELEASE" >&2; exit 2; }
other=$1 new=$dir/new old=$dir/old

gather() { # BUILD, folder: what a release is here
    mkdir "$2"
    cp "$1/.libs/libtributary.so.0" "$1/tools/.libs/trib-run" "$1/agg/daemon/tribd" "$2/" &&
        cc -O1 -I "$1/include" -I "$3/include" tests/abi/mixed_sum.c "$2/libtributary.so.0" -o "$2/sum"
}
gather "$build" "$new" . && gather "$other" "$old" "$other/.." || exit 1
program=$new/sum old_program=$old/sum
# Where one cannot open the meeting place that the other has made, it alone says why; the others see that it has ended.
words="install the same version\|says itself why it cannot join" warned="install the same version"
if [ "$(LD_LIBRARY_PATH=$old "$old/sum" | tail -n 1)" = "$(LD_LIBRARY_PATH=$new "$new/sum" | tail -n 1)" ]; then
    # Builds of one number, between releases: what they say names no release.
    words+="\|install the same build\|not a meeting place of this version\|do all run the same version\|ended before it"
    warned=""
fi
words="\($words\)"
# shellcheck source=tests/abi/mixed.sh
. tests/abi/mixed.sh

port=$((20000 + RANDOM % 12000))
show() { # what was said, once each
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
