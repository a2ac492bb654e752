# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and put.awk runs.csv: a table for each fabric, of latency and of bandwidth. A ratio above 1 means that
# Tributary is better: the peer's latency / ours, our bandwidth / the peer's.

FNR > 1 {
    probed($2, $3)
    note("table", $4 SUBSEP $6)
    note($4, $5)
    note("size", $7)
    add($4 SUBSEP $6 SUBSEP $7 SUBSEP $5, $8)
}

function table(f, w,    i, s, line, row, theirs) {
    printf "\n**%s over %s: %s, median of launches [least-greatest]**\n\n", w, f, w == "latency" ? "µs one way" : "GB/s"
    for (i = 1; i <= items[f]; i++)
        if (item[f, i] != "trib") line = line "|" (w == "latency" ? item[f, i] " / trib" : "trib / " item[f, i])
    head("<size" listed(f) line)
    for (s = 1; s <= items["size"]; s++) {
        row = f SUBSEP w SUBSEP item["size", s] SUBSEP
        line = "| " size_text(item["size", s]) " |" cells(row, f)
        for (i = 1; i <= items[f]; i++) {
            if (item[f, i] == "trib") continue
            theirs = median(row item[f, i])
            line = line " " (w == "latency" ? ratio(theirs, median(row "trib")) : ratio(median(row "trib"), theirs)) " |"
        }
        print line
    }
}

END {
    print_probes()
    for (t = 1; t <= items["table"]; t++) {
        split(item["table", t], of, SUBSEP)
        table(of[1], of[2])
    }
}
