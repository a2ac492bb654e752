# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and allreduce.awk -v cores=N -v over=best|tcp limit.csv runs.csv: a table for each
# number of ranks. A ratio is the best peer's time over Tributary's: 2 is twice as fast.

FNR == 1 { file++; next }

file == 1 { limit[$1] = $3; next } # copy bandwidth, GB/s read and written

{
    state = probed($2, $3)
    note("state", state)
    note("name", $4)
    if ($4 !~ /^trib-/) note("peer", $4)
    note("ranks", $5)
    note("size", $6)
    add("all" SUBSEP $5 SUBSEP $6 SUBSEP $4, $9)
    if (state == "near" || state == "far") add(state SUBSEP $5 SUBSEP $6 SUBSEP $4, $9)
}

# Goals: up to 32 KiB for 2 and 4 ranks, above for 2 ranks. Over TCP the kind of memory does not
# matter, and its bandwidth is not the limit.
function goal(memory, n, b) {
    if (over == "tcp" || b <= 32768) return 1
    if (n != 2) return 0
    if (b < 1048576) return 1
    return memory == "alloc" ? 2 : 1.2
}

function judged(row, memory, n, b,    want, ours) {
    want = goal(memory, n, b)
    ours = median(row "trib-" memory)
    if (!want || !ours || !best(row, "peer")) return " " ratio(best(row, "peer"), ours) " |"
    return " " mark(best(row, "peer"), ours, want) " (" want ") |"
}

# 2 ranks must read two vectors and write two: shortest time for this / measured time.
function share(b, us) { return " " ratio(limit[b] > 0 ? 4 * b / (limit[b] * 1e3) : 0, us) " |" }

function table(group, n,    s, b, row, line) {
    printf "\n**%d ranks, %s: µs, median of launches [least-greatest]**\n\n", n, \
        group == "all" ? "all launches" : "launches with the cores " group
    head("<size" listed("name") "|best peer / alloc (goal)|best peer / malloc (goal)" (over == "tcp" ? "|sealed / alloc" : \
        n == 2 ? "|alloc, share of copy bandwidth" : ""))
    for (s = 1; s <= items["size"]; s++) {
        b = item["size", s]
        row = group SUBSEP n SUBSEP b SUBSEP
        line = "| " size_text(b) " |" cells(row, "name") judged(row, "alloc", n, b) judged(row, "malloc", n, b)
        if (over == "tcp") line = line " " ratio(median(row "trib-sealed"), median(row "trib-alloc")) " |"
        else if (n == 2) line = line share(b, median(row "trib-alloc"))
        print line
    }
}

END {
    print_probes()
    for (i = 1; i <= items["ranks"]; i++) {
        table("all", item["ranks", i])
        if (!(("state", "near") in noted && ("state", "far") in noted)) continue
        table("near", item["ranks", i])
        table("far", item["ranks", i])
    }
    if (over == "tcp") exit
    print "\nCopy bandwidth of " cores " cores by mbw, GB/s read and written:"
    for (i = 1; i <= items["size"]; i++) {
        b = item["size", i]
        if (limit[b] > 0) printf "%s %.1f; ", size_text(b), limit[b]
    }
    print "\nShare: 4 vectors (2 read, 2 written) over that bandwidth, over p50."
}
