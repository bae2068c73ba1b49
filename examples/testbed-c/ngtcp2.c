/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ngtcp2 in the cases of the testbed: `ngtcp2 reno|cubic|bbr|bbr2 [CASE...]` prints the verdicts as JSON.
 *
 * One stream from the client to the server, and ngtcp2's defaults but for windows of flow control that nothing fills. Its random numbers
 * are of the run's seed. GnuTLS takes its own from the system; with a pre-shared key all messages of the handshake have the same lengths each time,
 * so that the encrypted bytes differ from run to run and nothing else does.
 */
#include <narrows_testbed.h>

#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CID = 8, UDP_MOST = 1472, PIECE = 1 << 16 };
/* Flow control, and what the sender's buffer takes of the application. */
#define WINDOW (UINT64_C(1) << 40)
#define BUFFER (UINT64_C(1) << 25)

struct end {
    bool client, sending;
    ngtcp2_cc_algo control;
    ngtcp2_conn *conn;
    ngtcp2_crypto_conn_ref ref;
    gnutls_session_t session;
    uint64_t random;
    int64_t stream;             /* -1 before it is opened */
    uint64_t buffered, unread;  /* of the sender, of the receiver */
    size_t burst;               /* bytes since the last pause of the pacer */
    const char *failed;
    uint64_t failed_at;
};

/* ---- random numbers: SplitMix64 ---- */

static void draw(struct end *e, uint8_t *bytes, size_t length) {
    for (size_t n = 0; n < length; n++) {
        uint64_t z = e->random += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        bytes[n] = (uint8_t)(z ^ z >> 31);
    }
}

static void on_rand(uint8_t *bytes, size_t length, const ngtcp2_rand_ctx *context) {
    draw(context->native_handle, bytes, length);
}

static int on_new_cid(ngtcp2_conn *conn, ngtcp2_cid *cid, uint8_t *token, size_t length, void *state) {
    (void)conn;
    cid->datalen = length;
    draw(state, cid->data, length);
    draw(state, token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}

/* ---- TLS with a pre-shared key ---- */

static const char PRIORITY[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-PSK:-GROUP-ALL:+GROUP-X25519:-CIPHER-ALL:+AES-128-GCM:"
                               "%DISABLE_TLS13_COMPAT_MODE";
static const gnutls_datum_t ALPN = {(unsigned char *)"testbed", 7};
static gnutls_psk_client_credentials_t client_key;
static gnutls_psk_server_credentials_t server_key;

static int find_key(gnutls_session_t session, const char *user, gnutls_datum_t *key) {
    (void)session, (void)user;
    key->size = 16;
    key->data = gnutls_malloc(key->size);
    if (!key->data)
        return -1;
    memset(key->data, 7, key->size);
    return 0;
}

static bool set_keys(void) {
    gnutls_datum_t key = {(unsigned char[16]){7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, 16};
    if (gnutls_psk_allocate_client_credentials(&client_key) || gnutls_psk_allocate_server_credentials(&server_key))
        return false;
    gnutls_psk_set_server_credentials_function(server_key, find_key);
    return gnutls_psk_set_client_credentials(client_key, "testbed", &key, GNUTLS_PSK_KEY_RAW) == 0;
}

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref) {
    return ((struct end *)ref->user_data)->conn;
}

static bool start_tls(struct end *e) {
    unsigned flags = e->client ? GNUTLS_CLIENT : GNUTLS_SERVER | GNUTLS_NO_AUTO_SEND_TICKET;
    if (gnutls_init(&e->session, flags) || gnutls_priority_set_direct(e->session, PRIORITY, NULL))
        return false;
    int refused = e->client ? ngtcp2_crypto_gnutls_configure_client_session(e->session)
                            : ngtcp2_crypto_gnutls_configure_server_session(e->session);
    e->ref = (ngtcp2_crypto_conn_ref){get_conn, e};
    gnutls_session_set_ptr(e->session, &e->ref);
    ngtcp2_conn_set_tls_native_handle(e->conn, e->session);
    return !refused && !gnutls_credentials_set(e->session, GNUTLS_CRD_PSK, e->client ? (void *)client_key : (void *)server_key) &&
           !gnutls_alpn_set_protocols(e->session, &ALPN, 1, GNUTLS_ALPN_MANDATORY);
}

/* ---- the connection ---- */

static int on_data(ngtcp2_conn *conn, uint32_t flags, int64_t stream, uint64_t offset, const uint8_t *data, size_t length, void *state,
                   void *stream_state) {
    struct end *e = state;
    (void)flags, (void)offset, (void)data, (void)stream_state;
    e->unread += length;
    ngtcp2_conn_extend_max_offset(conn, length);
    return ngtcp2_conn_extend_max_stream_offset(conn, stream, length) ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

/* The addresses of both ends, which nothing looks at. */
static struct sockaddr_in addresses[2] = {{.sin_family = AF_INET, .sin_port = 1}, {.sin_family = AF_INET, .sin_port = 2}};

static ngtcp2_path path_of(const struct end *e) {
    struct sockaddr *local = (struct sockaddr *)&addresses[!e->client], *remote = (struct sockaddr *)&addresses[e->client];
    return (ngtcp2_path){{local, sizeof *addresses}, {remote, sizeof *addresses}, NULL};
}

static void fail(struct end *e, const char *reason, uint64_t now) {
    if (!e->failed) {
        e->failed = reason;
        e->failed_at = now;
    }
}

/* Starts a connection; the server's with the client's first packet. */
static void start(struct end *e, const ngtcp2_pkt_hd *first, uint64_t now) {
    ngtcp2_callbacks callbacks = {
        .client_initial = ngtcp2_crypto_client_initial_cb,
        .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
        .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
        .encrypt = ngtcp2_crypto_encrypt_cb,
        .decrypt = ngtcp2_crypto_decrypt_cb,
        .hp_mask = ngtcp2_crypto_hp_mask_cb,
        .recv_stream_data = on_data,
        .recv_retry = ngtcp2_crypto_recv_retry_cb,
        .rand = on_rand,
        .get_new_connection_id = on_new_cid,
        .update_key = ngtcp2_crypto_update_key_cb,
        .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
        .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
        .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
        .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
    };
    ngtcp2_settings settings;
    ngtcp2_transport_params params;
    ngtcp2_settings_default(&settings);
    settings.cc_algo = e->control;
    settings.initial_ts = now;
    settings.rand_ctx.native_handle = e;
    ngtcp2_transport_params_default(&params);
    params.initial_max_streams_uni = 1;
    params.initial_max_stream_data_uni = params.initial_max_data = WINDOW;

    ngtcp2_path path = path_of(e);
    ngtcp2_cid own = {.datalen = CID}, other = {.datalen = NGTCP2_MIN_INITIAL_DCIDLEN};
    draw(e, own.data, own.datalen);
    int refused;
    if (e->client) {
        draw(e, other.data, other.datalen);
        refused = ngtcp2_conn_client_new(&e->conn, &other, &own, &path, NGTCP2_PROTO_VER_V1, &callbacks, &settings, &params, NULL, e);
    } else {
        params.original_dcid = first->dcid;
        refused = ngtcp2_conn_server_new(&e->conn, &first->scid, &own, &path, first->version, &callbacks, &settings, &params, NULL, e);
    }
    if (refused)
        fail(e, ngtcp2_strerror(refused), now);
    else if (!start_tls(e))
        fail(e, "TLS cannot be set up", now);
}

/* ---- the end ---- */

static void receive(void *state, const narrows_datagram *datagram, uint64_t now) {
    struct end *e = state;
    ngtcp2_pkt_hd first;
    if (!e->client && !e->conn && !e->failed && ngtcp2_accept(&first, datagram->bytes, datagram->len) == 0)
        start(e, &first, now);
    if (!e->conn || e->failed)
        return;
    ngtcp2_path path = path_of(e);
    ngtcp2_pkt_info info = {.ecn = datagram->ecn};
    int refused = ngtcp2_conn_read_pkt(e->conn, &path, &info, datagram->bytes, datagram->len, now);
    if (refused)
        fail(e, ngtcp2_strerror(refused), now);
}

static bool transmit(void *state, narrows_datagram *datagram, uint64_t now) {
    static uint8_t zeros[PIECE];
    struct end *e = state;
    if (!e->conn || e->failed)
        return false;
    /* As in ngtcp2's own examples: a burst is as long as the control allows, then the pacer sets the next time. */
    size_t full = ngtcp2_conn_get_max_tx_udp_payload_size(e->conn);
    if (e->burst + full > ngtcp2_conn_get_send_quantum(e->conn) && e->burst > 0) {
        e->burst = 0;
        ngtcp2_conn_update_pkt_tx_time(e->conn, now);
        if (ngtcp2_conn_get_expiry(e->conn) > now)
            return false;
    }
    if (e->client && e->stream < 0 && e->buffered && ngtcp2_conn_open_uni_stream(e->conn, &e->stream, NULL))
        e->stream = -1;
    ngtcp2_vec data = {zeros, e->buffered < PIECE ? e->buffered : PIECE};
    int64_t stream = data.len ? e->stream : -1;
    ngtcp2_ssize taken = -1;
    ngtcp2_pkt_info info = {0};
    ngtcp2_ssize length = ngtcp2_conn_writev_stream(e->conn, NULL, &info, datagram->bytes, UDP_MOST, &taken, NGTCP2_WRITE_STREAM_FLAG_NONE,
                                                    stream, &data, stream >= 0, now);
    if (length < 0)
        fail(e, ngtcp2_strerror((int)length), now);
    if (length <= 0) {
        e->burst = 0;
        ngtcp2_conn_update_pkt_tx_time(e->conn, now);
        return false;
    }
    e->buffered -= taken > 0 ? (uint64_t)taken : 0;
    e->burst += (size_t)length;
    datagram->len = (size_t)length;
    datagram->ecn = (uint8_t)info.ecn;
    return true;
}

static uint64_t timeout(const void *state) {
    const struct end *e = state;
    return e->conn && !e->failed ? ngtcp2_conn_get_expiry(e->conn) : NARROWS_NEVER;
}

static void on_timeout(void *state, uint64_t now) {
    struct end *e = state;
    int refused = ngtcp2_conn_handle_expiry(e->conn, now);
    if (refused)
        fail(e, ngtcp2_strerror(refused), now);
}

static void application(void *state, narrows_stream *stream, uint64_t now) {
    struct end *e = state;
    if (e->client && !e->conn && !e->failed)
        start(e, NULL, now);
    uint64_t room = BUFFER - e->buffered;
    stream->wrote = !e->client ? 0 : stream->unwritten < room ? stream->unwritten : room;
    stream->read = e->unread;
    e->buffered += stream->wrote;
    e->unread = 0;
}

static void shown(const void *state, narrows_shown *shown) {
    const struct end *e = state;
    shown->failed = e->failed;
    shown->failed_at = e->failed_at;
    if (!e->conn || e->failed)
        return;
    ngtcp2_conn_stat stat;
    ngtcp2_conn_get_conn_stat(e->conn, &stat);
    shown->cwnd = stat.cwnd;
    shown->inflight = stat.bytes_in_flight;
    shown->srtt = stat.smoothed_rtt;
    shown->mss = stat.max_tx_udp_payload_size;
    shown->lost = e->stream < 0 ? 0 : ngtcp2_conn_get_stream_loss_count(e->conn, e->stream);
}

static void destroy(void *state) {
    struct end *e = state;
    ngtcp2_conn_del(e->conn);
    if (e->session)
        gnutls_deinit(e->session);
    free(e);
}

/* ---- the cases ---- */

struct control {
    const char *name, *family; /* what the cases call it */
    ngtcp2_cc_algo algorithm;
};

static const struct control CONTROLS[] = {
    {"reno", "new_reno", NGTCP2_CC_ALGO_RENO},
    {"cubic", "cubic", NGTCP2_CC_ALGO_CUBIC},
    {"bbr", "bbr", NGTCP2_CC_ALGO_BBR},
    {"bbr2", "bbr3", NGTCP2_CC_ALGO_BBR2}, /* of version 2 of BBR's draft, which version 3 changed little */
};

static bool make(void *context, uint64_t seed, narrows_peer ends[2]) {
    const struct control *control = context;
    for (int n = 0; n < 2; n++) {
        struct end *e = calloc(1, sizeof *e);
        if (!e) {
            if (n)
                destroy(ends[0].state);
            return false;
        }
        *e = (struct end){.client = n == 0, .control = control->algorithm, .random = 2 * seed + (uint64_t)n, .stream = -1};
        ends[n] = (narrows_peer){e, receive, transmit, timeout, on_timeout, application, shown, destroy};
    }
    return true;
}

/* Prints a case's verdicts. */
static bool judge(const char *name, struct control *control, const char *before) {
    char label[32], *json = NULL;
    snprintf(label, sizeof label, "ngtcp2:%s", control->name);
    if (narrows_judge(name, label, make, control, 0, &json) == NARROWS_ERROR) {
        fprintf(stderr, "%s: %s\n", name, narrows_error());
        return false;
    }
    printf("%s%s", before, json);
    narrows_text_free(json);
    return true;
}

int main(int argc, char **argv) {
    const size_t all = sizeof CONTROLS / sizeof *CONTROLS;
    size_t which = 0;
    while (which < all && (argc < 2 || strcmp(CONTROLS[which].name, argv[1]) != 0))
        which++;
    if (which == all || !set_keys()) {
        fprintf(stderr, "usage: ngtcp2 reno|cubic|bbr|bbr2 [CASE...]; without a case all that concern the control\n");
        return EXIT_FAILURE;
    }
    struct control control = CONTROLS[which];
    const char *name;
    bool judged = true;
    for (size_t n = 0; judged && (name = argc > 2 ? argv[n + 2] : narrows_case(control.family, n)) != NULL; n++)
        judged = judge(name, &control, n ? ",\n" : "[\n");
    printf("\n]\n");
    return judged ? EXIT_SUCCESS : EXIT_FAILURE;
}
