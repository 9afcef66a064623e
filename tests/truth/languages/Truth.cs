// C#: arithmetic, sorting.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

static class Truth {
	static double Now() { return Process.GetCurrentProcess().TotalProcessorTime.TotalMilliseconds; }

	[MethodImpl(MethodImplOptions.NoInlining)]
	static long Leaf() {
		long x = 1;
		for (int i = 0; i < 400000; i++)
			x = (x * 77 + i) & 65535;
		return x;
	}

	[MethodImpl(MethodImplOptions.NoInlining)]
	static long Sorting() {
		var words = new int[5000];
		for (int i = 0; i < words.Length; i++)
			words[i] = i * 7919 % 3001;
		Array.Sort(words, (a, b) => a - b);
		return words[5];
	}

	static double Spend(double ms, Func<long> call) {
		double start = Now(), at = start;
		while (at - start < ms) {
			for (int i = 0; i < 8; i++) // reading the clock takes long
				call();
			at = Now();
		}
		return at - start;
	}

	static void Main() {
		double first = 0, second = 0;
		Leaf();
		Sorting();
		for (int i = 0; i < 8; i++) {
			first += Spend(80, Leaf);
			second += Spend(50, Sorting);
		}
		double whole = Now() / 100; // with the runtime's start: the samples have it
		Console.WriteLine("leaf {0:F2}\nsorting {1:F2}", first / whole, second / whole);
	}
}
