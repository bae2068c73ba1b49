/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A transport and its test: a window of packets that grows by one in a round trip and is halved after a loss (RFC 5681).
 *
 * Every packet is acknowledged: "everything before `next` has arrived, and this was packet `seq` as transmission number `order`". A packet is
 * lost if one that was sent three transmissions later is acknowledged, or if nothing is for a while.
 */
#include <narrows_testbed.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 8192, HEADER = 16, MSS = 1472 - HEADER, REORDERING = 3 };

/* A packet that the application has written. */
struct packet {
    uint64_t sent_at, order;
    uint16_t length;
    bool sent, acked;
};

struct sender {
    struct packet packets[WINDOW]; /* by sequence number, modulo WINDOW */
    uint64_t first, next, end;     /* first packet that is not acknowledged, that was never sent, that is not written */
    uint64_t order;                /* of the next transmission */
    uint64_t recovery;             /* a loss of a transmission before this one is part of the last reduction */
    uint64_t inflight, lost;
    double cwnd, ssthresh; /* packets */
    uint64_t srtt, timeout;
};

struct receiver {
    uint16_t lengths[WINDOW]; /* of packets that have arrived; 0 if one has not */
    uint64_t next, unread;
    uint64_t acks[WINDOW][2]; /* sequence number and order of what is to be acknowledged */
    uint64_t ack_first, ack_end;
};

static void put(uint8_t *bytes, uint64_t seq, uint64_t order) {
    memcpy(bytes, &seq, sizeof seq);
    memcpy(bytes + 8, &order, sizeof order);
}

static void get(const uint8_t *bytes, uint64_t *seq, uint64_t *order) {
    memcpy(seq, bytes, sizeof *seq);
    memcpy(order, bytes + 8, sizeof *order);
}

/* ---- the sender ---- */

static void arm(struct sender *s, uint64_t now) {
    uint64_t wait = s->srtt ? 2 * s->srtt + NARROWS_MS(200) : NARROWS_S(1);
    s->timeout = s->inflight ? now + wait : NARROWS_NEVER;
}

static void take_as_lost(struct sender *s, struct packet *p) {
    p->sent = false;
    s->inflight--;
    s->lost++;
}

static void acknowledge(struct sender *s, struct packet *p) {
    if (p->acked)
        return;
    p->acked = true;
    if (p->sent)
        s->inflight--;
    s->cwnd += s->cwnd < s->ssthresh ? 1.0 : 1.0 / s->cwnd;
}

static void sender_receive(void *state, const narrows_datagram *datagram, uint64_t now) {
    struct sender *s = state;
    uint64_t next, seq, order;
    if (datagram->len != HEADER + 8)
        return;
    get(datagram->bytes, &seq, &order);
    memcpy(&next, datagram->bytes + HEADER, sizeof next);
    if (seq >= s->first && seq < s->next) {
        struct packet *p = &s->packets[seq % WINDOW];
        if (p->sent && p->order == order) {
            uint64_t rtt = now - p->sent_at;
            s->srtt = s->srtt ? (7 * s->srtt + rtt) / 8 : rtt;
        }
        acknowledge(s, p);
    }
    for (; s->first < next && s->first < s->next; s->first++)
        acknowledge(s, &s->packets[s->first % WINDOW]);
    for (uint64_t n = s->first; n < s->next; n++) {
        struct packet *p = &s->packets[n % WINDOW];
        if (p->acked || !p->sent || p->order + REORDERING > order)
            continue;
        take_as_lost(s, p);
        if (p->order >= s->recovery) {
            s->ssthresh = s->cwnd / 2 > 2 ? s->cwnd / 2 : 2;
            s->cwnd = s->ssthresh;
            s->recovery = s->order;
        }
    }
    arm(s, now);
}

static bool sender_transmit(void *state, narrows_datagram *datagram, uint64_t now) {
    struct sender *s = state;
    if ((double)s->inflight + 1 > s->cwnd)
        return false;
    for (uint64_t n = s->first; n < s->end; n++) {
        struct packet *p = &s->packets[n % WINDOW];
        if (p->sent || p->acked)
            continue;
        if (s->inflight++ == 0)
            arm(s, now);
        if (n == s->next)
            s->next++;
        p->sent = true;
        p->sent_at = now;
        p->order = s->order++;
        put(datagram->bytes, n, p->order);
        memset(datagram->bytes + HEADER, 0, p->length);
        datagram->len = HEADER + p->length;
        return true;
    }
    return false;
}

static uint64_t sender_timeout(const void *state) {
    return ((const struct sender *)state)->timeout;
}

static void sender_on_timeout(void *state, uint64_t now) {
    struct sender *s = state;
    for (uint64_t n = s->first; n < s->next; n++) {
        struct packet *p = &s->packets[n % WINDOW];
        if (p->sent && !p->acked)
            take_as_lost(s, p);
    }
    s->ssthresh = s->cwnd / 2 > 2 ? s->cwnd / 2 : 2;
    s->cwnd = 1;
    s->recovery = s->order;
    arm(s, now);
}

static void sender_application(void *state, narrows_stream *stream, uint64_t now) {
    struct sender *s = state;
    (void)now;
    while (s->end - s->first < WINDOW && stream->wrote < stream->unwritten) {
        uint64_t left = stream->unwritten - stream->wrote;
        struct packet p = {.length = left < MSS ? (uint16_t)left : MSS};
        s->packets[s->end++ % WINDOW] = p;
        stream->wrote += p.length;
    }
}

static void sender_shown(const void *state, narrows_shown *shown) {
    const struct sender *s = state;
    shown->cwnd = (uint64_t)(s->cwnd * MSS);
    shown->inflight = s->inflight * MSS;
    shown->mss = MSS;
    shown->lost = s->lost;
    if (s->srtt)
        shown->srtt = s->srtt;
}

/* ---- the receiver ---- */

static void receiver_receive(void *state, const narrows_datagram *datagram, uint64_t now) {
    struct receiver *r = state;
    uint64_t seq, order;
    (void)now;
    if (datagram->len <= HEADER || r->ack_end - r->ack_first == WINDOW)
        return;
    get(datagram->bytes, &seq, &order);
    if (seq >= r->next + WINDOW)
        return;
    if (seq >= r->next)
        r->lengths[seq % WINDOW] = (uint16_t)(datagram->len - HEADER);
    for (; r->lengths[r->next % WINDOW]; r->next++) {
        r->unread += r->lengths[r->next % WINDOW];
        r->lengths[r->next % WINDOW] = 0;
    }
    uint64_t *ack = r->acks[r->ack_end++ % WINDOW];
    ack[0] = seq;
    ack[1] = order;
}

static bool receiver_transmit(void *state, narrows_datagram *datagram, uint64_t now) {
    struct receiver *r = state;
    (void)now;
    if (r->ack_first == r->ack_end)
        return false;
    const uint64_t *ack = r->acks[r->ack_first++ % WINDOW];
    put(datagram->bytes, ack[0], ack[1]);
    memcpy(datagram->bytes + HEADER, &r->next, sizeof r->next);
    datagram->len = HEADER + sizeof r->next;
    return true;
}

static uint64_t receiver_timeout(const void *state) {
    (void)state;
    return NARROWS_NEVER;
}

static void receiver_on_timeout(void *state, uint64_t now) {
    (void)state, (void)now;
}

static void receiver_application(void *state, narrows_stream *stream, uint64_t now) {
    struct receiver *r = state;
    (void)now;
    stream->read = r->unread;
    r->unread = 0;
}

/* ---- the test ---- */

static bool make(void *context, uint64_t seed, narrows_peer ends[2]) {
    struct sender *s = calloc(1, sizeof *s);
    struct receiver *r = calloc(1, sizeof *r);
    (void)context, (void)seed;
    if (!s || !r) {
        free(s), free(r);
        return false;
    }
    s->cwnd = 10;
    s->ssthresh = WINDOW;
    s->timeout = NARROWS_NEVER;
    ends[0] = (narrows_peer){
        .state = s,
        .receive = sender_receive,
        .transmit = sender_transmit,
        .timeout = sender_timeout,
        .on_timeout = sender_on_timeout,
        .application = sender_application,
        .shown = sender_shown,
        .destroy = free,
    };
    ends[1] = (narrows_peer){
        .state = r,
        .receive = receiver_receive,
        .transmit = receiver_transmit,
        .timeout = receiver_timeout,
        .on_timeout = receiver_on_timeout,
        .application = receiver_application,
        .destroy = free,
    };
    return true;
}

int main(int argc, char **argv) {
    narrows_peer ends[2];
    if (!make(NULL, 1, ends))
        return EXIT_FAILURE;
    narrows_report *report = narrows_run_dumbbell("20mbit", "40ms", "fifo:limit=1bdp", "aimd", ends, NARROWS_S(60), 1);
    if (!report) {
        fprintf(stderr, "%s\n", narrows_error());
        return EXIT_FAILURE;
    }
    double delay;
    const char *fault = narrows_report_fault(report);
    printf("goodput %" PRIu64 " bit/s, fault: %s\n", narrows_report_goodput(report), fault ? fault : "none");
    if (narrows_report_figure(report, "delay", NARROWS_S(20), NARROWS_S(60), &delay))
        printf("delay from 20 s to 60 s: %.3f ms\n", delay);
    if (argc > 1 && !narrows_report_save(report, argv[1]))
        fprintf(stderr, "%s\n", narrows_error());
    narrows_report_free(report);

    char *json = NULL;
    narrows_verdict verdict = narrows_judge("reno/halves", "aimd", make, NULL, 0, &json);
    printf("reno/halves: %s\n", verdict == NARROWS_HOLDS ? "holds" : json ? json : narrows_error());
    narrows_text_free(json);
    return verdict == NARROWS_HOLDS ? EXIT_SUCCESS : EXIT_FAILURE;
}
