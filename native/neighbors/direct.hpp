// Every row against every query: of dense rows, of sparse ones, and of distances that somebody else computed.
#pragma once

#include "neighbors/norm.hpp"
#include "neighbors/sinks.hpp"

namespace certifit::neighbors {

// Rows in memory, d numbers each.
struct Dense {
    const double* values;
    Index n, d;
};

// Compressed rows with increasing columns.
struct Sparse {
    const double* values;
    const std::int64_t* columns;
    const std::int64_t* start;
    Index n;
};

// search.row(i) of each query in [from, to) gets the distances to all rows. Queries are taken together so that a row is read once
// for all.
template <class SinkOf>
void scan(const Dense& rows, const Dense& queries, const Norm& norm, Index from, Index to, SinkOf&& sink_of) {
    std::vector<std::decay_t<decltype(sink_of(0))>> sinks;
    for (Index q = from; q < to; ++q) sinks.push_back(sink_of(q));
    for (Index i = 0; i < rows.n; ++i)
        for (Index q = from; q < to; ++q)
            sinks[static_cast<std::size_t>(q - from)].offer(
                distance(norm, rows.values + i * rows.d, queries.values + q * rows.d, rows.d), i);
    for (auto& sink : sinks) sink.finish();
}

// Two sparse rows in step: columns that only one of them has count with the other's zero.
template <class Part>
double merged(const Sparse& a, Index i, const Sparse& b, Index k, const Part& part) {
    std::int64_t s = a.start[i], t = b.start[k];
    const std::int64_t s_end = a.start[i + 1], t_end = b.start[k + 1];
    double sum = 0.0;
    while (s < s_end && t < t_end) {
        const std::int64_t left = a.columns[s], right = b.columns[t];
        const double delta = left == right ? a.values[s] - b.values[t] : left < right ? a.values[s] : b.values[t];
        sum = Part::join(sum, part.of(delta));
        s += left <= right, t += right <= left;
    }
    for (; s < s_end; ++s) sum = Part::join(sum, part.of(a.values[s]));
    for (; t < t_end; ++t) sum = Part::join(sum, part.of(b.values[t]));
    return sum;
}

template <class SinkOf>
void scan(const Sparse& rows, const Sparse& queries, const Norm& norm, Index from, Index to, SinkOf&& sink_of) {
    with_part(norm, [&](const auto& part) {
        for (Index q = from; q < to; ++q) {
            auto sink = sink_of(q);
            for (Index i = 0; i < rows.n; ++i) sink.offer(merged(rows, i, queries, q, part), i);
            sink.finish();
        }
    });
}

}  // namespace certifit::neighbors
