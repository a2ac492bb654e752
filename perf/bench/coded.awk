# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and coded.awk runs.csv: a table for each rate, number of hosts and size, with a row per contender.
# Ratios are of medians over launches. The goals are those in perf/results/coded.md.

BEGIN { # rate, hosts, codec: compared with, ratio
    goal["1gbit", 4, "topk"] = "gloo 12"
    goal["1gbit", 4, "dgc"] = "gloo 18"
    goal["1gbit", 2, "dgc"] = "gloo 30"
    goal["1gbit", 4, "int8"] = "none 3.7"
    goal["1gbit", 4, "powersgd"] = "none 12"
    goal["1gbit", 4, "gradiveq"] = "none 4"
    goal["10gbit", 2, "auto"] = "none 2"
}

FNR > 1 {
    part = $4 SUBSEP $6 SUBSEP $7
    note("part", part)
    note("name", $5)
    add(part SUBSEP $5, $10)
    sent[part, $5] = $14
}

# Return the ratio to a contender, with its goal if there is one.
function compared(part, who, against,    of, want, took) {
    split(part, of, SUBSEP)
    took = median(part SUBSEP against)
    split(goal[of[1], of[2] + 0, who], want, " ")
    if (want[1] != against || !took) return ratio(took, median(part SUBSEP who))
    return mark(took, median(part SUBSEP who), want[2]) " (≥ " want[2] ")"
}

END {
    for (p = 1; p <= items["part"]; p++) {
        part = item["part", p]
        split(part, of, SUBSEP)
        printf "\n**%d hosts, links of %s, %s: ms, median of launches [least-greatest]**\n\n", of[2], of[1], size_text(of[3])
        head("<codec|ms|Gloo / codec|dense / codec|dense bytes / codec bytes")
        for (i = 1; i <= items["name"]; i++) {
            who = item["name", i]
            if (median(part SUBSEP who))
                print "| " who " | " cell(part SUBSEP who, 1e3) " | " compared(part, who, "gloo") " | " \
                    compared(part, who, "none") " | " \
                    (sent[part, who] > 0 ? shown(sent[part, "none"] / sent[part, who]) : "-") " |"
        }
    }
}
