/* Which programs the preloaded object can enter.  The files are made here, but for this program. */
#include "process/process_program.h"

#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__aarch64__)
#define LOADER "/lib/ld-linux-aarch64.so.1"
enum { MACHINE = EM_AARCH64, OTHER_MACHINE = EM_X86_64 };
#else
#define LOADER "/lib64/ld-linux-x86-64.so.2"
enum { MACHINE = EM_X86_64, OTHER_MACHINE = EM_AARCH64 };
#endif

/* A program with one loaded segment, which holds all of the file. */
struct made {
	Elf64_Ehdr header;
	Elf64_Phdr parts[4]; /* load, dynamic, interpreter, note */
	Elf64_Dyn dynamic[8];
	char loader[64];
	struct { Elf64_Nhdr head; char name[4], text[8]; } note;
	char names[128];
	Elf64_Sym symbols[3];
	struct { uint32_t buckets, chains, bucket, chain[3]; } hash;
};

static char folder[] = "/tmp/test_process_program.XXXXXX";
static char path[128];

static void make(struct made *file)
{
	enum { ADDRESS = 0x400000 };
	*file = (struct made){
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN, .e_machine = MACHINE, .e_version = EV_CURRENT,
			    .e_phoff = offsetof(struct made, parts), .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 4 },
		.parts = { { .p_type = PT_LOAD, .p_vaddr = ADDRESS, .p_filesz = sizeof(*file) },
			   { .p_type = PT_DYNAMIC, .p_offset = offsetof(struct made, dynamic),
			     .p_filesz = sizeof(file->dynamic) },
			   { .p_type = PT_INTERP, .p_offset = offsetof(struct made, loader),
			     .p_filesz = sizeof(LOADER) },
			   { .p_type = PT_NULL, .p_offset = offsetof(struct made, note),
			     .p_filesz = sizeof(file->note) } },
		.dynamic = { { DT_NEEDED, { 1 } },
			     { DT_STRTAB, { ADDRESS + offsetof(struct made, names) } },
			     { DT_SYMTAB, { ADDRESS + offsetof(struct made, symbols) } },
			     { DT_HASH, { ADDRESS + offsetof(struct made, hash) } } },
		.loader = LOADER,
		.note = { { 4, 8, 4 }, "Go\0", "id" },
		.names = "\0libc.so.6\0main\0__asan_init\0",
		.symbols = { { 0 }, { .st_name = 11, .st_shndx = 1 }, { .st_name = 11, .st_shndx = 1 } },
		.hash = { 1, 3, 1, { 0, 2, 0 } },
	};
}

/* gcc's macros, or clang's __has_feature(). */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

static void write_file(const void *bytes, size_t size, unsigned mode)
{
	unlink(path);
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static struct process_program look(const char *name)
{
	struct process_program program;
	process_program_look(AT_FDCWD, name, 0, &program);
	return program;
}

static enum process_program_kind kind_of(const struct made *file)
{
	write_file(file, sizeof(*file), 0700);
	return look(path).kind;
}

static void glibcs_programs_are_entered(void **state)
{
	(void)state;
	struct made file;
	make(&file);
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_ENTERED);
	assert_false(look(path).is_go);
	assert_string_equal(look(path).interpreter, "");
	assert_int_equal(look("/proc/self/exe").kind,
			 IS_SANITIZED ? PROCESS_PROGRAM_SANITIZER : PROCESS_PROGRAM_ENTERED);
	assert_null(process_program_reason(PROCESS_PROGRAM_ENTERED));
}

static void programs_without_glibcs_loader_are_not(void **state)
{
	(void)state;
	struct made file;
	make(&file);
	strcpy(file.loader, "/lib/ld-musl-x86_64.so.1");
	file.parts[2].p_filesz = sizeof("/lib/ld-musl-x86_64.so.1");
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_OTHER_LIBC);
	make(&file);
	file.dynamic[0].d_tag = DT_DEBUG;
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_NO_LIBC);
	make(&file);
	file.parts[2].p_type = PT_NULL;
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_STATIC);
	/* glibc's loader itself, as a program, takes LD_PRELOAD for the one that it runs */
	file.dynamic[4] = (Elf64_Dyn){ DT_SONAME, { 40 } };
	strcpy(file.names + 40, strrchr(LOADER, '/') + 1);
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_ENTERED);
	strcpy(file.names + 40, "libother.so");
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_STATIC);
}

static void programs_of_other_machines_are_not(void **state)
{
	(void)state;
	struct made file;
	make(&file);
	file.header.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_32_BITS);
	make(&file);
	file.header.e_machine = OTHER_MACHINE;
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_OTHER_MACHINE);
	make(&file);
	file.header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_OTHER_MACHINE);
}

static void sanitized_programs_are_not(void **state)
{
	(void)state;
	static const char *const libraries[] = { "libasan.so.8", "libtsan.so.2", "liblsan.so.0",
						 "libclang_rt.asan-x86_64.so", "/opt/libasan.so" };
	struct made file;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(char *); i++) {
		make(&file);
		file.dynamic[4] = (Elf64_Dyn){ DT_NEEDED, { 40 } };
		strcpy(file.names + 40, libraries[i]);
		assert_int_equal(kind_of(&file), PROCESS_PROGRAM_SANITIZER);
	}
	/* clang links the runtime in: a defined symbol, the second of its chain */
	make(&file);
	file.symbols[2].st_name = 16;
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_SANITIZER);
	file.symbols[2].st_shndx = SHN_UNDEF;
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_ENTERED);
}

static void go_programs_are_told(void **state)
{
	(void)state;
	struct made file;
	make(&file);
	file.parts[3].p_type = PT_NOTE;
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_ENTERED);
	assert_true(look(path).is_go);
	file.parts[2].p_type = PT_NULL;
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_STATIC);
	assert_true(look(path).is_go);
	file.note.name[0] = 'N';
	assert_int_equal(kind_of(&file), PROCESS_PROGRAM_STATIC);
	assert_false(look(path).is_go);
}

static void programs_with_other_rights_are_not(void **state)
{
	(void)state;
	struct made file;
	make(&file);
	write_file(&file, sizeof(file), 0700);
	if (geteuid()) {
		print_message("# set-user-ID files of another user can be made by root only\n");
		return;
	}
	assert_int_equal(chown(path, 4711, 4711), 0);
	assert_int_equal(chmod(path, 04755), 0);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_PRIVILEGED);
	assert_int_equal(chmod(path, 02755), 0);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_PRIVILEGED);
	/* without x for the group it means another thing */
	assert_int_equal(chmod(path, 02705), 0);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_ENTERED);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_ENTERED);
	/* set-user-ID root is nothing new to root */
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(chmod(path, 04755), 0);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_ENTERED);
}

static void a_script_is_what_its_interpreter_is(void **state)
{
	(void)state;
	char text[600];
	snprintf(text, sizeof(text), "#! \t/proc/self/exe -x\n");
	write_file(text, strlen(text), 0700);
	struct process_program program = look(path);
	assert_string_equal(program.interpreter, "/proc/self/exe");
	assert_int_equal(program.kind, look("/proc/self/exe").kind);
	snprintf(text, sizeof(text), "#!/absent/interpreter\n");
	write_file(text, strlen(text), 0700);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_UNREADABLE);
	/* a script that is its own interpreter, one without any, and one whose line is too long */
	snprintf(text, sizeof(text), "#!%s\n", path);
	write_file(text, strlen(text), 0700);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_NO_FORMAT);
	write_file("#!\n", 3, 0700);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_NO_FORMAT);
	memset(text, 'a', sizeof(text));
	memcpy(text, "#!/", 3);
	write_file(text, sizeof(text), 0700);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_NO_FORMAT);
	write_file("echo hello\n", 11, 0700);
	assert_int_equal(look(path).kind, PROCESS_PROGRAM_NO_FORMAT);
}

static void files_are_found_as_execveat_does(void **state)
{
	(void)state;
	struct process_program program;
	struct made file;
	make(&file);
	write_file(&file, sizeof(file), 0700);
	int directory = open(folder, O_DIRECTORY | O_PATH), fd = open(path, O_RDONLY),
	    handle = open(path, O_PATH);
	process_program_look(directory, "program", 0, &program);
	assert_int_equal(program.kind, PROCESS_PROGRAM_ENTERED);
	process_program_look(fd, "", AT_EMPTY_PATH, &program);
	assert_int_equal(program.kind, PROCESS_PROGRAM_ENTERED);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	process_program_look(handle, "", AT_EMPTY_PATH, &program);
	assert_int_equal(program.kind, PROCESS_PROGRAM_ENTERED);
	process_program_look(fd, "", 0, &program);
	assert_int_equal(program.kind, PROCESS_PROGRAM_UNREADABLE);
	process_program_look(AT_FDCWD, "/proc/self/exe", AT_SYMLINK_NOFOLLOW, &program);
	assert_int_equal(program.kind, PROCESS_PROGRAM_UNREADABLE);
	assert_int_equal(look(folder).kind, PROCESS_PROGRAM_UNREADABLE);
	assert_int_equal(look("/dev/null").kind, PROCESS_PROGRAM_UNREADABLE);
	assert_int_equal(look("").kind, PROCESS_PROGRAM_UNREADABLE);
	close(directory);
	close(fd);
	close(handle);
}

/* Each byte of the file takes extreme values, and the file ends at each length. */
static void damaged_files_do_no_harm(void **state)
{
	(void)state;
	struct made file;
	make(&file);
	file.parts[3].p_type = PT_NOTE;
	for (size_t i = 0; i < sizeof(file); i++) {
		static const uint8_t values[] = { 0, 0x7f, 0xff };
		for (size_t k = 0; k < sizeof(values); k++) {
			struct made damaged = file;
			((uint8_t *)&damaged)[i] = values[k];
			assert_in_range(kind_of(&damaged), 0, PROCESS_PROGRAM_SANITIZER);
		}
		write_file(&file, i, 0700);
		assert_in_range(look(path).kind, 0, PROCESS_PROGRAM_SANITIZER);
	}
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/program", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glibcs_programs_are_entered),
		cmocka_unit_test(programs_without_glibcs_loader_are_not),
		cmocka_unit_test(programs_of_other_machines_are_not),
		cmocka_unit_test(sanitized_programs_are_not),
		cmocka_unit_test(go_programs_are_told),
		cmocka_unit_test(programs_with_other_rights_are_not),
		cmocka_unit_test(a_script_is_what_its_interpreter_is),
		cmocka_unit_test(files_are_found_as_execveat_does),
		cmocka_unit_test(damaged_files_do_no_harm),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
