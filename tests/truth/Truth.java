/**
 * Java with known shares of a thread's CPU time: a compiled leaf, a sort with a comparator, strings.
 *
 * The thread "truth" does nothing else.  The main thread warms up: how long code is interpreted, in
 * frames that no map names, and how long the virtual machine takes to start, print and end, depends
 * on the machine.
 */
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.function.LongUnaryOperator;

public class Truth
{
	static final String[] NAMES = { "leaf", "sorting", "building" };
	static final long[] PARTS = new long[NAMES.length];
	static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
	static long value = 1, whole;

	static long now()
	{
		return THREADS.getCurrentThreadCpuTime();
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
		long start = now(), at;
		do {
			value = call.applyAsLong(value);
			at = now();
		} while (at - start < milliseconds * 1000000);
		PARTS[part] += at - start;
		return value;
	}

	// Each part in turn, for its time; while warming up, once, so that all machines call it as often.
	static void drive(int rounds, long milliseconds)
	{
		for (int i = 0; i < rounds; i++) {
			value = spend(0, 5 * milliseconds, Truth::leaf, value);
			value = spend(1, 3 * milliseconds, Truth::sorting, value);
			value = spend(2, 2 * milliseconds, Truth::building, value);
		}
	}

	static void measure()
	{
		drive(16, 15);
		whole = now();
	}

	public static void main(String[] arguments) throws InterruptedException
	{
		drive(300, 0);
		Arrays.fill(PARTS, 0);
		Thread thread = new Thread(Truth::measure, "truth");
		thread.start();
		thread.join();
		for (int i = 0; i < NAMES.length; i++)
			System.out.printf("%s %.2f%n", NAMES[i], PARTS[i] * 100.0 / whole);
		if (value == 42)
			System.out.println();
	}
}
