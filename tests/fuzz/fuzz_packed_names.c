/* Takes bytes as tally's own section: names of places, stacks of samples.
 *
 * Byte 0 odd: the section as it is.  Even: three lengths of 16 bits, then the unpacked bytes of
 * parts 1 to 4; the last one has the rest, which also serves as parts 5 and 6.  They are packed
 * first, since a checksum refuses other bytes.  The test looks up the names, and writes and reads
 * the stacks again, with the same result. */
#include "fuzz.h"

#include "base/reader.h"
#include "naming/packed.h"
#include "perfdata/perfdata.h"
#include "symbol/jit_dump.h"
#include "task/task.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void look_at_codes(const void *section, size_t size, const struct tally_packed_names *packed)
{
	struct tally_packed_codes *codes = NULL;
	unsigned sum = 0;
	if (tally_packed_codes_read(section, size, packed, &codes) <= 0) {
		require(!codes);
		return;
	}
	for (size_t i = 0; i < codes->codes.count; i++) {
		const struct tally_packed_code *code = &codes->codes.items[i];
		require(tally_packed_code_find(codes, code->function) == code);
		for (size_t at = 0; at < code->size; at++) {
			const struct tally_packed_code_row *row = tally_packed_code_row(codes, code,
											at);
			require(!row || row->offset <= at);
			sum += code->bytes[at];
		}
		for (size_t at = 0; at < code->target_count; at++) {
			const struct tally_packed_code_target *target =
				&codes->targets.items[code->first_target + at];
			require(tally_packed_code_target(codes, code, target->address) == target);
		}
	}
	require(sum < UINT_MAX);
	tally_packed_codes_free(codes);
}

static void look_at_names(const void *section, size_t size)
{
	struct tally_packed_names *packed = NULL;
	const struct tally_tasks tasks = { 0 };
	if (tally_packed_names_read(section, size, &packed) <= 0) {
		require(!packed);
		return;
	}
	for (size_t i = 0; i < packed->functions.count; i++)
		require(strlen(packed->functions.items[i].object) < size * 2000 + 16);
	for (size_t i = 0; i < packed->objects.count; i++) {
		const struct tally_packed_object *object = &packed->objects.items[i];
		require(object->first + (size_t)object->count <= packed->places.count);
	}
	for (size_t i = 0; i < packed->places.count; i++) {
		const struct tally_packed_place *place = &packed->places.items[i];
		require(place->count &&
			place->first + (size_t)place->count <= packed->frames.count);
		for (uint32_t frame = 0; frame < place->count; frame++)
			require(packed->frames.items[place->first + frame].function <
				packed->functions.count);
		require(place->late_first + (size_t)place->late_count <= packed->frames.count);
	}
	const struct tally_packed_object *kernel =
		packed->kernel == UINT32_MAX ? NULL : &packed->objects.items[packed->kernel];
	for (uint32_t i = 0; kernel && i < kernel->count; i++) {
		const struct tally_packed_place *place = &packed->places.items[kernel->first + i];
		const struct tally_place asked = { .file = TALLY_FILE_KERNEL,
						   .before = place->before,
						   .address = place->address };
		require(tally_packed_names_find(packed, &tasks, TALLY_FILE_KERNEL, &asked) ==
			place);
	}
	look_at_codes(section, size, packed);
	tally_packed_names_free(packed);
}

static void write_again(const struct tally_packed_stacks *stacks)
{
	struct tally_buffer section = { 0 };
	struct tally_packed_stacks *again = NULL;
	tally_own_feature_begin(&section);
	tally_packed_stacks_write(stacks, &section);
	if (!section.failed &&
	    tally_packed_stacks_read(section.bytes, section.length, &again) > 0) {
		require(again->chains.count == stacks->chains.count &&
			again->samples.count == stacks->samples.count);
		for (uint64_t i = 0; i < stacks->samples.count; i++) {
			struct tally_unwound_stack a, b;
			struct tally_packed_need need_a, need_b;
			require(tally_packed_stacks_at(stacks, i, &a, &need_a) &&
				tally_packed_stacks_at(again, i, &b, &need_b));
			require(a.count == b.count && a.is_cut == b.is_cut &&
				need_a.is_at_most == need_b.is_at_most);
			require(!a.count ||
				!memcmp(a.addresses, b.addresses, a.count * sizeof(*a.addresses)));
		}
	}
	tally_packed_stacks_free(again);
	tally_buffer_release(&section);
}

static void look_at_stacks(const void *section, size_t size)
{
	struct tally_packed_stacks *stacks = NULL;
	if (tally_packed_stacks_read(section, size, &stacks) > 0)
		write_again(stacks);
	tally_packed_stacks_free(stacks);
}

/* Looks up the code of "/tmp/jit-1.dump", inode 7. */
static void look_at_jits(const void *section, size_t size)
{
	struct tally_tasks tasks = { 0 };
	struct tally_jit_dump *dump;
	struct tally_packed_jits *jits = NULL;
	struct tally_record record = {
		.header = { .type = TALLY_RECORD_MMAP2 },
		.mmap = { .pid = 1,
			  .tid = 1,
			  .start = 4096,
			  .length = 4096,
			  .has_inode = true,
			  .inode = 7,
			  .filename = "/tmp/jit-1.dump" },
	};
	if (!tally_tasks_record(&tasks, &record) && tasks.files.count &&
	    !tally_packed_jits_new(section, size, &jits) &&
	    tally_packed_jits_find(jits, &tasks, 0, &dump) > 0) {
		for (size_t i = 0; i < dump->places.count; i++) {
			const struct tally_jit_place *place = &dump->places.items[i];
			const struct tally_jit_place *found = tally_jit_dump_find(
				dump, place->address, i + 1);
			require(place->function < dump->functions.count && found == place);
		}
		tally_jit_dump_free(dump);
	}
	tally_packed_jits_free(jits);
	tally_tasks_release(&tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_buffer section = { 0 };
	struct tally_reader reader;
	if (!size)
		return 0;
	tally_reader_init(&reader, data + 1, size - 1, false);
	if (data[0] & 1) {
		tally_buffer_append(&section, reader.at, tally_reader_left(&reader));
	} else {
		uint16_t lengths[3];
		tally_own_feature_begin(&section);
		for (unsigned i = 0; i < 3; i++)
			lengths[i] = tally_reader_u16(&reader);
		for (unsigned i = 0; i < 4; i++) {
			size_t left = tally_reader_left(&reader),
			       length = i < 3 && lengths[i] < left ? lengths[i] : left;
			const void *bytes = tally_reader_bytes(&reader, length);
			tally_own_feature_add(&section, TALLY_OWN_STRINGS + i, bytes ? bytes : "",
					      bytes ? length : 0);
			for (enum tally_own_part type = TALLY_OWN_JITS;
			     i == 3 && type <= TALLY_OWN_CAUSES; type++)
				tally_own_feature_add(&section, type, bytes ? bytes : "",
						      bytes ? length : 0);
		}
	}
	look_at_names(tally_buffer_string(&section), section.length);
	look_at_stacks(tally_buffer_string(&section), section.length);
	look_at_jits(tally_buffer_string(&section), section.length);
	tally_buffer_release(&section);
	return 0;
}
