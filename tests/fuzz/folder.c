#include "folder.h"

#include <string.h>

static const char MAGIC[8] = "TALLYFLD";
enum { HEAD = 16, FILE_HEAD = 6 };

static uint64_t get(const uint8_t *at, unsigned width)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < width; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

static void put(uint8_t *at, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static bool is_inside(const char *name)
{
	return *name && *name != '/' && !strstr(name, "..") && !strstr(name, "//") &&
	       name[strlen(name) - 1] != '/';
}

bool folder_read(const uint8_t *bytes, size_t size, struct folder *out)
{
	*out = (struct folder){ 0 };
	out->is_plain = size < HEAD || memcmp(bytes, MAGIC, sizeof(MAGIC)) != 0;
	if (out->is_plain) {
		out->files[0] = (struct folder_file){ "recording", bytes, size };
		out->count = 1;
		return size > 0;
	}
	out->views = get(bytes + sizeof(MAGIC), 8);
	for (size_t at = HEAD; size - at >= FILE_HEAD && out->count < FOLDER_FILES_MAX;) {
		size_t length = (size_t)get(bytes + at, 2),
		       file_size = (size_t)get(bytes + at + 2, 4);
		at += FILE_HEAD;
		if (length >= FOLDER_NAME_MAX || length > size - at)
			break;
		struct folder_file *file = &out->files[out->count];
		memcpy(file->name, bytes + at, length);
		file->name[length] = '\0';
		at += length;
		file->size = file_size < size - at ? file_size : size - at;
		file->bytes = bytes + at;
		at += file->size;
		out->count += is_inside(file->name);
	}
	return true;
}

size_t folder_bytes(const struct folder *folder)
{
	size_t size = HEAD;
	for (size_t i = 0; i < folder->count; i++)
		size += FILE_HEAD + strlen(folder->files[i].name) + folder->files[i].size;
	return size;
}

void folder_write(const struct folder *folder, uint8_t *out)
{
	memcpy(out, MAGIC, sizeof(MAGIC));
	put(out + sizeof(MAGIC), 8, folder->views);
	out += HEAD;
	for (size_t i = 0; i < folder->count; i++) {
		const struct folder_file *file = &folder->files[i];
		size_t length = strlen(file->name);
		put(out, 2, length);
		put(out + 2, 4, file->size);
		memcpy(out + FILE_HEAD, file->name, length);
		out += FILE_HEAD + length;
		if (file->size)
			memcpy(out, file->bytes, file->size);
		out += file->size;
	}
}
