/* Makes a recording of any size from a small one that `perf record` wrote (uncompressed, not a
 * pipe):
 *
 *     large_recording repeat FROM TO MEGABYTES     repeats the samples, at later times
 *     large_recording stacks FROM TO MEGABYTES     makes stacks of about 20 frames; half of the
 *                                                  samples have a new one
 *
 * The result is what perf would have written had it recorded for longer: header, attributes,
 * side-band records and feature sections are those of FROM, so every tool resolves the addresses as
 * in FROM.  Records that end tasks are left out, since their samples go on.
 *
 * The stacks are those of an imaginary program.  Each address of FROM's stacks has four callees,
 * taken from the same addresses by a hash; the first is called half of the time, the second a
 * quarter, and so on.  A walk down this graph from a real sample's outermost frames is a stack.  It
 * depends only on its index in the sequence, so an old stack can be made again without having been
 * stored.  Every second sample is an old one: 2.1 million samples in 500 MB, a million stacks.  The
 * kernel's frames (above a system call or a fault) are those of a real sample. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FINISHED_ROUND = 68, FIRST_TOOL_RECORD = 64,
	HEADER_SIZE = 104, FEATURE_SAMPLE_TIME = 21, FEATURES = 256,
	KEPT_FRAMES = 4,  /* outermost frames of a real stack */
	DEPTH_MIN = 13, DEPTH_SPREAD = 6,
	WRITE_BYTES = 1 << 20,
	/* samples of one CPU in a round: the contents of a ring when it is drained */
	CPUS = 2, ROUND_SAMPLES = 1000
};

struct section { uint64_t offset, size; };

struct file_header {
	char magic[8];
	uint64_t size, attr_size;
	struct section attrs, data, event_types;
	uint64_t features[FEATURES / 64];
};

struct recording {
	const uint8_t *bytes;
	size_t size;
	struct file_header header;
	uint64_t sample_type;
	size_t time_word;   /* index of the word behind the sample's header */
	size_t cpu_word;    /* 0: none */
	size_t chain_word;
	uint64_t first_time, last_time;
};

struct addresses { uint64_t *words; size_t count, room; };

struct output {
	FILE *file;
	uint64_t written, wanted;
	uint64_t last_time;
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fprintf(stderr, "large_recording: ");
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

static uint64_t scatter(uint64_t value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
	return value ^ (value >> 31);
}

/* Finds the positions of a sample's fields: perf_event_open(2), PERF_RECORD_SAMPLE. */
static void find_words(struct recording *recording)
{
	uint64_t type = recording->sample_type;
	size_t word = 0;
	word += !!(type & PERF_SAMPLE_IDENTIFIER) + !!(type & PERF_SAMPLE_IP) +
		!!(type & PERF_SAMPLE_TID);
	recording->time_word = word;
	word += !!(type & PERF_SAMPLE_TIME) + !!(type & PERF_SAMPLE_ADDR) +
		!!(type & PERF_SAMPLE_ID) + !!(type & PERF_SAMPLE_STREAM_ID);
	recording->cpu_word = type & PERF_SAMPLE_CPU ? word : 0;
	word += !!(type & PERF_SAMPLE_CPU) + !!(type & PERF_SAMPLE_PERIOD);
	recording->chain_word = word;
}

static void open_recording(const char *path, struct recording *recording)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	if (fd < 0 || fstat(fd, &status) < 0)
		die("%s: %s", path, strerror(errno));
	recording->size = (size_t)status.st_size;
	recording->bytes = mmap(NULL, recording->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	struct file_header *header = &recording->header;
	if (recording->bytes == MAP_FAILED || recording->size < HEADER_SIZE)
		die("%s is no recording", path);
	memcpy(header, recording->bytes, HEADER_SIZE);
	if (memcmp(header->magic, "PERFILE2", 8) || header->size != HEADER_SIZE ||
	    !header->data.size || header->data.offset + header->data.size > recording->size)
		die("%s is no finished recording of perf's", path);
	const uint64_t placed = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				PERF_SAMPLE_TIME;
	for (uint64_t i = 0; i < header->attrs.size / header->attr_size; i++) {
		struct perf_event_attr attr = { 0 };
		memcpy(&attr, recording->bytes + header->attrs.offset + i * header->attr_size,
		       header->attr_size - sizeof(struct section) < sizeof(attr) ?
		       header->attr_size - sizeof(struct section) : sizeof(attr));
		if (!i)
			recording->sample_type = attr.sample_type;
		if (!(attr.sample_type & PERF_SAMPLE_TIME) ||
		    (attr.sample_type ^ recording->sample_type) & placed)
			die("%s: events whose samples have their times at different places", path);
	}
	find_words(recording);
}

static const struct perf_event_header *record_at(const struct recording *recording, uint64_t offset)
{
	const struct perf_event_header *record =
		(const void *)(recording->bytes + recording->header.data.offset + offset);
	uint64_t left = recording->header.data.size - offset;
	if (left < sizeof(*record) || record->size < sizeof(*record) || record->size > left ||
	    record->size % 8)
		die("a damaged record at %llu", (unsigned long long)offset);
	return record;
}

static const uint64_t *words_of(const struct perf_event_header *record)
{
	return (const uint64_t *)(record + 1);
}

static void find_times(struct recording *recording)
{
	for (uint64_t at = 0; at < recording->header.data.size;
	     at += record_at(recording, at)->size) {
		const struct perf_event_header *record = record_at(recording, at);
		if (record->type > PERF_RECORD_MAX && record->type < FIRST_TOOL_RECORD)
			die("a record of type %u", record->type);
		if (record->type == 81)
			die("a compressed recording");
		if (record->type != PERF_RECORD_SAMPLE)
			continue;
		uint64_t time = words_of(record)[recording->time_word];
		recording->first_time = !recording->first_time || time < recording->first_time
						? time
						: recording->first_time;
		recording->last_time = time > recording->last_time ? time : recording->last_time;
	}
	if (!recording->first_time)
		die("no samples");
}

static void put(struct output *output, const void *bytes, size_t size)
{
	if (fwrite(bytes, 1, size, output->file) != size)
		die("writing: %s", strerror(errno));
	output->written += size;
}

static void put_round(struct output *output)
{
	const struct perf_event_header round = { .type = FINISHED_ROUND, .size = sizeof(round) };
	put(output, &round, sizeof(round));
}

/* Copies all records but those that end tasks; samples only if `with_samples`. */
static void put_first_pass(struct output *output, const struct recording *recording,
			   bool with_samples)
{
	for (uint64_t at = 0; at < recording->header.data.size;
	     at += record_at(recording, at)->size) {
		const struct perf_event_header *record = record_at(recording, at);
		if (record->type != PERF_RECORD_EXIT &&
		    (with_samples || record->type != PERF_RECORD_SAMPLE))
			put(output, record, record->size);
	}
	output->last_time = recording->last_time;
}

static void repeat(struct output *output, const struct recording *recording)
{
	put_first_pass(output, recording, true);
	uint64_t span = recording->last_time - recording->first_time + 1000;
	uint64_t copy[65536 / 8 + 1];
	for (uint64_t shift = span; output->written < output->wanted; shift += span) {
		for (uint64_t at = 0; at < recording->header.data.size;
		     at += record_at(recording, at)->size) {
			const struct perf_event_header *record = record_at(recording, at);
			if (record->type == FINISHED_ROUND)
				put(output, record, record->size);
			if (record->type != PERF_RECORD_SAMPLE)
				continue;
			memcpy(copy, record, record->size);
			copy[1 + recording->time_word] += shift;
			put(output, copy, record->size);
		}
		put_round(output);
		output->last_time = recording->last_time + shift;
	}
}

/* ---- stacks -------------------------------------------------------------- */

static void add(struct addresses *addresses, uint64_t word)
{
	if (addresses->count == addresses->room) {
		addresses->room = addresses->room ? 2 * addresses->room : 1024;
		addresses->words = realloc(addresses->words,
					   addresses->room * sizeof(*addresses->words));
		if (!addresses->words)
			die("no memory");
	}
	addresses->words[addresses->count++] = word;
}

static int compare_words(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
	return left < right ? -1 : left > right;
}

static void make_distinct(struct addresses *addresses)
{
	if (!addresses->count)
		die("too few stacks of user code");
	qsort(addresses->words, addresses->count, sizeof(*addresses->words), compare_words);
	size_t kept = 0;
	for (size_t i = 1; i < addresses->count; i++)
		if (addresses->words[i] != addresses->words[kept])
			addresses->words[++kept] = addresses->words[i];
	addresses->count = kept + 1;
}

struct model {
	const struct recording *recording;
	struct addresses bases;   /* offsets of real samples whose stacks are long enough */
	struct addresses calls, leaves;
};

/* Returns the words of a sample's chain, and the index of the first user frame, behind the
 * context's marker; 0 if there is none. */
static const uint64_t *chain_of(const struct recording *recording, uint64_t at, size_t *length,
				size_t *user)
{
	const struct perf_event_header *record = record_at(recording, at);
	const uint64_t *chain = words_of(record) + recording->chain_word;
	*length = (size_t)chain[0];
	chain++;
	if ((const uint8_t *)(chain + *length) != (const uint8_t *)record + record->size)
		die("samples with more than a call chain at their end");
	*user = 0;
	for (size_t i = 0; i < *length; i++)
		if (chain[i] == (uint64_t)PERF_CONTEXT_USER)
			*user = i + 1;
	return chain;
}

static void learn(struct model *model)
{
	const struct recording *recording = model->recording;
	const uint64_t fields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
				PERF_SAMPLE_CALLCHAIN;
	if (recording->sample_type & ~fields || !(recording->sample_type & PERF_SAMPLE_CALLCHAIN))
		die("stacks are made from samples that end in a call chain (-g)");
	for (uint64_t at = 0; at < recording->header.data.size;
	     at += record_at(recording, at)->size) {
		size_t length, user;
		if (record_at(recording, at)->type != PERF_RECORD_SAMPLE)
			continue;
		const uint64_t *chain = chain_of(recording, at, &length, &user);
		if (!user || length < user + KEPT_FRAMES + 4)
			continue;
		add(&model->bases, at);
		add(&model->leaves, chain[user]);
		for (size_t i = user + 2; i < length - KEPT_FRAMES; i++)
			add(&model->calls, chain[i]);
	}
	make_distinct(&model->calls);
	make_distinct(&model->leaves);
	if (model->bases.count < 10)
		die("too few stacks of user code");
}

/* Makes a sample with the stack of an index in the sequence.  Returns its size in bytes. */
static size_t make_sample(const struct model *model, uint64_t index, uint64_t time, unsigned cpu,
			  uint64_t *out)
{
	const struct recording *recording = model->recording;
	uint64_t random = scatter(index + 1);
	uint64_t at = model->bases.words[random % model->bases.count];
	size_t length, user;
	const uint64_t *chain = chain_of(recording, at, &length, &user);
	struct perf_event_header *record = (void *)out;
	const struct perf_event_header *base = record_at(recording, at);
	memcpy(out, base, sizeof(*base) + recording->chain_word * 8);
	out[1 + recording->time_word] = time;
	if (recording->cpu_word)
		out[1 + recording->cpu_word] = cpu;
	uint64_t *made = out + 1 + recording->chain_word + 1;
	memcpy(made, chain, user * 8);
	size_t depth = DEPTH_MIN + scatter(random) % DEPTH_SPREAD;
	uint64_t caller = chain[length - KEPT_FRAMES];
	random = scatter(random + 1);
	for (size_t i = depth; i-- > 1;) { /* outermost first, which comes last */
		unsigned which = (unsigned)__builtin_ctzll(random | 8);
		random = random >> (which + 1) | random << (63 - which);
		caller = model->calls.words[scatter(caller * 4 + which) % model->calls.count];
		made[user + i] = caller;
	}
	made[user] = model->leaves.words[scatter(caller * 4 + random % 4) % model->leaves.count];
	memcpy(made + user + depth, chain + length - KEPT_FRAMES, KEPT_FRAMES * 8);
	length = user + depth + KEPT_FRAMES;
	made[-1] = length;
	/* in user code, the leaf is where it was interrupted */
	if (user == 1 && recording->sample_type & PERF_SAMPLE_IP)
		out[1 + !!(recording->sample_type & PERF_SAMPLE_IDENTIFIER)] = made[user];
	record->size = (uint16_t)((uint8_t *)(made + length) - (uint8_t *)out);
	return record->size;
}

static void make_stacks(struct output *output, const struct recording *recording)
{
	struct model model = { .recording = recording };
	learn(&model);
	put_first_pass(output, recording, false);
	put_round(output);
	uint64_t copy[65536 / 8 + 1];
	uint64_t made = 0, time = recording->last_time + 1000, sequence = 0;
	while (output->written < output->wanted) {
		for (unsigned cpu = 0; cpu < CPUS; cpu++) {
			for (unsigned i = 0; i < ROUND_SAMPLES; i++) {
				/* Of the old stacks, older ones come more often. */
				uint64_t random = scatter(~sequence++);
				uint64_t part = random >> 32;
				bool anew = (random & 1) || !made;
				uint64_t index = anew ? made++
						      : (uint64_t)((unsigned __int128)made * part *
									   part >>
								   64);
				output->last_time = time + i * 50000 + cpu * 20000;
				put(output, copy,
				    make_sample(&model, index, output->last_time, cpu, copy));
			}
		}
		time += ROUND_SAMPLES * 50000;
		put_round(output);
	}
	fprintf(stderr, "large_recording: %llu samples, %llu stacks, %zu call sites\n",
		(unsigned long long)sequence, (unsigned long long)made, model.calls.count);
	free(model.bases.words);
	free(model.calls.words);
	free(model.leaves.words);
}

/* ---- the file ------------------------------------------------------------ */

/* Moves the feature sections behind the data, and sets the last sample's time in SAMPLE_TIME. */
static void put_features(struct output *output, const struct recording *recording, uint64_t grown)
{
	const struct file_header *header = &recording->header;
	uint64_t table = header->data.offset + header->data.size;
	unsigned count = 0;
	uint64_t last_time_at = 0;
	for (unsigned bit = 0; bit < FEATURES; bit++) {
		struct section section;
		if (!(header->features[bit / 64] >> bit % 64 & 1))
			continue;
		if (table + (count + 1) * sizeof(section) > recording->size)
			die("a damaged table of features");
		memcpy(&section, recording->bytes + table + count * sizeof(section),
		       sizeof(section));
		section.offset += grown;
		last_time_at = bit == FEATURE_SAMPLE_TIME ? section.offset + 8 : last_time_at;
		put(output, &section, sizeof(section));
		count++;
	}
	put(output, recording->bytes + table + count * sizeof(struct section),
	    recording->size - table - count * sizeof(struct section));
	if (last_time_at && (fseek(output->file, (long)last_time_at, SEEK_SET) < 0 ||
			     fwrite(&output->last_time, 8, 1, output->file) != 1))
		die("writing: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	if (argc != 5 || (strcmp(argv[1], "repeat") && strcmp(argv[1], "stacks"))) {
		fprintf(stderr, "usage: large_recording repeat|stacks FROM TO MEGABYTES\n");
		return 2;
	}
	struct recording recording = { 0 };
	open_recording(argv[2], &recording);
	find_times(&recording);
	struct output output = { .file = fopen(argv[3], "w+e"),
				 .wanted = strtoull(argv[4], NULL, 10) * 1000000 };
	if (!output.file)
		die("%s: %s", argv[3], strerror(errno));
	/* Writes a megabyte at a time like perf, so that the page cache keeps large pieces.  (A
	 * stream without a buffer of its own writes 4 KiB at a time.) */
	char *buffer = malloc(WRITE_BYTES);
	if (!buffer || setvbuf(output.file, buffer, _IOFBF, WRITE_BYTES))
		die("no memory");
	struct file_header *header = &recording.header;
	put(&output, recording.bytes, header->data.offset);
	if (!strcmp(argv[1], "repeat"))
		repeat(&output, &recording);
	else
		make_stacks(&output, &recording);
	struct file_header grown = *header;
	grown.data.size = output.written - header->data.offset;
	put_features(&output, &recording, grown.data.size - header->data.size);
	if (fseek(output.file, 0, SEEK_SET) < 0 ||
	    fwrite(&grown, HEADER_SIZE, 1, output.file) != 1 || fclose(output.file))
		die("%s: %s", argv[3], strerror(errno));
	free(buffer);
	return 0;
}
