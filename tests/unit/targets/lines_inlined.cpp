// Functions that compilers inline into one another: templates, lambdas, members, local functions.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace shape {
struct point {
	int x, y;
	point(int a, int b) : x(a), y(b) {}
	int dot(const point &other) const { return x * other.x + y * other.y; }
};
static inline int twice(int value) { return value * 2; }
template <class T> inline T within(T value, T low, T high) { return value < low ? low : value > high ? high : value; }
} // namespace shape

namespace {
__attribute__((noinline)) int leaf(int a)
{
	return shape::twice(shape::within(a, 3, 90));
}

struct sums {
	std::vector<int> values;
	~sums() { std::puts("done"); }
	int sum()
	{
		int result = 0;
		for (int value : values)
			result += shape::within(value, 0, 9);
		auto add = [&](int q) { return q + result + leaf(q); };
		std::function<int(int)> indirect = add;
		return indirect(add(result));
	}
};
} // namespace

int main(int argc, char **argv)
{
	sums all;
	for (int i = 0; i < argc * 10; i++)
		all.values.push_back(shape::point(i, argc).dot(shape::point(argc, i)));
	std::map<std::string, int> names;
	for (int i = 0; i < argc; i++)
		names[argv[i]] = i;
	std::sort(all.values.begin(), all.values.end(), [](int x, int y) { return x > y; });
	return (all.sum() + static_cast<int>(names.size())) & 1;
}
