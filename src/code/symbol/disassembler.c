/* libLLVM's disassembler, through its C interface (llvm-c/Disassembler.h), which is the same in all
 * versions.
 *
 * The library is 100 MB, so it is loaded only when code is shown, and a missing library is an error
 * of its own.  Only the code's target is initialised; its three functions are found by the target's
 * name.
 *
 * The interface does not say where a jump goes.  But the printer asks a callback for the name of
 * each address before it prints it, and says what the address is used for.  The callback notes the
 * address and gives no name.  So the address is printed as a number, at the end of the text, where
 * a view can put the name that it has.  The targets for x86 and ARM ask; other targets print
 * relative numbers, which are parsed from the text. */
#include "symbol/symbol.h"

#include "base/environment.h"
#include "base/loaded.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const char *name_function(void *context, uint64_t value, uint64_t *type, uint64_t pc,
				  const char **name);

struct llvm {
	void *(*create)(const char *triple, const char *cpu, const char *features, void *context,
			int tag_type, void *info, name_function *name);
	int (*set_options)(void *disassembler, uint64_t options);
	size_t (*disassemble)(void *disassembler, uint8_t *bytes, uint64_t size, uint64_t pc,
			      char *text, size_t text_size);
	void (*dispose)(void *disassembler);
};

/* llvm-c/Disassembler.h and DisassemblerTypes.h */
enum { OPTION_HEX = 2, OPTION_OTHER_SYNTAX = 4 };
enum { REFERENCE_NONE = 0, REFERENCE_BRANCH = 1, REFERENCE_LOAD = 2 };

struct target {
	unsigned machine;
	const char *name; /* part of the names of its functions in the library */
	const char *triple, *triple_big; /* 64-bit if there are both; NULL: none */
	const char *cpu, *features;
	unsigned unit; /* every instruction's size is a multiple of this, in bytes */
	const char *calls; /* mnemonics, each between blanks */
};

static const struct target TARGETS[] = {
	{ EM_X86_64, "X86", "x86_64-linux-gnu", NULL, "", "", 1, " call callq lcall lcallq " },
	{ EM_386, "X86", "i386-linux-gnu", NULL, "", "", 1, " call calll lcall lcalll " },
	{ EM_AARCH64, "AArch64", "aarch64-linux-gnu", "aarch64_be-linux-gnu", "",
	  "+v8.7a,+sve2,+crypto", 4, " bl blr blraa blrab blraaz blrabz " },
	{ EM_ARM, "ARM", "armv7-linux-gnueabihf", "armebv7-linux-gnueabihf", "",
	  "+neon,+vfp4,+hwdiv-arm,+crc", 4, " bl blx " },
	{ EM_RISCV, "RISCV", "riscv64-linux-gnu", NULL, "", "+m,+a,+f,+d,+c", 2, " call jal " },
	{ EM_PPC64, "PowerPC", "powerpc64le-linux-gnu", "powerpc64-linux-gnu", "pwr9", "", 4,
	  " bl bla bcl bctrl " },
	{ EM_S390, "SystemZ", NULL, "s390x-linux-gnu", "z14", "", 2, " bras brasl basr " },
};

struct tally_disassembler {
	struct llvm llvm;
	const struct target *target;
	void *context;
	uint64_t mask; /* all bits of an address */
	bool has_target;
	/* addresses that the printer asked for, in the current instruction */
	uint64_t branch, reference;
};

/* The library is never unloaded: its targets stay registered. */
static void *load_library(void)
{
	static const char *const NAMES[] = { "libLLVM.so.21.1", "libLLVM.so.20.1",
					     "libLLVM.so.19.1", "libLLVM.so.18.1",
					     "libLLVM-17.so.1", "libLLVM-16.so.1",
					     "libLLVM-15.so.1", "libLLVM-14.so.1" };
	const char *asked = tally_environment("TALLY_LIBLLVM");
	void *handle = NULL;
	if (asked)
		handle = tally_loaded_open(asked);
	for (size_t i = 0; !asked && !handle && i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		handle = tally_loaded_open(NAMES[i]);
	return handle;
}

static bool load(struct llvm *llvm, void *handle, const struct target *target)
{
	static const char *const PARTS[] = { "TargetInfo", "TargetMC", "Disassembler" };
	for (size_t i = 0; i < sizeof(PARTS) / sizeof(PARTS[0]); i++) {
		char name[64];
		void (*initialize)(void);
		snprintf(name, sizeof(name), "LLVMInitialize%s%s", target->name, PARTS[i]);
		if (!tally_loaded_find(handle, name, &initialize))
			return false;
		initialize();
	}
	return tally_loaded_find(handle, "LLVMCreateDisasmCPUFeatures", &llvm->create) &&
	       tally_loaded_find(handle, "LLVMSetDisasmOptions", &llvm->set_options) &&
	       tally_loaded_find(handle, "LLVMDisasmInstruction", &llvm->disassemble) &&
	       tally_loaded_find(handle, "LLVMDisasmDispose", &llvm->dispose);
}

static const char *take_down(void *context, uint64_t value, uint64_t *type, uint64_t pc,
			     const char **name)
{
	struct tally_disassembler *disassembler = context;
	(void)pc;
	if (*type == REFERENCE_BRANCH) {
		disassembler->has_target = true;
		disassembler->branch = value;
	} else if (*type == REFERENCE_LOAD) {
		disassembler->reference = value;
	}
	*type = REFERENCE_NONE;
	*name = NULL;
	return NULL;
}

static const struct target *target_of(unsigned machine)
{
	for (size_t i = 0; i < sizeof(TARGETS) / sizeof(TARGETS[0]); i++)
		if (TARGETS[i].machine == machine)
			return &TARGETS[i];
	return NULL;
}

int tally_disassembler_open(unsigned machine, bool is_64bit, bool is_big_endian, bool is_intel,
			    struct tally_disassembler **out, struct tally_error *err)
{
	const struct target *target = target_of(machine);
	const char *triple = NULL;
	if (target)
		triple = is_big_endian ? target->triple_big : target->triple;
	if (machine == EM_RISCV && !is_64bit)
		triple = "riscv32-linux-gnu";
	if (!triple)
		return tally_error_set(
			err, -ENOTSUP,
			"code of this kind of machine (ELF's number %u) can't be disassembled",
			machine);
	void *handle = load_library();
	if (!handle && tally_environment("TALLY_LIBLLVM")) {
		tally_error_set(err, -ENOENT, "code can't be disassembled: the libLLVM that "
					      "TALLY_LIBLLVM names can't be loaded");
		tally_error_hint(err, "on Debian: apt-get install libllvm14 (or a later one)");
		return -ENOENT;
	}
	if (!handle)
		return tally_loaded_refuse(err, -ENOENT, "code can't be disassembled", "libLLVM",
					   "libllvm14 (or a later one)");
	struct tally_disassembler *disassembler = calloc(1, sizeof(*disassembler));
	if (!disassembler)
		return tally_error_set(err, -ENOMEM, "out of memory");
	disassembler->target = target;
	if (load(&disassembler->llvm, handle, target))
		disassembler->context = disassembler->llvm.create(
			triple, target->cpu, target->features, disassembler, 0, NULL, take_down);
	if (!disassembler->context) {
		free(disassembler);
		return tally_error_set(err, -ENOTSUP,
				       "the installed libLLVM can't disassemble code of %s",
				       target->name);
	}
	disassembler->mask = is_64bit ? UINT64_MAX : UINT32_MAX;
	/* first: it makes a new printer, without options */
	if (is_intel && (machine == EM_X86_64 || machine == EM_386))
		disassembler->llvm.set_options(disassembler->context, OPTION_OTHER_SYNTAX);
	disassembler->llvm.set_options(disassembler->context, OPTION_HEX);
	*out = disassembler;
	return 0;
}

void tally_disassembler_close(struct tally_disassembler *disassembler)
{
	if (disassembler)
		disassembler->llvm.dispose(disassembler->context);
	free(disassembler);
}

/* "\taddq\t$1, %rax" → "addq $1, %rax" */
static void tidy(char *text)
{
	char *out = text;
	for (const char *in = text; *in; in++) {
		bool is_blank = *in == '\t' || *in == ' ';
		if (!is_blank)
			*out++ = *in;
		else if (out > text && out[-1] != ' ')
			*out++ = ' ';
	}
	while (out > text && out[-1] == ' ')
		out--;
	*out = '\0';
}

static bool is_call(const struct target *target, const char *text)
{
	char word[32];
	snprintf(word, sizeof(word), " %.*s ", (int)strcspn(text, " "), text);
	return strstr(target->calls, word);
}

/* Returns where the last operand begins. */
static size_t last_operand(const char *text)
{
	size_t at = strlen(text);
	while (at && text[at - 1] != ' ')
		at--;
	return at;
}

/* For targets whose printer does not ask: a branch's last operand is its distance. */
static bool read_distance(const struct tally_disassembler *disassembler,
			  struct tally_instruction *out, uint64_t address)
{
	static const char *const PREFIXES[] = { "b", "j", "c.b", "c.j", "call" };
	unsigned machine = disassembler->target->machine;
	bool is_branch = false;
	if (machine != EM_RISCV && machine != EM_PPC64 && machine != EM_S390)
		return false;
	for (size_t i = 0; i < sizeof(PREFIXES) / sizeof(PREFIXES[0]); i++)
		is_branch |= !strncmp(out->text, PREFIXES[i], strlen(PREFIXES[i]));
	size_t at = last_operand(out->text);
	const char *number = out->text + at;
	if (!is_branch || !at)
		return false;
	if (*number == '.')
		number++;
	if (*number == '+')
		number++;
	char *end;
	long long distance = strtoll(number, &end, 0);
	if (end == number || *end)
		return false;
	out->target = address + (uint64_t)distance;
	return true;
}

/* Computes the address that x86-64 code refers to relative to rip.  LLVM 14's length of such an
 * instruction lacks its prefixes. */
static bool read_reference(struct tally_instruction *out, uint64_t address)
{
	const char *att = strstr(out->text, "(%rip"), *intel = strstr(out->text, "[rip");
	const char *number = att;
	if (intel)
		number = intel + 4;
	bool is_negative = false;
	if (!number)
		return false;
	while (!intel && number > out->text &&
	       (isxdigit((unsigned char)number[-1]) || strchr("x-", number[-1])))
		number--;
	for (; *number == ' ' || *number == '+' || *number == '-'; number++)
		is_negative |= *number == '-';
	uint64_t distance = strtoull(number, NULL, 0);
	out->reference = address + out->size + (is_negative ? -distance : distance);
	return true;
}

static void put_data(const struct tally_disassembler *disassembler, const uint8_t *bytes,
		     size_t available, struct tally_instruction *out)
{
	out->kind = TALLY_INSTRUCTION_DATA;
	out->size = disassembler->target->unit;
	if (out->size > available)
		out->size = (uint32_t)available;
	size_t length = (size_t)snprintf(out->text, sizeof(out->text), ".byte");
	for (uint32_t i = 0; i < out->size; i++)
		length += (size_t)snprintf(out->text + length, sizeof(out->text) - length,
					   "%s0x%02x", i ? ", " : " ", bytes[i]);
	out->operand = strlen(out->text);
}

void tally_disassemble(struct tally_disassembler *disassembler, const uint8_t *bytes,
		       size_t available, uint64_t address, struct tally_instruction *out)
{
	enum { LONGEST = 32 };
	uint8_t copy[LONGEST]; /* the interface takes writable bytes */
	size_t size = LONGEST;
	if (available < LONGEST)
		size = available;
	memcpy(copy, bytes, size);
	memset(out, 0, sizeof(*out));
	disassembler->has_target = false;
	disassembler->branch = disassembler->reference = 0;
	size_t used = disassembler->llvm.disassemble(disassembler->context, copy, size, address,
						     out->text, sizeof(out->text));
	if (!used || used > size) {
		put_data(disassembler, bytes, available, out);
		return;
	}
	tidy(out->text);
	out->size = (uint32_t)used;
	if (disassembler->target->machine != EM_X86_64 || !read_reference(out, address))
		out->reference = disassembler->reference;
	out->operand = strlen(out->text);
	out->target = disassembler->branch;
	if (!disassembler->has_target && !read_distance(disassembler, out, address))
		return;
	out->target &= disassembler->mask;
	out->kind = TALLY_INSTRUCTION_JUMP;
	if (is_call(disassembler->target, out->text))
		out->kind = TALLY_INSTRUCTION_CALL;
	out->operand = last_operand(out->text);
}
