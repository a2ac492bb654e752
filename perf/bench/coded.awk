# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and coded.awk runs.csv: print the results of coded.sh as Markdown tables.
#
# One table for each rate, number of hosts and size, with a row per contender. Ratios are of medians
# over launches. The goals are those in perf/results/coded.md; "gloo 12": 12 times as fast as Gloo.

BEGIN {
    FS = ","
    goal["1gbit", 4, "topk"] = "gloo 12"
    goal["1gbit", 4, "dgc"] = "gloo 18"
    goal["1gbit", 2, "dgc"] = "gloo 30"
    goal["1gbit", 4, "int8"] = "none 3.7"
    goal["1gbit", 4, "powersgd"] = "none 12"
    goal["1gbit", 4, "gradiveq"] = "none 4"
    goal["10gbit", 2, "auto"] = "none 2"
}

FNR == 1 { next }

{
    part = $4 SUBSEP $6 SUBSEP $7
    if (!(part in known_part)) { known_part[part] = 1; parts[++n_parts] = part }
    key = part SUBSEP $5
    value[key, ++count[key]] = $10 + 0
    if ($5 == "none" && (!(part in dense_bytes))) dense_bytes[part] = $14
    sent[key] = $14
    if (!($5 in known_name)) { known_name[$5] = 1; name[++names] = $5 }
}

function median(part, who,    key) {
    key = part SUBSEP who
    if (!(key in count)) return 0
    summarise(key)
    return middle
}

# Return " ✓ (≥ 12)" for a ratio with a goal.
function mark(part, who, against, found,    of, want) {
    split(part, of, SUBSEP)
    if (!((of[1], of[2] + 0, who) in goal)) return ""
    split(goal[of[1], of[2] + 0, who], want, " ")
    if (want[1] != against || !(found > 0)) return ""
    return (found >= want[2] ? " ✓" : " ✗") " (≥ " want[2] ")"
}

function row(part, who,    ms, gloo, dense, fewer) {
    ms = median(part, who)
    if (!ms) return
    fewer = sent[part, who] > 0 && dense_bytes[part] > 0 ? dense_bytes[part] / sent[part, who] : 0
    gloo = median(part, "gloo")
    dense = median(part, "none")
    summarise(part SUBSEP who)
    printf "| %s | %s [%s-%s] | %s%s | %s%s | %s |\n", who, number(middle / 1e3), \
        number(low / 1e3), number(high / 1e3), ratio(gloo, ms), \
        mark(part, who, "gloo", ms > 0 ? gloo / ms : 0), ratio(dense, ms), \
        mark(part, who, "none", ms > 0 ? dense / ms : 0), fewer ? number(fewer) : "-"
}

END {
    for (p = 1; p <= n_parts; p++) {
        split(parts[p], of, SUBSEP)
        printf "\n**%d hosts, links of %s, %s: ms, median of launches [least-greatest]**\n\n", \
            of[2], of[1], size_text(of[3])
        print "| codec | ms | Gloo / codec | dense / codec | dense bytes / codec bytes |"
        print "|---|--:|--:|--:|--:|"
        for (i = 1; i <= names; i++) row(parts[p], name[i])
    }
}
