/* bpf_functions [MS]: loads a BPF program of two functions, whose types (BTF) name them, prints
 * that, and runs it for MS (default half a second).  The kernel makes code for it, which is
 * sampled.  Exits with 3 if it lacks the permission. */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { OPERATIONS = 200, CALLS = 1000, INNER = 6 };

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* int outer_of_tally(int), int inner_of_tally(int) */
static int load_types(void)
{
	static const char names[] = "\0int\0n\0outer_of_tally\0inner_of_tally";
	struct {
		struct btf_header header;
		struct btf_type integer;
		uint32_t bits;
		struct btf_type prototype;
		struct btf_param parameter;
		struct btf_type outer, inner;
		char names[sizeof(names)];
	} __attribute__((packed)) types = {
		.header = { .magic = BTF_MAGIC,
			    .version = BTF_VERSION,
			    .hdr_len = sizeof(struct btf_header) },
		.integer = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 },
		.bits = BTF_INT_SIGNED << 24 | 32,
		.prototype = { .info = BTF_KIND_FUNC_PROTO << 24 | 1, .type = 1 },
		.parameter = { .name_off = 5, .type = 1 },
		.outer = { .name_off = 7, .info = BTF_KIND_FUNC << 24, .type = 2 },
		.inner = { .name_off = 22, .info = BTF_KIND_FUNC << 24, .type = 2 },
	};
	types.header.type_len = types.header.str_off =
		(uint32_t)(offsetof(__typeof__(types), names) - sizeof(struct btf_header));
	types.header.str_len = sizeof(names);
	memcpy(types.names, names, sizeof(names));
	union bpf_attr attr = { .btf = (uintptr_t)&types, .btf_size = sizeof(types) };
	return bpf(BPF_BTF_LOAD, &attr);
}

static int load(int types)
{
	struct bpf_insn program[INNER + OPERATIONS + 2] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 7, .imm = CALLS },
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = INNER - 2 },
		{ .code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = 7, .imm = 1 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 7, .off = -3 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 },
	};
	for (int i = 0; i < OPERATIONS; i++)
		program[INNER + 1 + i] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MUL | BPF_K,
							    .imm = 3 };
	program[INNER + 1 + OPERATIONS] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	struct bpf_func_info functions[] = { { 0, 3 }, { INNER, 4 } };
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)program,
		.license = (uintptr_t) "MIT",
		.insn_cnt = sizeof(program) / sizeof(program[0]),
		.prog_btf_fd = (uint32_t)types,
		.func_info = (uintptr_t)functions,
		.func_info_cnt = 2,
		.func_info_rec_size = sizeof(functions[0]),
	};
	strcpy(attr.prog_name, "outer_of_tall");
	return bpf(BPF_PROG_LOAD, &attr);
}

int main(int argc, char **argv)
{
	long run_ms = argc > 1 ? atol(argv[1]) : 500;
	struct timespec start, now;
	char packet[64] = "";
	int types = load_types(), program = types < 0 ? -1 : load(types);
	if (program < 0)
		return 3;
	puts("loaded");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		union bpf_attr attr = { .test = { .prog_fd = (uint32_t)program,
						  .data_in = (uintptr_t)packet,
						  .data_size_in = sizeof(packet),
						  .repeat = 100 } };
		if (bpf(BPF_PROG_TEST_RUN, &attr) < 0)
			return 3;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 <
		 run_ms);
	return 0;
}
