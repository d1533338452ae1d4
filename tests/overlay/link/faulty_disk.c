/* A disk that fails, for LD_PRELOAD.  The file named by FAULT holds a word and the ending of the paths
   that it is about: "full -wal", "unsynced -head"; nothing fails while it is empty.  "killed * 7": SIGKILL at
   the seventh step, which are the moments before and behind each write and sync of any file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(const char *word, int file)
{
    char wanted[64], ending[64], link[64], path[4096];
    const char *name = getenv("FAULT");
    FILE *fault = name ? fopen(name, "r") : NULL;
    if (!fault)
        return 0;
    int words = fscanf(fault, "%63s %63s", wanted, ending);
    fclose(fault);
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (words != 2 || length < 0)
        return 0;
    path[length] = 0;
    size_t tail = strlen(ending);
    return !strcmp(word, wanted) && (size_t)length >= tail && !strcmp(path + length - tail, ending);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void step(void)
{
    static int steps;
    int last, keeps = errno;
    const char *name = getenv("FAULT");
    FILE *fault = name ? fopen(name, "r") : NULL;
    if (fault && fscanf(fault, "killed * %d", &last) == 1 && __sync_add_and_fetch(&steps, 1) >= last)
        kill(getpid(), SIGKILL);
    if (fault)
        fclose(fault);
    errno = keeps;
}

#define DONE(kind, call)                                                                                     \
    step();                                                                                                  \
    kind done = call;                                                                                        \
    step();                                                                                                  \
    return done

static int sync_fails(int file)
{
    if (!fails("unsynced", file))
        return 0;
    errno = EIO;
    return 1;
}

int fsync(int file) { DONE(int, sync_fails(file) ? -1 : REAL(fsync)(file)); }
int fdatasync(int file) { DONE(int, sync_fails(file) ? -1 : REAL(fdatasync)(file)); }

static int write_fails(int file)
{
    if (fails("full", file))
        errno = ENOSPC;
    else if (fails("unwritten", file))
        errno = EIO;
    else
        return 0;
    return 1;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at)
{
    DONE(ssize_t, write_fails(file) ? -1 : REAL(pwrite)(file, data, size, at));
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at)
{
    DONE(ssize_t, write_fails(file) ? -1 : REAL(pwrite64)(file, data, size, at));
}
ssize_t write(int file, const void *data, size_t size)
{
    DONE(ssize_t, write_fails(file) ? -1 : REAL(write)(file, data, size));
}
