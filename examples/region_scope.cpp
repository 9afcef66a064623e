/* Regions in C++: they end with their block, by an exception, too.
 *
 *     TALLY_REPORT=table ./region_scope */
#include <cstdio>
#include <stdexcept>
#include <string>
#include <tally/region.h>
#include <vector>

static long parse(const std::string &text)
{
	TALLY_REGION("parse");
	return std::stol(text); /* may throw */
}

int main()
{
	std::vector<std::string> texts;
	long sum = 0, bad = 0;
	{
		tally::region whole("make texts"); /* what TALLY_REGION() declares */
		for (int i = 0; i < 1000; i++)
			texts.push_back(i % 10 ? std::to_string(i) : "none");
	}
	for (const std::string &text : texts) {
		try {
			sum += parse(text);
		} catch (const std::invalid_argument &) {
			bad++;
		}
	}
	tally_region_figures figures;
	if (tally_region_read("parse", nullptr, &figures, sizeof(figures)) < 0)
		return 1;
	std::printf("sum=%ld\nbad=%ld\nparsed=%llu\n", sum, bad, (unsigned long long)figures.calls);
	return 0;
}
