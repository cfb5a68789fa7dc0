/* child.c - see child.h. One thread. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patience.h"

#define ARGUMENTS_MAX 16

static void give_up(const char *what)
{
    perror(what);
    abort();
}

static void become(const char *program, int in, int out, const char *const *arguments)
{
    char *argv[ARGUMENTS_MAX] = { (char *)(uintptr_t)program };
    for (int i = 1; i < ARGUMENTS_MAX - 1 && arguments[i - 1] != NULL; i++)
        argv[i] = (char *)(uintptr_t)arguments[i - 1];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that dies takes its workers along */
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(127);
    (void)execvp(program, argv);
    _exit(127);
}

void child_start_program(child *c, const char *program, const char *const *arguments)
{
    int to[2], from[2];
    memset(c, 0, sizeof *c);
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        give_up("pipe");
    (void)fflush(NULL);
    c->pid = fork();
    if (c->pid < 0)
        give_up("fork");
    if (c->pid == 0)
        become(program, to[0], from[1], arguments);
    (void)close(to[0]);
    (void)close(from[1]);
    c->to = to[1];
    c->from = from[0];
}

void child_start(child *c, const char *const *arguments)
{
    child_start_program(c, PAWL_TEST_WORKER, arguments);
}

void child_join(child *c, const char *const *arguments)
{
    child_start_program(c, PAWL_TEST_CROWD, arguments);
}

static bool read_more(child *c, int64_t until_ms)
{
    struct pollfd ready = { .fd = c->from, .events = POLLIN };
    int64_t left = until_ms - steady_ms();
    if (c->bytes == sizeof c->text || poll(&ready, 1, left > 0 ? (int)left : 0) <= 0)
        return false;
    ssize_t got = read(c->from, c->text + c->bytes, sizeof c->text - c->bytes);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    c->bytes += (size_t)got;
    return true;
}

bool child_line(child *c, char *line, size_t capacity, int64_t limit_ms)
{
    int64_t until = steady_ms() + limit_ms;
    char *end;
    while ((end = memchr(c->text, '\n', c->bytes)) == NULL)
        if (!read_more(c, until))
            return false;
    size_t bytes = (size_t)(end - c->text);
    (void)snprintf(line, capacity, "%.*s", (int)bytes, c->text);
    c->bytes -= bytes + 1;
    memmove(c->text, end + 1, c->bytes);
    return true;
}

bool child_says(child *c, const char *beginning, char *line, size_t capacity, int64_t limit_ms)
{
    char own[256];
    if (line == NULL) {
        line = own;
        capacity = sizeof own;
    }
    int64_t until = steady_ms() + limit_ms;
    while (child_line(c, line, capacity, until - steady_ms()))
        if (strncmp(line, beginning, strlen(beginning)) == 0)
            return true;
    return false;
}

void child_tell(child *c, const char *line)
{
    if (write(c->to, line, strlen(line)) != (ssize_t)strlen(line))
        give_up("write to the worker");
}

void child_signal(const child *c, int signal)
{
    if (c->pid > 0)
        (void)kill(c->pid, signal);
}

/* Nobody holds the write lock. */
static bool is_free(const char *path)
{
    sqlite3 *db;
    bool got = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK
               && sqlite3_busy_timeout(db, 200) == SQLITE_OK
               && sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0; BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL)
                      == SQLITE_OK;
    (void)sqlite3_close(db);
    return got;
}

bool child_is_frozen(child *c, const char *path)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)c->pid, &info, WSTOPPED) != 0 && errno == EINTR) {
    }
    if (is_free(path))
        return true;
    child_signal(c, SIGCONT);
    return false;
}

void child_freeze(child *c, const char *path)
{
    do
        child_signal(c, SIGSTOP);
    while (!child_is_frozen(c, path));
}

void child_kill_unreaped(child *c)
{
    siginfo_t info;
    child_signal(c, SIGKILL);
    while (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
}

int child_reap(child *c)
{
    int status = 0;
    while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {
    }
    c->pid = 0;
    return status;
}

void child_kill(child *c)
{
    child_signal(c, SIGKILL);
    (void)child_reap(c);
}

void child_close(child *c)
{
    if (c->pid > 0)
        child_kill(c);
    if (c->to > 0)
        (void)close(c->to);
    if (c->from > 0)
        (void)close(c->from);
    c->to = c->from = -1;
    c->bytes = 0;
}
