# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and core.awk runs.csv: launches with near cores before and after are in one table, the others in another.

FNR > 1 && $1 > 0 {
    cores = $2 == "near" && $3 == "near" ? "near" : "other"
    note(cores, $4 "," $5)
    add(cores SUBSEP $4 "," $5, $6)
}

function to(cores, x, key) { return (cores SUBSEP key) in count ? ratio(x, median(cores SUBSEP key)) : "-" }

function table(cores, title,    k, p, m, line) {
    if (!items[cores]) return
    print "\n**Cores " title "**\n"
    head("<what|vector|launches|10⁹ elements a second of one core, median [least-greatest]|to add in cache|to add in DRAM|to perf/handed|to none")
    for (k = 1; k <= items[cores]; k++) {
        split(item[cores, k], p, ",")
        m = median(cores SUBSEP item[cores, k])
        line = sprintf("| %s | %s | %d | %.3f [%.3f-%.3f]", p[1], p[2], count[cores SUBSEP item[cores, k]], m / 1e9, low / 1e9, high / 1e9)
        print line " | " to(cores, m, "add,64K") " | " to(cores, m, "add,64M") " | " \
            (p[1] == "add" ? "-" : to(cores, m, "handed," p[2])) " | " \
            (p[1] == "int8" || p[1] == "none" ? to(cores, m, "none," p[2]) : "-") " |"
    }
}

END {
    table("near", "near each other before and after a launch")
    table("other", "far from each other, or not the same before and after")
}
