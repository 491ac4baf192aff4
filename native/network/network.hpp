// A multilayer perceptron and its training.
//
//     a₀ = x,   a_l = σ(W_lᵀ a_{l−1} + b_l),   f = W_Lᵀ a_{L−1} + b_L,       minimize  mean ℓ(y, f) + decay·½ Σ ‖W_l‖²
//
// A batch takes two loops of a team. The first is over blocks of rows: each goes forward through all layers and its slopes come
// back through all of them, since rows do not meet. The second is over panels of the weights: each sums its gradient over the
// rows of the batch and takes its step at once, so that no gradient is ever stored (unless its norm is asked for first). What a
// task computes does not depend on who does it, nor on how many there are.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "core/team.hpp"
#include "network/layers.hpp"
#include "network/output.hpp"
#include "network/rows.hpp"
#include "network/step.hpp"

namespace certifit::network {

// A loss that is known elsewhere: reads the scores of the batch and writes its slopes, both (rows, K); returns the summed loss.
using Elsewhere = std::function<double(const std::uint32_t* rows, Index count, const double* scores, double* slopes)>;

class Network {
  public:
    Network(std::vector<Index> sizes, Unit unit) : sizes_(std::move(sizes)), unit_(unit) {
        Index size = 0, turned = 0;
        for (std::size_t l = 0; l + 1 < sizes_.size(); ++l) {
            layers_.push_back({sizes_[l], sizes_[l + 1], size, unit.kind == Activation::learned && l + 2 < sizes_.size()});
            turned_.push_back(turned);
            size += layers_.back().size(), turned += panels(sizes_[l]) * sizes_[l + 1] * kWide;
        }
        w_ = Floats(size), m_ = Floats(size), v_ = Floats(size), t_ = Floats(turned);
    }

    Index inputs() const { return sizes_.front(); }
    Index scores() const { return sizes_.back(); }
    std::size_t depth() const { return layers_.size(); }
    Index width_of(std::size_t layer) const { return sizes_[layer]; }
    Index parameters() const {
        Index n = 0;
        for (const Layer& layer : layers_) n += layer.tall() * layer.out;
        return n;
    }

    enum class Part { weights, first, second, gradient };

    // The plain layout: for each layer its weights, (in, out) row by row, then its biases, then the slopes below zero if its
    // units learn them.
    void load(Part part, const float* plain) {
        each(part, [&](float& x) { x = *plain++; });
        if (part == Part::weights) turn_all();
    }
    void save(Part part, float* plain) {
        each(part, [&](float& x) { *plain++ = x; });
    }

    // One pass over `count` rows in batches, from step number t on; the summed loss, and whether it stayed finite.
    std::pair<double, bool> train(const Source& source, const Targets& y, const std::uint32_t* order, Index count,
                                  const Output& output, const Elsewhere& elsewhere, Plan plan, double& t, Team& team) {
        reserve(std::min(plan.batch, count));
        if (plan.clip > 0) store();
        double total = 0.0;
        for (Index from = 0; from < count; from += plan.batch) {
            const Index rows = std::min(plan.batch, count - from);
            plan.step.at(++t);
            plan.step.clip = 1.0f;
            const std::uint64_t key = mixed64(plan.seed + static_cast<std::uint64_t>(t) * 0x2545f4914f6cdd1du);
            const double loss = slopes(source, y, order + from, rows, output, elsewhere, &plan, key, team);
            total += loss;
            if (!std::isfinite(loss)) return {total, false};
            if (plan.clip > 0) {
                const double norm = std::sqrt(gradient(rows, team));
                if (norm > plan.clip) plan.step.clip = static_cast<float>(plan.clip / norm);
                visit_weights(rows, team,
                              [&](const Layer& layer, std::size_t l, Index q, int) { apply(plan.step, layer, l, q); });
            } else {
                visit_weights(rows, team, [&](const Layer& layer, std::size_t l, Index q, int worker) {
                    tiles(layer, l, q, rows, worker,
                          [&](Index count, Index k, Index p, const float* g) { move(plan.step, layer, l, count, k, p, g); });
                });
            }
        }
        return {total, true};
    }

    // The gradient of the mean loss over these rows, as one batch and without draws, into Part::gradient; the summed loss.
    double differentiate(const Source& source, const Targets& y, const std::uint32_t* order, Index count, const Output& output,
                         const Elsewhere& elsewhere, Team& team) {
        reserve(count);
        store();
        const double loss = slopes(source, y, order, count, output, elsewhere, nullptr, 0, team);
        gradient(count, team);
        return loss;
    }

    // The slopes of the loss of each row at its inputs, (count, inputs) row by row.
    void input_slopes(const Source& source, const Targets& y, const std::uint32_t* order, Index count, const Output& output,
                      const Elsewhere& elsewhere, float* to, Team& team) {
        reserve(count);
        slopes(source, y, order, count, output, elsewhere, nullptr, 0, team);
        const float unscaled = static_cast<float>(count);  // slopes are those of the mean
        team.run(panels(inputs()), true, [&](Index q, int) {
            Floats tile(padded(count) * kWide);
            turned_product(0, q, 0, padded(count), tile.data());
            const Index last = std::min(kWide, inputs() - q * kWide);
            for (Index r = 0; r < count; ++r)
                for (Index j = 0; j < last; ++j) to[r * inputs() + q * kWide + j] = unscaled * tile.data()[r * kWide + j];
        });
    }

    // The outputs of layer `layer` (0: the rows themselves, depth(): the scores) for rows from … to, one after the other.
    void evaluate(const Source& source, Index count, std::size_t layer, float* to, Team& team) {
        const Index block = 64, columns = sizes_[layer];
        std::vector<std::vector<Floats>> rooms(static_cast<std::size_t>(team.size()));
        team.blocks(count, block, true, [&](Index from, Index end, int worker) {
            std::vector<Floats>& a = rooms[static_cast<std::size_t>(worker)];
            if (a.empty())
                for (const Index size : sizes_) a.emplace_back(panels(size) * block * kWide);
            const Index rows = end - from, tall = padded(rows);
            const bool compact = source.compact && layer > 0;
            for (Index r = 0; r < rows; ++r)
                if (compact)
                    first_layer(*source.compact, from + r, source.compact->count(from + r), a[1].data() + r * kWide,
                                block * kWide);
                else
                    source.gather(from + r, a[0].data() + r * kWide, block * kWide);
            if (compact && layers_.size() > 1)
                for (Index p = 0; p < panels(sizes_[1]); ++p) bend(0, p, a[1].data() + p * block * kWide, nullptr, nullptr, tall);
            for (std::size_t l = compact; l < layer; ++l) forward(l, a[l].data(), a[l + 1].data(), nullptr, nullptr, block, tall);
            for (Index r = 0; r < rows; ++r)
                for (Index j = 0; j < columns; ++j)
                    to[(from + r) * columns + j] = a[layer].data()[j / kWide * block * kWide + r * kWide + j % kWide];
        });
    }

  private:
    std::vector<Index> sizes_;
    Unit unit_;
    Products products_;
    std::vector<Layer> layers_;
    std::vector<Index> turned_;      // where the transposed weights of each layer begin: panels of inputs, a row for each output
    Floats w_, m_, v_, g_, t_;       // weights, two running averages of their gradients, a gradient, transposed weights
    Index room_ = 0;                 // rows the buffers of a batch have room for
    std::vector<Floats> a_, s_,
        d_;  // inputs of each layer and the scores; slopes of the units; slopes of the loss at their inputs
    std::vector<Floats> n_;          // of layers that learn to bend: slopes of the outputs, then of the loss, at what bends them

    struct Room {  // of a worker
        Lists lists;
        Floats g;
    };
    std::vector<Room> rooms_;
    // The batch, where only entries that are not zero are kept: its rows, and where the entries of each reach a new panel of
    // columns.
    const Compact* compact_ = nullptr;
    const std::uint32_t* order_ = nullptr;
    std::vector<std::uint32_t> cuts_;

    static constexpr double kAlone = 2e5;  // multiplications below which a second thread costs more than it saves

    float* part(Part which) {
        return which == Part::weights  ? w_.data()
               : which == Part::first  ? m_.data()
               : which == Part::second ? v_.data()
                                       : g_.data();
    }
    template <class Visit>
    void each(Part which, Visit&& visit) {
        if (which == Part::gradient) store();
        float* all = part(which);
        for (const Layer& layer : layers_)
            for (Index k = 0; k < layer.tall(); ++k)
                for (Index n = 0; n < layer.out; ++n) visit(layer.panel(all, n / kWide)[k * kWide + n % kWide]);
    }
    void store() {
        if (g_.size() == 0) g_ = Floats(w_.size());
    }
    void reserve(Index rows) {
        const Index room = padded(rows);
        if (room <= room_) return;
        room_ = room;
        a_.clear(), s_.clear(), d_.clear(), n_.clear();
        for (const Index size : sizes_) a_.emplace_back(panels(size) * room * kWide);
        for (const Layer& layer : layers_) {
            s_.emplace_back(panels(layer.out) * room * kWide), d_.emplace_back(panels(layer.out) * room * kWide);
            n_.emplace_back(layer.bends ? panels(layer.out) * room * kWide : 0);
        }
    }
    bool together(Index rows) const {
        double work = 0.0;
        for (const Layer& layer : layers_) work += static_cast<double>(layer.in) * static_cast<double>(layer.out);
        return work * static_cast<double>(rows) > kAlone;
    }

    // What the units of panel p of layer l make of z; slopes may be null.
    void bend(std::size_t l, Index p, float* z, float* slope, float* low, Index rows) {
        if (layers_[l].bends)
            bend_learned(layers_[l].leak(w_.data(), p), z, slope, low, rows);
        else
            activate(unit_, z, slope, rows * kWide);
    }
    // Where row r of panel p of what bends layer l is; null where nothing does.
    float* low(std::size_t l, Index p, Index r) const {
        return layers_[l].bends ? n_[l].data() + p * room_ * kWide + r * kWide : nullptr;
    }

    // Layer l for `tall` rows of buffers with room for `room` rows; slopes may be null.
    void forward(std::size_t l, const float* a, float* z, float* slope, float* below, Index room, Index tall) {
        const Layer& layer = layers_[l];
        const Index stride = room * kWide;
        for (Index p = 0; p < panels(layer.out); ++p) {
            products_.product(a, stride, layer.in, layer.panel(w_.data(), p), layer.bias(w_.data(), p), z + p * stride, tall,
                              width(layer.out, p));
            if (l + 1 < layers_.size())
                bend(l, p, z + p * stride, slope ? slope + p * stride : nullptr, below ? below + p * stride : nullptr, tall);
        }
    }

    // Slopes at panel q of the inputs of layer l, from those at its outputs.
    void turned_product(std::size_t l, Index q, Index r0, Index tall, float* to) {
        const Layer& layer = layers_[l];
        const float* turned = t_.data() + turned_[l] + q * layer.out * kWide;
        products_.product(d_[l].data() + r0 * kWide, room_ * kWide, layer.out, turned, nullptr, to, tall, width(layer.in, q));
    }

    // The sums of the first layer for a row of which only the entries that are not zero are kept.
    void first_layer(const Compact& X, Index row, Index count, float* z, Index stride) {
        const Layer& layer = layers_[0];
        const Index all = layer.tall() * kWide;
        products_.gathered(X.values(row), X.columns(row), count, layer.panel(w_.data(), 0), all, layer.bias(w_.data(), 0), all, z,
                           stride, panels(layer.out));
    }
    // The first layer for the rows [r0, r1) of a batch of which only the entries that are not zero are kept, and where these
    // reach a new panel.
    void forward_compact(Index r0, Index r1, Index rows) {
        const Layer& layer = layers_[0];
        const Index stride = room_ * kWide, in = panels(layer.in);
        for (Index r = r0; r < r1; ++r) {
            const Index row = r < rows ? static_cast<Index>(order_[r]) : 0, count = r < rows ? compact_->count(row) : 0;
            const std::uint32_t* column = compact_->columns(row);
            first_layer(*compact_, row, count, a_[1].data() + r * kWide, stride);
            std::uint32_t* cut = cuts_.data() + r * (in + 1);
            Index q = 0;
            for (Index e = 0; e < count; ++e)
                while (q <= static_cast<Index>(column[e]) / kWide) cut[q++] = static_cast<std::uint32_t>(e);
            while (q <= in) cut[q++] = static_cast<std::uint32_t>(count);
        }
        if (layers_.size() > 1)
            for (Index p = 0; p < panels(layer.out); ++p)
                bend(0, p, a_[1].data() + p * stride + r0 * kWide, s_[0].data() + p * stride + r0 * kWide, low(0, p, r0),
                     r1 - r0);
    }

    void forward_rows(Index r0, Index r1, Index rows, const Plan* plan, std::uint64_t key) {
        const Index stride = room_ * kWide, tall = r1 - r0;
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            if (l == 0 && compact_)
                forward_compact(r0, r1, rows);
            else
                forward(l, a_[l].data() + r0 * kWide, a_[l + 1].data() + r0 * kWide, s_[l].data() + r0 * kWide, low(l, 0, r0),
                        room_, tall);
            if (!plan || plan->dropout <= 0.0f || l + 1 == layers_.size()) continue;
            for (Index p = 0; p < panels(layers_[l].out); ++p)
                drop(mixed64(key + static_cast<std::uint64_t>(l + 1) * 0x10001u + static_cast<std::uint64_t>(p) * 0x100000001u),
                     plan->dropout, a_[l + 1].data() + p * stride + r0 * kWide, s_[l].data() + p * stride + r0 * kWide,
                     low(l, p, r0), r0, tall);
        }
    }
    double loss_rows(const Targets& y, const std::uint32_t* order, Index rows, Index r0, Index r1, const Output& output) {
        const float factor = 1.0f / static_cast<float>(rows);
        const std::size_t last = layers_.size() - 1;
        double sum = 0.0;
        for (Index r = r0; r < std::min(r1, rows); ++r)
            sum += output_row(output, a_[last + 1].data() + r * kWide, d_[last].data() + r * kWide, room_ * kWide, scores(),
                              y.of(order[r]), factor);
        return sum;
    }
    void backward_rows(Index r0, Index r1) {
        const Index stride = room_ * kWide, tall = r1 - r0;
        for (std::size_t l = layers_.size() - 1; l > 0; --l)
            for (Index q = 0; q < panels(layers_[l].in); ++q) {
                float* to = d_[l - 1].data() + q * stride + r0 * kWide;
                turned_product(l, q, r0, tall, to);
                if (layers_[l - 1].bends) scale(low(l - 1, q, r0), to, tall * kWide);
                scale(to, s_[l - 1].data() + q * stride + r0 * kWide, tall * kWide);
            }
    }
    // x + attack·sign(slope of the loss at x), in place.
    void attack_rows(Index r0, Index r1, float size) {
        const Index stride = room_ * kWide, tall = r1 - r0;
        Floats tile(tall * kWide);
        for (Index q = 0; q < panels(inputs()); ++q) {
            turned_product(0, q, r0, tall, tile.data());
            const Index last = std::min(kWide, inputs() - q * kWide);
            float* x = a_[0].data() + q * stride + r0 * kWide;
            for (Index r = 0; r < tall; ++r)
                for (Index j = 0; j < last; ++j) {
                    const float s = tile.data()[r * kWide + j];
                    x[r * kWide + j] += s > 0 ? size : s < 0 ? -size : 0.0f;
                }
        }
    }

    // Forward and back for a batch: leaves the inputs of every layer and the slopes at its outputs; returns the summed loss.
    double slopes(const Source& source, const Targets& y, const std::uint32_t* order, Index rows, const Output& output,
                  const Elsewhere& elsewhere, const Plan* plan, std::uint64_t key, Team& team) {
        const Index tall = padded(rows), block = tall <= 64 ? 16 : 32, stride = room_ * kWide,
                    blocks = (tall + block - 1) / block;
        const std::size_t last = layers_.size() - 1;
        const bool many = together(rows);
        compact_ = plan && (plan->noise > 0.0f || plan->attack > 0.0f) ? nullptr : source.compact, order_ = order;
        if (compact_ && cuts_.size() < static_cast<std::size_t>(tall * (panels(inputs()) + 1)))
            cuts_.resize(static_cast<std::size_t>(tall * (panels(inputs()) + 1)));
        // What pads the batch, and what a larger batch has left there, must not count.
        for (Index p = 0; p < panels(scores()); ++p)
            std::memset(d_[last].data() + p * stride + rows * kWide, 0,
                        static_cast<std::size_t>((tall - rows) * kWide) * sizeof(float));
        std::vector<double> sums(static_cast<std::size_t>(blocks), 0.0);
        team.run(blocks, many, [&](Index b, int) {
            const Index r0 = b * block, r1 = std::min(r0 + block, tall);
            for (Index r = r0; r < std::min(r1, rows) && !compact_; ++r)
                source.gather(order[r], a_[0].data() + r * kWide, stride);
            if (plan && plan->attack > 0.0f) {
                forward_rows(r0, r1, rows, nullptr, 0);
                loss_rows(y, order, rows, r0, r1, output);
                backward_rows(r0, r1);
                attack_rows(r0, r1, plan->attack);
            }
            if (plan && plan->noise > 0.0f)
                for (Index q = 0; q < panels(inputs()); ++q)
                    add_noise(mixed64(key + static_cast<std::uint64_t>(q)), plan->noise, a_[0].data() + q * stride + r0 * kWide,
                              r0, std::min(r1, rows) - r0, std::min(kWide, inputs() - q * kWide));
            forward_rows(r0, r1, rows, plan, key);
            if (elsewhere) return;
            sums[static_cast<std::size_t>(b)] = loss_rows(y, order, rows, r0, r1, output);
            backward_rows(r0, r1);
        });
        if (!elsewhere) {
            double sum = 0.0;
            for (const double one : sums) sum += one;
            return sum;
        }
        const Index K = scores();
        std::vector<double> f(static_cast<std::size_t>(rows * K)), g(f.size());
        const auto at = [&](Index r, Index k) { return k / kWide * stride + r * kWide + k % kWide; };
        for (Index r = 0; r < rows; ++r)
            for (Index k = 0; k < K; ++k)
                f[static_cast<std::size_t>(r * K + k)] =
                    static_cast<double>(a_[last + 1].data()[at(r, k)]) + output.offset[static_cast<std::size_t>(k)];
        const double sum = elsewhere(order, rows, f.data(), g.data());
        for (Index r = 0; r < rows; ++r)
            for (Index k = 0; k < K; ++k)
                d_[last].data()[at(r, k)] = static_cast<float>(g[static_cast<std::size_t>(r * K + k)]) / static_cast<float>(rows);
        team.run(blocks, many, [&](Index b, int) { backward_rows(b * block, std::min((b + 1) * block, tall)); });
        return sum;
    }

    // visit(layer, its number, panel of its inputs, worker) for all weights.
    template <class Visit>
    void visit_weights(Index rows, Team& team, Visit&& visit) {
        Index tasks = 0;
        for (const Layer& layer : layers_) tasks += panels(layer.in);
        if (rooms_.size() < static_cast<std::size_t>(team.size())) rooms_.resize(static_cast<std::size_t>(team.size()));
        team.run(tasks, together(rows), [&](Index task, int worker) {
            std::size_t l = 0;
            while (task >= panels(layers_[l].in)) task -= panels(layers_[l++].in);
            visit(layers_[l], l, task, worker);
        });
    }

    // tile(rows of the weights, first of them, panel of outputs, their gradient) for the weights of one panel of inputs; the last
    // panel brings the bias too, as the row after the last.
    template <class Tile>
    void tiles(const Layer& layer, std::size_t l, Index q, Index rows, int worker, Tile&& tile) {
        alignas(64) float g[kTall * kWide] = {};
        const Index stride = room_ * kWide, last = std::min(kWide, layer.in - q * kWide);
        const float* a = a_[l].data() + q * stride;
        if (l == 0 && compact_)
            compact_tiles(layer, q, rows, rooms_[static_cast<std::size_t>(worker)], tile);
        else
            for (Index p = 0; p < panels(layer.out); ++p) {
                const Index columns = width(layer.out, p);
                for (Index i = 0; i < last; i += kTall) {
                    prefetch(layer, q * kWide + i, p);
                    products_.outer(a + i, d_[l].data() + p * stride, rows, columns, g);
                    if (columns < kWide)
                        for (Index r = 0; r < kTall; ++r) std::fill(g + r * kWide + columns, g + (r + 1) * kWide, 0.0f);
                    tile(std::min(kTall, last - i), q * kWide + i, p, g);
                }
            }
        if (q + 1 < panels(layer.in)) return;
        for (Index p = 0; p < panels(layer.out); ++p) {
            sum_rows(d_[l].data() + p * stride, rows, g);
            tile(1, layer.in, p, g);
            if (!layer.bends) continue;
            sum_rows(low(l, p, 0), rows, g);
            tile(1, layer.in + 1, p, g);
        }
    }
    // The same for rows of which only the entries that are not zero are kept.
    template <class Tile>
    void compact_tiles(const Layer& layer, Index q, Index rows, Room& room, Tile&& tile) {
        const Index out = panels(layer.out), last = std::min(kWide, layer.in - q * kWide);
        room.lists.reserve(room_);
        room.lists.clear();
        if (room.g.size() < out * kTall * kWide) room.g = Floats(out * kTall * kWide);
        for (Index r = 0; r < rows; ++r) {
            const std::uint32_t* cut = cuts_.data() + r * (panels(layer.in) + 1) + q;
            const float* value = compact_->values(order_[r]);
            const std::uint32_t* column = compact_->columns(order_[r]);
            for (std::uint32_t e = cut[0]; e < cut[1]; ++e)
                room.lists.add(static_cast<Index>(column[e]) - q * kWide, r, value[e]);
        }
        for (Index i = 0; i < last; i += kTall) {
            const Index count = std::min(kTall, last - i);
            for (Index p = 0; p < out; ++p) prefetch(layer, q * kWide + i, p);
            for (Index k = 0; k < count; ++k)
                products_.gathered(room.lists.values(i + k), room.lists.rows(i + k), room.lists.count(i + k), d_[0].data(),
                                   room_ * kWide, nullptr, 0, room.g.data() + k * kWide, kTall * kWide, out);
            for (Index p = 0; p < out; ++p) tile(count, q * kWide + i, p, room.g.data() + p * kTall * kWide);
        }
    }
    // Weights and averages that a step is about to move: they lie far away by the time it comes to them again.
    void prefetch(const Layer& layer, Index k, Index p) const {
        const Index at = layer.start + (p * layer.tall() + k) * kWide;
        for (const float* all : {w_.data(), m_.data(), v_.data()})
            for (Index i = 0; i < kTall * kWide; i += 16) __builtin_prefetch(all + at + i, 1, 2);
    }
    void move(const Step& step, const Layer& layer, std::size_t l, Index count, Index k, Index p, const float* g) {
        const Index at = layer.panel(w_.data(), p) - w_.data() + k * kWide;
        take(step, k < layer.in ? step.decay : 0.0f, g, w_.data() + at, m_.data() + at, v_.data() + at, count * kWide);
        if (k < layer.in) turn(layer, l, k, p);
    }
    void apply(const Step& step, const Layer& layer, std::size_t l, Index q) {
        const Index last = std::min(kWide, layer.in - q * kWide);
        for (Index p = 0; p < panels(layer.out); ++p) {
            const float* g = layer.panel(g_.data(), p);
            for (Index i = 0; i < last; i += kTall)
                move(step, layer, l, std::min(kTall, last - i), q * kWide + i, p, g + (q * kWide + i) * kWide);
            for (Index k = layer.in; k < layer.tall() && q + 1 == panels(layer.in); ++k)
                move(step, layer, l, 1, k, p, g + k * kWide);
        }
    }
    // Stores the gradient of the mean loss of a batch; its squared norm.
    double gradient(Index rows, Team& team) {
        std::vector<std::vector<double>> squares;
        for (const Layer& layer : layers_) squares.emplace_back(static_cast<std::size_t>(panels(layer.in)), 0.0);
        visit_weights(rows, team, [&](const Layer& layer, std::size_t l, Index q, int worker) {
            double sum = 0.0;
            tiles(layer, l, q, rows, worker, [&](Index count, Index k, Index p, const float* g) {
                std::copy_n(g, count * kWide, layer.panel(g_.data(), p) + k * kWide);
                for (Index i = 0; i < count * kWide; ++i) sum += static_cast<double>(g[i]) * static_cast<double>(g[i]);
            });
            squares[l][static_cast<std::size_t>(q)] = sum;
        });
        double sum = 0.0;
        for (const auto& layer : squares)
            for (const double one : layer) sum += one;
        return sum;
    }

    // The transposed copy of up to eight rows of a panel, from row k on.
    void turn(const Layer& layer, std::size_t l, Index k, Index p) {
        float* to = t_.data() + turned_[l] + (k / kWide * layer.out + p * kWide) * kWide + k % kWide;
        const float* from = layer.panel(w_.data(), p) + k * kWide;
        const Index columns = std::min(kWide, layer.out - p * kWide), rows = std::min(kTall, layer.in - k);
        if (columns == kWide && rows == kTall) return transpose(from, to, kWide);
        for (Index c = 0; c < columns; ++c)
            for (Index r = 0; r < rows; ++r) to[c * kWide + r] = from[r * kWide + c];
    }
    void turn_all() {
        for (std::size_t l = 0; l < layers_.size(); ++l)
            for (Index k = 0; k < layers_[l].in; k += kTall)
                for (Index p = 0; p < panels(layers_[l].out); ++p) turn(layers_[l], l, k, p);
    }

    CERTIFIT_CLONES static void scale(float* __restrict x, const float* __restrict by, Index n) {
        for (Index i = 0; i < n; ++i) x[i] *= by[i];
    }
    CERTIFIT_CLONES static void sum_rows(const float* __restrict d, Index rows, float* __restrict g) {
        for (Index j = 0; j < kWide; ++j) g[j] = 0.0f;
        for (Index r = 0; r < rows; ++r)
            for (Index j = 0; j < kWide; ++j) g[j] += d[r * kWide + j];
    }
};

}  // namespace certifit::network
