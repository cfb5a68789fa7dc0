/* check.h - cmocka, and what the tests of the public API say again and again: a status by its name with
 * its message, a pool on the test's file, a look at one job, a question to the file in SQL. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pawl/pawl.h>

#include "temp.h"

/* An analyser is told in words it knows that nothing goes on after an assertion that does not hold. */
#if defined(__clang_analyzer__) || defined(__cppcheck__)
#undef assert_true
#undef assert_false
#undef assert_null
#undef assert_non_null
#undef assert_int_equal
#define assert_true(c) ((c) ? (void)0 : abort())
#define assert_false(c) assert_true(!(c))
#define assert_null(p) assert_true((p) == NULL)
#define assert_non_null(p) assert_true((p) != NULL)
#define assert_int_equal(a, b) assert_true((intmax_t)(a) == (intmax_t)(b))
#endif

struct sqlite3;

/* In the test's own thread only, as all of cmocka's. */
#define assert_status(call, expected) check_status((call), (expected), #call, __FILE__, __LINE__)
#define assert_ok(call) assert_status(call, PAWL_OK)
void check_status(pawl_status is, pawl_status expected, const char *call, const char *file, int line);

#define assert_text_has(text, part) check_text_has((text), (part), __FILE__, __LINE__)
void check_text_has(const char *text, const char *part, const char *file, int line);

/* A log hook that says nothing; its argument, if any, is an int that counts the lines. */
void check_quiet(pawl_log_level level, const char *line, void *arg);

/* Opens the test's file with these options beside. */
#define open_pool(t, ...) check_open(PAWL_OPTIONS(.store = (t)->path, .log = check_quiet, __VA_ARGS__))
#define open_inline(t, ...) open_pool(t, .flags = PAWL_OPEN_INLINE, .seed = 1, __VA_ARGS__)
pawl_pool *check_open(const pawl_options *options);

/* Enqueues and tells the id. */
#define put(pool, ...) check_put(pool, PAWL_JOB(__VA_ARGS__))
int64_t check_put(pawl_pool *pool, const pawl_job_spec *spec);

pawl_state state_of(pawl_pool *pool, int64_t id);
uint32_t attempts_of(pawl_pool *pool, int64_t id);
/* The caller clears it. */
pawl_job_info job_of(pawl_pool *pool, int64_t id);
#define assert_last_error(pool, id, text)                                                          \
    do {                                                                                           \
        pawl_job_info info_ = job_of(pool, id);                                                    \
        assert_non_null(info_.last_error);                                                         \
        assert_text_has(info_.last_error, text);                                                   \
        pawl_job_info_clear(&info_);                                                               \
    } while (0)

/* The pool's numbers; the caller clears them. */
pawl_stats_info stats_of(pawl_pool *pool);

/* A connection of the application's own, as the header asks for: without automatic checkpoints. */
struct sqlite3 *sql_open(const char *path);
void sql_close(struct sqlite3 *db);
void sql_run(struct sqlite3 *db, const char *sql);
int64_t sql_integer(struct sqlite3 *db, const char *sql);
/* The same in a connection of its own. */
int64_t sql_ask(const char *path, const char *sql);

#endif
