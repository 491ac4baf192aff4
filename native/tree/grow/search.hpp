// The best split of one node on one feature.
//
// How a feature is put in order depends on its codes and on the node:
//   few codes      a histogram over the codes, O(rows + codes)
//   sorted         rows sorted once at the root and partitioned stably at every split, O(rows)
//   many codes     when only a few of the features are tried at each node: sorted anew in the node
//   categories     ordered by their mean response, then as above: optimal for two classes and for real targets with the squared or
//                  Poisson criterion (Breiman et al. 1984, 4.2.2; Fisher 1958); for more classes, or more targets, each orders them once.
//   drawn          one threshold between the least and the greatest value of the node, uniformly at random (Geurts, Ernst, Wehenkel
//                  2006); nothing is put in order, O(rows). It depends on the path to the node and on the feature alone
// Missing values are sent to both sides in turn, and stay on the better one. Near ties go to the lowest threshold.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tree/grow/in_order.hpp"
#include "tree/grow/statistics.hpp"
#include "tree/table.hpp"

namespace certifit::tree {

template <class Code, class Statistics>
class FeatureSearch {
  public:
    using Table = CodedTable<Code>;
    using Entry = typename Table::Entry;
    using Cell = typename Statistics::Cell;
    static constexpr std::uint32_t kFewCodes = 256;
    // Whether what a row adds is small enough to travel with its number.
    static constexpr bool kLoads = !std::is_empty_v<typename Statistics::Load>;

    FeatureSearch(const Table& table, const Statistics& statistics, const Growth& growth, std::vector<Row> rows,
                  std::vector<std::vector<Place>> order)
        : table_(table), stat_(statistics), growth_(growth), rows_(std::move(rows)), width_(statistics.width()), order_(std::move(order)) {}

  protected:
    struct Scratch {
        std::vector<Cell> histogram, buffer;
        std::vector<Entry> entries, spare;
        std::vector<Row> rows;
        std::vector<typename Statistics::Load> loads;
        std::vector<std::uint8_t> side;
        std::vector<int> order, drawn;
        std::vector<double> left_cost, right_cost, left_median, right_median;
        MedianCost median;
        std::vector<std::uint32_t> present, place;
        std::vector<std::pair<double, std::uint32_t>> ranking;
        std::vector<double> sums;
    };

    struct Context {
        const Job& job;
        const Cell* total;
        double tolerance;
        std::vector<std::vector<double>> sorted_targets;
    };

    static void keep(Split& best, Split& split, double tolerance) {
        if (!split.found()) return;
        if (!best.found() || split.score > best.score + tolerance) best = std::move(split);
    }

    Split search(const Context& context, int f, Scratch& scratch) {
        const Column& column = table_.columns[f];
        if (column.categorical) return search_categories(context, f, scratch);
        if (growth_.drawn) return search_drawn(context, f, scratch);
        const Row m = context.job.size();
        if (column.sorted) return scan(context, f, InOrder{order_[f].data() + context.job.begin, table_.values, f}, scratch);
        if constexpr (!Statistics::kByRow)
            if (column.codes() < kFewCodes) return search_histogram(context, f, scratch);
        gather(context.job, f, scratch);
        sort_entries<Table>(scratch.entries, scratch.spare, m, column.codes());
        return scan(context, f, ByCode<Table>{scratch.entries.data(), column.missing_code()}, scratch);
    }

    void gather(const Job& job, int f, Scratch& scratch) {
        const Row m = job.size();
        auto& entries = scratch.entries;
        if (entries.size() < m) entries.resize(m);
        const Code* code = table_.column(f);
        for (Row k = 0; k < m; ++k) {
            const Row i = rows_[job.begin + k];
            entries[k] = Table::entry(code[i], i);
        }
    }

    template <class Scan>
    bool admissible(const Job& job, int f, const Scan& scan) const {
        if (growth_.min_leaf > 1) {
            const double least = growth_.min_leaf * (1 - 1e-12);
            if (scan.left_size() < least || scan.right_size() < least) return false;
        }
        if (growth_.min_fraction > 0) {
            const double least = growth_.min_fraction * root_weight_ * (1 - 1e-12);
            if (scan.left_weight() < least || scan.right_weight() < least) return false;
        }
        if (growth_.monotone) {
            const double l = scan.left_response(), r = scan.right_response();
            const int sign = growth_.monotone[f];
            if ((sign > 0 && l > r) || (sign < 0 && l < r)) return false;
            if (std::min(l, r) < job.low || std::max(l, r) > job.high) return false;
        }
        return true;
    }

    // Nearly every candidate ends at the first question, which stays in the loop over the rows; the rest is called.
    template <class Scan>
    [[gnu::always_inline]] void consider(const Context& context, int f, Scan& scan, std::uint32_t last, std::uint32_t next,
                                         bool missing_left, Split& best, double& bar) const {
        double score;
        if (scan.above(bar, score)) take(context, f, scan, score, last, next, missing_left, best, bar);
    }

    template <class Scan>
    [[gnu::noinline]] void take(const Context& context, int f, Scan& scan, double score, std::uint32_t last, std::uint32_t next,
                                bool missing_left, Split& best, double& bar) const {
        if (!admissible(context.job, f, scan)) return;
        bar = score + context.tolerance;
        best.score = score;
        best.feature = f;
        best.last_left = last;
        best.first_right = next;
        best.missing_left = missing_left;
        best.left_weight = scan.left_weight();
        best.right_weight = scan.right_weight();
        if (growth_.monotone) best.left_response = scan.left_response(), best.right_response = scan.right_response();
    }

    // Rows in the order of their codes, missing ones last.
    template <class Sequence>
    Split scan(const Context& context, int f, const Sequence& rows, Scratch& scratch) {
        const Row m = context.job.size();
        const Column& column = table_.columns[f];
        const Row known = column.missing && !column.categorical ? rows.known(m) : m;
        Split best;
        best.any_missing = known < m;
        if (known == 0 || (known == m && rows.equal(m))) return best;
        if constexpr (Statistics::kByRow)
            scan_medians(context, f, rows, known, scratch, best);
        else
            scan_sums(context, f, rows, known, scratch, best);
        rows.settle(best, known);
        return best;
    }

    template <class Sequence>
    void scan_sums(const Context& context, int f, const Sequence& rows, Row known, Scratch& scratch, Split& best) requires(!Statistics::kByRow) {
        const Row m = context.job.size();
        double bar = -kInf;
        using Scan = typename Statistics::Scan;
        Scan right(stat_, context.total, scratch.buffer.data());  // missing values on the right
        if (known == m) {
            for (Row k = 0; k + 1 < m; ++k) {
                right.move(rows.row(k));
                if (rows.greater(k + 1)) consider(context, f, right, k, k + 1, false, best, bar);
            }
            return;
        }
        Scan left(stat_, context.total, scratch.buffer.data() + 2 * width_);
        for (Row k = known; k < m; ++k) left.move(rows.row(k));
        for (Row k = 0; k < known; ++k) {
            const Row i = rows.row(k);
            right.move(i);
            left.move(i);
            if (!rows.greater(k + 1)) continue;
            consider(context, f, right, k, k + 1, false, best, bar);
            if (k + 1 < known) consider(context, f, left, k, k + 1, true, best, bar);
        }
    }

    struct Sides {  // what `admissible` asks of a split by medians
        double wl, wr, unit, l, r;
        double value;
        bool above(double bar, double& score) const {
            if (!(value > bar) || !(wl > 0) || !(wr > 0)) return false;
            score = value;
            return true;
        }
        double left_weight() const { return wl; }
        double right_weight() const { return wr; }
        double left_size() const { return wl * unit; }
        double right_size() const { return wr * unit; }
        double left_response() const { return l; }
        double right_response() const { return r; }
    };

    template <class Sequence>
    void scan_medians(const Context& context, int f, const Sequence& rows, Row known, Scratch& scratch, Split& best)
        requires(Statistics::kByRow)
    {
        const Row m = context.job.size();
        const bool middles = growth_.monotone != nullptr;
        // cost[k]: of the first (from the right: the last) known rows, at the k-th boundary; with missing ones if `with`.
        auto pass = [&](bool from_left, bool with, std::vector<double>& cost, std::vector<double>& median) {
            cost.assign(known + 1, 0.0);
            if (middles) median.assign(known + 1, 0.0);
            for (int t = 0; t < stat_.targets; ++t) {
                scratch.median.reset(context.sorted_targets[t]);
                const Row* rank = rank_.data() + static_cast<std::size_t>(t) * table_.n;
                auto add = [&](Row k) { scratch.median.add(rank[rows.row(k)], stat_.weight[rows.row(k)]); };
                if (with)
                    for (Row k = known; k < m; ++k) add(k);
                for (Row step = 0; step <= known; ++step) {
                    const Row at = from_left ? step : known - step;
                    const bool boundary = at == 0 || at == known || rows.greater(at);
                    if (boundary && scratch.median.weight() > 0) {
                        cost[at] += stat_.scale[t] * scratch.median.cost();
                        if (middles) median[at] = scratch.median.median();
                    }
                    if (step < known) add(from_left ? at : at - 1);
                }
            }
        };
        double missing_weight = 0, known_weight = 0;
        for (Row k = 0; k < known; ++k) known_weight += stat_.weight[rows.row(k)];
        for (Row k = known; k < m; ++k) missing_weight += stat_.weight[rows.row(k)];
        const int variants = known < m ? 2 : 1;
        std::vector<double> costs[4], medians[4];
        for (int v = 0; v < variants; ++v) {
            pass(true, v == 1, costs[2 * v], medians[2 * v]);
            pass(false, v == 0, costs[2 * v + 1], medians[2 * v + 1]);
        }
        double bar = -kInf, wl = 0;
        for (Row at = 1; at <= known; ++at) {
            wl += stat_.weight[rows.row(at - 1)];
            if (at == known && known == m) break;
            if (!rows.greater(at)) continue;
            for (int v = 0; v < variants; ++v) {
                if (v == 1 && at == known) break;
                const double left = wl + (v == 1 ? missing_weight : 0.0);
                Sides sides{left, known_weight + missing_weight - left, stat_.size_unit, 0, 0,
                            -(costs[2 * v][at] + costs[2 * v + 1][at])};
                if (middles) sides.l = medians[2 * v][at], sides.r = medians[2 * v + 1][at];
                consider(context, f, sides, at - 1, at, v == 1, best, bar);
            }
        }
    }

    // Sums of each code, and which codes occur.
    template <class Add>
    void fill_histogram(Row m, std::uint32_t codes, const Code* code, const Row* rows, Cell* histogram,
                        std::array<std::uint64_t, 4>& seen, Add&& add) const {
        const auto width = static_cast<std::uint32_t>(stat_.width());
        if (m < 4 * kFewCodes) {
            for (Row k = 0; k < m; ++k) {
                const std::uint32_t c = code[rows[k]];
                add(histogram + c * width, k);
                seen[c >> 6] |= std::uint64_t{1} << (c & 63);
            }
            return;
        }
        // Marking codes one by one would be a chain of dependent steps: many rows are cheaper to look up afterwards.
        for (Row k = 0; k < m; ++k) add(histogram + code[rows[k]] * width, k);
        for (std::uint32_t c = 0; c <= codes; ++c) {
            bool any = false;
            for (std::uint32_t j = 0; j < width; ++j) any |= histogram[c * width + j] != Cell{0};
            if (any) seen[c >> 6] |= std::uint64_t{1} << (c & 63);
        }
    }

    Split search_histogram(const Context& context, int f, Scratch& scratch) requires(!Statistics::kByRow) {
        const Column& column = table_.columns[f];
        const Code* code = table_.column(f);
        const Row* rows = rows_.data() + context.job.begin;
        const Row m = context.job.size();
        Cell* histogram = scratch.histogram.data();
        std::array<std::uint64_t, 4> seen{};
        const std::uint32_t absent = column.missing_code();
        bool filled = false;
        if constexpr (kLoads) {
            if (!loads_.empty()) {
                const auto* loads = loads_.data() + context.job.begin;
                fill_histogram(m, column.codes(), code, rows, histogram, seen, [&](Cell* cell, Row k) { stat_.add(cell, loads[k]); });
                filled = true;
            }
        }
        if (!filled)
            fill_histogram(m, column.codes(), code, rows, histogram, seen, [&](Cell* cell, Row k) { stat_.add(cell, rows[k]); });
        Split best;
        best.any_missing = column.missing && ((seen[absent >> 6] >> (absent & 63)) & 1);
        double bar = -kInf;
        using Scan = typename Statistics::Scan;
        Scan right(stat_, context.total, scratch.buffer.data());
        Scan left(stat_, context.total, scratch.buffer.data() + 2 * width_);
        if (best.any_missing) left.move(histogram + absent * width_);
        std::uint32_t last = kFewCodes;
        for (int word = 0; word < 4; ++word) {
            for (std::uint64_t bits = seen[word]; bits; bits &= bits - 1) {
                const auto c = static_cast<std::uint32_t>(64 * word + std::countr_zero(bits));
                if (last < kFewCodes) {
                    consider(context, f, right, last, c, false, best, bar);
                    if (best.any_missing && c != absent) consider(context, f, left, last, c, true, best, bar);
                }
                Cell* cell = histogram + c * width_;
                right.move(cell);
                if (best.any_missing && c != absent) left.move(cell);
                std::fill_n(cell, width_, Cell{0});
                last = c;
            }
        }
        return best;
    }

    // Codes up to `last` go left; the threshold lies between their greatest value and the least one of the next code.
    struct Cut {
        std::uint32_t last;
        double threshold;
    };

    Cut draw(const Job& job, int f, std::uint32_t least, std::uint32_t most) const {
        const Column& column = table_.columns[f];
        const std::vector<double>& greatest = column.greatest();
        const double low = greatest[least], high = column.low[most];
        const double share = Random(job.path ^ mixed(static_cast<std::uint64_t>(f) + 1)).uniform();
        double t = (1 - share) * low + share * high;
        if (!(t >= low && t < high)) t = low;
        const auto first = greatest.begin();
        const auto last = static_cast<std::uint32_t>(std::upper_bound(first + least, first + most, t) - first - 1);
        // Of groups of values all go the same way, so a threshold inside of one is moved before it.
        return {last, t < column.low[last + 1] ? t : binning::between(greatest[last], column.low[last + 1])};
    }

    [[gnu::noinline]] Split search_drawn(const Context& context, int f, Scratch& scratch) {
        const Column& column = table_.columns[f];
        const Code* code = table_.column(f);
        const std::span<const Row> rows(rows_.data() + context.job.begin, context.job.size());
        const std::uint32_t absent = column.missing_code();
        std::uint32_t least = absent, most = 0;
        Split best;
        for (Row i : rows) {
            const std::uint32_t c = code[i];
            if (c == absent) {
                best.any_missing = true;
                continue;
            }
            least = std::min(least, c), most = std::max(most, c);
        }
        if (least == absent || (least == most && !best.any_missing)) return best;
        // Where all known values are equal, they can only be told from the missing ones.
        const bool alike = least == most;
        const Cut cut = alike ? Cut{most, kInf} : draw(context.job, f, least, most);
        const std::uint32_t next = alike ? column.codes() : cut.last + 1;
        double bar = -kInf;
        for (const bool missing_left : {false, true}) {
            if (missing_left && (alike || !best.any_missing)) break;
            auto left = [&](Row i) { return code[i] == absent ? missing_left : code[i] <= cut.last; };
            if constexpr (Statistics::kByRow) {
                Sides sides = divided_by_median(context, rows, left, scratch);
                consider(context, f, sides, cut.last, next, missing_left, best, bar);
            } else {
                typename Statistics::Scan scan(stat_, context.total, scratch.buffer.data());
                for (Row i : rows)
                    if (left(i)) scan.move(i);
                consider(context, f, scan, cut.last, next, missing_left, best, bar);
            }
        }
        best.threshold = cut.threshold;
        return best;
    }

    template <class Left>
    Sides divided_by_median(const Context& context, std::span<const Row> rows, const Left& left, Scratch& scratch) requires(Statistics::kByRow) {
        Sides sides{0, 0, stat_.size_unit, 0, 0, 0};
        for (Row i : rows) (left(i) ? sides.wl : sides.wr) += stat_.weight[i];
        for (int t = 0; t < stat_.targets; ++t) {
            const Row* rank = rank_.data() + static_cast<std::size_t>(t) * table_.n;
            for (const bool side : {true, false}) {
                scratch.median.reset(context.sorted_targets[t]);
                for (Row i : rows)
                    if (left(i) == side) scratch.median.add(rank[i], stat_.weight[i]);
                if (!(scratch.median.weight() > 0)) continue;
                sides.value -= stat_.scale[t] * scratch.median.cost();
                (side ? sides.l : sides.r) = scratch.median.median();
            }
        }
        return sides;
    }

    // Categories in the order of their mean response become codes 0, 1, …; the rest is as for numbers.
    Split search_categories(const Context& context, int f, Scratch& scratch) {
        const Column& column = table_.columns[f];
        const Job& job = context.job;
        const Code* code = table_.column(f);
        const Row m = job.size();
        auto& present = scratch.present;
        auto& place = scratch.place;
        present.clear();
        place.resize(column.codes() + 1);
        Cell* histogram = scratch.histogram.data();
        std::vector<bool> seen(column.codes() + 1, false);
        for (Row k = 0; k < m; ++k) {
            const Row i = rows_[job.begin + k];
            const std::uint32_t c = code[i];
            stat_.add(histogram + c * width_, i);
            if (!seen[c]) seen[c] = true, present.push_back(c);
        }
        std::sort(present.begin(), present.end());
        Split best;
        auto& ranking = scratch.ranking;
        for (int o = 0; o < stat_.orders() && present.size() > 1; ++o) {
            ranking.clear();
            for (std::uint32_t c : present) ranking.emplace_back(stat_.response(histogram + c * width_, stat_.ordering(o)), c);
            std::sort(ranking.begin(), ranking.end());
            for (std::size_t r = 0; r < ranking.size(); ++r) place[ranking[r].second] = static_cast<std::uint32_t>(r);
            auto& entries = scratch.entries;
            if (entries.size() < m) entries.resize(m);
            for (Row k = 0; k < m; ++k) {
                const Row i = rows_[job.begin + k];
                entries[k] = Table::entry(place[code[i]], i);
            }
            sort_entries<Table>(scratch.entries, scratch.spare, m, static_cast<std::uint32_t>(present.size()));
            Split split = scan(context, f, ByCode<Table>{scratch.entries.data(), column.missing_code()}, scratch);
            if (!split.found()) continue;
            for (std::size_t r = 0; r < ranking.size(); ++r)
                (r <= split.last_left ? split.left_categories : split.right_categories).push_back(ranking[r].second);
            keep(best, split, context.tolerance);
        }
        for (std::uint32_t c : present) std::fill_n(histogram + c * width_, width_, Cell{0});
        return best;
    }
    static constexpr bool requires_classes() {
        return requires(const Statistics& s, const Cell* c) { s.pure(c); };
    }

    const Table& table_;
    Statistics stat_;
    Growth growth_;
    std::vector<Row> rows_;  // in the order of the nodes
    int width_;
    double root_weight_ = 0;
    std::vector<std::vector<Place>> order_;         // of sorted columns: rows in the order of the feature, within the nodes
    std::vector<typename Statistics::Load> loads_;  // of the rows; empty if columns are sorted
    std::vector<Row> rank_;                         // of the targets of a node, for medians
};

}  // namespace certifit::tree
