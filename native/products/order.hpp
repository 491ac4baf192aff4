// A matrix stored row after row, copied column after column: squares of 4 × 4 numbers turned in registers, eight columns at a time, in blocks
// whose lines stay in the cache until all of their numbers are used.
#pragma once

#include <algorithm>
#include <cstdint>

#include "products/products.hpp"

namespace certifit::products {

namespace detail {

template <class T, class I>
[[gnu::always_inline]] inline void turn(const T* x, Index rows, Index wide, Index d, Index n, T* out) {
    typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
    typedef I Places __attribute__((vector_size(4 * sizeof(I))));
    const auto at = [](const T* from) { return *reinterpret_cast<const Four*>(from); };
    Index j = 0;
    for (; j + 8 <= wide; j += 8) {
        Index i = 0;
        for (; i + 4 <= rows; i += 4) {
            for (Index half = 0; half < 8; half += 4) {
                const T* from = x + i * d + j + half;
                const Four a = at(from), b = at(from + d), c = at(from + 2 * d), e = at(from + 3 * d);
                const Four even = __builtin_shuffle(a, b, Places{0, 4, 2, 6}), odd = __builtin_shuffle(a, b, Places{1, 5, 3, 7});
                const Four next = __builtin_shuffle(c, e, Places{0, 4, 2, 6}), last = __builtin_shuffle(c, e, Places{1, 5, 3, 7});
                T* to = out + (j + half) * n + i;
                *reinterpret_cast<Four*>(to) = __builtin_shuffle(even, next, Places{0, 1, 4, 5});
                *reinterpret_cast<Four*>(to + n) = __builtin_shuffle(odd, last, Places{0, 1, 4, 5});
                *reinterpret_cast<Four*>(to + 2 * n) = __builtin_shuffle(even, next, Places{2, 3, 6, 7});
                *reinterpret_cast<Four*>(to + 3 * n) = __builtin_shuffle(odd, last, Places{2, 3, 6, 7});
            }
        }
        for (; i < rows; ++i)
            for (Index s = 0; s < 8; ++s) out[(j + s) * n + i] = x[i * d + j + s];
    }
    for (; j < wide; ++j)
        for (Index i = 0; i < rows; ++i) out[j * n + i] = x[i * d + j];
}

}  // namespace detail

#define CERTIFIT_TURN(T, I)                                                                                            \
    CERTIFIT_CLONES [[maybe_unused]] static void turn(const T* x, Index rows, Index wide, Index d, Index n, T* out) {  \
        detail::turn<T, I>(x, rows, wide, d, n, out);                                                                  \
    }
CERTIFIT_TURN(double, std::int64_t)
CERTIFIT_TURN(float, std::int32_t)
#undef CERTIFIT_TURN

template <class T>
void by_column(const T* x, Index n, Index d, T* out, int threads) {
    constexpr Index kRows = 128, kColumns = 64;
    const auto block = [&](Index first, Index last, Index from, Index to) {
        for (Index j = first; j < last; j += kColumns)
            for (Index i = from; i < to; i += kRows)
                turn(x + i * d + j, std::min(kRows, to - i), std::min(kColumns, last - j), d, n, out + j * n + i);
    };
    const bool wide = n < d;  // the longer side is shared
    over_chunks(wide ? d : n, chunk_count(wide ? d : n, wide ? n : d, kRows / 8), n * d, threads,
                [&](Index, Index from, Index to) { wide ? block(from, to, 0, n) : block(0, d, from, to); });
}

}  // namespace certifit::products
