// The nodes of a tree, and how trees are put together and put in their final order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tree/table.hpp"

namespace certifit::tree {

struct Node {
    std::int32_t feature = -1, left = -1;  // the right child is left + 1
    double threshold = 0;                  // x <= threshold goes left
    std::int32_t bits = -1;                // first word of the set of categories that go left
    bool missing_left = false;
    double weight = 0, loss = 0;
};

template <class Cell>
struct Tree {
    std::vector<Node> nodes;
    std::vector<Cell> cells;            // statistics of each node
    std::vector<double> values;         // predictions of each node, one for each target; none for classes
    std::vector<std::uint64_t> bits;    // categories
    int depth = 0;

    void graft(std::int32_t at, const Tree& branch, std::size_t width, std::size_t outputs);
    Tree in_preorder(const std::vector<Column>& columns, std::size_t width, std::size_t outputs) const;
};

// A branch that was grown apart takes the place of node `at`; each node has `width` cells and `outputs` values.
template <class Cell>
void Tree<Cell>::graft(std::int32_t at, const Tree& branch, std::size_t width, std::size_t outputs) {
    const auto offset = static_cast<std::int32_t>(nodes.size()) - 1;
    const auto words = static_cast<std::int32_t>(bits.size());
    for (std::size_t k = 0; k < branch.nodes.size(); ++k) {
        Node node = branch.nodes[k];
        if (node.left >= 0) node.left += offset;
        if (node.bits >= 0) node.bits += words;
        if (k == 0)
            nodes[at] = node;
        else
            nodes.push_back(node);
    }
    cells.insert(cells.end(), branch.cells.begin() + width, branch.cells.end());
    values.insert(values.end(), branch.values.begin() + outputs, branch.values.end());
    bits.insert(bits.end(), branch.bits.begin(), branch.bits.end());
}

// Nodes in preorder, siblings side by side, so that neither threads nor the order of growth show.
template <class Cell>
Tree<Cell> Tree<Cell>::in_preorder(const std::vector<Column>& columns, std::size_t width, std::size_t outputs) const {
    Tree out;
    const std::size_t count = nodes.size();
    out.nodes.resize(count);
    out.cells.resize(count * width);
    out.values.resize(count * outputs);
    std::vector<std::array<std::int32_t, 3>> stack{{0, 0, 0}};  // old, new, depth
    std::int32_t next = 1;
    while (!stack.empty()) {
        const auto [old, now, depth] = stack.back();
        stack.pop_back();
        Node node = nodes[old];
        out.depth = std::max(out.depth, depth);
        std::copy_n(cells.begin() + static_cast<std::size_t>(old) * width, width, out.cells.begin() + static_cast<std::size_t>(now) * width);
        std::copy_n(values.begin() + static_cast<std::size_t>(old) * outputs, outputs,
                    out.values.begin() + static_cast<std::size_t>(now) * outputs);
        if (node.left >= 0) {
            stack.push_back({node.left + 1, next + 1, depth + 1});
            stack.push_back({node.left, next, depth + 1});
            node.left = next;
            next += 2;
        }
        if (node.bits >= 0) {
            const std::size_t words = columns[node.feature].codes() / 64 + 1;
            const auto from = bits.begin() + node.bits;
            node.bits = static_cast<std::int32_t>(out.bits.size());
            out.bits.insert(out.bits.end(), from, from + words);
        }
        out.nodes[now] = node;
    }
    return out;
}

}  // namespace certifit::tree
