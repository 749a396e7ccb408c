/* A wall clock that runs beside the true one: CLOCK_REALTIME and its kin are off by as many seconds as the file that
 * TEST_CLOCK names says. Loaded by LD_PRELOAD into programs under test; see clock.rs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    static int file = -1;
    if (file < 0) {
        const char *path = getenv("TEST_CLOCK");
        if (!path) return 0;
        file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return 0;
    }
    char text[32] = {0};
    return pread(file, text, sizeof text - 1, 0) > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (out) *out = precise.tv_sec;
    return precise.tv_sec;
}
