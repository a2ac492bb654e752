# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and hosts.awk runs.csv: a table for each rate and number of hosts. The bound is 2(N-1)/N vectors at the
# rate of iperf3.

FNR > 1 {
    note("part", $4 SUBSEP $6)
    add($4 SUBSEP $6 SUBSEP $7 SUBSEP $5, $10)
    if ($5 == "iperf3") next
    note("name", $5)
    note("size", $7)
}

END {
    for (p = 1; p <= items["part"]; p++) {
        part = item["part", p]
        split(part, of, SUBSEP)
        link = cell(part SUBSEP 0 SUBSEP "iperf3")
        gbps = median(part SUBSEP 0 SUBSEP "iperf3")
        printf "\n**%d hosts, links of %s (iperf3: %s Gbit/s): ms, median of launches [least-greatest]**\n\n", of[2], of[1], link
        head("<size" listed("name") "|bound|trib / bound|best peer / trib")
        for (s = 1; s <= items["size"]; s++) {
            row = part SUBSEP item["size", s] SUBSEP
            bound = gbps > 0 ? 2 * (of[2] - 1) / of[2] * item["size", s] * 8 / (gbps * 1e3) : 0
            print "| " size_text(item["size", s]) " |" cells(row, "name", 1e3) " " shown(bound / 1e3) " | " \
                ratio(median(row "trib"), bound) " | " ratio(best(row, "name", "trib"), median(row "trib")) " |"
        }
    }
}
