/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a plug-in of tc uses of iproute2, which installs no headers. tc resolves the functions when it loads the
 * plug-in. They and `struct qdisc_util` have been the same since iproute2 4.20.
 */
#ifndef NARROWS_IPROUTE2_H
#define NARROWS_IPROUTE2_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* tc looks for `NAME_qdisc_util` in `q_NAME.so`. */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt, bool *has);
};

/* Where a value is printed: as text, in JSON, or in whichever is asked for. */
enum output_type { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
/* enum color_attr has six colours before this. */
enum color_attr { COLOR_NONE = 6 };

int print_color_string(enum output_type type, enum color_attr color, const char *key, const char *format, const char *value);
int print_color_u64(enum output_type type, enum color_attr color, const char *key, const char *format, uint64_t value);
int print_color_s64(enum output_type type, enum color_attr color, const char *key, const char *format, int64_t value);
int print_color_float(enum output_type type, enum color_attr color, const char *key, const char *format, double value);
int print_color_bool(enum output_type type, enum color_attr color, const char *key, const char *format, bool value);
void print_nl(void);

int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);

#endif
