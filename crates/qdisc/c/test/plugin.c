// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plug-in of tc without tc, for tests/plugins: `plugin options WORD…` says which attributes become of the words, and
 * how tc would show them again; `plugin statistics NUMBER…` says how tc would show the kernel's numbers. Compiled with
 * -DNW_PLUGIN_cocoa and so on.
 */
#include <stdarg.h>

#include "../tc/q_narrows.c"

static union {
	struct nlmsghdr header;
	char bytes[1024];
} message;

int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen)
{
	struct rtattr *attribute = (void *)((char *)n + NLMSG_ALIGN(n->nlmsg_len));

	if ((int)(NLMSG_ALIGN(n->nlmsg_len) + RTA_SPACE(alen)) > maxlen)
		abort();
	attribute->rta_type = (unsigned short)type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(alen);
	if (alen)
		memcpy(RTA_DATA(attribute), data, (size_t)alen);
	n->nlmsg_len = NLMSG_ALIGN(n->nlmsg_len) + RTA_SPACE(alen);
	return 0;
}

struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type)
{
	struct rtattr *nest = (void *)((char *)n + NLMSG_ALIGN(n->nlmsg_len));

	addattr_l(n, maxlen, type, NULL, 0);
	return nest;
}

int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest)
{
	nest->rta_len = (unsigned short)((char *)n + n->nlmsg_len - (char *)nest);
	return 0;
}

static int shown(enum output_type type, const char *format, ...)
{
	va_list values;

	if (type == PRINT_JSON)
		return 0;
	va_start(values, format);
	vprintf(format, values);
	va_end(values);
	return 0;
}

int print_color_string(enum output_type type, enum color_attr color, const char *key, const char *format, const char *value)
{
	(void)color, (void)key;
	return shown(type, format, value);
}

int print_color_u64(enum output_type type, enum color_attr color, const char *key, const char *format, uint64_t value)
{
	(void)color, (void)key;
	return shown(type, format, (unsigned long long)value);
}

int print_color_s64(enum output_type type, enum color_attr color, const char *key, const char *format, int64_t value)
{
	(void)color, (void)key;
	return shown(type, format, (long long)value);
}

int print_color_float(enum output_type type, enum color_attr color, const char *key, const char *format, double value)
{
	(void)color, (void)key;
	return shown(type, format, value);
}

int print_color_bool(enum output_type type, enum color_attr color, const char *key, const char *format, bool value)
{
	(void)color, (void)key;
	return shown(type, format, value ? "true" : "false");
}

void print_nl(void)
{
	printf("\n");
}

static int show_options(int argc, char **argv)
{
	struct rtattr *nest = (void *)(message.bytes + NLMSG_HDRLEN), *attribute;
	int left;

	message.header.nlmsg_len = NLMSG_LENGTH(0);
	if (parse_options(NULL, argc, argv, &message.header, "dev"))
		return 1;
	left = (int)RTA_PAYLOAD(nest);
	for (attribute = RTA_DATA(nest); RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		printf("%u:%zu=%llu ", attribute->rta_type, (size_t)RTA_PAYLOAD(attribute),
		       (unsigned long long)value_of(attribute));
	printf("\n");
	print_options(NULL, stdout, nest);
	printf("\n");
	return 0;
}

static int show_statistics(int argc, char **argv)
{
	struct rtattr *nest = (void *)(message.bytes + NLMSG_HDRLEN);

	message.header.nlmsg_len = NLMSG_LENGTH(0);
	nest = addattr_nest(&message.header, sizeof(message), 0);
	for (int n = 0; n < argc; n++) {
		number_t value = (number_t)strtoll(argv[n], NULL, 0);

		memcpy((char *)RTA_DATA(nest) + (size_t)n * sizeof(value), &value, sizeof(value));
	}
	nest->rta_len = (unsigned short)RTA_LENGTH((size_t)argc * sizeof(number_t));
	print_statistics(NULL, stdout, nest);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 80)
		return 2;
	return (strcmp(argv[1], "options") ? show_statistics : show_options)(argc - 2, argv + 2);
}
