// Call stacks of C++: virtual calls, templates of the library, exceptions on their way through destructors.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))
#define BREAK __asm__ volatile("int3")

volatile int sink;

struct shape {
	virtual ~shape() = default;
	virtual int area(int x) const = 0;
};

struct square : shape {
	NOINLINE int area(int x) const override { sink = sink + x; return x * x; }
};

struct nested : shape {
	std::unique_ptr<shape> inner;
	explicit nested(std::unique_ptr<shape> s) : inner(std::move(s)) {}
	NOINLINE int area(int x) const override { return inner->area(x + 1) + sink; }
};

struct guard {
	int value;
	explicit guard(int v) : value(v) {}
	NOINLINE ~guard() { sink = sink + value; }
};

NOINLINE static int thrower(int depth, const std::string &text)
{
	guard first(depth);
	if (depth == 0)
		throw std::runtime_error(text + " thrown");
	guard second(depth + 1);
	return thrower(depth - 1, text + "x") + first.value + second.value;
}

NOINLINE static int catcher(int depth)
{
	try {
		return thrower(depth, "something longer than a short string");
	} catch (const std::exception &e) {
		return static_cast<int>(std::string(e.what()).size());
	}
}

NOINLINE static int sorts(int count)
{
	std::vector<int> numbers;
	std::map<std::string, int> names;
	for (int i = 0; i < count; i++) {
		numbers.push_back(i * 7919 % count);
		names["name" + std::to_string(i)] = i;
	}
	std::function<bool(int, int)> less = [](int a, int b) { sink = sink + 1; return a < b; };
	std::sort(numbers.begin(), numbers.end(), less);
	return numbers[0] + static_cast<int>(names.size());
}

int main()
{
	BREAK;
	std::unique_ptr<shape> s = std::make_unique<square>();
	for (int i = 0; i < 5; i++)
		s = std::make_unique<nested>(std::move(s));
	sink = s->area(3) + catcher(2) + sorts(3);
	BREAK;
	return 0;
}
