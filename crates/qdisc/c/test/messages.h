/* SPDX-License-Identifier: GPL-2.0-only */
/* Random netlink messages that add, change and delete a qdisc; a part of packets.c, whose random numbers it takes. */
#ifndef NARROWS_MESSAGES_H
#define NARROWS_MESSAGES_H

/* Appends an attribute whose length is what it says; returns where the next one begins. */
static uint8_t *attribute(uint8_t *at, uint16_t type, const void *data, size_t len)
{
	struct rtattr header = { .rta_len = RTA_LENGTH(len), .rta_type = type };

	memset(at, 0, RTA_SPACE(len));
	memcpy(at, &header, sizeof(header));
	memcpy(at + RTA_LENGTH(0), data, len);
	return at + RTA_SPACE(len);
}

static uint64_t value(void)
{
	static const uint64_t bounds[] = { 0, 1, 2, 9, 10, 255, 256, 1000, 1023, 1024, 4096, 32768, 32769, 65535, 65536, 102400, 102401,
					   1000000, 10000000, 10000001, 1 << 30, (1 << 30) + 1, 0x7fffffff, 0x80000000, 0xffffffff,
					   0x100000000, 1000000000000, 1000000000001, 3600000000000, 3600000000001, 99ull << 32,
					   (99ull << 32) + 1, 1ull << 63, ~0ull };

	return one_in(3) ? draw() >> below(64) : bounds[below(COUNT_OF(bounds))];
}

/* Random options: some as they should be, some with lengths, types and ends that are not. */
static size_t random_options(uint8_t *at)
{
	uint8_t *end = at;
	int count = below(12);

	for (int n = 0; n < count; n++) {
		uint16_t type = one_in(16) ? (uint16_t)draw() : below(20);
		uint8_t data[64];
		uint64_t number = value();
		size_t len;

		switch (below(12)) {
		case 0: len = below(sizeof(data)); break;
		case 1: len = 0; break;
		case 2: case 3: case 4: case 5: len = 8; break;
		default: len = 4;
		}
		noise(data, sizeof(data));
		memcpy(data, &number, len < 8 ? len : 8);
		end = attribute(end, type, data, len);
		/* The header tells another length than there is. */
		if (one_in(24))
			put16(end - RTA_SPACE(len), below(65536));
	}
	if (one_in(16))
		end -= end - at > 4 ? below(4) : 0;
	if (one_in(32)) {
		noise(end, 3);
		end += 3;
	}
	return end - at;
}

struct request {
	struct nlmsghdr header;
	struct tcmsg tc;
	uint8_t bytes[4096];
};

/* The error of the kernel's answer, zero for success. Answers to a dump are read to their end. */
static int talk(int s, struct request *r, bool dump)
{
	static uint32_t number;
	static uint8_t answer[1 << 17];

	r->header.nlmsg_seq = ++number;
	if (send(s, r, r->header.nlmsg_len, 0) < 0)
		die("netlink send");
	for (;;) {
		ssize_t len = recv(s, answer, sizeof(answer), 0);
		struct nlmsghdr *header = (struct nlmsghdr *)answer;

		if (len < 0)
			die("no answer of the kernel");
		for (; NLMSG_OK(header, len); header = NLMSG_NEXT(header, len)) {
			if (header->nlmsg_seq != number)
				continue;
			if (header->nlmsg_type == NLMSG_ERROR)
				return -((struct nlmsgerr *)NLMSG_DATA(header))->error;
			if (dump && header->nlmsg_type == NLMSG_DONE)
				return 0;
		}
	}
}

static void shape(struct request *r, int type, int flags, int device, uint32_t parent)
{
	memset(r, 0, sizeof(*r));
	r->header = (struct nlmsghdr){ .nlmsg_len = NLMSG_LENGTH(sizeof(r->tc)), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags };
	r->tc = (struct tcmsg){ .tcm_family = AF_UNSPEC, .tcm_ifindex = device, .tcm_parent = parent, .tcm_handle = 0x00700000 };
}

/* Only errors that say what is wrong with a message, or that memory is short. */
static const int allowed[] = { 0, EINVAL, ERANGE, EBUSY, EEXIST, ENOENT, EOPNOTSUPP, ENOMEM, EMSGSIZE };

static int options(const char *kind, const char *device, const char *parent, const char *first, int count)
{
	struct timeval patience = { .tv_sec = 20 };
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), index = if_nametoindex(device);
	uint32_t above = strcmp(parent, "root") ? strtoul(parent, NULL, 16) << 16 | strtoul(strchr(parent, ':') + 1, NULL, 16) : TC_H_ROOT;
	int answers[200] = { 0 }, strange = 0;
	struct request r;

	if (s < 0 || !index || setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		die(device);
	seed(first);
	for (int n = 0; n < count; n++) {
		int how = below(8), error;
		uint8_t *end;

		if (how == 0) {
			shape(&r, RTM_DELQDISC, NLM_F_ACK, index, above);
			talk(s, &r, false);
		}
		shape(&r, RTM_NEWQDISC, NLM_F_ACK | (how < 2 ? NLM_F_CREATE | NLM_F_EXCL : how < 4 ? NLM_F_CREATE | NLM_F_REPLACE : 0),
		      index, above);
		end = attribute(r.bytes, TCA_KIND, kind, strlen(kind) + 1);
		if (!one_in(12)) {
			size_t len = random_options(end + RTA_LENGTH(0));
			struct rtattr nest = { .rta_len = RTA_LENGTH(len), .rta_type = TCA_OPTIONS | (one_in(12) ? 0 : NLA_F_NESTED) };

			memcpy(end, &nest, sizeof(nest));
			end += RTA_SPACE(len);
		}
		r.header.nlmsg_len = end - (uint8_t *)&r;
		error = talk(s, &r, false);
		answers[error < (int)COUNT_OF(answers) ? error : (int)COUNT_OF(answers) - 1]++;
		for (size_t k = 0; k <= COUNT_OF(allowed); k++) {
			if (k == COUNT_OF(allowed)) {
				printf("message %d: %s\n", n, strerror(error));
				strange++;
			} else if (error == allowed[k])
				break;
		}
		if (one_in(8)) {
			shape(&r, one_in(2) ? RTM_GETQDISC : RTM_GETTCLASS, NLM_F_DUMP, index, 0);
			talk(s, &r, true);
		}
	}
	for (size_t error = 0; error < COUNT_OF(answers); error++) {
		if (answers[error])
			printf("%d %s, ", answers[error], error ? strerror(error) : "accepted");
	}
	printf("%d strange\n", strange);
	/* A run in which nothing is accepted, or nothing refused, has tried nothing. */
	return strange || answers[0] < count / 100 || answers[EINVAL] < count / 100;
}

#endif
