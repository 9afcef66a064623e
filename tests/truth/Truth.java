/**
 * Java with known shares of the process's CPU time: a compiled leaf, a sort with a comparator,
 * strings.
 */
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.function.LongUnaryOperator;

public class Truth
{
	static final String[] NAMES = { "leaf", "sorting", "building" };
	static final long[] PARTS = new long[NAMES.length];

	static long now()
	{
		return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
	}

	static long leaf(long value)
	{
		for (int i = 0; i < 1000000; i++)
			value = value * 6364136223846793005L + 1442695040888963407L;
		return value;
	}

	static long sorting(long value)
	{
		Long[] numbers = new Long[10000];
		for (int i = 0; i < numbers.length; i++)
			numbers[i] = value = value * 6364136223846793005L + 1442695040888963407L;
		Arrays.sort(numbers, (a, b) -> Long.compare(b, a));
		return numbers[numbers.length / 2];
	}

	static long building(long value)
	{
		StringBuilder text = new StringBuilder();
		for (int i = 0; i < 20000; i++)
			text.append(value + i).append(',');
		return value + text.toString().hashCode();
	}

	static long spend(int part, long milliseconds, LongUnaryOperator call, long value)
	{
		long start = now(), at = start;
		while (at - start < milliseconds * 1000000) {
			value = call.applyAsLong(value);
			at = now();
		}
		PARTS[part] += at - start;
		return value;
	}

	static long drive(long value)
	{
		for (int i = 0; i < 28; i++) {
			value = spend(0, 75, Truth::leaf, value);
			value = spend(1, 45, Truth::sorting, value);
			value = spend(2, 30, Truth::building, value);
		}
		return value;
	}

	public static void main(String[] arguments)
	{
		long value = drive(1);
		// The compilers and collectors have threads of their own, so the shares are parts of
		// this thread's time.
		double whole = now() / 100.0;
		for (int i = 0; i < NAMES.length; i++)
			System.out.printf("%s %.2f%n", NAMES[i], PARTS[i] / whole);
		if (value == 42)
			System.out.println();
	}
}
