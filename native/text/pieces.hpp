// A text in pieces: words, or characters, of which neighbors make n-grams.
//
// The pieces are written one behind the other, words with a blank between them, so that every n-gram is a stretch of what was
// written: from the begin of its first piece to the end of its last.
#pragma once

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "text/terms.hpp"

namespace certifit::text {

enum class Unit { words, spoken, characters, within_words };

struct Rule {
    Unit unit = Unit::words;
    int least = 1, most = 1;  // pieces in an n-gram
    bool lower = true;
    const Terms* stop = nullptr;  // words to leave out
};

// Two kinds of text. ASCII is read as it lies in memory; any other is a row of code points, already in lower case where that was
// asked for, since lower case may have another length. What is a letter and what is blank is Python's own word on it.
using Ascii = std::span<const unsigned char>;
using Points = std::span<const Py_UCS4>;

namespace letters {

struct Tables {
    std::array<bool, 256> word{}, blank{};
    std::array<char, 256> lower{};
};

inline constexpr Tables tables = [] {
    Tables t;
    for (int c = 0; c < 128; ++c) {
        const bool upper = c >= 'A' && c <= 'Z';
        t.word[c] = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        t.blank[c] = c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31);
        t.lower[c] = static_cast<char>(upper ? c + 32 : c);
    }
    return t;
}();

inline bool word(unsigned char c) { return tables.word[c]; }
inline bool blank(unsigned char c) { return tables.blank[c]; }
inline bool apostrophe(unsigned char c) { return c == '\''; }
inline bool word(Py_UCS4 c) { return c < 128 ? tables.word[c] : Py_UNICODE_ISALNUM(c) != 0; }
inline bool blank(Py_UCS4 c) { return c < 128 ? tables.blank[c] : Py_UNICODE_ISSPACE(c) != 0; }
inline bool apostrophe(Py_UCS4 c) { return c == '\'' || c == 0x2019; }

// Write a letter and return where the next one goes.
inline char* put(char* out, unsigned char c, bool lower) {
    *out = lower ? tables.lower[c] : static_cast<char>(c);
    return out + 1;
}
// Half of a surrogate pair that stands alone is written like any other point: Python calls that "surrogatepass".
inline char* put(char* out, Py_UCS4 c, bool) {
    const auto tail = [&](int shift) { *out++ = static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
    if (c < 0x80) {
        *out++ = static_cast<char>(c);
    } else if (c < 0x800) {
        *out++ = static_cast<char>(0xC0 | (c >> 6));
        tail(0);
    } else if (c < 0x10000) {
        *out++ = static_cast<char>(0xE0 | (c >> 12));
        tail(6), tail(0);
    } else {
        *out++ = static_cast<char>(0xF0 | (c >> 18));
        tail(12), tail(6), tail(0);
    }
    return out;
}

}  // namespace letters

class Pieces {
  public:
    // sink(term) for every n-gram of a text.
    template <class Char, class Sink>
    void each(std::span<const Char> text, const Rule& rule, Sink&& sink) {
        clear();
        reserve(5 * text.size() + 2);  // four bytes a letter at most, a blank behind each word, one on either side
        switch (rule.unit) {
            case Unit::words: words(text, rule); break;
            case Unit::spoken: spoken(text, rule); break;
            case Unit::characters: characters(text, rule); break;
            case Unit::within_words: within_words(text, rule, sink); return;
        }
        all(rule, sink);
    }

    // The same for words that were cut elsewhere: clear, add each, all.
    void clear() { end_ = 0, begins_.clear(), ends_.clear(); }
    void add(Bytes word, const Rule& rule) {
        reserve(end_ + word.size() + 1);
        const std::size_t begin = end_;
        std::copy(word.begin(), word.end(), written_.data() + end_);
        end_ += word.size();
        close_word(begin, rule);
    }
    template <class Sink>
    void all(const Rule& rule, Sink&& sink) const {
        for (int n = rule.least; n <= rule.most && static_cast<std::size_t>(n) <= begins_.size(); ++n) slide(n, sink);
    }

  private:
    void reserve(std::size_t size) {
        if (written_.size() < size) written_.resize(std::max(size, 2 * written_.size()));
    }

    template <class Char>
    void put(Char c, const Rule& rule) {
        end_ = static_cast<std::size_t>(letters::put(written_.data() + end_, c, rule.lower) - written_.data());
    }

    template <class Sink>
    void slide(int n, Sink&& sink) const {
        const std::size_t reach = static_cast<std::size_t>(n) - 1;
        for (std::size_t i = 0; i + reach < begins_.size(); ++i) sink(stretch(i, i + reach));
    }

    Bytes stretch(std::size_t first, std::size_t last) const {
        return {written_.data() + begins_[first], ends_[last] - begins_[first]};
    }

    void close_word(std::size_t begin, const Rule& rule) {
        if (rule.stop && rule.stop->find({written_.data() + begin, end_ - begin}) >= 0) {
            end_ = begin;
            return;
        }
        begins_.push_back(begin), ends_.push_back(end_);
        written_[end_++] = ' ';
    }

    // \b\w\w+\b
    template <class Char>
    void words(std::span<const Char> text, const Rule& rule) {
        const std::size_t size = text.size();
        for (std::size_t i = 0; i < size;) {
            if (!letters::word(text[i])) {
                ++i;
                continue;
            }
            const std::size_t begin = end_, first = i;
            char* out = written_.data() + begin;
            for (; i < size && letters::word(text[i]); ++i) out = letters::put(out, text[i], rule.lower);
            if (i - first < 2) continue;
            end_ = static_cast<std::size_t>(out - written_.data());
            close_word(begin, rule);
        }
    }

    // [^\W_]+(?:['’][^\W_]+)*
    template <class Char>
    void spoken(std::span<const Char> text, const Rule& rule) {
        const auto letter = [&](std::size_t i) { return i < text.size() && text[i] != '_' && letters::word(text[i]); };
        for (std::size_t i = 0; i < text.size();) {
            if (!letter(i)) {
                ++i;
                continue;
            }
            const std::size_t begin = end_;
            while (letter(i) || (letters::apostrophe(text[i]) && letter(i + 1))) {
                put(text[i], rule);
                if (++i == text.size()) break;
            }
            close_word(begin, rule);
        }
    }

    template <class Char>
    void character(Char c, const Rule& rule) {
        begins_.push_back(end_);
        put(c, rule);
        ends_.push_back(end_);
    }

    // Two blanks or more are one.
    template <class Char>
    void characters(std::span<const Char> text, const Rule& rule) {
        for (std::size_t i = 0; i < text.size();) {
            std::size_t next = i + 1;
            if (letters::blank(text[i]))
                while (next < text.size() && letters::blank(text[next])) ++next;
            character(next - i > 1 ? static_cast<Char>(' ') : text[i], rule);
            i = next;
        }
    }

    // Each word with a blank on either side; a word that is too short for n is counted once, whole.
    template <class Char, class Sink>
    void within_words(std::span<const Char> text, const Rule& rule, Sink&& sink) {
        for (std::size_t i = 0; i < text.size();) {
            if (letters::blank(text[i])) {
                ++i;
                continue;
            }
            clear();
            character(static_cast<Char>(' '), rule);
            for (; i < text.size() && !letters::blank(text[i]); ++i) character(text[i], rule);
            character(static_cast<Char>(' '), rule);
            for (int n = rule.least; n <= rule.most; ++n) {
                if (static_cast<std::size_t>(n) >= begins_.size()) {
                    sink(stretch(0, begins_.size() - 1));
                    break;
                }
                slide(n, sink);
            }
        }
    }

    std::vector<char> written_;  // as long as the longest text needed; what was written ends at end_
    std::size_t end_ = 0;
    std::vector<std::size_t> begins_, ends_;
};

}  // namespace certifit::text
