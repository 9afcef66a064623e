#include "test.h"

#include "object_fixture.h"
#include "random.h"

#include "base/buffer.h"
#include "base/unpack.h"
#include "object/object.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tally_object *open_self(void)
{
	struct tally_object *object = NULL;
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_object_open(AT_FDCWD, "/proc/self/exe", &object, &err) < 0)
		fail_msg("%s", err.message);
	return object;
}

/* Makes a copy of this program, altered by a command. */
static void make_fixture(void **state, const char *command)
{
	char line[1024];
	snprintf(line, sizeof(line), "cp /proc/%d/exe prog && %s", (int)getpid(), command);
	if (!run(*state, line))
		skip();
}

static struct tally_object *open_fixture(void **state, const char *name)
{
	return open_in(*state, name);
}

struct notes {
	struct tally_build_id id;
	uintptr_t base;
};

static int note_build_id(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	struct notes *notes = context;
	notes->base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE &&
		    tally_build_id_from_notes(
			    (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
			    info->dlpi_phdr[i].p_memsz, &notes->id))
			break;
	return 1; /* the first object is the program */
}

static void file_and_memory_agree(void **state)
{
	(void)state;
	struct notes notes = { 0 };
	dl_iterate_phdr(note_build_id, &notes);
	struct tally_object *object = open_self();
	assert_true(notes.id.size > 0);
	assert_true(tally_build_id_equal(&notes.id, tally_object_build_id(object)));
	assert_true(tally_object_is_64bit(object));
	assert_false(tally_object_is_swapped(object));

	uint64_t address = (uintptr_t)note_build_id - notes.base;
	size_t available;
	const uint8_t *bytes = tally_object_bytes_at(object, address, &available);
	assert_non_null(bytes);
	assert_true(available >= 32);
	assert_memory_equal(bytes, (const void *)note_build_id, 32);

	struct tally_section text;
	assert_true(tally_object_section(object, ".text", &text));
	assert_true(address >= text.address && address < text.address + text.size);
	assert_ptr_equal(text.bytes + (address - text.address), bytes);
	uint64_t again;
	assert_true(tally_object_address_of_offset(
		object, address - text.address + text.file_offset, &again));
	assert_int_equal(again, address);

	size_t size;
	tally_object_image(object, &size);
	assert_false(tally_object_address_of_offset(object, size + (1 << 20), &again));
	assert_null(tally_object_bytes_at(object, UINT64_MAX, &available));
	assert_int_equal(available, 0);
	struct tally_section bss;
	assert_true(tally_object_section(object, ".bss", &bss));
	assert_null(bss.bytes);
	assert_false(tally_object_section(object, ".no_such_section", &bss));
	tally_object_unref(object);
}

static void vdso_opens_from_memory(void **state)
{
	(void)state;
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	if (!vdso)
		skip();
	struct tally_object *object = NULL;
	assert_int_equal(tally_object_open_memory("[vdso]", vdso, 4096, &object, NULL), 0);
	assert_string_equal(tally_object_path(object), "[vdso]");
	assert_int_equal(tally_object_type(object), ET_DYN);
	assert_true(tally_object_build_id(object)->size > 0);
	tally_object_unref(object);
}

static void references_keep_it_open(void **state)
{
	(void)state;
	struct tally_object *object = open_self();
	assert_ptr_equal(tally_object_ref(object), object);
	tally_object_unref(object);
	struct tally_section text;
	assert_true(tally_object_section(object, ".text", &text));
	tally_object_unref(object);
	tally_object_unref(NULL);
}

static void what_is_no_elf_file_says_so(void **state)
{
	struct tally_object *object = NULL;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_object_open(AT_FDCWD, "/nonexistent", &object, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/nonexistent"));
	assert_int_equal(tally_object_open(AT_FDCWD, "/dev/zero", &object, &err), -ENOEXEC);
	assert_int_equal(tally_object_open(AT_FDCWD, "/proc/self/status", &object, &err), -ENOEXEC);
	assert_int_equal(tally_object_open(AT_FDCWD, "/etc/passwd", &object, &err), -ENOEXEC);
	assert_int_equal(tally_object_open(AT_FDCWD, "/tmp", &object, &err), -ENOEXEC);
	assert_int_equal(tally_object_open_memory("empty", "", 0, &object, &err), -ENOEXEC);
	assert_int_equal(
		tally_object_open_memory("ar", "!<arch>\n                    ", 28, &object, &err),
		-ENOEXEC);
	char path[256];
	snprintf(path, sizeof(path), "%s/pipe", (const char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(tally_object_open(AT_FDCWD, path, &object, &err), -ENOEXEC);
}

static void links_do_not_lead_out_of_a_root(void **state)
{
	make_fixture(state,
		     "mkdir -p root/bin && mv prog root/bin/inside && cp /etc/passwd outside && "
		     "ln -s /bin/inside root/link && ln -s ../../../outside root/escape");
	int root = openat(AT_FDCWD, *state, O_PATH | O_DIRECTORY);
	assert_true(root >= 0);
	int inside = openat(root, "root", O_PATH | O_DIRECTORY);
	struct tally_object *object = NULL;
	int rc = tally_object_open_in_root(inside, "/link", &object, NULL);
	if (rc == -ENOSYS)
		skip();
	assert_int_equal(rc, 0);
	tally_object_unref(object);
	assert_int_equal(tally_object_open_in_root(inside, "/escape", &object, NULL), -ENOENT);
	close(inside);
	close(root);
}

static void a_build_id_is_equal_to_itself_with_zeros_behind(void **state)
{
	(void)state;
	const struct tally_build_id none = { 0 }, eight = { 8, { 1, 2, 3, 4, 5, 6, 7, 8 } },
				    padded = { 20, { 1, 2, 3, 4, 5, 6, 7, 8 } },
				    longer = { 16, { 1, 2, 3, 4, 5, 6, 7, 8, 0, 9 } },
				    other = { 8, { 1, 2, 3, 4, 5, 6, 7, 9 } },
				    zeros = { 20, { 0 } };
	assert_true(tally_build_id_equal(&eight, &padded));
	assert_true(tally_build_id_equal(&padded, &eight));
	assert_true(tally_build_id_equal(&none, &none));
	assert_false(tally_build_id_equal(&eight, &longer));
	assert_false(tally_build_id_equal(&longer, &eight));
	assert_false(tally_build_id_equal(&eight, &other));
	assert_false(tally_build_id_equal(&none, &zeros));
	assert_false(tally_build_id_equal(&eight, &none));
}

static void build_ids_are_read_in_either_byte_order(void **state)
{
	(void)state;
	const uint8_t big[] = { 0,   0,   0, 4, 0, 0, 0,   4,   0,   0, 0,    1,    'G',
				'N', 'U', 0, 1, 2, 3, 4,   0,   0,   0, 4,    0,    0,
				0,   3,   0, 0, 0, 3, 'G', 'N', 'U', 0, 0xca, 0xfe, 0x01 };
	struct tally_build_id id;
	assert_true(tally_build_id_from_notes(big, sizeof(big), &id));
	char text[2 * TALLY_BUILD_ID_MAX + 1];
	tally_build_id_format(&id, text);
	assert_string_equal(text, "cafe01");
	for (size_t size = 0; size < sizeof(big); size++)
		assert_false(tally_build_id_from_notes(big, size, &id));
	tally_build_id_format(&id, text);
	assert_string_equal(text, "");
}

static void debuglink_is_followed_when_the_checksum_fits(void **state)
{
	/* Without a build-id, only the checksum decides. */
	make_fixture(
		state,
		"objcopy -R .note.gnu.build-id prog && objcopy --only-keep-debug prog prog.debug "
		"&& objcopy --strip-all --add-gnu-debuglink=prog.debug prog stripped && ln -s "
		"stripped link");
	struct tally_object *object = open_fixture(state, "link");
	assert_int_equal(tally_object_build_id(object)->size, 0);
	struct tally_section section;
	assert_false(tally_object_section(object, ".symtab", &section));
	struct tally_object *debug = tally_search_debug(NULL, object, NULL);
	assert_non_null(debug);
	assert_true(tally_object_section(debug, ".symtab", &section));
	assert_non_null(section.bytes);
	tally_object_unref(debug);

	assert_true(run(*state, "mkdir .debug && mv prog.debug .debug"));
	debug = tally_search_debug(NULL, object, NULL);
	assert_non_null(debug);
	tally_object_unref(debug);

	int root = open(*state, O_PATH | O_DIRECTORY);
	struct tally_object *in_root = NULL;
	int rc = tally_object_open_in_root(root, "/stripped", &in_root, NULL);
	if (rc != -ENOSYS) {
		assert_int_equal(rc, 0);
		debug = tally_search_debug(&(struct tally_object_search){ .root = *state }, in_root,
					   NULL);
		assert_non_null(debug);
		tally_object_unref(debug);
		tally_object_unref(in_root);
	}
	close(root);

	assert_true(run(*state, "printf x >>.debug/prog.debug"));
	assert_null(tally_search_debug(NULL, object, NULL));
	tally_object_unref(object);
}

static void debug_file_of_another_build_is_refused(void **state)
{
	/* The checksum is right, but the build-id differs. */
	make_fixture(
		state,
		"for n in 1 2; do printf \"int main(void){return $n;}\" | "
		"gcc -Wl,--build-id=0x0$n -g -x c - -o p$n; done; objcopy --only-keep-debug p1 "
		"p1.debug && objcopy --add-gnu-debuglink=p1.debug p1 && objcopy "
		"--add-gnu-debuglink=p1.debug p2");
	struct tally_object *object = open_fixture(state, "p1");
	struct tally_object *debug = tally_search_debug(NULL, object, NULL);
	assert_non_null(debug);
	tally_object_unref(debug);
	tally_object_unref(object);
	object = open_fixture(state, "p2");
	assert_null(tally_search_debug(NULL, object, NULL));
	tally_object_unref(object);
}

static void compressed_sections_are_inflated(void **state, const char *how)
{
	char command[256];
	snprintf(command, sizeof(command), "objcopy --compress-debug-sections=%s prog small", how);
	make_fixture(state, command);
	struct tally_object *plain = open_fixture(state, "prog");
	struct tally_object *small = open_fixture(state, "small");
	static const char *const NAMES[] = { ".debug_info", ".debug_str", ".debug_line",
					     ".debug_abbrev" };
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
			struct tally_section want, got;
			if (!tally_object_section(plain, NAMES[i], &want))
				skip();
			assert_true(tally_object_section(small, NAMES[i], &got));
			assert_int_equal(got.size, want.size);
			assert_memory_equal(got.bytes, want.bytes, want.size);
		}
	tally_object_unref(plain);
	tally_object_unref(small);
}

static void zlib_sections_are_inflated(void **state)
{
	compressed_sections_are_inflated(state, "zlib");
}

static void gnu_zlib_sections_are_inflated(void **state)
{
	compressed_sections_are_inflated(state, "zlib-gnu");
}

static void zstd_sections_are_inflated(void **state)
{
	compressed_sections_are_inflated(state, "zstd");
}

/* Calls the functions of an object and reads bytes throughout what they return, the first and the
 * last included: a bad range makes the sanitizer stop the test. */
static unsigned exercise(const void *bytes, size_t size)
{
	struct tally_object *object = NULL;
	if (tally_object_open_memory("mutant", bytes, size, &object, NULL) < 0)
		return 0;
	unsigned sum = 0;
	struct tally_section section;
	static const char *const NAMES[] = { ".text", ".symtab", ".debug_info", ".eh_frame_hdr",
					     ".gnu_debuglink" };
	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		if (tally_object_section(object, NAMES[i], &section) && section.bytes)
			for (size_t j = 0; j < section.size; j += 61)
				sum += section.bytes[j];
	for (uint32_t i = 0; i < 40; i++)
		if (tally_object_section_at(object, i, &section) && section.bytes && section.size)
			sum += section.bytes[0] + section.bytes[section.size - 1];
	for (uint64_t offset = 0; offset < size; offset += 509) {
		uint64_t address;
		size_t available;
		if (!tally_object_address_of_offset(object, offset, &address))
			continue;
		const uint8_t *at = tally_object_bytes_at(object, address, &available);
		if (at)
			sum += at[0] + at[available - 1];
	}
	tally_object_unref(tally_search_debug(NULL, object, NULL));
	tally_object_unref(object);
	return sum;
}

static void mutants_do_no_harm(void **state)
{
	make_fixture(
		state,
		"printf 'int main(void){return 0;}' | gcc -g -gz -O1 -x c - -o tiny && "
		"objcopy --only-keep-debug tiny tiny.debug && objcopy "
		"--add-gnu-debuglink=tiny.debug tiny");
	char path[256];
	snprintf(path, sizeof(path), "%s/tiny", (const char *)*state);
	struct tally_buffer file = { 0 };
	assert_int_equal(tally_buffer_read_file(&file, AT_FDCWD, path, 1 << 20), 0);
	for (size_t size = 0; size < file.length; size += size < 1024 ? 1 : 97)
		exercise(file.bytes, size);
	/* Changes bits of the headers, which locate everything else. */
	Elf64_Ehdr header;
	memcpy(&header, file.bytes, sizeof(header));
	size_t section_headers = header.e_shoff,
	       section_end = section_headers + header.e_shnum * sizeof(Elf64_Shdr);
	assert_true(section_end <= file.length);
	uint32_t seed = 20240607;
	char *mutant = malloc(file.length);
	for (int round = 0; round < 3000; round++) {
		memcpy(mutant, file.bytes, file.length);
		for (unsigned flips = 1 + next_random32(&seed) % 4; flips > 0; flips--) {
			uint32_t where = next_random32(&seed);
			size_t at = section_headers + where / 4 % (section_end - section_headers);
			if (where & 1)
				at = where / 2 % 1024;
			else if (where & 2)
				at = where / 4 % file.length;
			uint32_t what = next_random32(&seed);
			mutant[at] = (char)(what & 1 ? what >> 8
						     : (unsigned)mutant[at] ^ 1u << what / 2 % 8);
		}
		exercise(mutant, file.length);
	}
	free(mutant);
	tally_buffer_release(&file);
}

/* ---- files that are compressed as a whole ---- */

static void packed_bytes_are_the_same_when_unpacked(void **state)
{
	static const char *const WAYS[] = { "xz", "zstd -q", "gzip" };
	struct tally_buffer plain = { 0 }, packed = { 0 };
	char path[256], line[512];
	assert_true(run(*state, "seq 100000 >plain"));
	snprintf(path, sizeof(path), "%s/plain", (const char *)*state);
	assert_int_equal(tally_buffer_read_file(&plain, AT_FDCWD, path, 1 << 24), 0);
	assert_false(tally_is_packed(plain.bytes, plain.length));
	snprintf(path, sizeof(path), "%s/packed", (const char *)*state);
	for (size_t i = 0; i < sizeof(WAYS) / sizeof(WAYS[0]); i++) {
		uint8_t *out;
		size_t size;
		snprintf(line, sizeof(line), "%s -c <plain >packed", WAYS[i]);
		if (!run(*state, line))
			continue;
		tally_buffer_clear(&packed);
		assert_int_equal(tally_buffer_read_file(&packed, AT_FDCWD, path, 1 << 24), 0);
		assert_true(tally_is_packed(packed.bytes, packed.length));
		assert_int_equal(tally_unpack(packed.bytes, packed.length, 1 << 24, &out, &size),
				 0);
		assert_int_equal(size, plain.length);
		assert_memory_equal(out, plain.bytes, size);
		free(out);
		assert_int_equal(
			tally_unpack(packed.bytes, packed.length, plain.length - 1, &out, &size),
			-EFBIG);
		assert_int_equal(
			tally_unpack(packed.bytes, packed.length - 9, 1 << 24, &out, &size),
			-EBADMSG);
		size_t one = packed.length; /* two compressed files, one behind the other */
		assert_non_null(tally_buffer_room(&packed, one));
		tally_buffer_append(&packed, packed.bytes, one);
		assert_int_equal(tally_unpack(packed.bytes, packed.length, 1 << 24, &out, &size),
				 0);
		assert_int_equal(size, 2 * plain.length);
		free(out);
		packed.length = one;
		memset(packed.bytes + packed.length / 2, 0, 8);
		int rc = tally_unpack(packed.bytes, packed.length, 1 << 24, &out, &size);
		/* a packed file without a checksum may not show the change */
		assert_true(rc == -EBADMSG || rc == 0);
		if (!rc)
			free(out);
	}
	assert_int_equal(tally_unpack(plain.bytes, plain.length, 1 << 24, (uint8_t *[]){ NULL },
				      (size_t[]){ 0 }),
			 -EBADMSG);
	tally_buffer_release(&plain);
	tally_buffer_release(&packed);
}

static void module_names_are_the_kernels(void **state)
{
	(void)state;
	static const struct { const char *path, *name;
	} CASES[] = {
		{ "/lib/modules/6.1.0/kernel/net/nf-tables.ko.xz", "nf_tables" },
		{ "md4.ko", "md4" },
		{ "[snd-pcm]", "snd_pcm" },
		{ "", NULL },
		{ "[]", NULL },
		{ "[", NULL },
		{ "/a/.ko", NULL },
		{ "/a/b.kot", NULL },
		{ "/a/b.so", NULL },
		{ "[kernel.kallsyms]_text", NULL },
		{ "[guest.kernel.kallsyms]", NULL },
	};
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		char name[TALLY_MODULE_NAME_BYTES];
		assert_int_equal(tally_module_name(CASES[i].path, name), CASES[i].name != NULL);
		if (CASES[i].name)
			assert_string_equal(name, CASES[i].name);
	}
}

static void modules_dep_is_walked(void **state)
{
	(void)state;
	const char *text =
		"kernel/a/first.ko: kernel/b/of-two.ko.xz\n\nno line of ours\nbelow.ko:\n"
		"../kernel/out.ko:\n"
		"kernel/b/of-two.ko.xz:";
	struct tally_module_dependency line;
	assert_true(tally_module_dependency_next(&text, &line));
	assert_string_equal(line.name, "first");
	assert_string_equal(line.path, "kernel/a/first.ko");
	assert_true(tally_module_dependency_next(&text, &line));
	assert_string_equal(line.name, "of_two");
	assert_string_equal(line.path, "kernel/b/of-two.ko.xz");
	assert_false(tally_module_dependency_next(&text, &line));
	assert_false(tally_module_dependency_next(&text, &line));
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_and_memory_agree),
		cmocka_unit_test(module_names_are_the_kernels),
		cmocka_unit_test(modules_dep_is_walked),
		cmocka_unit_test(vdso_opens_from_memory),
		cmocka_unit_test(references_keep_it_open),
		IN_DIRECTORY(packed_bytes_are_the_same_when_unpacked),
		IN_DIRECTORY(what_is_no_elf_file_says_so),
		IN_DIRECTORY(links_do_not_lead_out_of_a_root),
		cmocka_unit_test(a_build_id_is_equal_to_itself_with_zeros_behind),
		cmocka_unit_test(build_ids_are_read_in_either_byte_order),
		IN_DIRECTORY(debuglink_is_followed_when_the_checksum_fits),
		IN_DIRECTORY(debug_file_of_another_build_is_refused),
		IN_DIRECTORY(zlib_sections_are_inflated),
		IN_DIRECTORY(gnu_zlib_sections_are_inflated),
		IN_DIRECTORY(zstd_sections_are_inflated),
		IN_DIRECTORY(mutants_do_no_harm),
	};
	return cmocka_run_group_tests_name("object", tests, NULL, NULL);
}
