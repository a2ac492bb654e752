# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and mpi.awk runs.csv: a table for each MPI and number of ranks. Ratios are of medians; below 1 trib-mpi
# is faster. The goals are 0.9 of Open MPI's time at 8 to 64 bytes with 2 ranks, and 0.3 with more.

FNR > 1 {
    note("table", $4 SUBSEP $6)
    note("row", $7 SUBSEP $8)
    add($4 SUBSEP $6 SUBSEP $7 SUBSEP $8 SUBSEP $5, $9)
}

function goal_of(mpi, ranks, bytes) {
    return bytes > 64 ? 0 : ranks > 2 ? 0.3 : mpi == "openmpi" ? 0.9 : 0
}

function judged(row, way, goal,    plain) {
    plain = median(row "plain")
    return goal ? mark(median(row way), plain, "", goal) : ratio(median(row way), plain)
}

END {
    for (t = 1; t <= items["table"]; t++) {
        split(item["table", t], of, SUBSEP)
        printf "\n**%s, %d ranks: µs, median of launches [least-greatest]**\n\n", of[1], of[2]
        head("size|<place|plain|chosen|ours|chosen / plain|ours / plain")
        for (r = 1; r <= items["row"]; r++) {
            split(item["row", r], at, SUBSEP)
            row = item["table", t] SUBSEP item["row", r] SUBSEP
            goal = goal_of(of[1], of[2], at[2])
            printf "| %s | %s | %s | %s | %s | %s | %s |\n", size_text(at[2]), at[1], cell(row "plain"), cell(row "chosen"),
                cell(row "ours"), judged(row, "chosen", goal), judged(row, "ours", goal)
        }
    }
}
