# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and rxe.awk runs.csv: a table for each kind of test. Ratios are of medians, followed by the goal and
# whether it is reached.

BEGIN {
    title["latency"] = "µs one way"
    title["bandwidth"] = "MB/s"
    title["all-reduce"] = "µs"
    # Numerator, denominator and goal: "<" at most, ">" at least.
    ratios["latency"] = "trib ib_write_lat <1.1;trib ib_send_lat"
    ratios["bandwidth"] = "trib ib_write_bw >0.97"
    ratios["all-reduce"] = "bound trib >0.9;openmpi-tcp trib >1;openmpi-openib trib >1;openmpi-ucx trib >1;openmpi-tcp trib-tcp >1;openmpi-sm trib-shm >1"
}

FNR > 1 {
    note("what", $3)
    note($3, $2)
    note($3 " size", $4)
    add($3 SUBSEP $4 SUBSEP $2, $5 * ($3 == "bandwidth" ? 1e3 : 1))
}

function judged(a, b, goal) {
    if (goal == "") return ratio(a, b)
    return goal ~ /^</ ? mark(a, b, "", substr(goal, 2)) : mark(a, b, substr(goal, 2))
}

# Return the heads of the ratios of which both parts were measured, or their cells in a row.
function ratio_columns(w, row,    i, n, of, part, line) {
    n = split(ratios[w], of, ";")
    for (i = 1; i <= n; i++) {
        split(of[i] "  ", part, " ")
        if (!((w, part[1]) in noted) || !((w, part[2]) in noted)) continue
        if (row) line = line " " judged(median(row part[1]), median(row part[2]), part[3]) " |"
        else line = line "|" part[1] " / " part[2] \
            (part[3] == "" ? "" : " (at " (part[3] ~ /^</ ? "most " : "least ") substr(part[3], 2) ")")
    }
    return line
}

END {
    for (i = 1; i <= items["what"]; i++) {
        w = item["what", i]
        printf "\n**%s: %s, median of launches [least-greatest]**\n\n", w, title[w]
        head("<size" listed(w) ratio_columns(w))
        for (s = 1; s <= items[w " size"]; s++) {
            row = w SUBSEP item[w " size", s] SUBSEP
            print "| " size_text(item[w " size", s]) " |" cells(row, w) ratio_columns(w, row)
        }
    }
}
