# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk and put.awk runs.csv: print the results of put.sh as Markdown tables.
#
# Each cell is the median over launches, with the least and the greatest. A ratio above 1
# means that Tributary is better: the peer's latency / ours, our bandwidth / the peer's.

BEGIN { FS = "," }

FNR == 1 { next }

{
    state = $2 == $3 ? $2 : "mixed"
    launches[state]++
    key = $4 SUBSEP $6 SUBSEP $5 SUBSEP $7
    value[key, ++count[key]] = $8 + 0
    if (!(($4, $6) in known_table)) { known_table[$4, $6] = 1; fabric[++tables] = $4; what[tables] = $6 }
    if (!(($4, $5) in known_name)) { known_name[$4, $5] = 1; name[$4, ++names[$4]] = $5 }
    if (!($7 in known_size)) { known_size[$7] = 1; size[++sizes] = $7 }
}

function row(f, w, b,    i, key, line, cells, mid) {
    for (i = 1; i <= names[f]; i++) {
        key = f SUBSEP w SUBSEP name[f, i] SUBSEP b
        if (!(key in count)) { line = line " - |"; continue }
        summarise(key)
        mid[name[f, i]] = middle
        line = line " " number(middle) " [" number(low) "-" number(high) "] |"
    }
    for (i = 1; i <= names[f]; i++) {
        if (name[f, i] == "trib") continue
        line = line " " (w == "latency" ? ratio(mid[name[f, i]], mid["trib"]) : ratio(mid["trib"], mid[name[f, i]])) " |"
    }
    print "| " size_text(b) " |" line
}

function table(f, w,    i, head, rule) {
    printf "\n**%s over %s: %s, median of launches [least-greatest]**\n\n", w, f, \
        w == "latency" ? "µs one way" : "GB/s"
    head = "| size |"
    rule = "|---|"
    for (i = 1; i <= names[f]; i++) { head = head " " name[f, i] " |"; rule = rule "--:|" }
    for (i = 1; i <= names[f]; i++) {
        if (name[f, i] == "trib") continue
        head = head (w == "latency" ? " " name[f, i] " / trib |" : " trib / " name[f, i] " |")
        rule = rule "--:|"
    }
    print head
    print rule
    for (i = 1; i <= sizes; i++) row(f, w, size[i])
}

END {
    printf "Core probe around the rows:"
    for (state in launches) printf " %s %d", state, launches[state]
    print "."
    for (i = 1; i <= tables; i++) table(fabric[i], what[i])
}
