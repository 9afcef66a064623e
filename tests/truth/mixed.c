/* An executable with frame pointers that spends most of its time in libraries without them:
 * libcrypto's hand-written assembly, and the C library's sort with a comparator in the executable.
 * It waits for its recorder if told to (truth_begin). */
#include "truth.h"
#include <dlfcn.h>

enum { HASHING, SORTING, OWN, PARTS };
enum { ROUNDS = 12, BYTES = 64 << 10, NUMBERS = 2000 };

static struct truth_part parts[PARTS] = { { "hashing", 0 }, { "sorting", 0 }, { "own", 0 } };
static unsigned char *(*sha256)(const unsigned char *data, size_t size, unsigned char *digest);

TRUTH_FUNCTION uint64_t hashing(uint64_t value)
{
	static unsigned char data[BYTES], digest[64];
	data[value % BYTES]++;
	sha256(data, BYTES, digest);
	return value + digest[0];
}

TRUTH_FUNCTION int by_number(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
	return (one > other) - (one < other);
}

TRUTH_FUNCTION uint64_t sorting(uint64_t value)
{
	static uint64_t numbers[NUMBERS];
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = value = value * 6364136223846793005u + 1442695040888963407u;
	qsort(numbers, NUMBERS, sizeof(numbers[0]), by_number);
	return numbers[NUMBERS / 2];
}

TRUTH_FUNCTION uint64_t own(uint64_t value)
{
	return truth_work(value) + 1;
}

TRUTH_FUNCTION uint64_t drive(uint64_t value)
{
	for (int i = 0; i < ROUNDS; i++) {
		TRUTH_SPEND(&parts[HASHING], 75, value = hashing(value));
		TRUTH_SPEND(&parts[SORTING], 45, value = sorting(value));
		TRUTH_SPEND(&parts[OWN], 30, value = own(value));
	}
	return value;
}

int main(void)
{
	void *library = dlopen("libcrypto.so.3", RTLD_NOW);
	uint64_t value = 1;
	if (!library)
		library = dlopen("libcrypto.so.1.1", RTLD_NOW);
	if (!library || !(sha256 = (unsigned char *(*)(const unsigned char *, size_t,
						       unsigned char *))dlsym(library, "SHA256"))) {
		puts("skip no libcrypto here: apt-get install libssl3");
		return 0;
	}
	truth_begin();
	value = drive(value);
	truth_print(parts, PARTS);
	return value == 42; /* keeps the compiler from removing the work */
}
