# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and auto.awk runs.csv: print a Markdown table of the results of auto.sh
# for each transport and number of ranks.
#
# A row is a size: the time of algorithm auto, of the best fixed one, and their ratio (goal 0.95);
# then the time of codec auto, and dense sums / codec auto (goal 0.97).

BEGIN { FS = "," }

FNR == 1 { next }

{
    group = $5 SUBSEP $6
    if (!(group in known_group)) { known_group[group] = 1; groups[++n_groups] = group }
    if (!($7 in known_size)) { known_size[$7] = 1; size[++sizes] = $7 }
    if ($4 != "auto" && $4 != "codec-auto" && !($4 in known_name)) {
        known_name[$4] = 1
        name[++names] = $4
    }
    key = $4 SUBSEP group SUBSEP $7
    value[key, ++count[key]] = $8 + 0
}

function median(who, group, bytes,    key) {
    key = who SUBSEP group SUBSEP bytes
    if (!(key in count)) return 0
    summarise(key)
    return middle
}

function mark(a, b, goal) {
    if (!(a > 0 && b > 0)) return "-"
    return ratio(a, b) (a >= goal * b ? " ✓" : " ✗")
}

END {
    for (g = 1; g <= n_groups; g++) {
        split(groups[g], of, SUBSEP)
        printf "\n**%s, %d ranks: µs, median of launches; best fixed / auto (goal 0.95), dense / codec auto (goal 0.97)**\n\n", of[1], of[2]
        print "| size | auto | best fixed | | ratio | codec auto | ratio |"
        print "|---|--:|--:|---|--:|--:|--:|"
        for (s = 1; s <= sizes; s++) {
            best = 0
            for (i = 1; i <= names; i++) {
                took = median(name[i], groups[g], size[s])
                if (took > 0 && (!best || took < best)) { best = took; who = name[i] }
            }
            dense = median("auto", groups[g], size[s])
            coded = median("codec-auto", groups[g], size[s])
            printf "| %s | %s | %s | %s | %s | %s | %s |\n", size_text(size[s]),
                dense ? number(dense) : "-", best ? number(best) : "-", best ? who : "",
                mark(best, dense, 0.95), coded ? number(coded) : "-", mark(dense, coded, 0.97)
        }
    }
}
