/* SPEC D2: a ring's reader, on memory from a provider of the test's own. */
#include "test.h"

#include "session/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake {
	struct tally_provider provider;
	struct tally_user_page *page;
	uint8_t *data;
	size_t bytes;
	int refuse; /* errno */
	unsigned unmapped;
};

static struct tally_user_page *fake_map(struct tally_provider *provider, int handle,
					size_t data_pages, int overwrite)
{
	struct fake *fake = (struct fake *)provider;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	(void)handle;
	(void)overwrite;
	if (fake->refuse) {
		errno = fake->refuse;
		return NULL;
	}
	fake->bytes = data_pages * page;
	fake->page = mmap(NULL, page + fake->bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(fake->page, MAP_FAILED);
	fake->data = (uint8_t *)fake->page + page;
	return fake->page;
}

static void fake_unmap(struct tally_provider *provider, struct tally_user_page *user_page,
		       size_t data_pages)
{
	struct fake *fake = (struct fake *)provider;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	assert_ptr_equal(user_page, fake->page);
	assert_int_equal(data_pages * page, fake->bytes);
	munmap(user_page, (data_pages + 1) * page);
	fake->unmapped++;
}

static const struct tally_provider_ops fake_ops = { .name = "fake",
						    .map = fake_map,
						    .unmap = fake_unmap };

static void open_fake(struct fake *fake, struct tally_ring *ring)
{
	*fake = (struct fake){ .provider = { &fake_ops } };
	assert_int_equal(tally_ring_open(ring, &fake->provider, 5, 1, 1), 0);
	assert_int_equal(ring->handle, 5);
	assert_int_equal(ring->cpu, 1);
}

/* Writes a record like the kernel: bytes with its number plus their place, then the head. */
static void write_record(struct fake *fake, uint8_t number, uint16_t size)
{
	uint8_t bytes[UINT16_MAX];
	struct tally_record_header header = { .type = TALLY_RECORD_SAMPLE, .size = size };
	for (unsigned i = 0; i < size; i++)
		bytes[i] = (uint8_t)(number + i);
	memcpy(bytes, &header, sizeof(header));
	for (unsigned i = 0; i < size; i++)
		fake->data[(fake->page->data_head + i) % fake->bytes] = bytes[i];
	fake->page->data_head += size;
}

static void assert_record(struct tally_ring *ring, uint8_t number, uint16_t expected)
{
	size_t size = 0;
	const uint8_t *bytes = tally_ring_next(ring, &size);
	assert_non_null(bytes);
	assert_int_equal(size, expected);
	for (unsigned i = sizeof(struct tally_record_header); i < size; i++)
		assert_int_equal(bytes[i], (uint8_t)(number + i));
}

static void records_come_in_order_up_to_the_noted_head(void **state)
{
	(void)state;
	struct fake fake;
	struct tally_ring ring;
	size_t size;
	open_fake(&fake, &ring);
	assert_null(tally_ring_next(&ring, &size));
	write_record(&fake, 1, 32);
	write_record(&fake, 2, 8);
	assert_null(tally_ring_next(&ring, &size)); /* not noted yet */
	tally_ring_note(&ring);
	write_record(&fake, 3, 16);
	assert_record(&ring, 1, 32);
	assert_record(&ring, 2, 8);
	assert_null(tally_ring_next(&ring, &size));
	tally_ring_note(&ring);
	assert_record(&ring, 3, 16);
	assert_null(tally_ring_next(&ring, &size));
	tally_ring_close(&ring);
}

static void what_was_read_is_given_back_when_said(void **state)
{
	(void)state;
	struct fake fake;
	struct tally_ring ring;
	open_fake(&fake, &ring);
	write_record(&fake, 1, 64);
	tally_ring_note(&ring);
	assert_record(&ring, 1, 64);
	assert_int_equal(fake.page->data_tail, 0);
	tally_ring_release_read(&ring);
	assert_int_equal(fake.page->data_tail, 64);
	tally_ring_close(&ring);
	assert_int_equal(fake.unmapped, 1);
	assert_null(ring.page);
	tally_ring_close(&ring); /* a second close does nothing */
	assert_int_equal(fake.unmapped, 1);
}

static void a_record_that_wraps_comes_in_one_piece(void **state)
{
	(void)state;
	struct fake fake;
	struct tally_ring ring;
	open_fake(&fake, &ring);
	/* Goes around the ring many times, with sizes that end at every multiple of 8 before its
	 * end. */
	for (unsigned i = 0; i < 3000; i++) {
		uint16_t size = (uint16_t)(8 + i % 63 * 8);
		write_record(&fake, (uint8_t)i, size);
		tally_ring_note(&ring);
		assert_record(&ring, (uint8_t)i, size);
		tally_ring_release_read(&ring);
	}
	assert_true(ring.tail > 100 * fake.bytes);
	tally_ring_close(&ring);
}

static void the_largest_record_fills_the_ring(void **state)
{
	(void)state;
	struct fake fake;
	struct tally_ring ring;
	open_fake(&fake, &ring);
	write_record(&fake, 7, 24);
	tally_ring_note(&ring);
	assert_record(&ring, 7, 24);
	tally_ring_release_read(&ring);
	write_record(&fake, 9, (uint16_t)fake.bytes);
	tally_ring_note(&ring);
	assert_record(&ring, 9, (uint16_t)fake.bytes);
	tally_ring_close(&ring);
}

static void a_head_that_overflowed_64_bits_is_none(void **state)
{
	(void)state;
	struct fake fake;
	struct tally_ring ring;
	open_fake(&fake, &ring);
	ring.tail = ring.noted = fake.page->data_head = (uint64_t)0 - 16;
	write_record(&fake, 1, 24);
	write_record(&fake, 2, 16);
	tally_ring_note(&ring);
	assert_record(&ring, 1, 24);
	assert_record(&ring, 2, 16);
	tally_ring_close(&ring);
}

static void a_size_that_makes_no_sense_empties_the_ring(void **state)
{
	(void)state;
	static const uint16_t sizes[] = { 0, 1, 7, 48, UINT16_MAX };
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fake fake;
		struct tally_ring ring;
		size_t size;
		open_fake(&fake, &ring);
		write_record(&fake, 1, 16);
		write_record(&fake, 2, 40);
		memcpy(fake.data + 16 + offsetof(struct tally_record_header, size), &sizes[i],
		       sizeof(sizes[i]));
		tally_ring_note(&ring);
		assert_record(&ring, 1, 16);
		assert_null(tally_ring_next(&ring, &size));
		tally_ring_release_read(&ring);
		assert_int_equal(fake.page->data_tail, fake.page->data_head);
		write_record(&fake, 3, 32); /* and reading continues */
		tally_ring_note(&ring);
		assert_record(&ring, 3, 32);
		tally_ring_close(&ring);
	}
}

static void what_mapping_fails_with_is_told(void **state)
{
	(void)state;
	struct fake fake = { .provider = { &fake_ops }, .refuse = EPERM };
	struct tally_ring ring = { 0 };
	assert_int_equal(tally_ring_open(&ring, &fake.provider, 1, 0, 8), -EPERM);
	assert_null(ring.page);
	tally_ring_close(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_in_order_up_to_the_noted_head),
		cmocka_unit_test(what_was_read_is_given_back_when_said),
		cmocka_unit_test(a_record_that_wraps_comes_in_one_piece),
		cmocka_unit_test(the_largest_record_fills_the_ring),
		cmocka_unit_test(a_head_that_overflowed_64_bits_is_none),
		cmocka_unit_test(a_size_that_makes_no_sense_empties_the_ring),
		cmocka_unit_test(what_mapping_fails_with_is_told),
	};
	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
