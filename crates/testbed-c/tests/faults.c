/* What a program may do wrong: everything is an error with a reason, and every end is destroyed once. */
#include <narrows_testbed.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int destroyed, made;
static size_t length;
static uint64_t due;

static void receive(void *state, const narrows_datagram *datagram, uint64_t now) {
    (void)state, (void)datagram, (void)now;
}

static bool transmit(void *state, narrows_datagram *datagram, uint64_t now) {
    (void)state, (void)now;
    datagram->len = length;
    return length > 0;
}

static uint64_t timeout(const void *state) {
    (void)state;
    return due;
}

static void on_timeout(void *state, uint64_t now) {
    (void)state, (void)now;
}

static void application(void *state, narrows_stream *stream, uint64_t now) {
    (void)state, (void)now;
    stream->read = UINT64_MAX;
    stream->wrote = UINT64_MAX;
}

static void shown(const void *state, narrows_shown *shown) {
    (void)state;
    shown->srtt = 0;
}

static void failed(const void *state, narrows_shown *shown) {
    (void)state;
    shown->failed = "closed \xff";
    shown->failed_at = NARROWS_S(1);
}

static void destroy(void *state) {
    (void)state;
    destroyed++;
}

#define END {NULL, receive, transmit, timeout, on_timeout, application, shown, destroy}
static const narrows_peer both[2] = {END, END};

static bool make(void *context, uint64_t seed, narrows_peer ends[2]) {
    (void)context, (void)seed;
    made++;
    memcpy(ends, both, sizeof both);
    return true;
}

static bool make_none(void *context, uint64_t seed, narrows_peer ends[2]) {
    (void)context, (void)seed, (void)ends;
    made++;
    return false;
}

static bool make_half(void *context, uint64_t seed, narrows_peer ends[2]) {
    (void)context, (void)seed;
    memcpy(ends, both, sizeof both[0]);
    return true;
}

static void said(const char *what, bool succeeded) {
    printf("%s: %s\n", what, succeeded ? "no error" : narrows_error());
}

/* Runs for a second and prints the fault. */
static void run(const char *what, const narrows_peer ends[2]) {
    narrows_report *report = narrows_run_dumbbell("1mbit", "20ms", "fifo", "x", ends, NARROWS_S(1), 1);
    const char *fault = report ? narrows_report_fault(report) : narrows_error();
    printf("%s: %s\n", what, fault ? fault : "no fault");
    narrows_report_free(report);
}

int main(void) {
    const char *bad = "\xff\xfe";
    narrows_peer half[2] = {END, END};
    half[1].on_timeout = NULL;
    double value = -1;
    char *json = NULL;

    due = NARROWS_NEVER;
    printf("before: %s\n", narrows_error() ? "an error" : "none");
    said("no ends", narrows_run_dumbbell("1mbit", "20ms", "fifo", "x", NULL, 0, 1));
    said("no function", narrows_run_dumbbell("1mbit", "20ms", "fifo", "x", half, 0, 1));
    said("no rate", narrows_run_dumbbell(NULL, "20ms", "fifo", "x", both, 0, 1));
    said("bad name", narrows_run_dumbbell("1mbit", "20ms", "fifo", bad, both, 0, 1));
    said("bad queue", narrows_run_dumbbell("1mbit", "20ms", "fife", "x", both, 0, 1));
    said("no scenario", narrows_run_scenario(NULL, "x", both, 0));
    said("bad scenario", narrows_run_scenario(bad, "x", both, 0));
    said("wrong scenario", narrows_run_scenario("name = \"x\"", "x", both, 0));
    said("seed", narrows_run_dumbbell("1mbit", "20ms", "fifo", "x", both, NARROWS_S(1), UINT64_MAX));
    said("duration", narrows_run_dumbbell("1mbit", "20ms", "fifo", "x", both, UINT64_MAX, 1));
    printf("destroyed %d\n", destroyed);

    narrows_report *report = narrows_run_dumbbell("1mbit", "20ms", "fifo", "x", both, NARROWS_S(1), 1);
    said("figure", narrows_report_figure(report, "delays", 0, NARROWS_S(1), &value));
    said("bad figure", narrows_report_figure(report, bad, 0, NARROWS_S(1), &value));
    said("window", narrows_report_figure(report, "delay", NARROWS_S(1), 0, &value));
    said("long window", narrows_report_figure(report, "delay", 0, UINT64_MAX, &value));
    said("not shown", narrows_report_figure(report, "cwnd", 0, NARROWS_S(1), &value));
    said("no value", narrows_report_figure(report, "throughput", 0, NARROWS_S(1), NULL));
    said("no report", narrows_report_figure(NULL, "delay", 0, NARROWS_S(1), &value));
    said("goodput of none", narrows_report_goodput(NULL));
    said("fault of none", narrows_report_fault(NULL));
    said("no folder", narrows_report_save(report, NULL));
    said("folder of none", narrows_report_save(NULL, "x"));
    said("bad folder", narrows_report_save(report, "/dev/null/x"));
    narrows_report_free(report);
    narrows_report_free(NULL);
    narrows_text_free(NULL);
    printf("value %.0f\n", value);

    size_t all = 0, cubic = 0;
    while (narrows_case(NULL, all))
        all++;
    while (narrows_case("cubic", cubic))
        cubic++;
    printf("the first case: %s, those of cubic: %s\n", narrows_case(NULL, 0), cubic > 0 && cubic < all ? "fewer" : "all");
    said("bad control", narrows_case(bad, 0));
    said("no case", narrows_judge(NULL, "x", make, NULL, 1, &json) >= 0);
    said("unknown case", narrows_judge("reno/thirds", "x", make, NULL, 1, &json) >= 0);
    said("no make", narrows_judge("reno/halves", "x", NULL, NULL, 1, &json) >= 0);
    said("make fails", narrows_judge("reno/halves", "x", make_none, NULL, 3, &json) >= 0);
    said("half an end", narrows_judge("reno/halves", "x", make_half, NULL, 1, &json) >= 0);
    printf("made %d, json: %s\n", made, json ? json : "none");
    printf("silent ends: verdict %d\n", narrows_judge("reno/one-bdp", "x", make, NULL, 2, NULL));
    printf("made %d, destroyed %d\n", made, destroyed);

    length = 1;
    run("flood", both);
    length = 1473;
    run("long", both);
    length = SIZE_MAX;
    run("longest", both);
    length = 0;
    due = 0;
    run("past", both);
    due = UINT64_MAX - 1;
    run("far", both);
    due = NARROWS_NEVER;
    half[1].on_timeout = on_timeout;
    half[1].shown = failed;
    run("failed", half);
    printf("destroyed %d\n", destroyed);
    return EXIT_SUCCESS;
}
