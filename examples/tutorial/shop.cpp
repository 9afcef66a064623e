// Sums up a shop's orders by customer, for a number of rounds.  Built with -DSORTED it finds customers in a sorted list by
// binary search, otherwise by walking along the list.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct customer {
	int number;
	long cents;
};

#define NOT_INLINED __attribute__((noinline))

#ifdef SORTED
NOT_INLINED static customer &find_customer(std::vector<customer> &customers, int number)
{
	return *std::lower_bound(customers.begin(), customers.end(), number,
				 [](const customer &each, int wanted) { return each.number < wanted; });
}
#else
NOT_INLINED static customer &find_customer(std::vector<customer> &customers, int number)
{
	auto each = customers.begin();
	while (each->number != number)
		++each;
	return *each;
}
#endif

// Returns the price of an order: the sum of its items' prices.
NOT_INLINED static long price_of(unsigned order)
{
	long cents = 0;
	for (int item = 0; item < 250; item++) {
		order = order * 1664525 + 1013904223;
		cents += (order >> 16) % 1000;
	}
	return cents;
}

NOT_INLINED static void take_orders(std::vector<customer> &customers)
{
	for (unsigned order = 0; order < 10000; order++)
		find_customer(customers, order * 7 % customers.size()).cents += price_of(order);
}

int main(int, char **argv)
{
	const int rounds = argv[1] ? std::atoi(argv[1]) : 30;
	std::vector<customer> customers;
	for (int number = 0; number < 4000; number++)
		customers.push_back({ number, 0 });
	for (int round = 0; round < rounds; round++)
		take_orders(customers);
	long cents = 0;
	for (const customer &each : customers)
		cents += each.cents;
	std::printf("%ld.%02ld\n", cents / 100, cents % 100);
}
