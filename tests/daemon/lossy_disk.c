/* A disk that fails once: call number FAIL_AT of fsync and fdatasync on regular files, over the whole process, fails with
   EIO. As the kernel does it, what was written since the last good call on that file is gone, here at once, and the next
   call succeeds. Each call of a regular file is told in the file CALLS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct { ino_t inode; off_t durable; } known[4096];
static int n_known, n_calls;

static int call(int descriptor, const char *name) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat status;
    if (fstat(descriptor, &status) || !S_ISREG(status.st_mode)) return next(descriptor);
    int place = 0;
    while (place < n_known && known[place].inode != status.st_ino) place++;
    if (place == n_known && n_known < 4095) known[n_known++].inode = status.st_ino;
    FILE *calls = fopen(getenv("CALLS"), "a");
    fprintf(calls, "%d\n", ++n_calls);
    fclose(calls);
    if (n_calls != atoi(getenv("FAIL_AT"))) {
        known[place].durable = status.st_size;
        return next(descriptor);
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    int file = open(path, O_WRONLY);
    for (off_t at = known[place].durable; at < status.st_size; at++) pwrite(file, "", 1, at);
    close(file);
    errno = EIO;
    return -1;
}

int fsync(int descriptor) { return call(descriptor, "fsync"); }
int fdatasync(int descriptor) { return call(descriptor, "fdatasync"); }
