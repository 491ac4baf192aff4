// Growth on codes of 16 bits.
#include "tree/grow/worker.hpp"

namespace certifit::tree {

template Grown Worker::operator()(const CodedTable<std::uint16_t>&, Draw&) const;

}  // namespace certifit::tree
