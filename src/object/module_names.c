#include "base/buffer.h"
#include "object/module.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { NOTES_BYTES_MAX = 1 << 16 };

bool tally_module_name(const char *path, char name[TALLY_MODULE_NAME_BYTES])
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path + (*path == '[');
	const char *end = *path == '[' ? strchr(base, ']') : strstr(base, ".ko");
	size_t length = end ? (size_t)(end - base) : 0;
	if (!length || length >= TALLY_MODULE_NAME_BYTES || !strncmp(path, "[kernel", 7) ||
	    !strncmp(path, "[guest", 6) || (*path != '[' && end[3] && end[3] != '.'))
		return false;
	for (size_t i = 0; i < length; i++)
		name[i] = base[i] == '-' ? '_' : base[i];
	name[length] = '\0';
	return true;
}

/* "kernel/net/netfilter/nf_tables.ko.xz: kernel/…" */
bool tally_module_dependency_next(const char **text, struct tally_module_dependency *out)
{
	while (**text) {
		const char *line = *text;
		size_t length = strcspn(line, ":\n");
		bool is_path = line[length] == ':' && length < sizeof(out->path);
		*text = line + length + strcspn(line + length, "\n");
		*text += **text == '\n';
		if (!is_path)
			continue;
		memcpy(out->path, line, length);
		out->path[length] = '\0';
		if (strchr(out->path, '/') && !strstr(out->path, "..") &&
		    tally_module_name(out->path, out->name))
			return true;
	}
	return false;
}

bool tally_module_loaded_build_id(const char *name, struct tally_build_id *id)
{
	struct tally_buffer notes = { 0 };
	char path[160];
	snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", name);
	bool found = !strchr(name, '/') &&
		     !tally_buffer_read_file(&notes, AT_FDCWD, path, NOTES_BYTES_MAX) &&
		     tally_build_id_from_notes(notes.bytes, notes.length, id);
	tally_buffer_release(&notes);
	return found;
}
