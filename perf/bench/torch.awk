# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and torch.awk runs.csv: medians over rounds, with two columns per rate, the time of a step and its
# processor time.

FNR > 1 {
    note("rate", $1 "|processor")
    note("way", $2)
    add($2 SUBSEP $1 "|processor" SUBSEP "ms", $4)
    add($2 SUBSEP $1 "|processor" SUBSEP "cpu", $5)
}

function whole(key) { return key in count ? sprintf(" %.0f |", median(key)) : "  |" }

END {
    head("<way of summing" listed("rate"))
    for (w = 1; w <= items["way"]; w++) {
        line = "| " item["way", w] " |"
        for (r = 1; r <= items["rate"]; r++) {
            key = item["way", w] SUBSEP item["rate", r] SUBSEP
            line = line whole(key "ms") whole(key "cpu")
        }
        print line
    }
}
