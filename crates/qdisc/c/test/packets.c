// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets and netlink messages for tests/guest/safety.sh: floods, malformed frames, random options. A seed repeats its
 * frames and messages exactly. Statically linked, it runs where there is nothing else.
 *
 *   packets flood ADDRESS SECONDS FLOWS LENGTH [paced]   UDP from FLOWS sockets; paced: with departure times, some absurd
 *   packets timed ADDRESS COUNT SECONDS                  UDP that asks to leave after SECONDS
 *   packets gso ADDRESS COUNT                            UDP in bundles that are segmented; prints the segments
 *   packets frames DEVICE SEED COUNT [gso]               frames of all kinds, many malformed; gso: bundles among them
 *   packets flows DEVICE SEED COUNT LENGTH               each frame a new flow
 *   packets replay DEVICE FILE PORT                      frames as FILE says: us since the one before, flow, bytes
 *   packets options KIND DEVICE PARENT SEED COUNT        messages that add, change and delete a qdisc of this kind
 *   packets cost ADDRESS COUNT FLOWS                     ns per packet through an empty queue
 *   packets fill ADDRESS COUNT FLOWS                     ns per packet that is queued, FLOWS sockets in turn
 *   packets drain COUNT                                  ns per packet that arrives, measured when all have
 *
 * Floods and frames print "offered N": packets that the qdisc was given, whether it took or dropped them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define PORT 9
#define MAX_FRAME 65550
#define HEADER 14
#define MTU 1500

static void die(const char *what)
{
	fprintf(stderr, "packets: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t state;

/* xorshift64*; the state is never zero. */
static uint64_t draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dull;
}

static void seed(const char *text)
{
	state = strtoull(text, NULL, 0) * 0x9e3779b97f4a7c15ull + 1;
	for (int n = 0; n < 8; n++)
		draw();
}

static uint32_t below(uint32_t n)
{
	return n ? (uint32_t)((draw() >> 32) * n >> 32) : 0;
}

static bool one_in(uint32_t n)
{
	return !below(n);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void noise(uint8_t *at, size_t len)
{
	for (size_t n = 0; n < len; n++)
		at[n] = draw() >> 56;
}

#include "messages.h"

/* Large enough that a sender never waits for the qdisc. */
static void deepen(int s, int option)
{
	int size = 1 << 29;

	if (setsockopt(s, SOL_SOCKET, option, &size, sizeof(size)))
		die("setsockopt");
}

/* Sockets that are connected to the address, so that each is a flow. */
static int *connected(const char *address, int flows)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rlimit files = { (rlim_t)flows + 64, (rlim_t)flows + 64 };
	int *sockets = calloc(flows, sizeof(*sockets));

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1 || flows < 1 || !sockets)
		die("address or number of flows");
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit");
	for (int n = 0; n < flows; n++) {
		sockets[n] = socket(AF_INET, SOCK_DGRAM, 0);
		if (sockets[n] < 0)
			die("socket");
		deepen(sockets[n], SO_SNDBUFFORCE);
		if (connect(sockets[n], (struct sockaddr *)&to, sizeof(to)))
			die("connect");
	}
	return sockets;
}

/* The socket's packets have departure times. */
static void with_departures(int s)
{
	struct sock_txtime clock = { .clockid = CLOCK_MONOTONIC };

	if (setsockopt(s, SOL_SOCKET, SO_TXTIME, &clock, sizeof(clock)))
		die("SO_TXTIME");
}

/* Sends with a departure time, as fq and cocoa honour it. */
static void send_at(int s, void *data, size_t len, uint64_t at)
{
	char control[CMSG_SPACE(8)] = { 0 };
	struct iovec piece = { data, len };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_TXTIME;
	header->cmsg_len = CMSG_LEN(8);
	memcpy(CMSG_DATA(header), &at, 8);
	sendmsg(s, &message, 0);
}

/* Most within a millisecond, some in the past or never. */
static void send_paced(int s, void *data, size_t len)
{
	uint64_t at = now();

	switch (below(16)) {
	case 0: at = draw(); break;
	case 1: at += below(20) * 1000000000ull; break;
	case 2: at = below(2) ? ~0ull : 1; break;
	case 3: at -= below(1000000000); break;
	default: at += below(1000000);
	}
	send_at(s, data, len, at);
}

static int timed(const char *address, int count, double seconds)
{
	int s = *connected(address, 1);
	uint64_t at = now() + (uint64_t)(seconds * 1e9);
	uint8_t data[1400] = { 0 };

	with_departures(s);
	for (int n = 0; n < count; n++)
		send_at(s, data, sizeof(data), at);
	return 0;
}

static int flood(const char *address, double seconds, int flows, size_t len, bool paced)
{
	int *sockets = connected(address, flows);
	uint64_t end = now() + (uint64_t)(seconds * 1e9), sent = 0;
	uint8_t data[MTU] = { 0 };

	for (int n = 0; paced && n < flows; n++)
		with_departures(sockets[n]);
	for (; now() < end; sent++) {
		/* The device may go away meanwhile. */
		if (paced)
			send_paced(sockets[sent % flows], data, len);
		else
			send(sockets[sent % flows], data, len, 0);
	}
	printf("sent %llu\n", (unsigned long long)sent);
	return 0;
}

/* Bundles of 2 to 40 segments of 100 to 1400 bytes, all of full length but the last. */
static int gso(const char *address, int count)
{
	int s = *connected(address, 1);
	static uint8_t data[65000];
	uint64_t segments = 0;

	for (int n = 0; n < count; n++) {
		int size = 100 + below(1300), pieces = 2 + below(39);
		int len = size * (pieces - 1) + 1 + below(size);

		if (len > 64000)
			continue;
		if (setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)))
			die("UDP_SEGMENT");
		/* An answer that nobody listens is reported instead of sending. */
		while (send(s, data, len, 0) != len && errno != ENOBUFS) {
			if (errno != ECONNREFUSED)
				die("send");
		}
		segments += pieces;
	}
	printf("offered %llu\n", (unsigned long long)segments);
	return 0;
}

static const uint16_t protocols[] = { 0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8, 0x8864, 0x8863, 0x8847, 0x88cc, 0x88f7, 0x0001, 0xffff };

static size_t ethertype(uint8_t *at, size_t room, uint16_t *type, int depth);

/* TCP, UDP, ICMP or what else; returns bytes written. */
static size_t transport(uint8_t *at, size_t room, uint8_t protocol)
{
	size_t len = below(room + 1);

	noise(at, len);
	if (protocol == 6 && len >= 20) {
		/* The header's length, often a lie. */
		at[12] = one_in(2) ? 0x50 : draw();
	} else if (protocol == 17 && len >= 8) {
		put16(at + 4, one_in(2) ? len : below(65536));
	}
	return len;
}

static size_t ipv4(uint8_t *at, size_t room, int depth)
{
	static const uint8_t inner[] = { 6, 17, 17, 6, 1, 2, 4, 41, 47, 50, 51, 132, 255, 0 };
	size_t header = one_in(4) ? 20 + 4 * below(11) : 20, len;
	uint8_t protocol = inner[below(COUNT_OF(inner))];
	uint16_t type;

	if (room < header)
		return 0;
	noise(at, header);
	at[0] = 0x40 | header / 4;
	at[6] &= one_in(4) ? 0x3f : 0x40;
	at[7] = at[6] & 0x3f ? at[7] : 0;
	at[9] = protocol;
	if (protocol == 4 && depth)
		len = ipv4(at + header, room - header, depth - 1);
	else if (protocol == 47 && depth && room >= header + 4) {
		len = 4 + ethertype(at + header + 4, room - header - 4, &type, depth - 1);
		put16(at + header, one_in(4) ? below(65536) : 0);
		put16(at + header + 2, type);
	} else
		len = transport(at + header, room - header, protocol);
	put16(at + 2, one_in(6) ? below(65536) : header + len);
	if (one_in(8))
		at[0] = draw();
	return header + len;
}

/* With up to eight extension headers, whose lengths may be lies. */
static size_t ipv6(uint8_t *at, size_t room)
{
	static const uint8_t extensions[] = { 0, 43, 44, 60, 51, 135, 139, 140, 59 };
	static const uint8_t ends[] = { 6, 17, 58, 41, 59, 254 };
	size_t len = 40, more = one_in(2) ? below(9) : 0;
	uint8_t *next = at + 6;

	if (room < 40)
		return 0;
	noise(at, 40);
	at[0] = 0x60 | (at[0] & 15);
	for (; more && len + 8 <= room; more--) {
		size_t units = one_in(4) ? below(5) : 0;

		*next = extensions[below(COUNT_OF(extensions))];
		if (len + 8 + 8 * units > room)
			units = 0;
		noise(at + len, 8 + 8 * units);
		next = at + len;
		at[len + 1] = one_in(6) ? draw() : units;
		len += 8 + 8 * units;
	}
	*next = ends[below(COUNT_OF(ends))];
	len += transport(at + len, room - len, *next);
	put16(at + 4, one_in(6) ? below(65536) : len - 40);
	if (one_in(16))
		at[0] = draw();
	return len;
}

/* What an Ethernet header, a VLAN tag or GRE may carry; says its type. */
static size_t ethertype(uint8_t *at, size_t room, uint16_t *type, int depth)
{
	uint16_t inner;
	size_t len;

	switch (below(12)) {
	case 0: case 1: case 2: case 3:
		*type = 0x0800;
		return ipv4(at, room, depth);
	case 4: case 5: case 6:
		*type = 0x86dd;
		return ipv6(at, room);
	case 7:
		*type = 0x0806;
		len = room < 28 ? room : 28;
		noise(at, len);
		if (len == 28)
			memcpy(at, "\0\1\10\0\6\4\0\1", 8);
		return len;
	case 8:
		*type = one_in(2) ? 0x8100 : 0x88a8;
		if (room < 4 || !depth)
			break;
		noise(at, 2);
		len = ethertype(at + 4, room - 4, &inner, depth - 1);
		put16(at + 2, inner);
		return 4 + len;
	case 9:
		*type = 0x8864;
		if (room < 8)
			break;
		memcpy(at, "\x11\0\0\1", 4);
		len = one_in(2) ? ipv4(at + 8, room - 8, 0) : ipv6(at + 8, room - 8);
		put16(at + 4, one_in(4) ? below(65536) : len + 2);
		put16(at + 6, one_in(4) ? below(65536) : (at[8] >> 4) == 6 ? 0x0057 : 0x0021);
		return 8 + len;
	case 10:
		*type = 0x8847;
		if (room < 4)
			break;
		noise(at, 4);
		return 4 + ipv4(at + 4, room - 4, 0);
	default:
		*type = protocols[below(COUNT_OF(protocols))];
	}
	len = below(room + 1);
	noise(at, len);
	return len;
}

/* A frame of at most the device's length; a quarter end too early. */
static size_t frame(uint8_t *at)
{
	uint16_t type;
	size_t len;

	noise(at, 12);
	/* A unicast address that is nobody's. */
	at[0] = at[0] & 0xfc;
	len = HEADER + ethertype(at + HEADER, one_in(3) ? MTU : 200, &type, 4);
	put16(at + 12, one_in(32) ? below(65536) : type);
	return one_in(4) ? HEADER + below(len - HEADER + 1) : len;
}

/* A bundle of TCP or UDP segments, half of them with offsets and sizes that are lies. */
static size_t bundle(uint8_t *at, struct virtio_net_hdr *header)
{
	static const uint8_t types[] = { VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP, 5,
					 VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN };
	uint8_t type = types[below(COUNT_OF(types))];
	bool is_six = type == VIRTIO_NET_HDR_GSO_TCPV6 || (type == 5 && one_in(2)), is_tcp = type != 5 && type != VIRTIO_NET_HDR_GSO_UDP;
	size_t ip = is_six ? 40 : 20, l4 = is_tcp ? 20 : 8, headers = HEADER + ip + l4;
	size_t len = headers + 1 + below(one_in(4) ? 60000 : 6000);

	noise(at, headers);
	memset(at + headers, 0, len - headers);
	at[0] &= 0xfc;
	put16(at + 12, is_six ? 0x86dd : 0x0800);
	at[HEADER] = is_six ? 0x60 : 0x45;
	if (is_six) {
		put16(at + HEADER + 4, len - HEADER - 40);
		at[HEADER + 6] = is_tcp ? 6 : 17;
	} else {
		put16(at + HEADER + 2, len - HEADER);
		at[HEADER + 6] = at[HEADER + 7] = 0;
		at[HEADER + 9] = is_tcp ? 6 : 17;
	}
	if (is_tcp)
		at[HEADER + ip + 12] = 0x50;
	else
		put16(at + HEADER + ip + 4, len - HEADER - ip);
	*header = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = type, .hdr_len = headers, .gso_size = 100 + below(1300),
		.csum_start = HEADER + ip, .csum_offset = is_tcp ? 16 : 6,
	};
	if (one_in(2)) {
		switch (below(6)) {
		case 0: header->gso_size = 1 + below(65535); break;
		case 1: header->csum_start = below(len); break;
		case 2: header->csum_offset = below(200); break;
		case 3: noise(at + HEADER, headers - HEADER); break;
		case 4: header->hdr_len = below(len); break;
		default: header->gso_type = types[below(COUNT_OF(types))];
		}
	}
	return len;
}

static int opened(const char *device, struct sockaddr_ll *to, bool bundles)
{
	int s = socket(AF_PACKET, SOCK_RAW, 0), one = 1;

	if (s < 0)
		die("packet socket");
	*to = (struct sockaddr_ll){ .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(device), .sll_halen = 6 };
	if (!to->sll_ifindex)
		die(device);
	deepen(s, SO_SNDBUFFORCE);
	if (bundles && setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		die("PACKET_VNET_HDR");
	return s;
}

static int frames(const char *device, const char *first, int count, bool bundles)
{
	static struct { struct virtio_net_hdr header; uint8_t bytes[MAX_FRAME]; } f;
	uint64_t offered = 0, refused = 0;
	struct sockaddr_ll to;
	int s = opened(device, &to, bundles);

	seed(first);
	for (int n = 0; n < count; n++) {
		size_t len;

		memset(&f.header, 0, sizeof(f.header));
		len = bundles && one_in(2) ? bundle(f.bytes, &f.header) : frame(f.bytes);
		to.sll_protocol = one_in(32) ? (uint16_t)draw() : f.bytes[12] | f.bytes[13] << 8;
		if (sendto(s, bundles ? (void *)&f : (void *)f.bytes, len + (bundles ? sizeof(f.header) : 0), 0,
			   (struct sockaddr *)&to, sizeof(to)) >= 0 || errno == ENOBUFS)
			offered++;
		else
			refused++;
	}
	printf("offered %llu refused %llu\n", (unsigned long long)offered, (unsigned long long)refused);
	return offered < (uint64_t)count / 2;
}

/* A frame of UDP over IPv4 with this length, to be sent from the port of a flow. */
static void udp_frame(uint8_t *at, size_t len, uint32_t port)
{
	put16(at + 12, 0x0800);
	at[14] = 0x45;
	put16(at + 16, len - HEADER);
	at[22] = 64;
	at[23] = 17;
	put16(at + 34, port);
	put16(at + 38, len - HEADER - 20);
}

static int replay(const char *device, const char *file, uint32_t port)
{
	static uint8_t bytes[HEADER + MTU];
	FILE *trace = fopen(file, "r");
	struct sockaddr_ll to;
	int s = opened(device, &to, false);
	uint64_t at = now() + 100000000;
	unsigned int after, flow, len;
	char line[256];

	if (!trace)
		die(file);
	to.sll_protocol = htons(0x0800);
	while (fgets(line, sizeof(line), trace)) {
		if (line[0] == '#')
			continue;
		if (sscanf(line, "%u,%u,%u", &after, &flow, &len) != 3 || len < 42 || len > sizeof(bytes))
			die(line);
		at += after * 1000ull;
		udp_frame(bytes, len, port + flow);
		/* A sleep ends a little late: the last of the time is waited for. */
		if (at > now() + 100000) {
			struct timespec until = { (at - 80000) / 1000000000, (at - 80000) % 1000000000 };

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		}
		while (now() < at)
			;
		if (sendto(s, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != ENOBUFS)
			die("sendto");
	}
	return 0;
}

static int new_flows(const char *device, const char *first, int count, size_t len)
{
	static uint8_t bytes[HEADER + MTU];
	struct sockaddr_ll to;
	int s = opened(device, &to, false);

	seed(first);
	if (len < 42 || len > sizeof(bytes))
		die("length");
	udp_frame(bytes, len, 0);
	to.sll_protocol = htons(0x0800);
	for (int n = 0; n < count; n++) {
		noise(bytes + 26, 12);
		if (sendto(s, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != ENOBUFS)
			die("sendto");
	}
	printf("offered %d\n", count);
	return 0;
}

/* What a packet costs until it has left through an empty queue, or is queued where nothing leaves. */
static int cost(const char *address, int count, int flows, int before)
{
	int *sockets = connected(address, flows);
	uint8_t data[1400] = { 0 };
	uint64_t start;

	for (int n = 0; n < before; n++)
		send(sockets[n % flows], data, sizeof(data), 0);
	start = now();
	for (int n = 0; n < count; n++)
		send(sockets[n % flows], data, sizeof(data), 0);
	printf("%.1f ns per packet\n", (double)(now() - start) / count);
	return 0;
}

/* Waits until nothing has come for a second; then looks at the times at which the packets came. */
static int drain(int count)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int s = socket(AF_INET, SOCK_DGRAM, 0), one = 1, seen = 0;
	uint64_t first = 0, last = 0;
	struct timeval second = { .tv_sec = 1 };

	deepen(s, SO_RCVBUFFORCE);
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) || setsockopt(s, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) ||
	    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)))
		die("bind");
	/* All of them come while this sleeps. */
	sleep(20);
	for (;; seen++) {
		char data[2048], control[256];
		struct iovec piece = { data, sizeof(data) };
		struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
		struct cmsghdr *header;
		struct timespec t;

		if (recvmsg(s, &message, 0) < 0)
			break;
		header = CMSG_FIRSTHDR(&message);
		if (!header)
			die("no timestamp");
		memcpy(&t, CMSG_DATA(header), sizeof(t));
		last = t.tv_sec * 1000000000ull + t.tv_nsec;
		/* The first two were the shaper's burst. */
		if (seen == 2)
			first = last;
	}
	printf("%d of %d packets, %.1f ns per packet\n", seen, count, seen > 3 ? (double)(last - first) / (seen - 3) : 0.0);
	return seen != count;
}

int main(int n, char **a)
{
	const char *what = n > 1 ? a[1] : "";

	seed("1");
	if (!strcmp(what, "flood") && n >= 6)
		return flood(a[2], atof(a[3]), atoi(a[4]), atoi(a[5]), n > 6);
	if (!strcmp(what, "timed") && n == 5)
		return timed(a[2], atoi(a[3]), atof(a[4]));
	if (!strcmp(what, "gso") && n == 4)
		return gso(a[2], atoi(a[3]));
	if (!strcmp(what, "frames") && n >= 5)
		return frames(a[2], a[3], atoi(a[4]), n > 5);
	if (!strcmp(what, "flows") && n == 6)
		return new_flows(a[2], a[3], atoi(a[4]), atoi(a[5]));
	if (!strcmp(what, "replay") && n == 5)
		return replay(a[2], a[3], atoi(a[4]));
	if (!strcmp(what, "options") && n == 7)
		return options(a[2], a[3], a[4], a[5], atoi(a[6]));
	if (!strcmp(what, "cost") && n == 5)
		return cost(a[2], atoi(a[3]), atoi(a[4]), 2000);
	if (!strcmp(what, "fill") && n == 5)
		return cost(a[2], atoi(a[3]), atoi(a[4]), 0);
	if (!strcmp(what, "drain") && n == 3)
		return drain(atoi(a[2]));
	fprintf(stderr, "packets: unknown arguments; the source's first comment lists them\n");
	return 2;
}
