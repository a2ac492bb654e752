# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and overlap.awk runs.csv: a table for each rate, number of hosts and size, with a row per codec. Cells
# are medians over launches. Goals: 85 % of the slowest stage, 90 % hidden.

FNR > 1 {
    part = $4 SUBSEP $6 SUBSEP $7
    note("part", part)
    note("name", $5)
    for (c = 10; c <= 22; c++) add(part SUBSEP $5 SUBSEP c, $c)
}

function percent(x, goal) { return sprintf(" %.0f %%%s |", 100 * x, goal ? (x >= goal ? " ✓" : " ✗") : "") }

END {
    for (p = 1; p <= items["part"]; p++) {
        split(item["part", p], of, SUBSEP)
        printf "\n**%d hosts, links of %s, %s: median of launches [least-greatest]; stages alone in GB/s of the vector**\n\n", \
            of[2], of[1], size_text(of[3])
        head("<codec|ms|encode|link|sum|decode|of the slowest stage|of one core for all|hidden, computing here|elsewhere")
        for (i = 1; i <= items["name"]; i++) {
            row = item["part", p] SUBSEP item["name", i] SUBSEP
            if (!median(row 10)) continue
            line = "| " item["name", i] " | " cell(row 10, 1e3) " |"
            for (c = 13; c <= 16; c++) line = line " " shown(median(row c)) " |" # encode, link, sum, decode
            print line percent(median(row 19), 0.85) percent(median(row 20)) percent(median(row 21), 0.9) percent(median(row 22), 0.9)
        }
    }
}
