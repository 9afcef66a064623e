/* A program that samples itself: finds which of its functions runs, by a ring of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <tally/ring.h>

static volatile uint64_t sink;

__attribute__((noinline)) static void light(void)
{
	for (int i = 0; i < 1000; i++)
		sink += (uint64_t)i;
}

__attribute__((noinline)) static void heavy(void)
{
	for (int i = 0; i < 9000; i++)
		sink += (uint64_t)i;
}

int main(void)
{
	enum { ROUNDS = 40000, ROUNDS_BETWEEN = 1000 };
	char error[512];
	struct tally_event_ring_options options = { .size = sizeof(options),
						    .period = 100000 /* ns */ };
	struct tally_event_ring *ring = tally_event_ring_open("task-clock:u", &options, error,
							      sizeof(error));
	const struct tally_record_header *header;
	struct tally_record record;
	unsigned in_light = 0, in_heavy = 0, elsewhere = 0;

	if (!ring) {
		fprintf(stderr, "self_sample: %s\n", error);
		return 1;
	}
	for (int round = 0; round < ROUNDS; round++) {
		light();
		heavy();
		if (round % ROUNDS_BETWEEN)
			continue;
		while ((header = tally_event_ring_next(ring))) {
			if (header->type != TALLY_RECORD_SAMPLE ||
			    tally_event_ring_decode(ring, header, &record))
				continue;
			/* Both functions are small: less than 256 bytes. */
			uint64_t ip = record.sample.ip;
			if (ip - (uint64_t)(uintptr_t)light < 256 &&
			    ip - (uint64_t)(uintptr_t)light < ip - (uint64_t)(uintptr_t)heavy)
				in_light++;
			else if (ip - (uint64_t)(uintptr_t)heavy < 256)
				in_heavy++;
			else
				elsewhere++;
		}
	}
	printf("light=%u heavy=%u elsewhere=%u lost=%" PRIu64 "\n", in_light, in_heavy, elsewhere,
	       tally_event_ring_lost(ring));
	tally_event_ring_close(ring);
	return 0;
}
