# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and overlap.awk runs.csv: print the results of overlap.sh as Markdown tables.
#
# One table for each rate, number of hosts and size, with a row per codec. Cells are medians over
# launches. Goals: 85 % of the slowest stage, 90 % hidden.

BEGIN {
    FS = ","
    columns = split("ms encode link sum decode part core here elsewhere", column, " ")
}

FNR == 1 { next }

{
    part = $4 SUBSEP $6 SUBSEP $7
    if (!(part in known_part)) { known_part[part] = 1; parts[++n_parts] = part }
    if (!($5 in known_name)) { known_name[$5] = 1; name[++names] = $5 }
    split($10 / 1e3 "," $13 "," $14 "," $15 "," $16 "," $19 "," $20 "," $21 "," $22, figure, ",")
    for (c = 1; c <= columns; c++) {
        key = part SUBSEP $5 SUBSEP column[c]
        value[key, ++count[key]] = figure[c] + 0
    }
}

function median(part, who, what,    key) {
    key = part SUBSEP who SUBSEP what
    if (!(key in count)) return 0
    summarise(key)
    return middle
}

function rate(x) { return x > 0 ? number(x) : "-" }

function percent(x, goal) { return sprintf("%.0f %%%s", 100 * x, goal ? (x >= goal ? " ✓" : " ✗") : "") }

function row(part, who,    c, text) {
    text = number(median(part, who, "ms"))
    summarise(part SUBSEP who SUBSEP "ms")
    text = text " [" number(low) "-" number(high) "]"
    for (c = 2; c <= 5; c++) text = text " | " rate(median(part, who, column[c]))
    printf "| %s | %s | %s | %s | %s | %s |\n", who, text, percent(median(part, who, "part"), 0.85), \
        percent(median(part, who, "core"), 0), percent(median(part, who, "here"), 0.9), \
        percent(median(part, who, "elsewhere"), 0.9)
}

END {
    for (p = 1; p <= n_parts; p++) {
        split(parts[p], of, SUBSEP)
        printf "\n**%d hosts, links of %s, %s: median of launches [least-greatest]; stages alone in GB/s of the vector**\n\n", \
            of[2], of[1], size_text(of[3])
        print "| codec | ms | encode | link | sum | decode | of the slowest stage | of one core for all | hidden, computing here | elsewhere |"
        print "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        for (i = 1; i <= names; i++)
            if ((parts[p] SUBSEP name[i] SUBSEP "ms") in count) row(parts[p], name[i])
    }
}
