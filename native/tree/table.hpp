// What growing trees works on: random numbers, the coded table, and when to stop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tree/codes.hpp"

namespace certifit::tree {

inline std::uint64_t mixed(std::uint64_t z) {  // splitmix64
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(mixed(seed)) {}
    std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15ULL); }
    // Uniform on 0 … n−1; the bias is below n / 2^64.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
    }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

// The values themselves, in any layout: asked for where a threshold is placed between two of them.
struct Values {
    const void* data = nullptr;
    bool single = false;
    std::ptrdiff_t row_stride = 0, column_stride = 0;  // in numbers

    double at(Row i, int f) const {
        const std::ptrdiff_t place = static_cast<std::ptrdiff_t>(i) * row_stride + f * column_stride;
        return (single ? static_cast<double>(static_cast<const float*>(data)[place]) : static_cast<const double*>(data)[place]) + 0.0;
    }
};

// Rows × columns of codes, each column contiguous; columns that are sorted instead have none.
template <class CodeType>
struct CodedTable {
    using Code = CodeType;
    // An entry carries a code in its upper and a row in its lower half: sorting entries sorts rows by code.
    using Entry = std::conditional_t<sizeof(Code) == 2, std::uint32_t, std::uint64_t>;
    static constexpr int kHalf = 4 * sizeof(Entry);
    static Entry entry(std::uint32_t code, Row row) { return (static_cast<Entry>(code) << kHalf) | row; }
    static std::uint32_t code_of(Entry e) { return static_cast<std::uint32_t>(e >> kHalf); }
    static Row row_of(Entry e) { return static_cast<Row>(e & ((Entry{1} << kHalf) - 1)); }

    Row n = 0;
    int d = 0;
    std::vector<std::vector<Code>> code;
    std::vector<Column> columns;
    Values values;

    const Code* column(int f) const { return code[static_cast<std::size_t>(f)].data(); }
};

struct Growth {
    int max_depth = 1 << 30;
    double min_split = 2, min_leaf = 1;  // rows, counted by weight; 2 and 1 never bind
    double min_fraction = 0;             // least share of the weight of the root in a leaf
    std::int64_t max_leaves = 0;         // 0: depth first, without limit
    double min_decrease = 0;             // least decrease of the mean impurity of the whole tree
    double worth_unit = 1;               // worth in the units of the target = worth here · worth_unit
    int max_features = 0;
    bool drawn = false;                  // whether each feature tried is given one threshold at random, not the best one
    std::uint64_t seed = 0;
    const std::int8_t* monotone = nullptr;
};

}  // namespace certifit::tree
