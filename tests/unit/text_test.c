/* text_test.c - UTF-8 checked, names, what is stored made clean, what is shown escaped (R11, V1). */
#include "text.h"

#include <string.h>

#include "check.h"

/* ------------------------------------------------------------------------------- UTF-8 */

/* Goal: one character of every length is measured, and everything that is none is refused: overlong
 * forms, surrogates, what lies beyond Unicode, stray and missing continuation bytes. */
static void measures_characters(void **unused)
{
    (void)unused;
    static const struct {
        const char *bytes;
        size_t given, step;
    } cases[] = {
        { "", 0, 0 },
        { "a", 1, 1 },
        { "\0", 1, 1 },
        { "\x7F", 1, 1 },
        { "\xC2\x80", 2, 2 },          /* U+0080, the smallest of two bytes */
        { "\xDF\xBF", 2, 2 },          /* U+07FF */
        { "\xE0\xA0\x80", 3, 3 },      /* U+0800 */
        { "\xED\x9F\xBF", 3, 3 },      /* U+D7FF, before the surrogates */
        { "\xEE\x80\x80", 3, 3 },      /* U+E000, after them */
        { "\xEF\xBF\xBF", 3, 3 },      /* U+FFFF */
        { "\xF0\x90\x80\x80", 4, 4 },  /* U+10000 */
        { "\xF4\x8F\xBF\xBF", 4, 4 },  /* U+10FFFF, the last */
        { "ab", 2, 1 },                /* the first one only */
        { "\xC2\x80z", 3, 2 },
        { "\x80", 1, 0 },              /* a continuation byte alone */
        { "\xBF", 1, 0 },
        { "\xC0\x80", 2, 0 },          /* overlong NUL */
        { "\xC1\xBF", 2, 0 },
        { "\xE0\x9F\xBF", 3, 0 },      /* overlong U+07FF */
        { "\xF0\x8F\xBF\xBF", 4, 0 },  /* overlong U+FFFF */
        { "\xED\xA0\x80", 3, 0 },      /* U+D800 */
        { "\xED\xBF\xBF", 3, 0 },      /* U+DFFF */
        { "\xF4\x90\x80\x80", 4, 0 },  /* U+110000 */
        { "\xF5\x80\x80\x80", 4, 0 },
        { "\xFF", 1, 0 },
        { "\xC2", 1, 0 },              /* cut short */
        { "\xE2\x82", 2, 0 },
        { "\xF0\x9F\x98", 3, 0 },
        { "\xE2\x82\xAC", 2, 0 },      /* the last byte is there, but not given */
        { "\xC2\x41", 2, 0 },          /* no continuation */
        { "\xE2\x28\xA1", 3, 0 },
        { "\xE2\x82\x28", 3, 0 },
        { "\xF0\x9F\x98\x41", 4, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t step = pawli_utf8_step(cases[i].bytes, cases[i].given);
        if (step != cases[i].step)
            fail_msg("case %zu: %zu instead of %zu", i, step, cases[i].step);
        if (step == 0 && cases[i].given > 0)
            assert_false(pawli_text_storable(cases[i].bytes, cases[i].given));
    }
}

/* Goal: storable is what a database of any encoding gives back as it was: all but NUL, and the two that UTF-16
 * changes; their neighbours, and the last two of other planes, are not changed. */
static void knows_what_can_be_stored(void **unused)
{
    (void)unused;
    static const char *const good[] = { "", "a", "\x7F", "\xC2\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBB\xBF",
                                        "\xEF\xBF\xBD", "\xEF\xBE\xBE", "\xF0\x90\x80\x80",
                                        "\xF0\x9F\xBF\xBE", "\xF4\x8F\xBF\xBF", "ab\xC2\x80z" };
    static const char *const bad[] = { "\xEF\xBF\xBE", "\xEF\xBF\xBF", "a\xEF\xBF\xBFz", "\x80", "a\xC3" };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!pawli_text_storable(good[i], strlen(good[i])))
            fail_msg("good text %zu cannot be stored", i);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (pawli_text_storable(bad[i], strlen(bad[i])))
            fail_msg("bad text %zu can be stored", i);
    assert_false(pawli_text_storable("a\0b", 3));
}

/* Goal: one bad place anywhere makes a text invalid. */
static void finds_the_bad_place(void **unused)
{
    (void)unused;
    char text[] = "gr\xC3\xBC\xC3\x9F 1 \xE2\x82\xAC";
    size_t bytes = sizeof text - 1;
    assert_true(pawli_text_storable(text, bytes));
    for (size_t i = 0; i < bytes; i++) {
        char before = text[i];
        text[i] = '\xFF';
        assert_false(pawli_text_storable(text, bytes));
        text[i] = before;
    }
    assert_false(pawli_text_storable(text, bytes - 1));
}

/* ------------------------------------------------------------------------------- names */

/* Goal: a kind or queue is UTF-8 of 1 to 255 bytes without control characters, those of U+0080 to
 * U+009F included. */
static void knows_usable_names(void **unused)
{
    (void)unused;
    static const char *const good[] = { "a", "send-email", "with space", "\xE2\x82\xAC", "\xC2\xA0",
                                        "\xF0\x9F\x98\x80", "a'b\"c;--", "~", "\xEF\xBF\xBD" };
    static const char *const bad[] = { "", "\n", "a\tb", "a\x1F", "\x7F", "\xFF", "a\xC3",
                                       "\xED\xA0\x80", "\xC0\x80", "\xC2\x80", ("a\xC2\x9B" "31m"),
                                       "\xC2\x9F", "\xEF\xBF\xBE", "a\xEF\xBF\xBF" };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!pawli_name_valid(good[i]))
            fail_msg("good name %zu is refused", i);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (pawli_name_valid(bad[i]))
            fail_msg("bad name %zu is accepted", i);
    char name[PAWLI_NAME_BYTES_MAX + 2];
    memset(name, 'n', sizeof name);
    name[PAWLI_NAME_BYTES_MAX + 1] = '\0';
    assert_false(pawli_name_valid(name));
    name[PAWLI_NAME_BYTES_MAX] = '\0';
    assert_true(pawli_name_valid(name));
    memcpy(name + PAWLI_NAME_BYTES_MAX - 2, "\xE2\x82\xAC", 4); /* 256 bytes, 254 characters */
    assert_false(pawli_name_valid(name));
}

/* ---------------------------------------------------------------- cleaned, and escaped */

#define REPLACED "\xEF\xBF\xBD"

typedef size_t (*copy_fn)(char *out, size_t capacity, const char *text, size_t bytes);

typedef struct copy_case {
    const char *given;
    size_t bytes, capacity;
    const char *wanted;
} copy_case;

/* Copies into memory whose ends are watched, and compares. */
static void check_copies(copy_fn copy, const copy_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char room[66];
        memset(room, '#', sizeof room);
        assert_true(cases[i].capacity <= 64);
        size_t length = copy(room + 1, cases[i].capacity, cases[i].given, cases[i].bytes);
        if (length != strlen(cases[i].wanted) || strcmp(room + 1, cases[i].wanted) != 0)
            fail_msg("case %zu: \"%s\" instead of \"%s\"", i, room + 1, cases[i].wanted);
        assert_int_equal(room[0], '#');
        assert_int_equal(room[1 + cases[i].capacity], '#');
    }
}

/* Goal: what is stored is valid UTF-8 without NUL, whatever was given, clipped between characters. */
static void cleans_and_clips(void **unused)
{
    (void)unused;
    static const copy_case cases[] = {
        { "", 0, 1, "" },
        { "abc", 3, 64, "abc" },
        { "abc", 3, 4, "abc" },
        { "abc", 3, 3, "ab" },
        { "abc", 3, 1, "" },
        { "abc", 2, 64, "ab" },
        { "a\nb\x1B", 4, 64, "a\nb\x1B" },         /* stored as it is; escaped when shown */
        { "a\0b", 3, 64, "a" REPLACED "b" },
        { "\xC3\xBC", 2, 3, "\xC3\xBC" },
        { "\xC3\xBC", 2, 2, "" },                  /* no half of a character */
        { "a\xE2\x82\xAC", 4, 5, "a\xE2\x82\xAC" },
        { "a\xE2\x82\xAC", 4, 4, "a" },
        { "a\xE2\x82\xAC", 3, 64, "a" REPLACED REPLACED }, /* cut by the caller */
        { "a\xF0\x9F\x98\x80z", 6, 5, "a" },
        { "a\xF0\x9F\x98\x80z", 6, 6, "a\xF0\x9F\x98\x80" },
        { "\xFF\xFE", 2, 64, REPLACED REPLACED },
        { "\xFF", 1, 4, REPLACED },
        { "\xFF", 1, 3, "" },
        { "\xED\xA0\x80", 3, 64, REPLACED REPLACED REPLACED },
        { "\xC0\xAF!", 3, 64, REPLACED REPLACED "!" },
    };
    check_copies(pawli_text_clean, cases, sizeof cases / sizeof cases[0]);
}

/* Goal: nothing that steers a terminal or breaks a line gets through, harmless text stays (V1). */
static void escapes_for_a_terminal(void **unused)
{
    (void)unused;
    static const copy_case cases[] = {
        { "", 0, 1, "" },
        { "plain", 5, 64, "plain" },
        { "gr\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80", 11, 64, "gr\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80" },
        { "a\nb", 3, 64, "a\\x0Ab" },
        { "\x1B[31m", 5, 64, "\\x1B[31m" },
        { "\x7F", 1, 64, "\\x7F" },
        { "a\0b", 3, 64, "a\\x00b" },
        { "\xC2\x9B" "31m", 5, 64, "\\xC2\\x9B31m" }, /* CSI as one character */
        { "\xC2\xA0", 2, 64, "\xC2\xA0" },
        { "\xFF", 1, 64, "\\xFF" },
        { "\xE2\x82", 2, 64, "\\xE2\\x82" },
        { "\n", 1, 5, "\\x0A" },
        { "\n", 1, 4, "" },                           /* no half of an escape */
        { "ab\n", 3, 6, "ab" },
        { "ab\xE2\x82\xAC", 5, 5, "ab" },
        { "abc", 3, 3, "ab" },
    };
    check_copies(pawli_text_escape, cases, sizeof cases / sizeof cases[0]);
}

/* Goal: of any bytes the clean text is valid, and the escaped one has no control characters (V1). */
static void any_byte_comes_out_harmless(void **unused)
{
    (void)unused;
    char all[512], out[4096];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (char)(i * 37 + i / 256); /* every byte, in two orders */
    size_t length = pawli_text_clean(out, sizeof out, all, sizeof all);
    assert_true(pawli_text_storable(out, length));
    assert_int_equal(strlen(out), length);
    length = pawli_text_escape(out, sizeof out, all, sizeof all);
    assert_true(pawli_text_storable(out, length));
    assert_int_equal(strlen(out), length);
    for (size_t i = 0; i < length; i++)
        assert_false((unsigned char)out[i] < 0x20 || out[i] == 0x7F);
}

/* Goal: what is shown to be pasted into a shell is one word, whatever a queue or a file is called (V1). */
static void words_are_safe_to_paste(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *word;
    } cases[] = {
        { "jobs.db", "jobs.db" },
        { "/var/lib/app-1/jobs,v1:2@x%.db", "/var/lib/app-1/jobs,v1:2@x%.db" },
        { "", "''" },
        { "a b", "'a b'" },
        { "-rf", "'-rf'" },
        { "it's", "'it'\\''s'" },
        { "'; touch x; '", "''\\''; touch x; '\\'''" },
        { "$(reboot)`reboot`\\", "'$(reboot)`reboot`\\'" },
        { "a\nb", "'a\\x0Ab'" },
        { "~", "'~'" },
        { "gr\xC3\xBC\xC3\x9F", "'gr\xC3\xBC\xC3\x9F'" },
    };
    char word[PAWLI_WORD_BYTES], long_text[PAWLI_WORD_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(pawli_text_word(word, cases[i].text), cases[i].word);
    memset(long_text, 'a', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    assert_string_equal(pawli_text_word(word, long_text), "\xE2\x80\xA6");
    memset(long_text, '\'', sizeof long_text);
    long_text[PAWLI_WORD_BYTES / 2 - 10] = '\0';
    assert_string_equal(pawli_text_word(word, long_text), "\xE2\x80\xA6");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(measures_characters),
    cmocka_unit_test(knows_what_can_be_stored),
    cmocka_unit_test(finds_the_bad_place),
    cmocka_unit_test(knows_usable_names),
    cmocka_unit_test(cleans_and_clips),
    cmocka_unit_test(escapes_for_a_terminal),
    cmocka_unit_test(any_byte_comes_out_harmless),
    cmocka_unit_test(words_are_safe_to_paste),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
