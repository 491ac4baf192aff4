// Gradients and curvatures of all rows as integers, so that sums are exact: the same trees for every number of threads and
// every order of the rows.
//
//   g_i ≈ q_i / scale_g,  h_i ≈ p_i / scale_h,   scales are powers of two
//
// Wide:   two 64-bit integers a row: (w q, w p + w·2^shift), w the weight in units. One 128-bit addition updates all sums.
// Narrow: one 32-bit integer a row, q · 2^b + p. Read, it becomes a 64-bit integer with fields q | p | 1, sized so that 2^r rows
//         can be added before a field overflows; sums of 2^r rows are then carried over to wide entries. Some 15 bits of
//         gradient are enough for many rows (Shi et al. 2022, quantized training, uses 2 to 5 with random rounding); few rows,
//         weights and heavy tails take the wide form.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/index.hpp"
#include "core/team.hpp"
#include "core/exponential.hpp"
#include "core/simd.hpp"

namespace certifit::boosting {

typedef std::int64_t Pair __attribute__((vector_size(16)));  // (gradient, curvature + count · 2^shift)

// How integers turn back into numbers.
struct Units {
    double gradient = 1, curvature = 1, count = 1;  // one unit of each
    int shift = 0;                                  // of the count in the second integer
    bool constant_curvature = false;                // the curvature is `curvature` times the count, and is not stored

    double g(std::int64_t sum) const { return static_cast<double>(sum) * gradient; }
    double c(std::int64_t sum) const { return static_cast<double>(sum >> shift) * count; }
    double h(std::int64_t sum) const {
        return constant_curvature ? c(sum) * curvature
                                  : static_cast<double>(sum & ((std::int64_t{1} << shift) - 1)) * curvature;
    }
};

constexpr int kRows = 256;  // rows of a block of gradients

namespace detail {

// g = σ(f) − y, h = σ(f) σ(−f).
CERTIFIT_CLONES inline void logistic(const double* __restrict f, const double* __restrict y, int n, double* __restrict g,
                                     double* __restrict h) {
    for (int i = 0; i < n; ++i) {
        const double a = f[i] < 0 ? f[i] : -f[i];
        const double e = exponential(a < -708.0 ? -708.0 : a), d = 1.0 / (1.0 + e);
        g[i] = (f[i] < 0 ? e * d : d) - y[i];
        h[i] = e * d * d;
    }
}

CERTIFIT_CLONES inline void squared(const double* __restrict f, const double* __restrict y, int n, double* __restrict g) {
    for (int i = 0; i < n; ++i) g[i] = f[i] - y[i];
}

// g = σ_k(f) − [y = k], h = σ_k(f) (1 − σ_k(f)); f is the score of class k, `total` the logarithm of Σ exp over all scores.
CERTIFIT_CLONES inline void softmax(const double* __restrict f, const double* __restrict total, const double* __restrict y,
                                    double k, int n, double* __restrict g, double* __restrict h) {
    for (int i = 0; i < n; ++i) {
        const double a = f[i] - total[i];
        const double p = exponential(a < -708.0 ? -708.0 : (a > 0 ? 0.0 : a));
        g[i] = p - (y[i] == k ? 1.0 : 0.0);
        h[i] = p * (1.0 - p);
    }
}

CERTIFIT_CLONES inline void add_exponentials(const double* __restrict f, const double* __restrict most, int n,
                                             double* __restrict sum) {
    for (int i = 0; i < n; ++i) {
        const double a = f[i] - most[i];
        sum[i] += exponential(a < -708.0 ? -708.0 : a);
    }
}

CERTIFIT_CLONES inline void pack(const double* __restrict g, const double* __restrict h, int n, double scale_g, double scale_h,
                                 int bits_h, std::int32_t* __restrict out, std::int64_t* __restrict sums) {
    std::int64_t sum_g = 0, sum_h = 0;
    constexpr double kMagic = 6755399441055744.0;  // adding it rounds to an integer and leaves it in the low bits
    constexpr std::int64_t kBits = 0x4338000000000000;
    for (int i = 0; i < n; ++i) {
        const auto q = std::bit_cast<std::int64_t>(g[i] * scale_g + kMagic) - kBits;
        const auto p = std::bit_cast<std::int64_t>(h[i] * scale_h + kMagic) - kBits;
        out[i] = static_cast<std::int32_t>(q * (std::int64_t{1} << bits_h) + p);
        sum_g += q < 0 ? -q : q;
        sum_h += p;
    }
    sums[0] += sum_g, sums[1] += sum_h;
}

CERTIFIT_CLONES inline void extremes(const double* __restrict g, const double* __restrict h, int n, double* __restrict out) {
    double most = out[0], high = out[1], low = out[2];
    for (int i = 0; i < n; ++i) {
        const double a = std::fabs(g[i]);
        most = a > most ? a : most;
        high = h[i] > high ? h[i] : high;
        low = h[i] < low ? h[i] : low;
    }
    out[0] = most, out[1] = high, out[2] = low;
}

}  // namespace detail

// A vector of numbers of some type, read as doubles.
struct Values {
    const void* data = nullptr;
    enum Type { kDouble, kFloat, kByte, kInt } type = kDouble;

    void load(Index i, int n, double* out) const {
        switch (type) {
            case kDouble: std::memcpy(out, static_cast<const double*>(data) + i, n * sizeof(double)); break;
            case kFloat: std::copy_n(static_cast<const float*>(data) + i, n, out); break;
            case kByte: std::copy_n(static_cast<const std::uint8_t*>(data) + i, n, out); break;
            case kInt: std::copy_n(static_cast<const std::int32_t*>(data) + i, n, out); break;
        }
    }
};

// Where gradients come from: arrays, or the score and the target of a loss that is known here.
struct Source {
    enum Kind { kArrays, kLogistic, kSquared, kSoftmax } kind;
    Values first, second;  // g and h (null: one), or f and y
    Values total = {};     // softmax: logarithm of Σ exp of the scores
    int output = 0;        // softmax: the class

    bool bounded() const { return kind == kLogistic || kind == kSoftmax; }  // |g| <= 1 and h <= 1/4

    void fill(Index i, int n, double* g, double* h) const {
        if (kind == kArrays) {
            first.load(i, n, g);
            if (second.data)
                second.load(i, n, h);
            else
                std::fill(h, h + n, 1.0);
            return;
        }
        alignas(64) double f[kRows], y[kRows], t[kRows];
        first.load(i, n, f), second.load(i, n, y);
        if (kind == kLogistic) return detail::logistic(f, y, n, g, h);
        if (kind == kSoftmax) {
            total.load(i, n, t);
            return detail::softmax(f, t, y, output, n, g, h);
        }
        detail::squared(f, y, n, g);
        std::fill(h, h + n, 1.0);
    }
};

// out[i] = log Σ_k exp(scores[i + k · rows]).
template <class T>
void log_sum_exp(const T* scores, Index rows, Index outputs, T* out, Team& team) {
    const Values::Type type = sizeof(T) == sizeof(double) ? Values::kDouble : Values::kFloat;
    constexpr Index kTask = 64 * kRows;
    team.run((rows + kTask - 1) / kTask, true, [&](Index task, int) {
        alignas(64) double most[kRows], sum[kRows], f[kRows];
        for (Index i = task * kTask; i < std::min((task + 1) * kTask, rows); i += kRows) {
            const int n = static_cast<int>(std::min<Index>(kRows, rows - i));
            std::fill_n(most, n, -HUGE_VAL), std::fill_n(sum, n, 0.0);
            for (Index k = 0; k < outputs; ++k) {
                Values{scores + k * rows, type}.load(i, n, f);
                for (int r = 0; r < n; ++r) most[r] = f[r] > most[r] ? f[r] : most[r];
            }
            for (Index k = 0; k < outputs; ++k) {
                Values{scores + k * rows, type}.load(i, n, f);
                detail::add_exponentials(f, most, n, sum);
            }
            for (int r = 0; r < n; ++r) out[i + r] = static_cast<T>(most[r] + std::log(sum[r]));
        }
    });
}

// Weights as integers, decided once a fit.
struct Weights {
    std::vector<std::uint32_t> units;  // empty: all equal
    std::vector<double> real;          // only when they are not whole numbers
    double unit = 1.0;                 // weight of one unit
    std::int64_t total = 0;            // Σ units
    bool count_rows = false;           // a row counts as one, whatever its weight

    // One weight for all, or n of them.
    Weights(std::span<const double> given, Index n) {
        const double* w = given.data();
        if (given.size() == 1) {
            unit = w[0], total = n;
            return;
        }
        bool equal = true, whole = true;
        double sum = 0.0;
        for (Index i = 0; i < n; ++i) equal &= w[i] == w[0], whole &= w[i] == std::floor(w[i]), sum += w[i];
        if (equal) {
            unit = n ? w[0] : 1.0, total = n;
            return;
        }
        units.resize(n);
        if (whole && sum <= 268435456.0) {  // 2^28
            for (Index i = 0; i < n; ++i) units[i] = static_cast<std::uint32_t>(w[i]), total += units[i];
            return;
        }
        // 64 units or more for the mean weight: the count shares its integer with the curvature, which needs the bits more.
        const int rows = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n)));
        const int bits = std::min(rows + 16, std::max(25, rows + 6));
        const int power = std::ilogb(std::ldexp(1.0, bits) / sum);
        for (Index i = 0; i < n; ++i)
            units[i] = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(w[i], power))), total += units[i];
        unit = std::ldexp(1.0, -power);
        real.assign(w, w + n);
    }
};

class Gradients {
  public:
    Units units;
    bool narrow = false;
    int rows_log2 = 0;   // narrow: rows that can be added without overflow
    int shift_g = 0, shift_h = 0;  // narrow: where the fields of a sum begin
    int bits_h = 0;                // narrow: of the curvature of one row

    Gradients(Index n, Team& team) : n_(n), team_(team) {}

    bool ready() const { return data_ != nullptr; }
    const std::int32_t* packed() const { return reinterpret_cast<const std::int32_t*>(data_.get()); }
    const Pair* pairs() const { return reinterpret_cast<const Pair*>(data_.get()); }

    // Fields of a sum with one row in it.
    struct Unpack {
        int bits_h, shift_g, shift_h;
        std::int64_t operator()(std::int32_t s) const {
            const std::int64_t q = s >> bits_h, p = s & ((1 << bits_h) - 1);
            return q * (std::int64_t{1} << shift_g) + (p << shift_h) + 1;
        }
    };
    Unpack unpack() const { return {bits_h, shift_g, shift_h}; }

    // All rows quantized anew. Throws when a gradient is not finite or a curvature negative.
    void set(const Source& source, const Weights& weights) {
        double top[3] = {1.0, 0.25, 0.0};
        const bool many = weights.units.empty() && n_ >= kManyRows && n_ < (Index{1} << 25);
        // Logistic and softmax have known bounds: with many rows they are good enough, and one pass is saved.
        if (source.bounded() && many && set_narrow(source, top, weights)) return;
        find_extremes(source, top);
        if (!(top[0] < HUGE_VAL) || !(top[1] < HUGE_VAL) || !(top[2] >= 0))
            throw std::invalid_argument("gradients must be finite and curvatures finite and not negative");
        if (many && set_narrow(source, top, weights)) return;
        set_wide(source, top, weights);
    }

  private:
    static constexpr Index kManyRows = 8192;
    static constexpr Index kTask = 64;  // blocks of a task
    Index n_;
    Team& team_;
    std::size_t size_ = 0;
    struct Free {
        void operator()(void* p) const { std::free(p); }
    };
    std::unique_ptr<void, Free> data_;

    void reserve(std::size_t bytes) {
        if (bytes <= size_) return;
        data_.reset();
        size_ = 0;
        bytes = (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
        data_.reset(std::aligned_alloc(64, bytes));
        if (!data_) throw std::bad_alloc();
        size_ = bytes;
    }

    Index blocks() const { return (n_ + kRows - 1) / kRows; }
    Index tasks() const { return (blocks() + kTask - 1) / kTask; }
    // work(block, task) for all blocks, some of them in each task.
    template <class Work>
    void for_blocks(Work&& work) const {
        team_.run(tasks(), true, [&](Index task, int) {
            for (Index b = task * kTask; b < std::min((task + 1) * kTask, blocks()); ++b) work(b, task);
        });
    }
    int count(Index b) const { return static_cast<int>(std::min<Index>(kRows, n_ - b * kRows)); }

    void find_extremes(const Source& source, double* top) const {
        struct Found {
            double top[3] = {0, 0, HUGE_VAL};
            bool bad = false;
        };
        std::vector<Found> found(tasks());
        for_blocks([&](Index b, Index task) {
            alignas(64) double g[kRows], h[kRows];
            source.fill(b * kRows, count(b), g, h);
            detail::extremes(g, h, count(b), found[task].top);
            for (int i = 0; i < count(b); ++i) found[task].bad |= g[i] != g[i] || h[i] != h[i];
        });
        top[0] = 0, top[1] = 0, top[2] = HUGE_VAL;
        for (const Found& f : found) {
            top[0] = f.bad ? HUGE_VAL : std::max(top[0], f.top[0]);
            top[1] = std::max(top[1], f.top[1]), top[2] = std::min(top[2], f.top[2]);
        }
    }

    // Largest k for which x · 2^k rounds to at most 2^bits − 1.
    static int exponent(double x, int bits) {
        if (!(x > 0)) return 0;
        int k = bits - 1 - std::ilogb(x);
        if (std::nearbyint(std::ldexp(x, k)) >= std::ldexp(1.0, bits)) --k;
        return std::clamp(k, -1020, 1020);
    }

    bool set_narrow(const Source& source, const double* top, const Weights& weights) {
        const bool constant = top[1] == top[2] && top[1] > 0;
        int bits_g = 14;
        rows_log2 = 12, bits_h = 12;
        if (constant) rows_log2 = 14, bits_g = 30, bits_h = 0;
        shift_h = rows_log2 + 1;
        shift_g = shift_h + (constant ? 0 : bits_h + rows_log2);
        const int power_g = exponent(top[0], bits_g), power_h = constant ? 0 : exponent(top[1], bits_h);
        const int spread = std::bit_width(static_cast<std::uint64_t>(n_));
        reserve(n_ * sizeof(std::int32_t));
        std::int32_t* out = static_cast<std::int32_t*>(data_.get());
        std::vector<std::array<std::int64_t, 2>> sums(tasks(), {0, 0});
        const double scale_g = std::ldexp(1.0, power_g), scale_h = constant ? 0.0 : std::ldexp(1.0, power_h);
        for_blocks([&](Index b, Index task) {
            alignas(64) double g[kRows], h[kRows];
            source.fill(b * kRows, count(b), g, h);
            detail::pack(g, h, count(b), scale_g, scale_h, bits_h, out + b * kRows, sums[task].data());
        });
        std::int64_t sum_g = 0, sum_h = 0;
        for (const auto& s : sums) sum_g += s[0], sum_h += s[1];
        // A few huge gradients would leave no bits for the others.
        if (!constant && (sum_g < 64 * n_ || sum_h < 16 * n_)) return false;
        if (constant && sum_g < 1024 * n_) return false;
        units = {std::ldexp(weights.unit, -power_g), constant ? of_a_count(top[1], weights) : std::ldexp(weights.unit, -power_h),
                 of_a_row(weights), constant ? 0 : bits_h + spread, constant};
        narrow = true;
        return true;
    }

    void set_wide(const Source& source, const double* top, const Weights& weights) {
        const bool real = !weights.real.empty();
        // Real weights are counted less exactly, and where rows are counted the weights are no counts.
        const bool counted = weights.units.empty() || !weights.count_rows;
        const bool constant = !real && counted && top[1] == top[2] && top[1] > 0;
        const int spread = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(weights.total, 1)));
        const int rows = std::bit_width(static_cast<std::uint64_t>(n_));
        // Sums stay below 2^62, and curvature and count share 63 bits.
        const int bits_g = std::min(40, 62 - (real ? rows : spread));
        const int bits_h = std::min(40, 62 - spread - (real ? rows : spread));
        double most_g = top[0], most_h = top[1];
        if (real) {
            double heaviest = 0;
            for (double w : weights.real) heaviest = std::max(heaviest, w);
            most_g *= heaviest, most_h *= heaviest;
        }
        const int power_g = exponent(most_g, bits_g), power_h = constant ? 0 : exponent(most_h, bits_h);
        const int shift = constant ? 0 : bits_h + (real ? rows : spread);
        const double scale_g = std::ldexp(1.0, power_g), scale_h = std::ldexp(1.0, power_h);
        reserve(n_ * sizeof(Pair));
        std::int64_t* out = static_cast<std::int64_t*>(data_.get());
        for_blocks([&](Index b, Index) {
            alignas(64) double g[kRows], h[kRows];
            source.fill(b * kRows, count(b), g, h);
            for (int k = 0; k < count(b); ++k) {
                const Index i = b * kRows + k;
                const std::int64_t w = weights.units.empty() ? 1 : weights.units[i];
                std::int64_t q, p = 0;
                if (real) {
                    q = std::llrint(g[k] * weights.real[i] * scale_g);
                    if (!constant) p = std::llrint(h[k] * weights.real[i] * scale_h);
                } else {
                    q = w * std::llrint(g[k] * scale_g);
                    if (!constant) p = w * std::llrint(h[k] * scale_h);
                }
                out[2 * i] = q;
                out[2 * i + 1] = p + (weights.count_rows ? 1 : w) * (std::int64_t{1} << shift);
            }
        });
        const double unit = real ? 1.0 : weights.unit;
        units = {std::ldexp(unit, -power_g), constant ? of_a_count(top[1], weights) : std::ldexp(unit, -power_h),
                 of_a_row(weights), shift, constant};
        narrow = false;
    }

    // What a unit of the count is, and the curvature of one.
    static double of_a_row(const Weights& weights) { return weights.count_rows ? 1.0 : weights.unit; }
    static double of_a_count(double curvature, const Weights& weights) {
        return weights.count_rows ? curvature * weights.unit : curvature;
    }
};

}  // namespace certifit::boosting
