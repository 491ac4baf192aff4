// Growth on codes of 8 bits.
#include "tree/grow/worker.hpp"

namespace certifit::tree {

template Grown Worker::operator()(const CodedTable<std::uint8_t>&, Draw&) const;

}  // namespace certifit::tree
