/* ingest_test.c - the pure parts of the sample application: text, counts, payloads. */
#include "file_job.h"
#include "scan.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------------------- text */

static void assert_escaped(const char *bytes, const char *wanted)
{
    char *shown = text_escape(bytes, strlen(bytes));
    assert_non_null(shown);
    assert_string_equal(shown, wanted);
    free(shown);
}

/* Goal: nothing that steers a terminal gets through, and what is harmless stays as it is (V1). */
static void escapes_what_steers_a_terminal(void **unused)
{
    (void)unused;
    assert_escaped("", "");
    assert_escaped("/usr/include/stdio.h", "/usr/include/stdio.h");
    assert_escaped("gr\303\274n \342\202\254 \360\237\230\200",
                   "gr\303\274n \342\202\254 \360\237\230\200");
    assert_escaped("a\nb\tc\rd\\", "a\\nb\\tc\\x0dd\\\\");
    assert_escaped("\033[31m\177", "\\x1b[31m\\x7f");
    assert_escaped("\302\233", "\\xc2\\x9b");
    assert_escaped("\377\376", "\\xff\\xfe");
}

/* Goal: overlong forms, surrogates, cut characters and what lies beyond Unicode are no UTF-8. */
static void knows_utf8(void **unused)
{
    (void)unused;
    static const char *const valid[] = { "",
                                         "a",
                                         "\302\200",
                                         "\340\240\200",
                                         "\355\237\277",
                                         "\356\200\200",
                                         "\360\220\200\200",
                                         "\364\217\277\277" };
    static const char *const invalid[] = { "\200",
                                           "\300\200",
                                           "\301\277",
                                           "\302",
                                           "\340\237\277",
                                           "\355\240\200",
                                           "\342\202",
                                           "\360\217\277\277",
                                           "\364\220\200\200",
                                           "\365\200\200",
                                           "\302a",
                                           "\377" };
    for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++)
        assert_true(text_is_utf8(valid[i], strlen(valid[i])));
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        assert_false(text_is_utf8(invalid[i], strlen(invalid[i])));
}

static void writes_numbers_for_people(void **unused)
{
    (void)unused;
    char out[TEXT_NUMBER_MAX];
    assert_string_equal(text_number(0, out), "0");
    assert_string_equal(text_number(999, out), "999");
    assert_string_equal(text_number(1000, out), "1,000");
    assert_string_equal(text_number(-1234567, out), "-1,234,567");
    assert_string_equal(text_number(INT64_MIN, out), "-9,223,372,036,854,775,808");
    assert_string_equal(text_size(0, out), "0 B");
    assert_string_equal(text_size(999, out), "999 B");
    assert_string_equal(text_size(1000, out), "1.0 kB");
    assert_string_equal(text_size(999960, out), "1.0 MB");
    assert_string_equal(text_size(131072000, out), "131.1 MB");
    assert_string_equal(text_clock(59, out), "0:59");
    assert_string_equal(text_clock(3661, out), "1:01:01");
}

/* ------------------------------------------------------------------------------------- scan */

/* Feeds `bytes` in blocks of `block`, and looks at all of the result. */
static void assert_scanned(const char *bytes, size_t block, int lines, int words)
{
    unsigned char sha256[SCAN_SHA256_BYTES];
    size_t count = strlen(bytes);
    struct scan scan;
    assert_true(scan_init(&scan, EVP_sha256()));
    for (size_t at = 0; at < count; at += block)
        assert_true(scan_add(&scan, (const unsigned char *)bytes + at,
                             block < count - at ? block : count - at));
    assert_true(scan_finish(&scan));
    assert_int_equal(scan.result.bytes, count);
    assert_int_equal(scan.result.lines, lines);
    assert_int_equal(scan.result.words, words);
    assert_int_equal(EVP_Digest(bytes, count, sha256, NULL, EVP_sha256(), NULL), 1);
    assert_memory_equal(scan.result.sha256, sha256, sizeof sha256);
    scan_fini(&scan);
}

/* Goal: where one block ends and the next begins changes nothing. */
static void counts_alike_in_any_blocks(void **unused)
{
    (void)unused;
    for (size_t block = 1; block <= 16; block++) {
        assert_scanned("", block, 0, 0);
        assert_scanned("word", block, 0, 1);
        assert_scanned("two words\n", block, 1, 2);
        assert_scanned(" \t\n\v\f\r x\n\ny ", block, 3, 2);
        assert_scanned("caf\303\251 \377\001 b", block, 0, 3);
    }
}

/* ---------------------------------------------------------------------------------- payload */

static void a_payload_survives_the_way_there_and_back(void **unused)
{
    (void)unused;
    const struct file_job file = { .path = "/a b\n\377", .size = INT64_MAX, .mtime_ns = INT64_MIN };
    struct file_job read;
    size_t bytes;
    char *payload = file_job_encode(&file, &bytes);
    assert_non_null(payload);
    assert_true(file_job_decode(&read, payload, bytes));
    assert_string_equal(read.path, file.path);
    assert_int_equal(read.size, file.size);
    assert_int_equal(read.mtime_ns, file.mtime_ns);
    free(payload);
}

static void refuses_what_is_no_payload(void **unused)
{
    (void)unused;
    static const char *const payloads[] = { "",       "nonsense", "1",
                                            "1 2",    "1 2 ",     "1 2 a",
                                            "1 2/a",  "1  /a",    "x 2 /a",
                                            "1 x /a", "1 2\t/a",  "99999999999999999999 2 /a" };
    struct file_job file;
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++)
        assert_false(file_job_decode(&file, payloads[i], strlen(payloads[i])));
    assert_false(file_job_decode(&file, "1 2 /a\0b", 8));
}

/* Goal: path, size and mtime each make another key. */
static void every_part_is_in_the_key(void **unused)
{
    (void)unused;
    static const struct file_job files[] = {
        { "/a", 1, 2 }, { "/b", 1, 2 }, { "/a", 2, 2 }, { "/a", 1, 3 }, { "/a", 12, 2 },
    };
    enum { COUNT = sizeof files / sizeof files[0] };
    unsigned char keys[COUNT][FILE_JOB_KEY_BYTES];
    for (size_t i = 0; i < COUNT; i++) {
        size_t bytes;
        char *payload = file_job_encode(&files[i], &bytes);
        assert_non_null(payload);
        assert_true(file_job_key(payload, bytes, keys[i]));
        free(payload);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(keys[i], keys[j], FILE_JOB_KEY_BYTES);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(escapes_what_steers_a_terminal),
    cmocka_unit_test(knows_utf8),
    cmocka_unit_test(writes_numbers_for_people),
    cmocka_unit_test(counts_alike_in_any_blocks),
    cmocka_unit_test(a_payload_survives_the_way_there_and_back),
    cmocka_unit_test(refuses_what_is_no_payload),
    cmocka_unit_test(every_part_is_in_the_key),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
