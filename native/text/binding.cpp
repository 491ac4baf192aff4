// certifit._native.text: words and characters of texts, counted.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/boundary.hpp"
#include "text/pieces.hpp"
#include "text/rows.hpp"
#include "text/terms.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::text;

namespace {

constexpr std::size_t BLOCK = 256;  // texts that are read between two looks at Python

nb::object checked(PyObject* object) {
    if (!object) throw nb::python_error();
    return nb::steal(object);
}

// work(bytes) with the UTF-8 of a Python string; half surrogates too.
template <class F>
void with_bytes(nb::handle text, F&& work) {
    if (!PyUnicode_Check(text.ptr())) refuse(std::string("a term must be a str; got ") + Py_TYPE(text.ptr())->tp_name);
    Py_ssize_t size = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) {
        work(Bytes(bytes, static_cast<std::size_t>(size)));
        return;
    }
    PyErr_Clear();
    const nb::object held = checked(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
    work(Bytes(PyBytes_AS_STRING(held.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(held.ptr()))));
}

void put_all(Terms& terms, const nb::list& given) {
    for (nb::handle term : given) with_bytes(term, [&](Bytes bytes) { terms.intern(bytes); });
}

nb::list listed(const Terms& terms) {
    nb::list out;
    for (std::size_t id = 0; id < terms.size(); ++id) {
        const Bytes term = terms[id];
        out.append(checked(PyUnicode_DecodeUTF8(term.data(), static_cast<Py_ssize_t>(term.size()), "surrogatepass")));
    }
    return out;
}

// A block of texts that can be read without the GIL: the tuple keeps ASCII ones alive and in place, others are copied.
class Block {
  public:
    void gather(const nb::tuple& texts, std::size_t begin, std::size_t end, bool lower) {
        parts_.clear(), points_.clear();
        for (std::size_t i = begin; i < end; ++i) {
            const nb::handle text = texts[i];
            if (text.is_none()) {
                parts_.push_back({nullptr, 0, 0});
                continue;
            }
            if (!PyUnicode_Check(text.ptr()))
                refuse("text " + std::to_string(i) + " must be a str; got " + Py_TYPE(text.ptr())->tp_name);
            if (PyUnicode_IS_ASCII(text.ptr())) {
                Py_ssize_t size = 0;
                const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
                if (!bytes) throw nb::python_error();
                parts_.push_back({reinterpret_cast<const unsigned char*>(bytes), 0, static_cast<std::size_t>(size)});
            } else {
                copy(lower ? nb::object(text.attr("lower")()) : nb::borrow(text));
            }
        }
    }

    template <class Sink>
    void read(const Rule& rule, Pieces& pieces, Sink& sink) const {
        for (const Part& part : parts_) {
            if (part.ascii)
                pieces.each(Ascii(part.ascii, part.size), rule, sink);
            else
                pieces.each(Points(points_.data() + part.begin, part.size), rule, sink);
            sink.close();
        }
    }

  private:
    struct Part {
        const unsigned char* ascii;
        std::size_t begin, size;
    };

    void copy(const nb::object& text) {
        const auto size = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text.ptr()));
        const std::size_t begin = points_.size();
        points_.resize(begin + size);
        if (size && !PyUnicode_AsUCS4(text.ptr(), points_.data() + begin, static_cast<Py_ssize_t>(size), 0))
            throw nb::python_error();
        parts_.push_back({nullptr, begin, size});
    }

    std::vector<Part> parts_;
    std::vector<Py_UCS4> points_;
};

template <class Sink>
nb::tuple matrix(Sink& sink) {
    return nb::make_tuple(array(std::move(sink.rows.ends)), array(std::move(sink.rows.columns)),
                          array(std::move(sink.rows.counts)));
}

template <class Sink>
nb::tuple read_all(const nb::tuple& texts, const Rule& rule, Sink sink) {
    Block block;
    Pieces pieces;
    for (std::size_t begin = 0; begin < texts.size(); begin += BLOCK) {
        block.gather(texts, begin, std::min(begin + BLOCK, texts.size()), rule.lower);
        without_gil([&] { block.read(rule, pieces, sink); });
        if (PyErr_CheckSignals()) throw nb::python_error();
    }
    return matrix(sink);
}

Rule rule_of(const std::string& unit, int least, int most, bool lower, const Terms* stop) {
    if (least < 1 || most < least) refuse("n-grams must have at least one piece, and the least not more than the most");
    Rule rule{Unit::words, least, most, lower, stop};
    if (unit == "words")
        rule.unit = Unit::words;
    else if (unit == "spoken")
        rule.unit = Unit::spoken;
    else if (unit == "characters")
        rule.unit = Unit::characters;
    else if (unit == "within_words")
        rule.unit = Unit::within_words;
    else
        refuse("unit must be words, spoken, characters or within_words; got " + unit);
    return rule;
}

Id checked_columns(std::int64_t columns) {
    if (columns < 1 || columns > std::numeric_limits<Id>::max()) refuse("columns must be in [1, 2147483647]");
    return static_cast<Id>(columns);
}

// Texts that were cut into words elsewhere: lists of str.
template <class Sink>
nb::tuple take_all(const nb::list& texts, const Rule& rule, Sink sink) {
    Pieces pieces;
    for (nb::handle words : texts) {
        pieces.clear();
        for (nb::handle word : words) with_bytes(word, [&](Bytes bytes) { pieces.add(bytes, rule); });
        pieces.all(rule, sink);
        sink.close();
    }
    return matrix(sink);
}

}  // namespace

NB_MODULE(text, m) {
    nb::class_<Terms>(m, "Terms")
        .def("__init__", [](Terms* self, const nb::list& terms) { new (self) Terms(), put_all(*self, terms); }, "terms"_a)
        .def("__len__", &Terms::size)
        .def("listed", &listed)
        .def("order", [](const Terms& terms) { return array(terms.order()); })
        .def("__getstate__", &listed)
        .def("__setstate__", [](Terms& self, const nb::list& terms) { new (&self) Terms(), put_all(self, terms); });
    nb::class_<Rule>(m, "Rule")
        .def("__init__", [](Rule* self, const std::string& unit, int least, int most, bool lower,
                            const Terms* stop) { new (self) Rule(rule_of(unit, least, most, lower, stop)); },
             "unit"_a, "least"_a, "most"_a, "lower"_a, "stop"_a.none(), nb::keep_alive<1, 6>());
    m.def("count", [](const nb::tuple& texts, const Rule& rule, Terms& terms, bool learn) {
              return read_all(texts, rule, Counting(terms, learn));
          }, "texts"_a, "rule"_a, "terms"_a, "learn"_a);
    m.def("count", [](const nb::list& texts, const Rule& rule, Terms& terms, bool learn) {
              return take_all(texts, rule, Counting(terms, learn));
          }, "texts"_a, "rule"_a, "terms"_a, "learn"_a);
    m.def("hash", [](const nb::tuple& texts, const Rule& rule, std::int64_t columns, bool signs) {
              return read_all(texts, rule, Hashing(checked_columns(columns), signs));
          }, "texts"_a, "rule"_a, "columns"_a, "signs"_a);
    m.def("hash", [](const nb::list& texts, const Rule& rule, std::int64_t columns, bool signs) {
              return take_all(texts, rule, Hashing(checked_columns(columns), signs));
          }, "texts"_a, "rule"_a, "columns"_a, "signs"_a);
}
