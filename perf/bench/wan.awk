# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and wan.awk: print the tables of wan.sh from rows
# "round,before,after,trip,row,ms". page: empty for the table of perf/results/wan.md; otherwise that
# page, whose numbers are printed next to the medians.
BEGIN {
    FS = ","
    columns = split("dense int8 topk", column, " ")
    while (page && (getline line <page) > 0) {
        if (line ~ /^<!-- bench wan begin/) within = 1
        if (line ~ /^<!-- bench wan end/) within = 0
        if (within && line ~ /^\| [0-9.]+ ms \|/) {
            n = split(line, part, "|")
            for (i = 1; i <= columns && i + 2 < n; i++) there[part[2] + 0, column[i]] = part[i + 2] + 0
        }
    }
}
NR == 1 { next }
{
    if (!($4 in seen)) { seen[$4] = 1; trip[++trips] = $4 }
    value[$4 SUBSEP $5, ++count[$4 SUBSEP $5]] = $6
}
END {
    print page ? "| round trip | what | here [min-max] ms | perf/results/wan.md ms | here / there |" \
               : "| round trip | dense | int8 requantised | topk 1 % |"
    print page ? "|---|---|--:|--:|--:|" : "|---|--:|--:|--:|"
    for (t = 1; t <= trips; t++) {
        line = "| " trip[t] " ms |"
        for (i = 1; i <= columns; i++) {
            key = trip[t] SUBSEP column[i]
            if (count[key]) summarise(key)
            if (!page) line = line (count[key] ? " " number(middle) " ms |" : " - |")
            else if (count[key])
                printf "| %s ms | %s | %s [%s-%s] | %s | %s |\n", trip[t], column[i], number(middle), number(low), number(high), there[key] ? number(there[key]) : "-", there[key] ? sprintf("%.2f", middle / there[key]) : "-"
        }
        if (!page) print line
    }
}
