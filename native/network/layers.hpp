// Where the numbers of a network lie: aligned arrays, and the weights of a layer within one.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "network/panels.hpp"

namespace certifit::network {

// Zeros, aligned for the widest vectors.
class Floats {
  public:
    Floats() = default;
    explicit Floats(Index n) : size_(n) {
        const std::size_t bytes = (static_cast<std::size_t>(std::max<Index>(n, 1)) * sizeof(float) + 63) / 64 * 64;
        data_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
        if (!data_) throw std::bad_alloc();
        std::memset(data_.get(), 0, bytes);
    }
    float* data() const { return data_.get(); }
    Index size() const { return size_; }

  private:
    struct Free {
        void operator()(float* p) const { std::free(p); }
    };
    std::unique_ptr<float, Free> data_;
    Index size_ = 0;
};

struct Layer {
    // Its weights: for each panel of `out` columns a row for each input, then the bias, and the slopes of the units below zero if
    // they learn them.
    Index in, out, start;
    bool bends = false;

    Index tall() const { return in + 1 + bends; }
    Index size() const { return panels(out) * tall() * kWide; }
    float* panel(float* all, Index p) const { return all + start + p * tall() * kWide; }
    float* bias(float* all, Index p) const { return panel(all, p) + in * kWide; }
    float* leak(float* all, Index p) const { return bias(all, p) + kWide; }
};

}  // namespace certifit::network
