/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A network for the tests of transports: two ends of any stack, in virtual time, over hops and beside traffic that a scenario describes.
 *
 * A stack takes part if it separates its protocol from sockets and clocks. Each of its two ends is a `narrows_peer`: six functions
 * and a pointer to the end's own state.
 *
 * Units: times and durations are nanoseconds, and a run begins at 0. Lengths are bytes.
 * Text: UTF-8, ends with a zero byte, and is copied by the function that takes it.
 * Threads: an end's functions are called by the thread that called narrows_run_… or narrows_judge, and before that call returns.
 *   Different threads may run different ends at the same time. An end's functions may not leave by longjmp or by a C++ exception.
 * Errors: a function that fails returns NULL, false, 0 or NARROWS_ERROR, and narrows_error() says why. Null pointers, missing functions
 *   and text that is not UTF-8 are such errors. A library that was built with `panic = "abort"` aborts if it meets a fault of its own;
 *   one that unwinds reports it as an error.
 */
#ifndef NARROWS_TESTBED_H
#define NARROWS_TESTBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Durations and times. */
#define NARROWS_MS(n) ((uint64_t)(n) * UINT64_C(1000000))
#define NARROWS_S(n) ((uint64_t)(n) * UINT64_C(1000000000))

/* No timeout is pending. */
#define NARROWS_NEVER UINT64_MAX
/* The end does not show this. */
#define NARROWS_UNKNOWN UINT64_MAX
/* The application always has more to send. */
#define NARROWS_UNLIMITED UINT64_MAX

/* The ECN field of the IP header. */
enum narrows_ecn {
    NARROWS_NOT_ECT = 0,
    NARROWS_ECT1 = 1,
    NARROWS_ECT0 = 2,
    NARROWS_CE = 3
};

/* A datagram and what the network reads of it. */
typedef struct narrows_datagram {
    /* UDP payload, or a whole IP packet from an end that builds its own headers. The memory is the testbed's. */
    uint8_t *bytes;
    size_t len;
    /* Room at `bytes`. To send more, set `len` beyond it and write nothing: no path carries it, and it counts as a fault. */
    size_t capacity;
    /* Length of the headers that the bytes lack: 28 for UDP over IPv4, 0 for a whole IP packet. */
    uint32_t headers;
    /* enum narrows_ecn */
    uint8_t ecn;
} narrows_datagram;

/* The application's turn at one end. */
typedef struct narrows_stream {
    /* In: what the application has to send and has not written yet; NARROWS_UNLIMITED if it always has more. */
    uint64_t unwritten;
    /* Out: what was written into the connection in this turn; at most `unwritten`. 0 before. */
    uint64_t wrote;
    /* Out: what was read from the connection in this turn. 0 before. */
    uint64_t read;
} narrows_stream;

/* The inner state that an end shows. */
typedef struct narrows_shown {
    /* Congestion window, data in flight, smoothed RTT, payload of a full-sized packet, packets declared lost so far. NARROWS_UNKNOWN before. */
    uint64_t cwnd;
    uint64_t inflight;
    uint64_t srtt;
    uint64_t mss;
    uint64_t lost;
    /* Why the connection failed, or NULL, and when. The text is the end's own and is read before its next call. */
    const char *failed;
    uint64_t failed_at;
} narrows_shown;

/*
 * One end of a transport. A structure is copied by the function that takes it. The end's state then belongs to the testbed, which calls
 * `destroy` exactly once, also if the function fails.
 */
typedef struct narrows_peer {
    /* The first argument of each function. */
    void *state;
    /* A datagram arrives. It is valid until this returns. */
    void (*receive)(void *state, const narrows_datagram *datagram, uint64_t now);
    /* Writes the next datagram to send, `len` and its ECN bits; false if there is none. Called until there is none.
     * Before: len = 0, headers = 28, ecn = NARROWS_NOT_ECT. */
    bool (*transmit)(void *state, narrows_datagram *datagram, uint64_t now);
    /* The next time at which on_timeout is to be called, or NARROWS_NEVER. Asked after each call of another function. */
    uint64_t (*timeout)(const void *state);
    /* That time has come. */
    void (*on_timeout)(void *state, uint64_t now);
    /* Write what the application has to send, read what has arrived. */
    void (*application)(void *state, narrows_stream *stream, uint64_t now);
    /* What the end shows, for series and verdicts. Optional. */
    void (*shown)(const void *state, narrows_shown *shown);
    /* Frees the state. Optional. */
    void (*destroy)(void *state);
} narrows_peer;

/* What a run showed. Free it with narrows_report_free. */
typedef struct narrows_report narrows_report;

/*
 * Runs two ends over one link, ends[0] sending to ends[1]. The rate ("20mbit"), the base RTT ("40ms") and the queue ("fifo:limit=1bdp") are
 * written as on the command line. The name is for reports. A duration of 0 is 60 s. The seed is of the network's random numbers, at most INT64_MAX.
 * The same arguments and ends that draw no random numbers of the system's give the same report. NULL on error.
 */
narrows_report *narrows_run_dumbbell(const char *rate, const char *rtt, const char *queue, const char *name, const narrows_peer ends[2],
                                     uint64_t duration, uint64_t seed);

/*
 * The same over the network of a scenario file's text. Its flow called "test" is the one between the two ends; all others are the simulator's
 * own senders. A duration of 0 is the scenario's, and so is the seed.
 */
narrows_report *narrows_run_scenario(const char *scenario, const char *name, const narrows_peer ends[2], uint64_t duration);

/* Data that the receiving application read after the warm-up, bit/s. */
uint64_t narrows_report_goodput(const narrows_report *report);

/* What went wrong with the ends: they were silenced, or their connection failed. NULL if nothing. Valid as long as the report. */
const char *narrows_report_fault(const narrows_report *report);

/*
 * A figure of a part of the run, by its name in case files: "throughput", "share", "delay", "loss", "cwnd", … The error for an unknown name lists
 * them. Returns false and leaves `*value` as it is if there is no such figure in that part.
 */
bool narrows_report_figure(const narrows_report *report, const char *figure, uint64_t from, uint64_t to, double *value);

/*
 * Writes a folder that all commands of `narrows` read, with report.html, packets.pcapng and a qlog. A folder that was saved before is
 * replaced; one with other files is an error.
 */
bool narrows_report_save(const narrows_report *report, const char *folder);

/* NULL is allowed. */
void narrows_report_free(narrows_report *report);

/* What a case says of a stack. */
typedef enum narrows_verdict {
    NARROWS_ERROR = -1,
    NARROWS_HOLDS = 0,
    NARROWS_FAILS = 1,
    /* The stack does not show what the case looks at. */
    NARROWS_NOTE = 2
} narrows_verdict;

/*
 * The cases by their place, from 0: names of those that concern a control ("new_reno", "cubic", "bbr", "bbr3", "prague"), or of all if `control`
 * is NULL. NULL after the last one.
 */
const char *narrows_case(const char *control, size_t index);

/*
 * Makes both ends of a connection anew, the sender first; the run's seed is for their random numbers. Returns false, and makes neither, if it
 * cannot. `ends` is all zeros before.
 */
typedef bool (*narrows_make)(void *context, uint64_t seed, narrows_peer ends[2]);

/*
 * Judges a stack by a case (`narrows testbed list` has their names), beside the case's reference. `make` is called for each run, with `context`.
 * `runs` of 0 are the case's own number. If `json` is not NULL, it gets all expectations and what was measured, as `narrows testbed run --json`
 * prints them; free it with narrows_text_free. It stays as it is on error.
 */
narrows_verdict narrows_judge(const char *case_name, const char *name, narrows_make make, void *context, uint32_t runs, char **json);

/* NULL is allowed. */
void narrows_text_free(char *text);

/* Why the last call on this thread that failed did so; NULL if none did. Valid until the next call that fails. */
const char *narrows_error(void);

#ifdef __cplusplus
}
#endif

#endif
