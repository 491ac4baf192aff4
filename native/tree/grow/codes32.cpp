// Growth on codes of 32 bits.
#include "tree/grow/worker.hpp"

namespace certifit::tree {

template Grown Worker::operator()(const CodedTable<std::uint32_t>&, Draw&) const;

}  // namespace certifit::tree
