/* turn.c - turns at the write lock among the pools of one file.
 *
 * SQLite's lock knows no queue: who has just let go of it is the first to ask again, and one who sleeps
 * between two tries may find it taken each time. So pools share a few words in a mapped file of the side
 * directory: they count the turns, and say until when somebody is waiting. A pool that waits sleeps
 * until a turn is over; one whose turn was the last lets a waiting one go first. Who dies while waiting is
 * forgotten within milliseconds. It is manners, not safety: without the file all goes on, less evenly, and
 * other programs, which do not know of it, are met by short pauses.
 * Threads: the writer's role.
 * Keeps:   R2 short waits against one deadline, which the caller knows; G4 allocated before it is mapped. */
#include "turn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../clock.h"
#include "../../retry.h"

#define FILE_BYTES 64
#define WAITS_NS (4 * PAWLI_NS_PER_MS)  /* a waiting pool says so again before this is over */
#define PAUSE_NS (2 * PAWLI_NS_PER_MS)  /* who holds the lock may not know of turns */
#define YIELD_NS (3 * PAWLI_NS_PER_MS)

struct pawli_turn_words {
    _Atomic uint32_t taken; /* turns begun */
    _Atomic uint32_t over;  /* turns ended */
    _Atomic uint32_t slept; /* how often somebody lay down to wait for that */
    _Atomic int64_t waits_until_ns; /* monotonic, which all processes of a host share */
};
_Static_assert(sizeof(struct pawli_turn_words) <= FILE_BYTES, "the words fit");

void pawli_turn_init(pawli_turn *t, const char *store_path, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->random = seed;
    (void)snprintf(t->path, sizeof t->path, "%s-pawl/turn", store_path);
}

/* ------------------------------------------------------------------------------- the words */

static void let_go(pawli_turn *t)
{
    if (t->words != NULL)
        (void)munmap(t->words, FILE_BYTES);
    t->words = NULL;
}

static void map(pawli_turn *t, int file)
{
    struct stat st;
    if (fstat(file, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    if (st.st_size < FILE_BYTES && posix_fallocate(file, 0, FILE_BYTES) != 0)
        return;
    void *words = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (words == MAP_FAILED)
        return;
    t->words = words;
    t->device = st.st_dev;
    t->inode = st.st_ino;
}

static bool is_current(const pawli_turn *t)
{
    struct stat st;
    return t->words != NULL && stat(t->path, &st) == 0 && st.st_dev == t->device && st.st_ino == t->inode;
}

void pawli_turn_join(pawli_turn *t, bool create)
{
    if (is_current(t))
        return;
    let_go(t);
    int file = open(t->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (create ? O_CREAT : 0), 0600);
    if (file < 0)
        return;
    map(t, file);
    (void)close(file); /* the mapping stays */
}

void pawli_turn_fini(pawli_turn *t)
{
    let_go(t);
}

/* ------------------------------------------------------------------------------- sleeping */

/* Until the word is not `seen` any more; or for so long. */
static void sleep_on(_Atomic uint32_t *word, uint32_t seen, int64_t ns)
{
    const struct timespec limit = { ns / 1000000000, ns % 1000000000 };
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* A time further ahead than anybody says is garbage, or of a namespace with a clock of its own. */
static bool somebody_waits(const pawli_turn *t)
{
    int64_t until_ns = atomic_load(&t->words->waits_until_ns), now_ns = pawli_steady_now_ns();
    return until_ns > now_ns && until_ns <= now_ns + WAITS_NS;
}

/* --------------------------------------------------------------------------------- turns */

void pawli_turn_yield(pawli_turn *t)
{
    if (t->words == NULL || !somebody_waits(t))
        return;
    int64_t until_ns = pawli_steady_now_ns() + YIELD_NS, left_ns = YIELD_NS;
    while (left_ns > 0 && atomic_load(&t->words->taken) == t->mine && somebody_waits(t)) {
        sleep_on(&t->words->taken, t->mine, left_ns);
        left_ns = until_ns - pawli_steady_now_ns();
    }
}

void pawli_turn_wait(pawli_turn *t)
{
    int64_t pause_ns = 100000 + (int64_t)(pawli_random_next(&t->random) % (uint64_t)(PAUSE_NS - 100000));
    if (t->words == NULL) {
        const struct timespec pause = { 0, pause_ns };
        (void)nanosleep(&pause, NULL);
        return;
    }
    uint32_t over = atomic_load(&t->words->over);
    t->waited = true;
    t->waits_until_ns = pawli_steady_now_ns() + WAITS_NS;
    atomic_store(&t->words->waits_until_ns, t->waits_until_ns);
    (void)atomic_fetch_add(&t->words->slept, 1);
    sleep_on(&t->words->over, over, pause_ns);
}

void pawli_turn_taken(pawli_turn *t)
{
    if (t->words == NULL)
        return;
    /* It waits no more; if others do that have said so before, they say so again. */
    int64_t own_ns = t->waits_until_ns; /* a copy: where others have said so since, theirs comes back in it */
    (void)atomic_compare_exchange_strong(&t->words->waits_until_ns, &own_ns, 0);
    t->mine = atomic_fetch_add(&t->words->taken, 1) + 1;
    if (t->waited)
        wake(&t->words->taken); /* who has let it go first */
    t->waited = false;
}

void pawli_turn_over(pawli_turn *t)
{
    if (t->words == NULL)
        return;
    (void)atomic_fetch_add(&t->words->over, 1);
    uint32_t slept = atomic_load(&t->words->slept);
    if (slept != t->slept_seen)
        wake(&t->words->over);
    t->slept_seen = slept;
}
