// Vectors that begin at a cache line: a load or store of 64 bytes then touches one line instead of two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace certifit {

template <class T>
struct LineAllocator {
    using value_type = T;
    static constexpr std::align_val_t kLine{64};

    LineAllocator() = default;
    template <class U>
    LineAllocator(const LineAllocator<U>&) {}

    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
    void deallocate(T* data, std::size_t) { ::operator delete(data, kLine); }
    friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace certifit
