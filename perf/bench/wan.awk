# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and wan.awk -v page=PAGE runs.csv: empty for the table of perf/results/wan.md; otherwise that page, whose
# numbers are printed next to the medians.
BEGIN {
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
FNR > 1 {
    note("trip", $4)
    add($4 SUBSEP $5, $6)
}
END {
    if (page) head("<round trip|<what|here [min-max] ms|perf/results/wan.md ms|here / there")
    else head("<round trip|dense|int8 requantised|topk 1 %")
    for (t = 1; t <= items["trip"]; t++) {
        trip = item["trip", t]
        line = "| " trip " ms |"
        for (i = 1; i <= columns; i++) {
            key = trip SUBSEP column[i]
            line = line (key in count ? " " number(median(key)) " ms |" : " - |")
            if (page && key in count)
                print "| " trip " ms | " column[i] " | " cell(key) " | " shown(there[key]) " | " ratio(middle, there[key]) " |"
        }
        if (!page) print line
    }
}
