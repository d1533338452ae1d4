/* A machine whose power may go and whose clock is set, for LD_PRELOAD.

   Of each file with "store.sqlite" in its name there is, beside it, what would be there after a power cut:
   NAME.synced, which gets what is written when that is synced.  So after SIGKILL the one may be put in the
   place of the other.  CLOCK names a file with seconds (8 bytes), which are added to the
   wall clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define FILES 4096
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct change { /* a write, or with no data a new length */
    struct change *next;
    char *data;
    size_t size;
    off_t at;
};

static struct file {
    char *synced; /* where it is kept; NULL: this is none of those */
    int is_known; /* what is there is what was synced, but for the changes */
    struct change *first, **last;
} files[FILES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void forget(struct file *file)
{
    while (file->first) {
        struct change *change = file->first;
        file->first = change->next;
        free(change->data);
        free(change);
    }
    file->last = &file->first;
}

static int opened(const char *path, int handle)
{
    if (handle < 0 || handle >= FILES || !strstr(path, "store.sqlite") || strstr(path, "-shm"))
        return handle;
    char *real = realpath(path, NULL);
    pthread_mutex_lock(&lock);
    struct file *file = &files[handle];
    if (real && asprintf(&file->synced, "%s.synced", real) > 0)
        file->first = NULL, file->last = &file->first, file->is_known = 0;
    pthread_mutex_unlock(&lock);
    free(real);
    return handle;
}

#define OPEN(name)                                                                                           \
    int name(const char *path, int flags, ...)                                                               \
    {                                                                                                        \
        va_list rest;                                                                                        \
        va_start(rest, flags);                                                                               \
        int mode = va_arg(rest, int);                                                                        \
        va_end(rest);                                                                                        \
        return opened(path, REAL(name)(path, flags, mode));                                                  \
    }
OPEN(open)
OPEN(open64)

int close(int handle)
{
    if (handle >= 0 && handle < FILES && files[handle].synced) {
        pthread_mutex_lock(&lock);
        forget(&files[handle]);
        free(files[handle].synced);
        files[handle].synced = NULL;
        pthread_mutex_unlock(&lock);
    }
    return REAL(close)(handle);
}

static void note(int handle, const void *data, size_t size, off_t at)
{
    if (handle < 0 || handle >= FILES || !files[handle].synced)
        return;
    struct change *change = calloc(1, sizeof *change);
    change->size = size, change->at = at;
    if (data)
        memcpy(change->data = malloc(size + 1), data, size);
    pthread_mutex_lock(&lock);
    *files[handle].last = change;
    files[handle].last = &change->next;
    pthread_mutex_unlock(&lock);
}

#define WRITE(name, offset)                                                                                  \
    ssize_t name(int handle, const void *data, size_t size, offset at)                                       \
    {                                                                                                        \
        ssize_t written = REAL(name)(handle, data, size, at);                                                \
        if (written > 0)                                                                                     \
            note(handle, data, written, at);                                                                 \
        return written;                                                                                      \
    }
WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)

ssize_t write(int handle, const void *data, size_t size)
{
    off_t at = handle >= 0 && handle < FILES && files[handle].synced ? lseek(handle, 0, SEEK_CUR) : 0;
    ssize_t written = REAL(write)(handle, data, size);
    if (written > 0)
        note(handle, data, written, at);
    return written;
}

#define TRUNCATE(name, offset)                                                                               \
    int name(int handle, offset size)                                                                        \
    {                                                                                                        \
        int failed = REAL(name)(handle, size);                                                               \
        if (!failed)                                                                                         \
            note(handle, NULL, 0, size);                                                                     \
        return failed;                                                                                       \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

/* What is not read or written would be a power cut that never was. */
static void must(int is_done)
{
    if (!is_done)
        abort();
}

/* All of a file, the first time: who was killed may have written more than was synced.  It is read by a handle of
   its own, as the other may be for writing only.  That copy gets its name when it is whole, since the power may go
   while it is made. */
static void copy(int handle, const char *to)
{
    char name[4096], data[65536];
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    int from = REAL(open64)(name, O_RDONLY | O_CLOEXEC);
    snprintf(name, sizeof name, "%s.new", to);
    int new = REAL(open64)(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(from >= 0 && new >= 0);
    ssize_t size;
    while ((size = read(from, data, sizeof data)) > 0)
        must(REAL(write)(new, data, size) == size);
    must(size == 0 && !REAL(rename)(name, to));
    REAL(close)(from);
    REAL(close)(new);
}

static void change_copy(const char *to, const struct change *change)
{
    int copy = REAL(open64)(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    must(copy >= 0);
    for (; change; change = change->next)
        if (change->data)
            must(REAL(pwrite64)(copy, change->data, change->size, change->at) == (ssize_t)change->size);
        else
            must(!REAL(ftruncate64)(copy, change->at));
    REAL(close)(copy);
}

static void keep(int handle, struct file *file)
{
    if (file->is_known)
        change_copy(file->synced, file->first);
    else
        copy(handle, file->synced);
    file->is_known = 1;
    forget(file);
}

static int synced(int handle, int failed)
{
    if (!failed && handle >= 0 && handle < FILES && files[handle].synced) {
        pthread_mutex_lock(&lock);
        keep(handle, &files[handle]);
        pthread_mutex_unlock(&lock);
    }
    return failed;
}

int fsync(int handle) { return synced(handle, REAL(fsync)(handle)); }
int fdatasync(int handle) { return synced(handle, REAL(fdatasync)(handle)); }

static void with_synced(const char *path, char *name, size_t size) { snprintf(name, size, "%s.synced", path); }

int unlink(const char *path)
{
    char name[4096];
    with_synced(path, name, sizeof name);
    if (strstr(path, "store.sqlite"))
        REAL(unlink)(name);
    return REAL(unlink)(path);
}

int rename(const char *from, const char *to)
{
    char before[4096], after[4096];
    with_synced(from, before, sizeof before);
    with_synced(to, after, sizeof after);
    if (strstr(from, "store.sqlite"))
        REAL(rename)(before, after);
    return REAL(rename)(from, to);
}

static long offset(void)
{
    static volatile int64_t *seconds;
    const char *name = getenv("CLOCK");
    if (!seconds && name) {
        int file = REAL(open64)(name, O_RDONLY | O_CLOEXEC);
        must(file >= 0);
        seconds = mmap(NULL, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
        must(seconds != MAP_FAILED);
        REAL(close)(file);
    }
    return seconds ? *seconds : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = REAL(clock_gettime)(clock, now);
    if (!failed && clock == CLOCK_REALTIME)
        now->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int failed = REAL(gettimeofday)(now, zone);
    now->tv_sec += offset();
    return failed;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
