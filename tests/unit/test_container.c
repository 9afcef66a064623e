/* Containers and services by name, in folders that look like cgroup hierarchies. */
#include "test.h"

#include "session/session_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_A "1111aaaa1111aaaa1111aaaa1111aaaa1111aaaa1111aaaa1111aaaa1111aaaa"
#define ID_B "1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb"
#define ID_C "cafecccc1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb"
#define ID_D "dddddddd1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb1111bbbb"

struct world {
	char root[32];
	char mounts[64], docker[64], podman[96];
	struct tally_container_places places;
};

static void write_file(const char *root, const char *path, const char *text)
{
	char whole[512];
	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *slash = whole + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0755);
		*slash = '/';
	}
	FILE *file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void start(struct world *world)
{
	char text[256];
	strcpy(world->root, "/tmp/tally-container-XXXXXX");
	assert_non_null(mkdtemp(world->root));
	snprintf(world->mounts, sizeof(world->mounts), "%s/mounts", world->root);
	snprintf(world->docker, sizeof(world->docker), "%s/docker", world->root);
	snprintf(world->podman, sizeof(world->podman), "%s/podman/*-containers/containers.json",
		 world->root);
	snprintf(text, sizeof(text),
		 "proc /proc proc rw 0 0\ncgroup2 %s/v2 cgroup2 rw 0 0\n"
		 "cgroup %s/v1\\040pids cgroup rw,pids 0 0\n",
		 world->root, world->root);
	write_file(world->root, "mounts", text);
	world->places = (struct tally_container_places){ .mounts = world->mounts,
							 .docker = world->docker,
							 .podman = world->podman };
	write_file(world->root, "v2/cgroup.procs", "1\n2\n");
	write_file(world->root, "v2/system.slice/docker-" ID_A ".scope/cgroup.procs", "30\n10\n0\n");
	write_file(world->root, "v2/system.slice/docker-" ID_A ".scope/inner/cgroup.procs", "20\n");
	write_file(world->root,
		   "v2/system.slice/docker-" ID_A ".scope/system.slice/nginx.service/cgroup.procs",
		   "21\n");
	write_file(world->root, "v1 pids/docker/" ID_B "/cgroup.procs", "40\n");
	write_file(world->root, "v2/machine.slice/libpod-" ID_C ".scope/container/cgroup.procs",
		   "50\n");
	write_file(world->root, "v2/machine.slice/libpod-conmon-" ID_C ".scope/cgroup.procs",
		   "51\n");
	write_file(world->root,
		   "v2/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID_D
		   ".scope/cgroup.procs",
		   "60\n");
	write_file(world->root, "v2/lxc.payload.build box/cgroup.procs", "70\n");
	write_file(world->root, "v2/lxc.monitor.build box/cgroup.procs", "71\n");
	write_file(world->root, "v2/machine.slice/machine-deb\\x2d12.scope/cgroup.procs", "80\n");
	write_file(world->root,
		   "v2/machine.slice/systemd-nspawn@fedora.service/payload/cgroup.procs", "90\n");
	write_file(world->root, "v2/system.slice/nginx.service/cgroup.procs", "100\n101\n");
	write_file(world->root, "v1 pids/system.slice/nginx.service/cgroup.procs", "101\n102\n");
	write_file(world->root, "v2/a.slice/twin.service/cgroup.procs", "110\n");
	write_file(world->root, "v2/b.slice/twin.service/cgroup.procs", "120\n");
	write_file(world->root, "v2/system.slice/empty.service/cgroup.procs", "");
	write_file(world->root, "v2/plain/cgroup.procs", "130\n");
	write_file(world->root, "docker/" ID_A "/config.v2.json",
		   "{\"State\":{\"Name\":\"x\"},\"ID\":\"" ID_A "\",\"Name\":\"/web\"}");
	write_file(world->root, "docker/" ID_B "/config.v2.json", "{\"Name\":\"/cafe\"}");
	write_file(world->root, "docker/broken/config.v2.json", "{\"Name\":\"/web\"}");
	write_file(world->root, "podman/overlay-containers/containers.json",
		   "[{\"id\":\"0\",\"names\":[\"db\"]},{\"id\":\"" ID_C
		   "\",\"names\":[\"other\",\"db\"]},7]");
	write_file(world->root, "podman/vfs-containers/containers.json", "not JSON");
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status, (void)kind, (void)where;
	return remove(path);
}

static void end(struct world *world)
{
	assert_int_equal(nftw(world->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void expect_pids(const struct world *world, const char *name, const char *expected)
{
	struct tally_container container = { 0 };
	struct tally_pid_list pids = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	char text[256] = "";
	if (tally_container_find(&world->places, name, &container, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	assert_string_equal(container.name, name);
	assert_int_equal(tally_container_pids(&container, &pids), 0);
	for (size_t i = 0, used = 0; i < pids.count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i ? " " : "",
					 pids.items[i]);
	if (strcmp(text, expected) != 0)
		fail_msg("%s: %s, expected %s", name, text, expected);
	tally_pid_list_release(&pids);
	tally_container_release(&container);
}

static void expect_refusal(const struct world *world, const char *name, int code,
			   const char *const *words)
{
	struct tally_container container = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_container_find(&world->places, name, &container, &err), code);
	for (; *words; words++)
		if (!strstr(err.message, *words) && !strstr(err.hint, *words))
			fail_msg("%s: '%s' lacks %s", name, err.message, *words);
	assert_null(container.name);
	tally_container_release(&container);
}

#define WORDS(...) (const char *const[]){ __VA_ARGS__, NULL }

static void each_runtime_is_known(void **state)
{
	(void)state;
	struct world world;
	start(&world);
	expect_pids(&world, ID_A, "10 20 21 30");
	expect_pids(&world, "1111aaaa1111", "10 20 21 30");
	expect_pids(&world, ID_B, "40");
	expect_pids(&world, "cafecccc", "50");
	expect_pids(&world, "dddd", "60");
	expect_pids(&world, "build box", "70");
	expect_pids(&world, "deb-12", "80");
	expect_pids(&world, "fedora", "90");
	expect_pids(&world, "systemd-nspawn@fedora.service", "90");
	expect_pids(&world, "plain", "130");
	expect_pids(&world, "empty", "");
	end(&world);
}

static void names_come_from_docker_and_podman(void **state)
{
	(void)state;
	struct world world;
	start(&world);
	expect_pids(&world, "web", "10 20 21 30");
	expect_pids(&world, "db", "50");
	expect_pids(&world, "other", "50");
	/* an exact name counts more than the beginning of an ID */
	expect_pids(&world, "cafe", "40");
	expect_pids(&world, "cafec", "50");
	end(&world);
}

/* One service in two hierarchies is one; the same name in two slices, or in a container, is not. */
static void one_must_match(void **state)
{
	(void)state;
	struct world world;
	start(&world);
	expect_refusal(&world, "nginx", -EINVAL,
		       WORDS("2 containers or services", "/system.slice/nginx.service",
			     "docker-" ID_A ".scope/system.slice/nginx.service"));
	expect_pids(&world, "/system.slice/nginx.service", "100 101 102");
	expect_refusal(&world, "twin", -EINVAL,
		       WORDS("/a.slice/twin.service", "/b.slice/twin.service", "path"));
	expect_pids(&world, "b.slice/twin.service", "120");
	expect_refusal(&world, "1111", -EINVAL, WORDS(ID_A, ID_B));
	end(&world);
}

static void what_is_no_container_is_refused(void **state)
{
	(void)state;
	struct world world;
	start(&world);
	expect_refusal(&world, "nothing", -ENOENT, WORDS("'nothing'", "docker ps"));
	expect_refusal(&world, "ddd", -ENOENT, WORDS("'ddd'")); /* three digits are no ID */
	expect_refusal(&world, "", -EINVAL, WORDS("empty"));
	expect_refusal(&world, "/", -ENOENT, WORDS("'/'"));
	expect_refusal(&world, "win.service", -ENOENT, WORDS("no container"));
	expect_refusal(&world, "..", -ENOENT, WORDS("no container"));
	world.places = (struct tally_container_places){ .mounts = "/nonexistent" };
	expect_refusal(&world, "web", -ENOENT, WORDS("no cgroup hierarchy is mounted"));
	end(&world);
}

static void hidden_names_have_a_hint(void **state)
{
	(void)state;
	struct world world;
	start(&world);
	if (!geteuid()) {
		assert_int_equal(chmod(world.root, 0755), 0);
		assert_int_equal(chmod(world.docker, 0700), 0);
		assert_int_equal(seteuid(65534), 0);
	} else {
		assert_int_equal(chmod(world.docker, 0), 0);
	}
	expect_refusal(&world, "web", -ENOENT, WORDS("only root can read Docker's names"));
	expect_pids(&world, "1111aaaa", "10 20 21 30");
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	chmod(world.docker, 0700);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_runtime_is_known),
		cmocka_unit_test(names_come_from_docker_and_podman),
		cmocka_unit_test(one_must_match),
		cmocka_unit_test(what_is_no_container_is_refused),
		cmocka_unit_test(hidden_names_have_a_hint),
	};
	return cmocka_run_group_tests_name("container", tests, NULL, NULL);
}
