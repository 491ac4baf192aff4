// Rows of a node in the order of every column, and a tree of few questions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "optimal/cost.hpp"

namespace certifit::optimal {

// Rows are numbered from 0 within a node.
struct Entry {
    std::uint32_t row, code;
};

// Question q asks whether the code of a column is at most `cut`; yes leads to question 2q + 1, no to 2q + 2; feature −1 is a
// leaf.
inline constexpr int kMostDepth = 4, kQuestions = (1 << kMostDepth) - 1;
struct Tree {
    std::array<std::int32_t, kQuestions> feature;
    std::array<std::uint32_t, kQuestions> cut{};
    Tree() { feature.fill(-1); }
    static Tree asking(Index f, std::uint32_t cut, const Tree& yes, const Tree& no) {
        Tree made;
        made.feature[0] = static_cast<std::int32_t>(f), made.cut[0] = cut;
        made.graft(1, yes, 0), made.graft(2, no, 0);
        return made;
    }

  private:
    void graft(int to, const Tree& from, int at) {
        if (to >= kQuestions || at >= kQuestions || from.feature[at] < 0) return;
        feature[to] = from.feature[at], cut[to] = from.cut[at];
        graft(2 * to + 1, from, 2 * at + 1), graft(2 * to + 2, from, 2 * at + 2);
    }
};

// What is known of the best tree of some depth: none costs less than `lower`; `tree` costs `value`, infinite if none was wanted
// so dear.
struct Found {
    double lower, value;
    Tree tree;
};

template <class Kind>
struct Node {
    Index columns = 0;
    typename Kind::Rows rows;
    std::vector<Entry> order;  // columns × rows

    Index size() const { return rows.size(); }
    Entry* column(Index f) { return order.data() + f * size(); }
    const Entry* column(Index f) const { return order.data() + f * size(); }
    void resize(Index n, Index d) {
        columns = d;
        rows.resize(n);
        order.resize(static_cast<std::size_t>(n * d));
    }
    // Whether a question of column f may lie before place p.
    bool cuts(Index f, Index p) const { return p > 0 && p < size() && column(f)[p - 1].code != column(f)[p].code; }
};

// The first p rows in the order of column f, and the others.
template <class Kind>
struct Halves {
    Node<Kind> left, right;
    std::vector<std::uint32_t> place;  // number within its half; the highest bit for the right one

    void of(const Node<Kind>& node, Index f, Index p) {
        constexpr std::uint32_t kRight = 1u << 31;
        const Index n = node.size(), d = node.columns;
        left.resize(p, d), right.resize(n - p, d);
        place.assign(static_cast<std::size_t>(n), 0);
        for (Index i = p; i < n; ++i) place[node.column(f)[i].row] = kRight;
        std::uint32_t count[2] = {0, 0};
        for (Index i = 0; i < n; ++i) {
            const bool to_right = place[i] != 0;
            (to_right ? right : left).rows.take(node.rows, i, count[to_right]);
            place[i] |= count[to_right]++;
        }
        for (Index g = 0; g < d; ++g) {
            Entry* out[2] = {left.column(g), right.column(g)};
            const Entry* const in = node.column(g);
            for (Index i = 0; i < n; ++i) {
                const std::uint32_t to = place[in[i].row];
                *out[to >> 31]++ = {to & ~kRight, in[i].code};
            }
        }
    }
};

}  // namespace certifit::optimal
