// Cost-complexity pruning: weakest links.
//
// For a tree with risk R (sum over leaves) the subtree that minimizes R + alpha · leaves is found for all alpha at once: while alpha grows,
// the inner node t with the smallest (R(t) − R(T_t)) / (leaves(T_t) − 1) collapses next. `collapse[t]` is the alpha at which t becomes
// a leaf; the optimal subtree at alpha cuts below every node with collapse <= alpha.
//
// Breiman, Friedman, Olshen, Stone: Classification and Regression Trees, 1984, chapter 3.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace certifit::tree {

// Children lie behind their parent; left[t] = t marks a leaf. risk[t]: of t as a leaf. Leaves collapse at −inf.
inline std::vector<double> weakest_links(std::span<const std::int32_t> left, std::span<const double> risk) {
    const auto n = static_cast<std::int32_t>(left.size());
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    std::vector<double> collapse(n, -kInfinity), below(risk.begin(), risk.end());
    std::vector<std::int32_t> parent(n, -1), leaves(n, 1), version(n, 0);
    for (std::int32_t t = n - 1; t >= 0; --t) {
        if (left[t] == t) continue;
        const std::int32_t l = left[t], r = l + 1;
        parent[l] = parent[r] = t;
        below[t] = below[l] + below[r];
        leaves[t] = leaves[l] + leaves[r];
        collapse[t] = kInfinity;
    }
    struct Link {
        double strength;
        std::int32_t node, version;
        bool operator>(const Link& other) const {
            return strength > other.strength || (strength == other.strength && node > other.node);
        }
    };
    auto strength = [&](std::int32_t t) { return (risk[t] - below[t]) / static_cast<double>(leaves[t] - 1); };
    std::priority_queue<Link, std::vector<Link>, std::greater<Link>> links;
    for (std::int32_t t = 0; t < n; ++t)
        if (left[t] != t) links.push({strength(t), t, 0});
    double alpha = 0;
    while (!links.empty()) {
        const Link link = links.top();
        links.pop();
        const std::int32_t t = link.node;
        if (link.version != version[t]) continue;
        alpha = std::max(alpha, link.strength);
        collapse[t] = alpha;
        // Everything below disappears with t.
        std::vector<std::int32_t> stack{t};
        while (!stack.empty()) {
            const std::int32_t s = stack.back();
            stack.pop_back();
            version[s] = -1;
            if (left[s] == s || (s != t && collapse[s] < kInfinity)) continue;
            if (s != t) collapse[s] = alpha;
            stack.push_back(left[s]);
            stack.push_back(left[s] + 1);
        }
        const double gained = risk[t] - below[t];
        const std::int32_t lost = leaves[t] - 1;
        below[t] = risk[t];
        leaves[t] = 1;
        for (std::int32_t a = parent[t]; a >= 0; a = parent[a]) {
            below[a] += gained;
            leaves[a] -= lost;
            links.push({strength(a), a, ++version[a]});
        }
    }
    return collapse;
}

}  // namespace certifit::tree
