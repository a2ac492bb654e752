# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk and scaling.awk: make the tables of docs/scaling.md from scaling.csv and from rows
# "vector and link,ranks,algorithm" with the choices of auto.
function seen_of(name, ranks, column) { return (name, ranks, column) in seen ? seen[name, ranks, column] : "" }
# Three significant digits.
function short(x) { return x == "" ? "-" : x == int(x) || x >= 100 ? sprintf("%.0f", x) : x >= 10 ? sprintf("%.1f", x) : sprintf("%.2f", x) }
function scaled(name, ranks, column, by) {
    return seen_of(name, ranks, column) == "" ? "-" : short(seen_of(name, ranks, column) * by)
}
function heads(first, titles, n,    i, line) {
    line = "<" first
    for (i = 1; i <= n; i++) line = line "|<" titles[i]
    head(line)
}
# One row per number of ranks, one column per name.
function grow(caption, names, titles, ranks, column, by,    name, title, rank, n, m, i, k, line, some) {
    n = split(names, name, " "); split(titles, title, ","); m = split(ranks, rank, " ")
    print "\n" caption "\n"
    heads("ranks", title, n)
    for (k = 1; k <= m; k++) {
        line = "| " rank[k] " |"
        some = ""
        for (i = 1; i <= n; i++) {
            line = line " " scaled(name[i], rank[k], column, by) " |"
            some = some seen_of(name[i], rank[k], column)
        }
        if (some != "") print line
    }
}
# One row per kind of network, one column per algorithm and number of ranks.
function compare(caption, kinds, ranks,    kind, rank, algorithm, title, n, m, i, k, a, line) {
    n = split(kinds, kind, " "); m = split(ranks, rank, " ")
    split("ring halving-doubling direct", algorithm, " ")
    print "\n" caption "\n"
    for (a = 1; a <= 3; a++)
        for (k = 1; k <= m; k++) title[(a - 1) * m + k] = algorithm[a] ", " rank[k]
    heads("", title, 3 * m)
    for (i = 1; i <= n; i++) {
        line = "| " kind[i] " |"
        for (a = 1; a <= 3; a++)
            for (k = 1; k <= m; k++) line = line " " scaled(kind[i] "-" algorithm[a], rank[k], 7, 1000) " |"
        print line
    }
}
# Compare the choice of auto with the fastest algorithm replayed.
function judge(    rate, size, rank, i, j, k, key, line, title) {
    split("100mbit 1gbit 10gbit", rate, " "); split("4K 64K 1M 25M", size, " ")
    m = split("4 16", rank, " ")
    print "\nThe choice of `auto` compared with the fastest of `flat`, `tree`, `halving-doubling`, `ring` and `direct` in the simulation; how much longer it takes:\n"
    for (k = 1; k <= m; k++) title[k] = rank[k] " ranks"
    heads("vector and link", title, m)
    for (i = 1; i <= 4; i++)
        for (j = 1; j <= 3; j++) {
            line = "| " size[i] " at " rate[j] " |"
            for (k = 1; k <= m; k++) {
                key = rate[j] SUBSEP size[i] SUBSEP rank[k]
                if (choice[key] == "" || !(key in quickest)) { line = line " - |"; continue }
                if (choice[key] == fastest[key]) line = line " " choice[key] " |"
                else if (!((key SUBSEP choice[key]) in took)) line = line " " choice[key] ", not replayed |"
                else line = line " " choice[key] ", " fastest[key] sprintf(": +%.0f %% |", 100 * (took[key, choice[key]] / quickest[key] - 1))
            }
            print line
        }
}
function choices(    i, k, line, title, n) {
    print "\nChoice of `auto` among the algorithms between peers:\n"
    n = split("2 4 8 16 32 64 128 256 512 1024 2048 4096", title, " ")
    heads("ranks", title, n)
    for (i = 1; i <= items["link"]; i++) {
        line = "| " item["link", i] " |"
        for (k = 1; k <= n; k++) line = line " " chosen[item["link", i], title[k]] " |"
        print line
    }
}
FNR == 1 { file++ }
file == 1 && FNR > 1 {
    for (i = 2; i <= NF; i++) seen[$1, $2, i] = $i
    if ($1 ~ /^choice-/) {
        split($1, part, "-")
        key = part[2] SUBSEP part[3] SUBSEP $2
        took[key, $4] = $7
        choice[key] = $28
        if (!(key in quickest) || $7 + 0 < quickest[key] + 0) { quickest[key] = $7; fastest[key] = $4 }
    }
}
file == 2 {
    note("link", $1)
    chosen[$1, $2] = $3
}
END {
    all = "2 4 8 16 32 64 128 256 512 1024 2048 4096"
    kinds = "ring halving-doubling direct gradiveq int8 topk topk-selected service service-eighth service-half service-racks service-topk"
    titles = "dense ring,halving-doubling,direct,GradiVeQ 8× ring,int8 ring,topk 1 % direct,topk selected direct,service by 8,service by p/8,service by p/2,8 and one a rack of 32,topk by 8"
    grow("Time, ms:", kinds, titles, all, 7, 1000)
    grow("Bytes on the busiest link of a host, MB:", kinds, titles, all, 19, 1e-6)
    grow("Connections of a rank:", kinds, titles, all, 22, 1)
    grow("Slots of a rank, MiB:", kinds, titles, all, 24, 1 / 1048576)
    grow("Connections of an aggregator, each of which has 8 MiB of slots:", "service service-eighth service-half service-racks", "service by 8,by p/8,by p/2,8 and one a rack of 32", all, 26, 1)
    grow("Eight ranks a host that share its link, ms:", "leaders-1 leaders-2 leaders-4 leaders-8 leaders-ring", "hierarchical 1 leader,2 leaders,4 leaders,8 leaders,ring", "16 64", 7, 1000)
    compare("Networks, ms: `fat-tree:8`, with four hosts for each uplink, and `dragonfly:4,16,4`:", "star fat-tree oversubscribed dragonfly", "16 64")
    compare("Stragglers, ms: one rank 20 ms late, one rank's processor four times as slow, one host's link a quarter:", "star late slow slow-link", "16 64")
    choices()
    judge()
}
