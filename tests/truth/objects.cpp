// Usual C++: a comparator inlined in the library's sort, virtual calls, a map, and exceptions, which
// the unwinder throws.
#include "truth.h"
#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

enum { SORTING, CALLING, THROWING, PARTS };
static truth_part parts[PARTS] = { { "sorting", 0 }, { "calling", 0 }, { "throwing", 0 } };

namespace shapes
{
struct shape {
	virtual ~shape() = default;
	virtual uint64_t area(uint64_t value) const = 0;
};
struct square : shape {
	TRUTH_FUNCTION uint64_t area(uint64_t value) const override
	{
		return truth_work(value) + 1;
	}
};
struct circle : shape {
	TRUTH_FUNCTION uint64_t area(uint64_t value) const override
	{
		return truth_work(value) + 2;
	}
};
} // namespace shapes

TRUTH_FUNCTION static uint64_t sorting(uint64_t value)
{
	std::vector<std::string> words;
	for (int i = 0; i < 2000; i++)
		words.push_back(std::to_string(
			(value = value * 6364136223846793005u + 1442695040888963407u) >> 20));
	std::sort(words.begin(), words.end(),
		  [](const std::string &a, const std::string &b) { return a > b; });
	std::map<std::string, int> counts;
	for (const std::string &word : words)
		counts[word.substr(0, 3)]++;
	return value + counts.size();
}

TRUTH_FUNCTION static uint64_t calling(const std::vector<std::unique_ptr<shapes::shape>> &all,
				       uint64_t value)
{
	for (const auto &one : all)
		value = one->area(value);
	return value;
}

TRUTH_FUNCTION static uint64_t fall(uint64_t value, int depth)
{
	std::string local(static_cast<size_t>(depth) + 20, 'x');
	if (!depth)
		throw std::runtime_error(local);
	return fall(value, depth - 1) + local.size();
}

TRUTH_FUNCTION static uint64_t throwing(uint64_t value)
{
	for (int i = 0; i < 10; i++) {
		try {
			value += fall(value, 20);
		} catch (const std::exception &thrown) {
			value += std::string(thrown.what()).size();
		}
	}
	return value;
}

int main()
{
	std::vector<std::unique_ptr<shapes::shape>> all;
	all.push_back(std::make_unique<shapes::square>());
	all.push_back(std::make_unique<shapes::circle>());
	uint64_t value = 1;
	for (int i = 0; i < 12; i++) {
		TRUTH_SPEND(&parts[SORTING], 60, value = sorting(value));
		TRUTH_SPEND(&parts[CALLING], 50, value = calling(all, value));
		TRUTH_SPEND(&parts[THROWING], 40, value = throwing(value));
	}
	truth_print(parts, PARTS);
	return value == 42; // keeps the work
}
