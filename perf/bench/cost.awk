# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and cost.awk runs.csv: a row for each codec. The first column is the time of encoding, feedback and a
# write alone; the others are whole sums, each with its ratio to the first.

FNR > 1 {
    if ($5 != "alone") note("kind", $5 ", " $6 " ranks")
    note("name", $4)
    add($4 SUBSEP ($5 == "alone" ? $5 : $5 ", " $6 " ranks"), $8)
}

function plain(key) {
    return key in count ? sprintf("%.2f [%.2f-%.2f]", median(key), low, high) : "-"
}

function whole(name, kind, alone,    text) {
    text = plain(name SUBSEP kind)
    if (text == "-" || !(alone > 0)) return text
    return text ", " (name ~ /^(dgc|topk|int8|qsgd|natural|efsign)(-ef)?$/ ? mark(middle, alone, "", 1.5) : ratio(middle, alone))
}

END {
    printf "\n**ns of processor time an element and rank, median of launches [least-greatest], and the ratio to the codec alone (goal for six codecs: at most 1.5)**\n\n"
    head("<codec|alone" listed("kind"))
    for (i = 1; i <= items["name"]; i++) {
        name = item["name", i]
        line = "| " name " | " plain(name SUBSEP "alone") " |"
        alone = median(name SUBSEP "alone")
        for (k = 1; k <= items["kind"]; k++) line = line " " whole(name, item["kind", k], alone) " |"
        print line
    }
}
