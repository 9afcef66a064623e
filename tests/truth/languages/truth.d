// D: arithmetic, sorting by a lambda.
import core.stdc.time : clock, CLOCKS_PER_SEC;
import std.algorithm : sort;
import std.stdio : writefln;

__gshared long sum;

pragma(inline, false) void leaf()
{
	long x = 1;
	foreach (i; 0 .. 400_000)
		x = (x * 77 + i) & 65_535;
	sum += x;
}

pragma(inline, false) void sorting()
{
	auto items = new int[5000];
	foreach (i, ref item; items)
		item = cast(int) i * 7919 % 3001;
	items.sort!((a, b) => a > b);
	sum += items[5];
}

double now()
{
	return 1000.0 * clock() / CLOCKS_PER_SEC;
}

double spend(double ms, void function() call)
{
	immutable start = now();
	while (now() - start < ms)
		call();
	return now() - start;
}

void main()
{
	double first = 0, second = 0;
	foreach (round; 0 .. 8)
	{
		first += spend(80, &leaf);
		second += spend(50, &sorting);
	}
	writefln("leaf %.2f\nsorting %.2f", 100 * first / (first + second), 100 * second / (first + second));
}
