# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and cost.awk runs.csv: print the results of cost.sh as a Markdown table.
#
# A row is a codec. The first column is the time of encoding, feedback and a write alone; the others
# are whole sums, each with its ratio to the first. The goal is 1.5 for six codecs.

BEGIN {
    FS = ","
    split("dgc topk int8 qsgd natural efsign", six, " ")
    for (i in six) goal[six[i]] = goal[six[i] "-ef"] = 1.5
}

FNR == 1 { next }

{
    kind = $5 SUBSEP $6
    if ($5 != "alone" && !(kind in known_kind)) { known_kind[kind] = 1; kinds[++n_kinds] = kind }
    if (!($4 in known_name)) { known_name[$4] = 1; name[++names] = $4 }
    key = $4 SUBSEP kind
    value[key, ++count[key]] = $8 + 0
}

function cell(who, kind, alone,    key, text) {
    key = who SUBSEP kind
    if (!(key in count)) return " - |"
    summarise(key)
    text = sprintf(" %.2f [%.2f-%.2f]", middle, low, high)
    if (kind == "alone" SUBSEP 1) return text " |"
    if (!(alone > 0)) return text " |"
    text = text sprintf(", %.2f", middle / alone)
    if (who in goal) text = text (middle <= goal[who] * alone ? " ✓" : " ✗")
    return text " |"
}

END {
    printf "\n**ns of processor time an element and rank, median of launches [least-greatest], and the ratio to the codec alone (goal for six codecs: at most 1.5)**\n\n"
    line = "| codec | alone |"
    rule = "|---|--:|"
    for (i = 1; i <= n_kinds; i++) {
        split(kinds[i], of, SUBSEP)
        line = line sprintf(" %s, %d ranks |", of[1], of[2])
        rule = rule "--:|"
    }
    print line
    print rule
    for (i = 1; i <= names; i++) {
        alone = 0
        key = name[i] SUBSEP "alone" SUBSEP 1
        if (key in count) { summarise(key); alone = middle }
        line = "| " name[i] " |" cell(name[i], "alone" SUBSEP 1, alone)
        for (k = 1; k <= n_kinds; k++) line = line cell(name[i], kinds[k], alone)
        print line
    }
}
