/* doctor.c - pawl doctor: examines a file and all around it, and says what to do.
 *
 * Findings are printed as they come, and what was not looked at for one reason in one line at the end; with --json
 * one object stands there, with all of them. */
#include "arguments.h"
#include "json.h"
#include "message.h"
#include "progress.h"
#include "terminal.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPTION_QUICK = CLI_OPTION_NEXT };
enum { LABEL_WIDTH = 9, CHECK_WIDTH = 13 };

/* Checks that were left out for the same reason. */
typedef struct omission {
    struct omission *next;
    char *reason;
    char checks[512]; /* "counters, claims" */
} omission;

typedef struct report {
    bool json, quick;
    json_t *findings;
    unsigned count[PAWL_FINDING_ERROR + 1];
    omission *omissions; /* the newest first */
    cli_progress progress;
    time_t begun;
} report;

static const struct {
    const char *name;
    cli_style style;
} severities[] = {
    [PAWL_FINDING_OK] = { "ok", CLI_GREEN },
    [PAWL_FINDING_NOTE] = { "note", CLI_CYAN },
    [PAWL_FINDING_WARNING] = { "warning", CLI_YELLOW },
    [PAWL_FINDING_ERROR] = { "error", CLI_RED },
};

static void print_finding(const pawl_finding *finding)
{
    cli_style style = severities[finding->severity].style;
    printf("%s%-*s%s%-*s", cli_terminal_begin(style), LABEL_WIDTH, severities[finding->severity].name,
           cli_terminal_end(style), CHECK_WIDTH, finding->check);
    cli_text_write(stdout, finding->text, strlen(finding->text));
    putchar('\n');
    if (finding->remedy != NULL) {
        printf("%*s%s", LABEL_WIDTH + CHECK_WIDTH, "", cli_terminal_begin(CLI_BOLD));
        cli_text_write(stdout, finding->remedy, strlen(finding->remedy));
        printf("%s\n", cli_terminal_end(CLI_BOLD));
    }
    (void)fflush(stdout); /* the next check may take long */
}

static const char not_looked_at[] = "not looked at: ";

static omission *omission_of(report *r, const char *reason)
{
    for (omission *o = r->omissions; o != NULL; o = o->next)
        if (strcmp(o->reason, reason) == 0)
            return o;
    omission *added = malloc(sizeof *added);
    char *copy = strdup(reason);
    if (added == NULL || copy == NULL)
        cli_out_of_memory();
    /* cppcheck-suppress nullPointerRedundantCheck ; cli_out_of_memory() does not return */
    *added = (omission){ .next = r->omissions, .reason = copy };
    r->count[PAWL_FINDING_NOTE]++;
    return r->omissions = added;
}

static bool is_omission(const pawl_finding *finding)
{
    return finding->severity == PAWL_FINDING_NOTE
           && strncmp(finding->text, not_looked_at, sizeof not_looked_at - 1) == 0;
}

static void add_omission(report *r, const pawl_finding *finding)
{
    omission *o = omission_of(r, finding->text + sizeof not_looked_at - 1);
    size_t used = strlen(o->checks);
    (void)snprintf(o->checks + used, sizeof o->checks - used, "%s%s", used > 0 ? ", " : "", finding->check);
}

static void print_omissions(report *r)
{
    while (r->omissions != NULL) {
        omission *o = r->omissions;
        r->omissions = o->next;
        printf("%snot looked at%s: %s (", cli_terminal_begin(CLI_CYAN), cli_terminal_end(CLI_CYAN), o->checks);
        cli_text_write(stdout, o->reason, strlen(o->reason));
        puts(")");
        free(o->reason);
        free(o);
    }
}

static void add_finding(json_t *findings, const pawl_finding *finding)
{
    json_t *object = cli_json_object();
    cli_json_set_text(object, "severity", severities[finding->severity].name);
    cli_json_set_text(object, "check", finding->check);
    cli_json_set_text(object, "text", finding->text);
    cli_json_set_text(object, "remedy", finding->remedy);
    if (json_array_append_new(findings, object) != 0)
        cli_out_of_memory();
}

static void take_finding(const pawl_finding *finding, void *arg)
{
    report *r = arg;
    if (finding->severity < PAWL_FINDING_OK || finding->severity > PAWL_FINDING_ERROR)
        return;
    cli_progress_end(&r->progress);
    if (!r->json && is_omission(finding)) {
        add_omission(r, finding);
        return;
    }
    r->count[finding->severity]++;
    if (r->json)
        add_finding(r->findings, finding);
    else
        print_finding(finding);
}

static bool show_progress(const char *check, void *arg)
{
    report *r = arg;
    char what[64];
    (void)snprintf(what, sizeof what, "s, looking at: %s", check);
    cli_progress_update(&r->progress, (int64_t)(time(NULL) - r->begun), what);
    return true;
}

static unsigned problems_of(const report *r)
{
    return r->count[PAWL_FINDING_WARNING] + r->count[PAWL_FINDING_ERROR];
}

static void print_end(report *r, const char *file)
{
    if (r->json) {
        json_t *object = cli_json_object();
        cli_json_set_text(object, "file", file);
        cli_json_set_number(object, "problems", problems_of(r));
        cli_json_set(object, "findings", r->findings);
        cli_json_print(object, CLI_JSON_INDENTED);
        return;
    }
    print_omissions(r);
    printf("errors: %u, warnings: %u, notes: %u\n", r->count[PAWL_FINDING_ERROR],
           r->count[PAWL_FINDING_WARNING], r->count[PAWL_FINDING_NOTE]);
}

static int examine(cli_arguments *arguments, report *r)
{
    const char *file = arguments->operands[0];
    const pawl_diagnose_options wishes = {
        .struct_size = sizeof wishes,
        .quick = r->quick,
        .progress = show_progress,
        .progress_arg = r,
    };
    r->begun = time(NULL);
    r->findings = r->json ? json_array() : NULL;
    cli_progress_begin(&r->progress);
    pawl_status status = pawl_diagnose_with(file, &wishes, take_finding, r);
    cli_progress_end(&r->progress);
    if (status != PAWL_OK) {
        cli_problem(arguments->verb->name, "%s", pawl_error_message());
        json_decref(r->findings);
        return CLI_EXIT_PROBLEM;
    }
    print_end(r, file);
    return problems_of(r) == 0 ? CLI_EXIT_OK : CLI_EXIT_PROBLEM;
}

static bool take(cli_arguments *arguments, int option, void *report_arg)
{
    (void)arguments;
    report *r = report_arg;
    if (option == CLI_OPTION_JSON)
        r->json = true;
    else
        r->quick = true;
    return true;
}

static int run(cli_arguments *arguments)
{
    report r = { 0 };
    if (!cli_arguments_parse(arguments, take, &r, 1, 1))
        return arguments->exit_status;
    return examine(arguments, &r);
}

static const cli_option options[] = {
    { OPTION_QUICK, "quick", NULL, "leave out what reads every row or page" },
    { CLI_OPTION_JSON, "json", NULL, "print one JSON object: file, problems (a number), and\n"
                                     "findings, each with severity (ok, note, warning,\n"
                                     "error), check, text and remedy (or null)" },
    { 0 },
};

const cli_verb cli_verb_doctor = {
    .name = "doctor",
    .summary = "Examines a file and all around it, and says what to do",
    .synopsis = "FILE [OPTION...]",
    .details = "The file is read and never changed; pools may run on it meanwhile.\n"
               "Exit status: 0 nothing is wrong (notes are good to know), 1 there are warnings or\n"
               "errors, 2 wrong usage.\n",
    .options = options,
    .run = run,
};
