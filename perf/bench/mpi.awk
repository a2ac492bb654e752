# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and mpi.awk runs.csv: print the results of mpi.sh as Markdown tables.
#
# One table for each MPI and number of ranks. Ratios are of medians; below 1 trib-mpi is
# faster. The goals are 0.9 of Open MPI's time at 8 to 64 bytes with 2 ranks, and 0.3 with more.

BEGIN { FS = "," }

FNR == 1 { next }

{
    table = $4 SUBSEP $6
    if (!(table in known)) { known[table] = 1; tables[++n_tables] = table }
    row = $7 SUBSEP $8
    if (!(row in known_row)) { known_row[row] = 1; rows[++n_rows] = row }
    key = table SUBSEP row SUBSEP $5
    value[key, ++count[key]] = $9 + 0
}

# Return the median; set `text` to it, with the least and the greatest launch.
function middle_of(key) {
    text = "-"
    if (!(key in count)) return 0
    summarise(key)
    text = sprintf("%s [%s-%s]", number(middle), number(low), number(high))
    return middle
}

function goal_of(mpi, ranks, bytes) {
    return bytes > 64 ? 0 : ranks > 2 ? 0.3 : mpi == "openmpi" ? 0.9 : 0
}

function judged(a, b, goal) {
    if (!(a > 0 && b > 0)) return "-"
    return ratio(a, b) (goal ? (a <= goal * b ? " ✓" : " ✗") : "")
}

END {
    for (t = 1; t <= n_tables; t++) {
        split(tables[t], of, SUBSEP)
        printf "\n**%s, %d ranks: µs, median of launches [least-greatest]**\n\n", of[1], of[2]
        print "| size | place | plain | chosen | ours | chosen / plain | ours / plain |"
        print "|--:|---|--:|--:|--:|--:|--:|"
        for (r = 1; r <= n_rows; r++) {
            split(rows[r], at, SUBSEP)
            key = tables[t] SUBSEP rows[r] SUBSEP
            plain = middle_of(key "plain"); line = text
            chosen = middle_of(key "chosen"); line = line " | " text
            ours = middle_of(key "ours"); line = line " | " text
            goal = goal_of(of[1], of[2], at[2])
            printf "| %s | %s | %s | %s | %s |\n", size_text(at[2]), at[1], line,
                judged(chosen, plain, goal), judged(ours, plain, goal)
        }
    }
}
