/* The ring between real threads: a writer that signals interrupt, also nested, as interrupts do on
 * a CPU, and a reader on another CPU.  It runs for half a second.  It is also built with
 * ThreadSanitizer (scripts/check), which knows for every access whether an order protects it. */
#include "test.h"

#include "engine/ring_buffer.c"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum { RING_SIZE = 4096, SOURCES = 3, RUN_MS = 500, WORDS_MAX = 12 };

static struct {
	struct tally_engine engine;
	struct engine_ring ring;
	struct engine_event event;
	struct tally_user_page *page;
	pthread_t writer;
	uint64_t attempts[SOURCES]; /* by source: task level and two signals; the writer thread's */
	atomic_bool over, written;
	atomic_uint pended;
} shared; /* static, since signal handlers have no argument for it */

void engine_event_pend(struct engine_event *event, uint32_t what)
{
	(void)event, (void)what;
	atomic_fetch_add_explicit(&shared.pended, 1, memory_order_relaxed);
}

size_t engine_sample_id(struct engine_event *event, uint8_t *bytes)
{
	(void)event, (void)bytes;
	return 0;
}

static bool over(void)
{
	return atomic_load_explicit(&shared.over, memory_order_relaxed);
}

/* Writes header, source, number, then words computed from both. */
static void write_one(unsigned source)
{
	uint64_t number = shared.attempts[source]++, words[2 + WORDS_MAX] = { source, number };
	unsigned more = (unsigned)(number % (WORDS_MAX + 1));
	struct tally_record_header header = { .type = TALLY_RECORD_SAMPLE,
					      .size = (uint16_t)(24 + more * 8) };
	struct engine_output output;

	for (unsigned i = 0; i < more; i++)
		words[2 + i] = number * 31 + source + i;
	if (engine_output_begin(&output, &shared.event, header.size))
		return;
	engine_output_copy(&output, &header, sizeof(header));
	for (unsigned i = 0; i < 2 + more; i++)
		engine_output_copy(&output, &words[i], sizeof(words[i]));
	engine_output_sampled(&output);
	engine_output_end(&output);
}

static void interrupt(int signal)
{
	write_one(signal == SIGUSR1 ? 1 : 2);
}

static void *write_all(void *unused)
{
	struct timespec none = { 0 };
	while (!over()) {
		for (unsigned i = 0; i < 20; i++)
			write_one(0);
		nanosleep(&none, NULL); /* the sanitizer delivers signals only at calls */
	}
	sigset_t both;
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &both, NULL);
	atomic_store_explicit(&shared.written, true, memory_order_release);
	return unused;
}

/* Sends signals at any time; SIGUSR2 also during SIGUSR1. */
static void *interrupt_all(void *unused)
{
	for (unsigned i = 0; !over(); i++) {
		struct timespec pause = { .tv_nsec = 1000 + i % 7 * 4000 };
		pthread_kill(shared.writer, SIGUSR1);
		if (i % 3)
			pthread_kill(shared.writer, SIGUSR2);
		nanosleep(&pause, NULL);
	}
	return unused;
}

struct reader {
	uint64_t tail, received, lost, last[SOURCES];
	unsigned complaints;
};

static uint64_t word_at(uint64_t at)
{
	uint64_t word;
	memcpy(&word, shared.ring.data + (at & (RING_SIZE - 1)), sizeof(word));
	return word;
}

static void read_one(struct reader *reader, uint64_t head)
{
	uint64_t first = word_at(reader->tail), source = word_at(reader->tail + 8),
		 number = word_at(reader->tail + 16);
	struct tally_record_header header;

	memcpy(&header, &first, sizeof(header));
	if (header.size < 24 || head - reader->tail < header.size) {
		reader->complaints++;
		reader->tail = head;
		return;
	}
	if (header.type == TALLY_RECORD_LOST) {
		reader->lost += number;
	} else if (header.type != TALLY_RECORD_SAMPLE || source >= SOURCES ||
		   number < reader->last[source]) {
		reader->complaints++;
	} else {
		reader->received++;
		reader->last[source] = number + 1;
		reader->complaints += header.size != 24 + number % (WORDS_MAX + 1) * 8;
		for (unsigned i = 0; i < number % (WORDS_MAX + 1); i++)
			reader->complaints += word_at(reader->tail + 24 + i * 8) !=
					      number * 31 + source + i;
	}
	reader->tail += header.size;
}

static void *read_all(void *context)
{
	struct reader *reader = context;
	for (unsigned turn = 0;; turn++) {
		/* sometimes so slow that the ring is full */
		struct timespec slow = { .tv_nsec = turn / 64 % 4 * 20000 };
		bool last = atomic_load_explicit(&shared.written, memory_order_acquire);
		uint64_t head = __atomic_load_n(&shared.page->data_head, __ATOMIC_ACQUIRE); /* C */
		while (reader->tail != head)
			read_one(reader, head);
		__atomic_store_n(&shared.page->data_tail, head, __ATOMIC_RELEASE); /* D */
		if (last)
			return NULL;
		nanosleep(&slow, NULL);
	}
}

static void records_and_losses_are_exact_between_threads(void **state)
{
	pthread_t interrupter, reads;
	struct reader reader = { 0 };
	struct timespec run = { .tv_nsec = RUN_MS * 1000000 };
	struct sigaction action = { .sa_handler = interrupt };
	struct engine_ring *ring = &shared.ring;
	uint64_t attempts = 0;

	(void)state;
	shared.page = aligned_alloc(4096, 4096 + RING_SIZE);
	memset(shared.page, 0, 4096 + RING_SIZE);
	*ring = (struct engine_ring){ .engine = &shared.engine,
				      .page = shared.page,
				      .size = RING_SIZE,
				      .data = (uint8_t *)shared.page + 4096,
				      .watermark = RING_SIZE / 2 };
	shared.event = (struct engine_event){ .engine = &shared.engine, .ring = ring };
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	assert_int_equal(pthread_create(&shared.writer, NULL, write_all, NULL), 0);
	assert_int_equal(pthread_create(&reads, NULL, read_all, &reader), 0);
	assert_int_equal(pthread_create(&interrupter, NULL, interrupt_all, NULL), 0);
	nanosleep(&run, NULL);
	atomic_store(&shared.over, true);
	pthread_join(interrupter, NULL); /* join it before the writer, which it signals */
	pthread_join(shared.writer, NULL);
	pthread_join(reads, NULL);

	for (unsigned i = 0; i < SOURCES; i++)
		attempts += shared.attempts[i];
	print_message("# %llu records, %llu of them in signals; %llu lost; %u wake-ups\n",
		      (unsigned long long)attempts,
		      (unsigned long long)(attempts - shared.attempts[0]),
		      (unsigned long long)(reader.lost + ring->lost), atomic_load(&shared.pended));
	assert_int_equal(reader.complaints, 0);
	assert_int_equal(ring->nest, 0);
	assert_int_equal(shared.page->data_head, ring->head);
	assert_int_equal(reader.received + reader.lost + ring->lost, attempts);
	assert_true(reader.received && shared.attempts[1] && shared.attempts[2]);
	/* Each half ring makes one, reported by the writer that passed it and by those that it
	 * interrupted. */
	assert_in_range(atomic_load(&shared.pended), 1, SOURCES * (ring->head / ring->watermark));
	free(shared.page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_and_losses_are_exact_between_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
