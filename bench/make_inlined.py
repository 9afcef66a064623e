#!/usr/bin/env python3
"""Writes a large C++ program of many templates that the compiler inlines into one another, for benchmarks of lines and
inlines: `make_inlined.py FOLDER [--units 24] [--types 10]`, then FOLDER/build.ninja makes FOLDER/inlined.

Each unit has types of its own, in the standard library's containers, so its debug information is as large as that of
real programs.  Functions that are not inlined call one another 20 deep, and a few thousand call sites are reached while
it runs.  Usage of the program: `inlined SECONDS [THREADS]`.
"""
import argparse
import pathlib
import random

HEADER = r"""
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#define KEPT __attribute__((noinline, noclone))

namespace shop {

struct state {
	uint64_t random;
	uint64_t sum = 0;
	uint64_t next()
	{
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		return random;
	}
};

using step = void (*)(state &, int);
extern const step steps[];
extern const unsigned step_count;

namespace detail {
template <int Salt> struct rotation {
	static uint64_t turn(uint64_t value) { return (value << (Salt % 63 + 1)) | (value >> (63 - Salt % 63)); }
};
template <int Salt> struct spread {
	static uint64_t over(uint64_t value) { return rotation<Salt>::turn(value) * 0x9e3779b97f4a7c15u + Salt; }
};
template <int Depth, int Salt> struct mixer {
	static uint64_t mix(uint64_t value)
	{
		return mixer<Depth - 1, (Salt * 31 + Depth) % 61>::mix(spread<Salt>::over(value ^ Depth));
	}
};
template <int Salt> struct mixer<0, Salt> {
	static uint64_t mix(uint64_t value) { return rotation<Salt>::turn(value); }
};
} // namespace detail

template <typename Record> class weigher {
public:
	explicit weigher(state &s) : state_(s) {}
	uint64_t operator()(const Record &record) const { return weigh(record); }

private:
	uint64_t weigh(const Record &record) const { return combine(record.key(), record.weight()); }
	uint64_t combine(uint64_t a, uint64_t b) const
	{
		return detail::mixer<4, Record::salt>::mix(a) ^ detail::mixer<3, Record::salt + 1>::mix(b + state_.sum);
	}
	state &state_;
};

template <typename Record> class shelf {
public:
	void put(uint64_t key, Record record) { records_.insert_or_assign(key, std::move(record)); }
	template <typename Function> void each(Function &&function) const
	{
		for (const auto &[key, record] : records_)
			function(record);
	}
	uint64_t total(state &s) const
	{
		uint64_t sum = 0;
		weigher<Record> weigh(s);
		each([&](const Record &record) { sum += weigh(record); });
		return sum;
	}
	std::size_t size() const { return records_.size(); }

private:
	std::map<uint64_t, Record> records_;
};

template <typename Record> uint64_t sorted_total(std::vector<Record> &records, state &s)
{
	weigher<Record> weigh(s);
	std::sort(records.begin(), records.end(),
		  [&](const Record &a, const Record &b) { return weigh(a) < weigh(b); });
	return std::accumulate(records.begin(), records.end(), uint64_t{ 0 },
			       [&](uint64_t sum, const Record &record) { return sum + weigh(record); });
}

/* Down to another function, so that stacks are deep; what is done here is done on the way back, too. */
inline void descend(state &s, int depth, unsigned from)
{
	if (depth > 0)
		steps[(from * 7 + (s.next() & 3) * 13 + 1) % step_count](s, depth - 1);
	s.sum += from;
}

} // namespace shop
"""

TYPE = r"""
struct {name} {{
	static constexpr int salt = {salt};
	uint64_t id;
	std::array<uint32_t, {words}> words;
	std::optional<uint16_t> mark;
	uint64_t key() const {{ return detail::mixer<2, salt>::mix(id); }}
	uint64_t weight() const {{ return std::accumulate(words.begin(), words.end(), uint64_t{{ 0 }}) + mark.value_or(salt); }}
	static {name} make(state &s)
	{{
		{name} made{{ s.next(), {{}}, std::nullopt }};
		std::generate(made.words.begin(), made.words.end(), [&s] {{ return static_cast<uint32_t>(s.next()); }});
		if (made.id & 1)
			made.mark = static_cast<uint16_t>(made.id >> 8);
		return made;
	}}
}};
"""

BODIES = [
    # a map's nodes come and go
    """	shelf<{name}> shelf;
	for (int i = 0; i < {count}; i++)
		shelf.put(s.next() % 64, {name}::make(s));
	s.sum += shelf.total(s);
	descend(s, depth, {index});
	s.sum += shelf.size();""",
    # sorting by a weight that is computed each time
    """	std::vector<{name}> records;
	std::generate_n(std::back_inserter(records), {count}, [&s] {{ return {name}::make(s); }});
	descend(s, depth, {index});
	s.sum += sorted_total(records, s);""",
    # by name
    """	std::unordered_map<std::string, {name}> named;
	for (int i = 0; i < {count} / 2; i++)
		named.emplace("record " + std::to_string(s.next() % 100), {name}::make(s));
	weigher<{name}> weigh(s);
	for (const auto &[text, record] : named)
		s.sum += weigh(record) + std::hash<std::string>()(text);
	descend(s, depth, {index});
	s.sum++;""",
    # through a function object and a variant
    """	std::deque<std::variant<uint64_t, {name}>> queue;
	for (int i = 0; i < {count}; i++)
		queue.emplace_back({name}::make(s));
	std::function<uint64_t(const {name} &)> weigh = weigher<{name}>(s);
	descend(s, depth, {index});
	for (const auto &item : queue)
		s.sum += std::visit([&](const auto &value) -> uint64_t {{
			if constexpr (std::is_same_v<std::decay_t<decltype(value)>, uint64_t>)
				return detail::mixer<5, {salt}>::mix(value);
			else
				return weigh(value);
		}}, item);""",
]

MAIN = r"""
#include "inlined.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace shop {
DECLARATIONS
const step steps[] = { STEPS };
const unsigned step_count = sizeof(steps) / sizeof(steps[0]);

KEPT static void work(uint64_t seed, double seconds)
{
	state s{ seed * 0x9e3779b97f4a7c15u | 1 };
	auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
	while (std::chrono::steady_clock::now() < end)
		steps[s.next() % step_count](s, 14 + static_cast<int>(s.next() % 8));
	std::printf("%llx\n", static_cast<unsigned long long>(s.sum));
}
} // namespace shop

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? std::atof(argv[1]) : 1;
	int threads = argc > 2 ? std::atoi(argv[2]) : 1;
	std::vector<std::thread> running;
	for (int i = 1; i < threads; i++)
		running.emplace_back(shop::work, i + 1, seconds);
	shop::work(1, seconds);
	for (auto &thread : running)
		thread.join();
}
"""

NINJA = """cxx = {cxx}
flags = -std=c++17 -O2 -g -gdwarf-{dwarf} {flags}
rule cxx
  command = $cxx $flags -c $in -o $out
rule link
  command = $cxx $flags $in -pthread -o $out
"""


def write_unit(folder, unit, types, random_):
    text = ['#include "inlined.h"\n\nnamespace shop {\n']
    functions = []
    for number in range(types):
        name = f"record_{unit}_{number}"
        salt = random_.randrange(2, 60)
        text.append(TYPE.format(name=name, salt=salt, words=random_.randrange(2, 9)))
        for body in random_.sample(range(len(BODIES)), 3):
            function = f"work_{unit}_{number}_{body}"
            functions.append(function)
            text.append(f"KEPT void {function}(state &s, int depth)\n{{\n" + BODIES[body].format(
                name=name, salt=salt, count=random_.randrange(6, 20), index=unit * 97 + len(functions)) + "\n}\n")
    text.append("} // namespace shop\n")
    (folder / f"unit_{unit}.cpp").write_text("".join(text))
    return functions


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--units", type=int, default=24)
    parser.add_argument("--types", type=int, default=10)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--dwarf", type=int, default=5)
    parser.add_argument("--flags", default="")
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    random_ = random.Random(4)
    (folder / "inlined.h").write_text(HEADER)
    functions = [name for unit in range(arguments.units) for name in write_unit(folder, unit, arguments.types, random_)]
    (folder / "main.cpp").write_text(MAIN.replace(
        "DECLARATIONS", "\n".join(f"void {name}(state &s, int depth);" for name in functions)).replace(
        "STEPS", ", ".join(functions)))
    sources = ["main"] + [f"unit_{unit}" for unit in range(arguments.units)]
    ninja = NINJA.format(cxx=arguments.cxx, flags=arguments.flags, dwarf=arguments.dwarf)
    ninja += "".join(f"build {source}.o: cxx {source}.cpp | inlined.h\n" for source in sources)
    ninja += "build inlined: link " + " ".join(f"{source}.o" for source in sources) + "\n"
    (folder / "build.ninja").write_text(ninja)


main()
