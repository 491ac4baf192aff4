// Products of matrices in registers: the one micro-kernel of all families, and the panels it reads.
//
//     sum[r][c] += Σ_k a[k][r] · b[k][c]          Rows × (Vectors · lanes) sums at a time, k upward
//
// b lies in panels, the entries of one k side by side, so that they load as vectors. The entries of a are broadcast one by one
// and may lie anywhere: `Along` apart from one k to the next, `Across` apart from one row to the next. A family says how far a
// panel reaches, what the sums begin with and what becomes of them while they are still in registers.
//
// Every sum runs over its own products in the order of k and nothing else, so that neither the shape of a tile nor threads change
// it. Panels are read from end to end for every tile: eight bytes for each multiplication of vectors, which caches far from the
// core deliver too, so that long k need no blocks of their own.
#pragma once

#include <cstddef>
#include <type_traits>

#include "core/index.hpp"
#include "core/simd.hpp"

namespace certifit::tile {

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never leave inlined code

template <class T, int Bytes>
struct VectorOf {
    typedef T type __attribute__((vector_size(Bytes), aligned(sizeof(T)), may_alias));
};

// Instruction sets: how wide a vector is, and how many rows of a tile of two vectors the registers hold.
struct Plain {
    static constexpr int bytes = 16;
    template <int Tall>
    static constexpr int rows = 4;
};
struct V3 {  // AVX2 and FMA
    static constexpr int bytes = 32;
    template <int Tall>
    static constexpr int rows = Tall % 6 ? 4 : 6;
};
struct V4 {  // AVX-512
    static constexpr int bytes = 64;
    template <int Tall>
    static constexpr int rows = Tall % 12 ? 8 : 12;
};

template <class Set, class T>
using Vector = typename VectorOf<T, Set::bytes>::type;
template <class Set, class T>
inline constexpr int kLanes = Set::bytes / static_cast<int>(sizeof(T));

template <class Set, class T, int Rows, int Vectors>
struct Tile {
    using V = Vector<Set, T>;
    static constexpr int lanes = kLanes<Set, T>, wide = Vectors * lanes;
    V sum[Rows][Vectors];

    [[gnu::always_inline]] void clear() {
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r) start(r, T(0));
    }
    [[gnu::always_inline]] void start(int r, T x) {
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) sum[r][v] = V{} + x;
    }
    // All rows begin with the same one.
    [[gnu::always_inline]] void start(const T* row) {
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
            const V x = *reinterpret_cast<const V*>(row + v * lanes);
#pragma GCC unroll 12
            for (int r = 0; r < Rows; ++r) sum[r][v] = x;
        }
    }
    // `depth` values of k; `Step` is how far apart they are in b.
    template <Index Along, Index Across, Index Step>
    [[gnu::always_inline]] void add(const T* a, const T* b, Index depth) {
        for (Index k = 0; k < depth; ++k, a += Along, b += Step) add_one<Across>(a, b);
    }
    template <Index Across>
    [[gnu::always_inline]] void add_one(const T* a, const T* b) {
        V x[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) x[v] = *reinterpret_cast<const V*>(b + v * lanes);
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v) sum[r][v] += x[v] * a[r * Across];
    }
    // Row r goes to to[r·stride …].
    [[gnu::always_inline]] void store(T* to, Index stride) const {
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v) *reinterpret_cast<V*>(to + r * stride + v * lanes) = sum[r][v];
    }
};

// to[r][c] = Σ_k a[k][r] · b[k][c] for Tall rows and `columns` columns: the entries of one k lie side by side on both sides,
// Along apart from one k to the next in a and Step apart in b; rows of the result are Step apart.
template <class Set, Index Tall, Index Along, Index Step, int Vectors = 2, class T>
[[gnu::always_inline]] inline void multiply(const T* a, const T* b, Index depth, Index columns, T* to) {
    constexpr int rows = Set::template rows<Tall>;
    using Part = Tile<Set, T, rows, Vectors>;
    static_assert(Tall % rows == 0 && Step % Part::wide == 0);
    for (Index r = 0; r < Tall; r += rows)
        for (Index c = 0; c < columns; c += Part::wide) {
            Part part;
            part.clear();
            part.template add<Along, 1, Step>(a + r, b + c, depth);
            part.store(to + r * Step + c, Step);
        }
}

// A panel, or a strip, of Wide rows of d entries: to[j][c] = value(first + c, j), and zeros from row n on. Gives square(c, Σ_j
// value²) of each, unless `square` is null.
template <Index Wide, class T, class Value, class Square = std::nullptr_t>
void pack(Index first, Index n, Index d, T* to, Value&& value, Square&& square = nullptr) {
    for (Index c = 0; c < Wide; ++c) {
        const Index i = first + c;
        double sum = 0.0;
        for (Index j = 0; j < d; ++j) {
            const T x = i < n ? static_cast<T>(value(i, j)) : T(0);
            to[j * Wide + c] = x;
            if constexpr (!std::is_null_pointer_v<std::remove_cvref_t<Square>>)
                sum += static_cast<double>(x) * static_cast<double>(x);
        }
        if constexpr (!std::is_null_pointer_v<std::remove_cvref_t<Square>>) square(c, sum);
    }
}

// Work::run<Set>(…), always inlined, compiled for each instruction set; `best()` is that of the machine.
template <class Work, class Signature>
struct Versions;
template <class Work, class... A>
struct Versions<Work, void(A...)> {
    using Call = void (*)(A...);
    static void plain(A... a) { Work::template run<Plain>(a...); }
#if defined(__x86_64__) && !defined(CERTIFIT_SANITIZE)
    __attribute__((target("arch=x86-64-v3"))) static void v3(A... a) { Work::template run<V3>(a...); }
    __attribute__((target("arch=x86-64-v4"))) static void v4(A... a) { Work::template run<V4>(a...); }
#endif
    static Call best() {
#if defined(__x86_64__) && !defined(CERTIFIT_SANITIZE)
        if (__builtin_cpu_supports("x86-64-v4")) return v4;
        if (__builtin_cpu_supports("x86-64-v3")) return v3;
#endif
        return plain;
    }
};

}  // namespace certifit::tile
