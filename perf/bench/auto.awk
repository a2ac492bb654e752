# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and auto.awk runs.csv: a table for each transport and number of ranks. A row is a size: the time of
# algorithm auto, of the best fixed one, and their ratio; then the time of codec auto, and dense sums / codec auto.

FNR > 1 {
    note("part", $5 SUBSEP $6)
    note("size", $7)
    if ($4 != "auto" && $4 != "codec-auto") note("fixed", $4)
    add($5 SUBSEP $6 SUBSEP $7 SUBSEP $4, $8)
}

END {
    for (p = 1; p <= items["part"]; p++) {
        split(item["part", p], of, SUBSEP)
        printf "\n**%s, %d ranks: µs, median of launches; best fixed / auto (goal 0.95), dense / codec auto (goal 0.97)**\n\n", of[1], of[2]
        head("<size|auto|best fixed|<|ratio|codec auto|ratio")
        for (s = 1; s <= items["size"]; s++) {
            row = item["part", p] SUBSEP item["size", s] SUBSEP
            least = best(row, "fixed")
            dense = median(row "auto")
            coded = median(row "codec-auto")
            printf "| %s | %s | %s | %s | %s | %s | %s |\n", size_text(item["size", s]), shown(dense), shown(least),
                least ? who : "", mark(least, dense, 0.95), shown(coded), mark(dense, coded, 0.97)
        }
    }
}
