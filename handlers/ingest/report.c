/* report.c - the final table, on standard output: what this run did, what the database holds now,
 * the largest files, and the failures with their reasons. */
#include "report.h"
#include "file_job.h"
#include "results.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_SHOWN = 5, FAILURES_SHOWN = 10 };

static void print_count(const char *name, int64_t count, const char *remark)
{
    char number[TEXT_NUMBER_MAX];
    printf("  %-14s %14s%s%s\n", name, text_number(count, number), remark[0] != '\0' ? "  " : "",
           remark);
}

static void print_escaped(const char *bytes, size_t count)
{
    char *shown = text_escape(bytes, count);
    fputs(shown != NULL ? shown : "?", stdout);
    free(shown);
}

/* --------------------------------------------------------------------------------- this run */

static int64_t ended_now(const struct report *report)
{
    return counts_ended(&report->after) - counts_ended(&report->before);
}

static void print_speed(const struct report *report)
{
    char files[TEXT_NUMBER_MAX], read[TEXT_NUMBER_MAX], per_s[TEXT_NUMBER_MAX];
    char bytes_per_s[TEXT_NUMBER_MAX];
    double seconds = (double)(report->elapsed_ms > 0 ? report->elapsed_ms : 1) / 1000;
    printf("  %s files and %s in %.1f s: %s jobs/s, %s/s\n", text_number(ended_now(report), files),
           text_size((double)report->bytes_read, read), seconds,
           text_number((int64_t)((double)ended_now(report) / seconds), per_s),
           text_size((double)report->bytes_read / seconds, bytes_per_s));
}

static void print_this_run(const struct report *report)
{
    puts("\nThis run");
    print_count("found", (int64_t)report->walked.files, "regular files");
    print_count("new", (int64_t)report->added, "jobs enqueued");
    print_count("known", (int64_t)report->known, "enqueued before, and unchanged since");
    if (counts_left(&report->before) > 0)
        print_count("taken up", counts_left(&report->before), "jobs that an earlier run had left");
    if (report->walked.passed_over > 0)
        print_count("passed over", (int64_t)report->walked.passed_over,
                    "symbolic links, devices, sockets, pipes");
    if (report->walked.problems > 0)
        print_count("not entered", (int64_t)report->walked.problems, "said above");
    print_count("succeeded", report->after.succeeded - report->before.succeeded, "");
    print_count("failed", report->after.failed - report->before.failed, "");
    print_count("retries", report->retries, "");
    if (report->added == 0 && ended_now(report) == 0)
        puts("  Nothing new: every file found had been dealt with before.");
    else
        print_speed(report);
}

/* ---------------------------------------------------------------------- what the table holds */

static void print_large_file(const char *path, size_t path_bytes, int64_t bytes, int64_t lines,
                             void *arg)
{
    (void)arg;
    char size[TEXT_NUMBER_MAX], count[TEXT_NUMBER_MAX];
    printf("  %14s %14s lines  ", text_size((double)bytes, size), text_number(lines, count));
    print_escaped(path, path_bytes);
    putchar('\n');
}

static void print_results(const struct report *report)
{
    struct results_totals totals = { 0 };
    char size[TEXT_NUMBER_MAX];
    fputs("\nTable ingest_file in ", stdout);
    print_escaped(report->database, strlen(report->database));
    putchar('\n');
    if (!results_totals(report->results, &totals)) {
        puts("  cannot be read just now");
        return;
    }
    print_count("files", totals.files, text_size((double)totals.bytes, size));
    print_count("lines", totals.lines, "");
    print_count("words", totals.words, "");
    if (totals.files == 0)
        return;
    puts("\nLargest files");
    (void)results_largest(report->results, LARGEST_SHOWN, print_large_file, NULL);
}

/* --------------------------------------------------------------------------------- failures */

static void print_failure(const pawl_job_info *job)
{
    struct file_job file;
    printf("  job %" PRId64 "  ", job->id);
    if (file_job_decode(&file, job->payload, job->payload_bytes))
        print_escaped(file.path,
                      job->payload_bytes - (size_t)(file.path - (const char *)job->payload));
    else
        print_escaped(job->payload, job->payload_bytes);
    printf(": %s\n", job->last_error != NULL ? job->last_error : "no reason given");
}

static void print_failures(const struct report *report)
{
    const pawl_filter filter = {
        .struct_size = sizeof filter,
        .kind = FILE_JOB_KIND,
        .states = 1u << PAWL_STATE_FAILED,
        .newest_first = true,
    };
    pawl_job_info jobs[FAILURES_SHOWN];
    size_t count = 0;
    for (size_t i = 0; i < FAILURES_SHOWN; i++)
        jobs[i] = (pawl_job_info){ .struct_size = sizeof jobs[i] };
    puts("\nFailures, the latest first");
    if (pawl_list(report->pool, &filter, jobs, FAILURES_SHOWN, &count) != PAWL_OK)
        printf("  cannot be read: %s\n", pawl_error_message());
    for (size_t i = 0; i < count; i++) {
        print_failure(&jobs[i]);
        pawl_job_info_clear(&jobs[i]);
    }
    if (report->after.failed > (int64_t)count)
        printf("  and %" PRId64 " more\n", report->after.failed - (int64_t)count);
    fputs("  They stay failed. To have them tried again, run this program once more after:\n"
          "    pawl requeue --all --kind " FILE_JOB_KIND " ",
          stdout);
    print_escaped(report->database, strlen(report->database));
    putchar('\n');
}

void report_print(const struct report *report)
{
    print_this_run(report);
    print_results(report);
    if (report->after.failed > 0)
        print_failures(report);
    fflush(stdout);
}
