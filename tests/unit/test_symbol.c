#include "test.h"

#include "object_fixture.h"
#include "random.h"

#include "base/buffer.h"
#include "object/object.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Assembles a program from `source` and reads its symbols. */
static struct tally_symbols *symbols_of(void **state, const char *source, const char *flags)
{
	char path[256], command[512];
	snprintf(path, sizeof(path), "%s/source.s", (const char *)*state);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(source, file);
	fclose(file);
	snprintf(command, sizeof(command),
		 "gcc -nostdlib -static -Wl,-Ttext=0x401000 %s source.s -o program", flags);
	if (!run(*state, command))
		skip();
	struct tally_object *object = open_in(*state, "program");
	struct tally_symbols *symbols = NULL;
	assert_int_equal(tally_symbols_from_object(object, NULL, &symbols, NULL), 0);
	tally_object_unref(object);
	return symbols;
}

static void expect(const struct tally_symbols *symbols, uint64_t address, const char *name,
		   uint64_t offset)
{
	const struct tally_symbol *symbol = tally_symbols_find(symbols, address);
	if (!name) {
		if (symbol)
			fail_msg("%s at %#lx, where there is nothing", symbol->name, (long)address);
		return;
	}
	if (!symbol)
		fail_msg("nothing at %#lx, where %s is", (long)address, name);
	assert_string_equal(symbol->name, name);
	assert_int_equal(address - symbol->start, offset);
}

/* `perf script` of perf 6.1 prints the same for this program, except for "sized2" (see
 * give_ends()). */
static void best_alias_is_chosen_as_perf_does(void **state)
{
	struct tally_symbols *symbols = symbols_of(
		state,
		".text\n.macro fn name:req, bind, size=16\n.type \\name,@function\n"
		".size \\name,\\size\n"
		".ifnb \\bind\n.\\bind \\name\n.endif\n\\name:\n.endm\n"
		"fn local_longer_name\nfn glob,globl\n.skip 16,0x90\n"
		"fn weak_much_longer,weak\nfn loc\n.skip 16,0x90\n"
		"fn __underscored_longer,globl\nfn plain,globl\n.skip 16,0x90\n"
		"fn short,globl\nfn longer,globl\n.skip 16,0x90\n"
		"label_without_size_longest:\nfn sized\n.skip 16,0x90\n"
		"fn sized2\nlast_label_longer:\n.skip 16,0x90\n"
		"locallabel_longer:\nlocallabel:\n.skip 16,0x90\n"
		/* A<unsigned long>::f is longer to read */
		"fn _ZN1AI7ClassesE1fEv\nfn _ZN1AImE1fEv\n.skip 16,0x90\n"
		"fn _ZN1AC1Ev\nfn _ZN1AC2Ev\n.skip 16,0x90\n",
		"");
	expect(symbols, 0x401001, "glob", 1);
	expect(symbols, 0x401012, "loc", 2);
	expect(symbols, 0x401023, "plain", 3);
	expect(symbols, 0x401034, "longer", 4);
	expect(symbols, 0x401045, "sized", 5);
	expect(symbols, 0x401056, "sized2", 6);
	expect(symbols, 0x401067, "locallabel", 7);
	expect(symbols, 0x401078, "_ZN1AImE1fEv", 8);
	expect(symbols, 0x401089, "_ZN1AC1Ev", 9);
	tally_symbols_free(symbols);
}

static void sizeless_reach_to_the_next_and_sized_leave_gaps(void **state)
{
	struct tally_symbols *symbols = symbols_of(state,
		".text\n.globl _start\n_start: .skip 32,0x90\n"
		".type sized,@function\n.size sized,8\nsized: .skip 32,0x90\n"
		".type after,@function\nafter: .skip 16,0x90\n"
		".section .text.z,\"ax\"\n.skip 1,0x90\n"
		".data\n.type not_code,@object\nnot_code: .skip 8\n", "-Wl,--no-gc-sections");
	expect(symbols, 0x400fff, NULL, 0);
	expect(symbols, 0x401000, "_start", 0);
	expect(symbols, 0x40101f, "_start", 31);
	expect(symbols, 0x401020, "sized", 0);
	expect(symbols, 0x401027, "sized", 7);
	expect(symbols, 0x401028, NULL, 0);
	expect(symbols, 0x40103f, NULL, 0);
	expect(symbols, 0x401040, "after", 0);
	size_t count;
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	for (size_t i = 0; i < count; i++)
		assert_string_not_equal(list[i].name, "not_code");
	tally_symbols_free(symbols);
}

static void innermost_of_nested_symbols_is_found(void **state)
{
	struct tally_symbols *symbols = symbols_of(
		state,
		".text\n.globl _start\n.type _start,@function\n.size _start,64\n"
		"_start: .skip 16,0x90\n"
		".type inner,@function\n.size inner,16\ninner: .skip 4,0x90\n"
		".type innermost,@function\n.size innermost,4\ninnermost: .skip 12,0x90\n"
		".skip 32,0x90\n",
		"");
	expect(symbols, 0x401008, "_start", 8);
	expect(symbols, 0x401010, "inner", 0);
	expect(symbols, 0x401014, "innermost", 0);
	expect(symbols, 0x401018, "inner", 8);
	expect(symbols, 0x401020, "_start", 32);
	expect(symbols, 0x401040, NULL, 0);
	tally_symbols_free(symbols);
}

/* As in node's Builtins_JSConstructStubGeneric.  Code outside of all functions gets its label's
 * name. */
static void a_label_inside_a_function_is_not_its_name(void **state)
{
	struct tally_symbols *symbols = symbols_of(
		state,
		".text\n.globl _start,entry\n.type _start,@function\n.size _start,64\n"
		"_start: .skip 16,0x90\n"
		"label: .skip 16,0x90\nentry: .skip 8,0x90\nlater_label: .skip 24,0x90\n"
		"outside: .skip 16,0x90\n",
		"");
	expect(symbols, 0x401018, "_start", 24);
	expect(symbols, 0x401020, "entry", 0);
	expect(symbols, 0x401028, "entry", 8);
	expect(symbols, 0x401040, "outside", 0);
	tally_symbols_free(symbols);
}

/* Checks every slot of every layout against the instruction that calls it. */
static void plt_slots_are_named(void **state, const char *flags)
{
	char command[1024];
	snprintf(
		command, sizeof(command),
		"printf '#include <stdlib.h>\\n#include <string.h>\\nint main(int c,char**v){"
		"char*p=malloc(c);void*volatile q=(void*)free;strcpy(p,v[0]);free(p);return "
		"abs(atoi(p))+!q;}' >p.c && gcc -O0 -fno-builtin %s p.c -o p && objdump -d p >dump",
		flags);
	if (!run(*state, command))
		skip();
	struct tally_object *object = open_in(*state, "p");
	struct tally_symbols *symbols = NULL;
	assert_int_equal(tally_symbols_from_object(object, NULL, &symbols, NULL), 0);
	char path[256], line[512], name[128];
	snprintf(path, sizeof(path), "%s/dump", (const char *)*state);
	FILE *dump = fopen(path, "r");
	assert_non_null(dump);
	unsigned calls = 0;
	while (fgets(line, sizeof(line), dump)) {
		unsigned long address;
		const char *call = strstr(line, "call ");
		if (!call || !strstr(call, "@plt>") ||
		    sscanf(call, "call %lx <%127[^>]>", &address, name) != 2)
			continue;
		expect(symbols, address, name, 0);
		expect(symbols, address + 5, name, 5);
		calls++;
	}
	fclose(dump);
	assert_true(calls >= 4);
	tally_symbols_free(symbols);
	tally_object_unref(object);
}

static void lazy_plt_slots_are_named(void **state)
{
	plt_slots_are_named(state, "-Wl,-z,lazy");
}

static void eager_plt_slots_are_named(void **state)
{
	plt_slots_are_named(state, "-Wl,-z,now");
}

static void ibt_plt_slots_are_named(void **state)
{
	plt_slots_are_named(state, "-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy");
}

static void bnd_plt_slots_are_named(void **state)
{
	plt_slots_are_named(state, "-Wl,-z,bndplt");
}

static void lld_plt_slots_are_named(void **state)
{
	plt_slots_are_named(state, "-fuse-ld=lld");
}

static void symbols_of_a_stripped_object_come_from_its_debug_file(void **state)
{
	char command[512];
	snprintf(command, sizeof(command),
		 "cp /proc/%d/exe p && objcopy --only-keep-debug p p.debug && "
		 "objcopy -S --add-gnu-debuglink=p.debug p s",
		 (int)getpid());
	if (!run(*state, command))
		skip();
	struct tally_object *object = open_in(*state, "s");
	struct tally_object *whole = open_in(*state, "p");
	struct tally_object *debug = tally_search_debug(NULL, object, NULL);
	assert_non_null(debug);
	struct tally_symbols *with, *want;
	assert_int_equal(tally_symbols_from_object(object, debug, &with, NULL), 0);
	assert_int_equal(tally_symbols_from_object(whole, NULL, &want, NULL), 0);
	/* Only the table keeps the names alive. */
	tally_object_unref(object);
	tally_object_unref(whole);
	tally_object_unref(debug);
	size_t count, want_count;
	const struct tally_symbol *list = tally_symbols_list(with, &count);
	const struct tally_symbol *want_list = tally_symbols_list(want, &want_count);
	assert_int_equal(count, want_count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(list[i].name, want_list[i].name);
		assert_int_equal(list[i].start, want_list[i].start);
		assert_int_equal(list[i].end, want_list[i].end);
	}
	tally_symbols_free(with);
	tally_symbols_free(want);
}

static void vdso_functions_are_found(void **state)
{
	(void)state;
	uint64_t start = 0, end = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) && !strstr(line, "[vdso]"))
		;
	fclose(maps);
	if (!strstr(line, "[vdso]") || sscanf(line, "%lx-%lx", &start, &end) != 2)
		skip();
	struct tally_object *object = NULL;
	assert_int_equal(
		tally_object_open_memory("[vdso]", (void *)start, end - start, &object, NULL), 0);
	struct tally_symbols *symbols = NULL;
	assert_int_equal(tally_symbols_from_object(object, NULL, &symbols, NULL), 0);
	size_t count;
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	bool found = false;
	for (size_t i = 0; i < count; i++)
		found |= strstr(list[i].name, "clock_gettime") != NULL;
	assert_true(found);
	tally_symbols_free(symbols);
	tally_object_unref(object);
}

static void kallsyms_gives_functions_and_their_modules(void **state)
{
	(void)state;
	static const char TEXT[] = "0000000000000000 A fixed_percpu_data\n"
				   "ffffffff81000000 T _stext\n"
				   "ffffffff81000000 T startup_64\n"
				   "ffffffff81000100 t helper.isra.0\n"
				   "ffffffff81000180 W weak_one\n"
				   "ffffffff81000200 D not_a_function\n"
				   "garbage\n"
				   "ffffffffc0201000 t ext4_sync\t[ext4]\r\n"
				   "ffffffffc0201040 T ext4_read\t[ext4]\n"
				   "ffffffffc0300000 t bpf_prog_6deef7357e7b4530\t[bpf]";
	struct tally_symbols *symbols = NULL;
	assert_int_equal(tally_symbols_from_kallsyms(TEXT, sizeof(TEXT) - 1, &symbols, NULL), 0);
	expect(symbols, 0xffffffff81000010, "startup_64", 0x10);
	expect(symbols, 0xffffffff81000110, "helper.isra.0", 0x10);
	expect(symbols, 0xffffffff81000181, "weak_one", 1);
	/* The kernel's last function doesn't extend to the modules. */
	expect(symbols, 0xffffffff81000fff, "weak_one", 0xe7f);
	expect(symbols, 0xffffffffc0200000, NULL, 0);
	expect(symbols, 0xffffffffc0201041, "ext4_read", 1);
	assert_string_equal(
		tally_symbol_module(symbols, tally_symbols_find(symbols, 0xffffffffc0201000)),
		"ext4");
	assert_string_equal(
		tally_symbol_module(symbols, tally_symbols_find(symbols, 0xffffffffc0300000)),
		"bpf");
	assert_null(tally_symbol_module(symbols, tally_symbols_find(symbols, 0xffffffff81000000)));
	tally_symbols_free(symbols);
}

static void hidden_kallsyms_say_so(void **state)
{
	(void)state;
	static const char TEXT[] = "0000000000000000 T _stext\n0000000000000000 t x\n";
	struct tally_symbols *symbols = NULL;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_symbols_from_kallsyms(TEXT, sizeof(TEXT) - 1, &symbols, &err),
			 -EPERM);
	assert_non_null(strstr(err.hint, "kptr_restrict"));
	assert_int_equal(tally_symbols_from_kallsyms("", 0, &symbols, &err), 0);
	expect(symbols, 0, NULL, 0);
	tally_symbols_free(symbols);
}

static struct tally_symbols *perf_map(const char *text, size_t *skipped)
{
	struct tally_symbols *symbols = NULL;
	assert_int_equal(tally_symbols_from_perf_map(text, strlen(text), skipped, &symbols, NULL),
			 0);
	return symbols;
}

static void later_lines_of_a_perf_map_win(void **state)
{
	(void)state;
	size_t skipped;
	struct tally_symbols *symbols = perf_map("1000 100 old function(int, char*)\n"
						 "2000 40 Builtin:X\n"
						 "0x1040 20 new\n"
						 "1fff 2 straddles\n"
						 "2000 8 LazyCompile:~f /a b.js:1\r\n"
						 "3000 10 last", &skipped);
	assert_int_equal(skipped, 0);
	expect(symbols, 0x1000, "old function(int, char*)", 0);
	expect(symbols, 0x1040, "new", 0);
	expect(symbols, 0x105f, "new", 0x1f);
	expect(symbols, 0x1060, "old function(int, char*)", 0);
	expect(symbols, 0x1100, NULL, 0);
	expect(symbols, 0x1fff, "straddles", 0);
	expect(symbols, 0x2000, "LazyCompile:~f /a b.js:1", 0);
	expect(symbols, 0x2008, "Builtin:X", 0);
	expect(symbols, 0x3000, "last", 0);
	tally_symbols_free(symbols);
}

static void blanks_and_tabs_separate_the_parts_of_a_perf_map(void **state)
{
	(void)state;
	size_t skipped;
	struct tally_symbols *symbols = perf_map("1000\t10\ttabs\tin it\n"
						 "2000   10  \t blanks in it  \n"
						 "  3000 10 before\n"
						 "\t0x4000\t0x10 both", &skipped);
	assert_int_equal(skipped, 0);
	expect(symbols, 0x1000, "tabs\tin it", 0);
	expect(symbols, 0x2000, "blanks in it", 0);
	expect(symbols, 0x3000, "before", 0);
	expect(symbols, 0x400f, "both", 0xf);
	tally_symbols_free(symbols);
}

static void malformed_lines_of_a_perf_map_are_counted(void **state)
{
	(void)state;
	size_t skipped;
	struct tally_symbols *symbols = perf_map(
		"1000 10 good\n\n1000\n1000 10\n1000 10 \nxyz 10 n\n1000 0 empty\n"
		"ffffffffffffffff ffff overflow\n11111111111111111 1 long\n \t\n"
		"5000 10 half",
		&skipped);
	assert_int_equal(skipped, 8);
	expect(symbols, 0x1000, "good", 0);
	expect(symbols, 0x5000, "half", 0);
	tally_symbols_free(symbols);
}

/* Compares the sweep with painting addresses one by one. */
static void overlapping_lines_are_as_if_painted(void **state)
{
	(void)state;
	enum { LINES = 200, ROOM = 2048 };
	uint32_t seed = 1;
	for (int round = 0; round < 20; round++) {
		struct tally_buffer text = { 0 };
		int painted[ROOM + 64];
		for (int i = 0; i < ROOM + 64; i++)
			painted[i] = -1;
		for (int line = 0; line < LINES; line++) {
			seed = seed * 1103515245 + 12345;
			unsigned start = seed >> 8 & (ROOM - 1), size = 1 + (seed >> 20 & 63);
			tally_buffer_printf(&text, "%x %x f%d\n", start, size, line);
			for (unsigned i = start; i < start + size; i++)
				painted[i] = line;
		}
		size_t skipped;
		struct tally_symbols *symbols = perf_map(tally_buffer_string(&text), &skipped);
		for (int i = 0; i < ROOM + 64; i++) {
			const struct tally_symbol *symbol = tally_symbols_find(symbols,
									       (uint64_t)i);
			assert_int_equal(symbol ? atoi(symbol->name + 1) : -1, painted[i]);
		}
		tally_symbols_free(symbols);
		tally_buffer_release(&text);
	}
}

static void ascending_lookups_give_what_single_ones_give(void **state)
{
	(void)state;
	enum { LINES = 300, ROOM = 1 << 16, LOOKUPS = 2000 };
	struct tally_buffer text = { 0 };
	size_t skipped;
	srand(3);
	for (int line = 0; line < LINES; line++)
		tally_buffer_printf(&text, "%x %x f%d\n", 16 + rand() % ROOM, 1 + rand() % 900,
				    line);
	struct tally_symbols *symbols = perf_map(tally_buffer_string(&text), &skipped);
	struct tally_symbols *empty = perf_map("", &skipped);
	for (int round = 0; round < 50; round++) {
		uint64_t address = 0;
		size_t cursor = 0, in_empty = 0;
		for (int i = 0; i < LOOKUPS && address < 2 * ROOM; i++) {
			address += (uint64_t)rand() % (round < 10 ? 8u : 1u << rand() % 14);
			if (i == LOOKUPS / 2 && round % 3 == 0)
				address = 0; /* not ascending: slower, but correct */
			assert_ptr_equal(tally_symbols_find_next(symbols, address, &cursor),
					 tally_symbols_find(symbols, address));
			assert_null(tally_symbols_find_next(empty, address, &in_empty));
		}
	}
	tally_symbols_free(symbols);
	tally_symbols_free(empty);
	tally_buffer_release(&text);
}

static void expect_equal(const struct tally_symbols *a, const struct tally_symbols *b,
			 uint64_t shift)
{
	size_t count, count_b;
	const struct tally_symbol *list = tally_symbols_list(a, &count),
				  *list_b = tally_symbols_list(b, &count_b);
	assert_int_equal(count, count_b);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(list[i].start + shift, list_b[i].start);
		assert_int_equal(list[i].end + shift, list_b[i].end);
		assert_string_equal(list[i].name, list_b[i].name);
	}
}

static void a_packed_table_is_the_same_elsewhere(void **state)
{
	(void)state;
	struct tally_buffer text = { 0 }, packed = { 0 };
	size_t skipped;
	srand(5);
	for (int line = 0; line < 500; line++)
		tally_buffer_printf(&text, "%x %x f%d\n", 0x4000 + rand() % 0x8000,
				    1 + rand() % 900, line);
	struct tally_symbols *symbols = perf_map(tally_buffer_string(&text), &skipped), *again,
			     *empty = perf_map("", &skipped);
	assert_int_equal(tally_symbols_pack(symbols, 0x5000, &packed), -ERANGE);
	tally_buffer_clear(&packed);
	assert_int_equal(tally_symbols_pack(symbols, 0x3000, &packed), 0);
	assert_int_equal(tally_symbols_unpack(packed.bytes, packed.length, 0x1003000, &again), 0);
	expect_equal(symbols, again, 0x1000000);
	for (uint64_t address = 0x3ff0; address < 0xd000; address++) {
		const struct tally_symbol *a = tally_symbols_find(symbols, address);
		const struct tally_symbol *b = tally_symbols_find(again, address + 0x1000000);
		assert_int_equal(!a, !b);
		if (a)
			assert_string_equal(a->name, b->name);
	}
	tally_symbols_free(again);
	tally_buffer_clear(&packed);
	assert_int_equal(tally_symbols_pack(empty, 0, &packed), 0);
	assert_int_equal(tally_symbols_unpack(packed.bytes, packed.length, 0, &again), 0);
	expect_equal(empty, again, 0);
	tally_symbols_free(again);
	tally_symbols_free(empty);
	tally_symbols_free(symbols);
	tally_buffer_release(&text);
	tally_buffer_release(&packed);
}

static void a_damaged_packed_table_does_no_harm(void **state)
{
	(void)state;
	struct tally_buffer packed = { 0 };
	size_t skipped, refused = 0;
	struct tally_symbols *symbols = perf_map("1000 100 a\n1010 20 bb\n1200 8 ccc\n", &skipped),
			     *again;
	assert_int_equal(tally_symbols_pack(symbols, 0, &packed), 0);
	for (size_t size = 0; size < packed.length; size++) {
		char *cut = malloc(size + 1);
		memcpy(cut, packed.bytes, size);
		assert_int_equal(tally_symbols_unpack(cut, size, 0, &again), -EBADMSG);
		free(cut);
	}
	for (size_t bit = 0; bit < packed.length * 8; bit++) {
		char *mutant = malloc(packed.length);
		memcpy(mutant, packed.bytes, packed.length);
		mutant[bit / 8] = (char)(mutant[bit / 8] ^ 1 << bit % 8);
		int result = tally_symbols_unpack(mutant, packed.length, UINT64_MAX - 0x2000,
						  &again);
		refused += result < 0;
		for (uint64_t address = UINT64_MAX - 0x3000;
		     !result && address > UINT64_MAX - 0x4000; address--)
			(void)tally_symbols_find(again, address);
		if (!result)
			expect_equal(again, again, 0); /* reads all names */
		if (!result)
			tally_symbols_free(again);
		free(mutant);
	}
	assert_true(refused > 64);
	tally_symbols_free(symbols);
	tally_buffer_release(&packed);
}

static void expect_readable(const char *mangled, const char *name, const char *signature)
{
	char *got = tally_demangle(mangled), *got_signature = tally_demangle_signature(mangled);
	if (name) {
		assert_non_null(got);
		assert_string_equal(got, name);
		assert_string_equal(got_signature, signature);
	} else {
		assert_null(got);
		assert_null(got_signature);
	}
	free(got);
	free(got_signature);
}

static void names_are_made_readable(void **state)
{
	(void)state;
	expect_readable("_ZN2ns1fEi", "ns::f", "ns::f(int)");
	expect_readable("_ZdlPvm@plt", "operator delete@plt",
			"operator delete(void*, unsigned long)@plt");
	expect_readable("_ZNSo3putEc@@GLIBCXX_3.4", "std::ostream::put@@GLIBCXX_3.4",
			"std::ostream::put(char)@@GLIBCXX_3.4");
	expect_readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
			"core::fmt::Write::write_fmt", "core::fmt::Write::write_fmt");
	/* characters beyond ASCII, and what follows them */
	expect_readable("_ZN1l13gr$uf6$$udf$e17Caf$ue9$$LT$T$GT$24z$ue4$hle_$u65e5$$u672c$"
			"17hc763a5ec12e5954eE",
			"l::größe::Café<T>::zähle_日本", "l::größe::Café<T>::zähle_日本");
	expect_readable("_ZN1l23_$LT$$u1f980$..T$GT$17hc763a5ec12e5954eE", NULL, NULL);
	expect_readable("_ZN1l20_$LT$$u1f980$..T$GT$1f17hc763a5ec12e5954eE", "l::<🦀::T>::f",
			"l::<🦀::T>::f");
	expect_readable("_ZN1l6$u85$a17hc763a5ec12e5954eE", "l::$u85$a", "l::$u85$a");
	expect_readable("_ZN1l8$ud800$a17hc763a5ec12e5954eE", "l::$ud800$a", "l::$ud800$a");
	expect_readable("_RNvCsahnxeiPqv7R_1lu3wxa", "l::λ", "l::λ");
	expect_readable("_RNvC6_123foo3bar", "123foo::bar", "123foo::bar");
	expect_readable("_D3std5stdio12__ModuleInfoZ", "ModuleInfo for std.stdio",
			"ModuleInfo for std.stdio");
	expect_readable("_D5truth7sortingFZv.constprop.0", "truth.sorting()", "truth.sorting()");
	expect_readable("camlStdlib__array__map_154", "Stdlib.array.map_154",
			"Stdlib.array.map_154");
	expect_readable("camlStdlib__anon_fn$5bstdlib$2eml$3a334$2c0$2d$2d54$5d_1453",
			"Stdlib.anon_fn[stdlib.ml:334,0--54]_1453",
			"Stdlib.anon_fn[stdlib.ml:334,0--54]_1453");
	expect_readable("camlA__$0a$2_$", "A.$0a$2_$", "A.$0a$2_$");
	expect_readable("caml_call_gc", NULL, NULL);
	expect_readable("main", NULL, NULL);
	expect_readable("_start", NULL, NULL);
	expect_readable("_Z", NULL, NULL);
	expect_readable("_ZN2ns1fE", "ns::f", "ns::f");
	expect_readable("malloc@plt", NULL, NULL);
	/* without the return type */
	expect_readable("_ZN2ns4sortIiEEvPT_", "ns::sort<int>", "ns::sort<int>(int*)");
}

static void symbols_that_read_alike_are_told_apart(void **state)
{
	(void)state;
	const char *hash = NULL, *rust = "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE";
	assert_int_equal(tally_mangled_variant("_ZN1AC1Ei", NULL), TALLY_MANGLED_COMPLETE);
	assert_int_equal(tally_mangled_variant("_ZN1AC2Ei", NULL), TALLY_MANGLED_BASE);
	assert_int_equal(tally_mangled_variant("_ZN1AD0Ev", NULL), TALLY_MANGLED_DELETING);
	assert_int_equal(tally_mangled_variant("_ZN1AD1Ev", NULL), TALLY_MANGLED_COMPLETE);
	assert_int_equal(tally_mangled_variant("_ZN1AD2Ev", NULL), TALLY_MANGLED_BASE);
	assert_int_equal(tally_mangled_variant(rust, &hash), TALLY_MANGLED_RUST_HASH);
	assert_int_equal(strncmp(hash, "h0123456789abcdefE", 18), 0);
	assert_int_equal(tally_mangled_variant("_ZN4core3fmt17h0123456789abcdefE.llvm.77", NULL),
			 TALLY_MANGLED_RUST_HASH);
	assert_int_equal(tally_mangled_variant("_ZN4core3fmt17h0123456789abcdeE", NULL),
			 TALLY_MANGLED_PLAIN);
	assert_int_equal(tally_mangled_variant("_Z4calci", NULL), TALLY_MANGLED_PLAIN);
	assert_int_equal(tally_mangled_variant("main", NULL), TALLY_MANGLED_PLAIN);
	assert_int_equal(tally_mangled_variant("", NULL), TALLY_MANGLED_PLAIN);
}

static void names_that_explode_are_left_alone(void **state)
{
	(void)state;
	/* Each parameter is a function of two parameters like the one before: 2^60 of them in 600
	 * bytes. */
	static const char DIGITS[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct tally_buffer name = { 0 };
	tally_buffer_text(&name, "_Z1fPFvvE");
	for (int i = 0; i < 60; i++) {
		char id[3] = { DIGITS[2 * i / 36], DIGITS[2 * i % 36] };
		const char *seq = id[0] == '0' ? id + 1 : id;
		tally_buffer_printf(&name, "PFvS%s_S%s_E", seq, seq);
		char *signature = tally_demangle_signature(tally_buffer_string(&name));
		assert_true((signature != NULL) == (i < 12));
		free(signature);
	}
	tally_buffer_release(&name);
	char *deep = malloc(1 << 20);
	memset(deep, 'P', 1 << 20);
	memcpy(deep, "_Z1f", 4);
	deep[(1 << 20) - 1] = '\0';
	assert_null(tally_demangle_signature(deep));
	deep[10000] = '\0';
	free(tally_demangle_signature(deep));
	free(deep);
}

static void exercise(const void *bytes, size_t size)
{
	struct tally_object *object = NULL;
	if (tally_object_open_memory("mutant", bytes, size, &object, NULL) < 0)
		return;
	struct tally_symbols *symbols = NULL;
	if (tally_symbols_from_object(object, object, &symbols, NULL) == 0) {
		size_t count;
		const struct tally_symbol *list = tally_symbols_list(symbols, &count);
		for (size_t i = 0; i < count; i++) {
			assert_true(strlen(list[i].name) > 0);
			assert_true(list[i].end > list[i].start);
			assert_ptr_equal(tally_symbols_find(symbols, list[i].start), &list[i]);
			assert_true(i == 0 || list[i].start > list[i - 1].start);
		}
	}
	tally_symbols_free(symbols);
	tally_object_unref(object);
}

static void mutants_do_no_harm(void **state)
{
	if (!run(*state,
		 "printf '#include <stdlib.h>\\nint main(void){free(malloc(1));return 0;}' | "
		 "gcc -O0 -x c - -o tiny"))
		skip();
	char path[256];
	snprintf(path, sizeof(path), "%s/tiny", (const char *)*state);
	struct tally_buffer file = { 0 };
	assert_int_equal(tally_buffer_read_file(&file, AT_FDCWD, path, 1 << 20), 0);
	for (size_t size = 0; size < file.length; size += size < 1024 ? 7 : 97)
		exercise(file.bytes, size);
	uint32_t seed = 42;
	char *mutant = malloc(file.length);
	for (int round = 0; round < 4000; round++) {
		memcpy(mutant, file.bytes, file.length);
		/* The second half holds the symbol tables and the section headers. */
		for (unsigned flips = 1 + next_random32(&seed) % 8; flips > 0; flips--) {
			uint32_t where = next_random32(&seed), what = next_random32(&seed);
			size_t at = where & 1 ? where / 2 % 2048
					      : file.length / 2 + where / 2 % (file.length / 2);
			mutant[at] = (char)(what & 1 ? what >> 8
						     : (unsigned)mutant[at] ^ 1u << what / 2 % 8);
		}
		exercise(mutant, file.length);
	}
	free(mutant);
	tally_buffer_release(&file);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

/* Appends a back reference (D's ABI) from `at` to `target`. */
static void refer(char *name, size_t at, size_t target)
{
	char digits[16];
	size_t distance = at - target, count = 0;
	digits[count++] = (char)('a' + distance % 26);
	for (distance /= 26; distance; distance /= 26)
		digits[count++] = (char)('A' + distance % 26);
	name += strlen(name);
	*name++ = 'Q';
	while (count)
		*name++ = digits[--count];
	*name = '\0';
}

/* A function of D whose parameters are pairs; each is a pair of two like the one before. */
static void nest_pairs(char *name, unsigned depth)
{
	size_t last = strlen(strcpy(name, "_D1fF"));
	strcat(name, "B2ii");
	for (unsigned i = 0; i < depth; i++) {
		size_t here = strlen(name);
		strcat(name, "B2");
		refer(name, strlen(name), last);
		refer(name, strlen(name), last);
		last = here;
	}
	strcat(name, "Zv");
}

static void names_of_d_that_expand_stay_mangled(void **state)
{
	enum { ROOM = 16 << 10 };
	char name[ROOM];
	struct rusage usage;
	(void)state;
	nest_pairs(name, 1);
	expect_readable(name,
			"f(Tuple!(int, int), Tuple!(Tuple!(int, int), Tuple!(int, int)))",
			"f(Tuple!(int, int), Tuple!(Tuple!(int, int), Tuple!(int, int)))");
	for (unsigned depth = 2; depth < 400; depth++) {
		nest_pairs(name, depth);
		char *readable = tally_demangle(name);
		assert_true(readable ? depth < 20 && strlen(readable) <= 256 << 10 : depth > 6);
		free(readable);
	}
	/* a pair that is wrapped in one type after the other, each of which copies it */
	nest_pairs(name, 12);
	name[strlen(name) - 2] = '\0';
	size_t last = strlen(name) - 6;
	for (unsigned i = 0; i < 4000; i++)
		strcat(name, "H");
	refer(name, strlen(name), last);
	strcat(name, "Zv");
	free(tally_demangle(name));
	/* digits of symbol parameters, which may be split in many ways, nested */
	strcpy(name, "_D1f");
	for (unsigned i = 0; i < 900; i++)
		strcat(name, "__T1aS1234567891");
	assert_null(tally_demangle(name));
	getrusage(RUSAGE_SELF, &usage);
	assert_true(usage.ru_maxrss < 400 << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_d_that_expand_stay_mangled),
		IN_DIRECTORY(best_alias_is_chosen_as_perf_does),
		IN_DIRECTORY(sizeless_reach_to_the_next_and_sized_leave_gaps),
		IN_DIRECTORY(innermost_of_nested_symbols_is_found),
		IN_DIRECTORY(a_label_inside_a_function_is_not_its_name),
		IN_DIRECTORY(lazy_plt_slots_are_named),
		IN_DIRECTORY(eager_plt_slots_are_named),
		IN_DIRECTORY(ibt_plt_slots_are_named),
		IN_DIRECTORY(bnd_plt_slots_are_named),
		IN_DIRECTORY(lld_plt_slots_are_named),
		IN_DIRECTORY(symbols_of_a_stripped_object_come_from_its_debug_file),
		cmocka_unit_test(vdso_functions_are_found),
		cmocka_unit_test(kallsyms_gives_functions_and_their_modules),
		cmocka_unit_test(hidden_kallsyms_say_so),
		cmocka_unit_test(later_lines_of_a_perf_map_win),
		cmocka_unit_test(blanks_and_tabs_separate_the_parts_of_a_perf_map),
		cmocka_unit_test(malformed_lines_of_a_perf_map_are_counted),
		cmocka_unit_test(overlapping_lines_are_as_if_painted),
		cmocka_unit_test(ascending_lookups_give_what_single_ones_give),
		cmocka_unit_test(a_packed_table_is_the_same_elsewhere),
		cmocka_unit_test(a_damaged_packed_table_does_no_harm),
		cmocka_unit_test(names_are_made_readable),
		cmocka_unit_test(symbols_that_read_alike_are_told_apart),
		cmocka_unit_test(names_that_explode_are_left_alone),
		IN_DIRECTORY(mutants_do_no_harm),
	};
	return cmocka_run_group_tests_name("symbol", tests, NULL, NULL);
}
