// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options and statistics of the disciplines for tc (iproute2). Compiled once for each, with -DNW_PLUGIN_cocoa and so
 * on, to q_cocoa.so and so on. Names and units are those of the Rust disciplines; disciplines.h has them in tables.
 * Linux's own dualpi2 is one of them, with the options that tc has for it since iproute2 6.18.
 *
 * tc finds the plug-ins in its own directory, or in the one that the environment variable TC_LIB_DIR names.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "disciplines.h"
#include "iproute2.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct unit {
	const char *name;
	double factor;
};

static const struct unit percent[] = { { "", 1 }, { "%", 1 }, { NULL, 0 } };
static const struct unit packets[] = { { "", 1 }, { "p", 1 }, { NULL, 0 } };
static const struct unit numbers[] = { { "", 1 }, { NULL, 0 } };
static const struct unit sizes[] = {
	{ "", 1 }, { "b", 1 }, { "kb", 1e3 }, { "mb", 1e6 }, { "gb", 1e9 },
	{ "kib", 1 << 10 }, { "mib", 1 << 20 }, { "gib", 1 << 30 }, { NULL, 0 },
};
/* The same without the empty unit, which is that of packets. */
static const struct unit *const sizes_with_unit = sizes + 1, *const packets_with_unit = packets + 1;
static const struct unit times[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 } };
static const struct unit rates[] = {
	{ "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 }, { "tbit", 1e12 }, { NULL, 0 },
};

/* A number that is not negative, and its unit. */
static bool quantity(const char *text, const struct unit *units, double *value)
{
	char *end;
	double number;

	if (*text != '.' && (*text < '0' || *text > '9'))
		return false;
	errno = 0;
	number = strtod(text, &end);
	if (errno || !isfinite(number))
		return false;
	for (; units->name; units++) {
		if (!strcasecmp(end, units->name)) {
			*value = number * units->factor;
			return true;
		}
	}
	return false;
}

/* The same as a whole number of at most `most`. */
static bool whole(const char *text, const struct unit *units, double most, uint64_t *value)
{
	double number;

	if (!quantity(text, units, &number) || number > most || number != floor(number))
		return false;
	*value = (uint64_t)number;
	return true;
}

static const char *allowed(enum kind kind)
{
	switch (kind) {
	case PACKETS:
		return "a number of packets such as 100p";
	case STEP:
		return "a time or packets, such as 1ms or 5p";
	case LIMIT:
		return "packets or bytes, such as 100p or 45KB";
	case BYTES:
		return "a size below 4GiB such as 1500B, 64KB, 32MiB";
	case BYTES64:
		return "a size such as 1500B, 64KB, 32MiB";
	case NUMBER:
		return "a whole number";
	case TIME:
		return "a time such as 5ms, 1.5s, 200us";
	case MICROSECONDS:
		return "a time in whole microseconds such as 5ms, 1.5s, 200us";
	case RATE:
		return "a rate such as 20mbit, 1gbit, 256kbit";
	case FACTOR:
	case CONGESTION:
	case GAIN:
		return "a number such as 1.25";
	case FLAG:
		return "true or false";
	case SMALL:
		return "a whole number up to 255";
	case PERCENT:
		return "a number of percent, up to 100";
	case LIMIT_BYTES:
	case WORD:
		return "no value";
	case CHOICE:
		break;
	}
	return "";
}

/* The place of a word among others, which have blanks between them. */
static bool place_of(const char *text, const char *words, uint64_t *place)
{
	size_t len = strlen(text);
	uint64_t n = 0;

	for (; words && len; words = strchr(words, ' '), n++) {
		words += *words == ' ';
		if (!strncmp(words, text, len) && (!words[len] || words[len] == ' ')) {
			*place = n;
			return true;
		}
	}
	return false;
}

/* What an option takes, as a sentence's end. */
static const char *takes(const struct option *option)
{
	static char text[128];
	size_t len = 0;

	for (const char *at = option->words; at && *at && len < sizeof(text) - 8; at++) {
		if (*at == ' ')
			len += (size_t)sprintf(text + len, " or ");
		else
			text[len++] = *at;
	}
	text[len] = 0;
	snprintf(text + len, sizeof(text) - len, "%s%s", len && option->kind != CHOICE ? " or " : "", allowed(option->kind));
	return text;
}

static bool parse_flag(const char *text, uint64_t *value)
{
	static const char *const yes[] = { "true", "on", "yes", "1" }, *const no[] = { "false", "off", "no", "0" };

	for (size_t n = 0; n < COUNT_OF(yes); n++) {
		if (!strcmp(text, yes[n]) || !strcmp(text, no[n])) {
			*value = !strcmp(text, yes[n]);
			return true;
		}
	}
	return false;
}

static bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && !*end && *value <= UINT32_MAX;
}

static void add(struct nlmsghdr *n, int attribute, uint64_t value, size_t bytes)
{
	uint32_t narrow = (uint32_t)value;
	uint8_t small = (uint8_t)value;

	addattr_l(n, 1024, attribute,
		  bytes == sizeof(value) ? (void *)&value : bytes == sizeof(narrow) ? (void *)&narrow : (void *)&small,
		  (int)bytes);
}

/*
 * Reads a value and appends its attribute. The kernel says what lies beyond its bounds; here it must fit the
 * attribute.
 */
static bool parse(const struct option *option, const char *text, struct nlmsghdr *n)
{
	size_t bytes = sizeof(uint32_t);
	bool wide = false, good = false;
	int attribute = option->attribute;
	uint64_t value = 0, none = 0;
	double number;

	if (place_of(text, option->words, &value)) {
		wide = option->kind == BYTES64 || option->kind == RATE;
		good = true;
	} else {
		switch (option->kind) {
		case PACKETS:
			good = whole(text, packets, UINT32_MAX, &value);
			break;
		case LIMIT:
			good = whole(text, packets, UINT32_MAX, &value);
			if (!good && whole(text, sizes_with_unit, 1e15, &value) && value) {
				good = wide = true;
				attribute = option->other;
			}
			break;
		case BYTES:
			good = whole(text, sizes, UINT32_MAX, &value);
			break;
		case BYTES64:
			good = wide = whole(text, sizes, 1e15, &value);
			break;
		case NUMBER:
			good = parse_number(text, &value);
			break;
		case TIME:
			good = wide = whole(text, times, 1e15, &value);
			break;
		case RATE:
			good = wide = whole(text, rates, 1e15, &value);
			break;
		case FACTOR:
			good = quantity(text, numbers, &number) && number <= 4e6;
			value = good ? (uint64_t)(number * 1024) : 0;
			break;
		case CONGESTION:
			good = wide = quantity(text, numbers, &number) && number >= 1 && number <= 4e6;
			value = good ? (uint64_t)((number - 1) * 4294967296.0) : 0;
			break;
		case FLAG:
			good = parse_flag(text, &value);
			break;
		case STEP:
			good = whole(text, packets_with_unit, UINT32_MAX, &value);
			if (good) {
				attribute = option->other;
				break;
			}
			/* fall through */
		case MICROSECONDS:
			good = whole(text, times, UINT32_MAX * 1e3, &value) && !(value % 1000);
			value /= 1000;
			break;
		case GAIN:
			good = quantity(text, numbers, &number) && number * 256 <= UINT32_MAX;
			value = good ? (uint64_t)round(number * 256) : 0;
			break;
		case SMALL:
			good = whole(text, numbers, 255, &value);
			bytes = sizeof(uint8_t);
			break;
		case PERCENT:
			good = whole(text, percent, 100, &value);
			bytes = sizeof(uint8_t);
			break;
		case CHOICE:
		case LIMIT_BYTES:
		case WORD:
			break;
		}
	}
	if (!good)
		return false;
	/* The number of packets counts when there is no limit in bytes. */
	if (option->kind == LIMIT && !wide)
		addattr_l(n, 1024, option->other, &none, 8);
	add(n, attribute, value, wide ? sizeof(value) : bytes);
	return true;
}

static void explain(void)
{
	fprintf(stderr, "Usage: ... " NAME);
	for (size_t n = 0; n < COUNT_OF(options); n++) {
		if (options[n].name)
			fprintf(stderr, options[n].kind == WORD ? " [ %s ]" : " [ %s VALUE ]", options[n].name);
	}
	fprintf(stderr, "\n");
	for (size_t n = 0; n < COUNT_OF(options); n++) {
		if (options[n].name)
			fprintf(stderr, "  %-18s %s\n", options[n].name, takes(&options[n]));
	}
}

static int parse_options(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n, const char *dev)
{
	struct rtattr *nest = addattr_nest(n, 1024, TCA_OPTIONS | NLA_F_NESTED);

	(void)qu, (void)dev;
	while (argc > 0) {
		const struct option *option = NULL;

		if (!strcmp(*argv, "help")) {
			explain();
			return -1;
		}
		for (size_t i = 0; i < COUNT_OF(options); i++) {
			if (options[i].name && !strcmp(*argv, options[i].name))
				option = &options[i];
		}
		if (!option) {
			fprintf(stderr, NAME ": there is no option \"%s\"\n", *argv);
			explain();
			return -1;
		}
		if (option->kind == WORD) {
			add(n, option->attribute, (uint64_t)option->other, sizeof(uint8_t));
			argc--;
			argv++;
			continue;
		}
		if (argc < 2 || !parse(option, argv[1], n)) {
			fprintf(stderr, NAME ": %s takes %s, not \"%s\"\n", option->name, takes(option), argc < 2 ? "" : argv[1]);
			return -1;
		}
		argc -= 2;
		argv += 2;
	}
	addattr_nest_end(n, nest);
	return 0;
}

/* The largest unit in which a number is whole. */
static void print_in_unit(const char *name, const struct unit *units, uint64_t value)
{
	const struct unit *best = units;
	char text[64];

	for (; units->name; units++) {
		if (units->factor >= best->factor && value && !(value % (uint64_t)units->factor))
			best = units;
	}
	snprintf(text, sizeof(text), "%s %llu%s ", name, (unsigned long long)(value / (uint64_t)best->factor), best->name);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
	print_color_u64(PRINT_JSON, COLOR_NONE, name, NULL, value);
}

static void print_with(const char *name, const char *unit, uint64_t value)
{
	char format[64];

	snprintf(format, sizeof(format), "%s %%llu%s ", name, unit);
	print_color_u64(PRINT_ANY, COLOR_NONE, name, format, value);
}

static void print_factor(const char *name, double value)
{
	char format[64];

	snprintf(format, sizeof(format), "%s %%.6g ", name);
	print_color_float(PRINT_ANY, COLOR_NONE, name, format, value);
}

static void print_word(const char *name, const char *word)
{
	char format[64];

	snprintf(format, sizeof(format), "%s %%s ", name);
	print_color_string(PRINT_ANY, COLOR_NONE, name, format, word);
}

static void print_alone(const char *name)
{
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", name);
	print_color_bool(PRINT_JSON, COLOR_NONE, name, NULL, true);
}

static void print_option(const struct option *option, uint64_t value, uint64_t other)
{
	char format[64];
	uint64_t n = 0;

	for (const char *word = option->words; word; word = strchr(word, ' '), n++) {
		word += *word == ' ';
		if (n == value) {
			snprintf(format, sizeof(format), "%.*s", (int)strcspn(word, " "), word);
			print_word(option->name, format);
			return;
		}
	}
	switch (option->kind) {
	case LIMIT:
		if (other) {
			snprintf(format, sizeof(format), "%s %%lluB ", option->name);
			print_color_u64(PRINT_ANY, COLOR_NONE, "limit_bytes", format, other);
			break;
		}
		print_with(option->name, "p", value);
		break;
	case PACKETS:
		print_with(option->name, "p", value);
		break;
	case BYTES:
	case BYTES64:
		print_with(option->name, "B", value);
		break;
	case NUMBER:
		print_with(option->name, "", value);
		break;
	case TIME:
		print_in_unit(option->name, times, value);
		break;
	case RATE:
		print_in_unit(option->name, rates, value);
		break;
	case FACTOR:
		print_factor(option->name, (double)value / 1024);
		break;
	case CONGESTION:
		print_factor(option->name, 1 + (double)value / 4294967296.0);
		break;
	case FLAG:
		snprintf(format, sizeof(format), "%s %%s ", option->name);
		print_color_bool(PRINT_ANY, COLOR_NONE, option->name, format, value);
		break;
	case STEP:
		if (other) {
			snprintf(format, sizeof(format), "%s %%llup ", option->name);
			print_color_u64(PRINT_ANY, COLOR_NONE, "step_packets", format, other);
			break;
		}
		/* fall through */
	case MICROSECONDS:
		print_in_unit(option->name, times, value * 1000);
		break;
	case GAIN:
		print_factor(option->name, (double)value / 256);
		break;
	case SMALL:
		print_with(option->name, "", value);
		break;
	case PERCENT:
		print_with(option->name, "%%", value);
		break;
	case CHOICE:
	case LIMIT_BYTES:
		break;
	case WORD:
		if (value == (uint64_t)option->other)
			print_alone(option->name);
		break;
	}
}

static uint64_t value_of(const struct rtattr *attribute)
{
	uint64_t wide = 0;
	uint32_t narrow = 0;
	uint8_t small;

	if (!attribute)
		return 0;
	if (RTA_PAYLOAD(attribute) == sizeof(wide)) {
		memcpy(&wide, RTA_DATA(attribute), sizeof(wide));
		return wide;
	}
	if (RTA_PAYLOAD(attribute) == sizeof(small)) {
		memcpy(&small, RTA_DATA(attribute), sizeof(small));
		return small;
	}
	if (RTA_PAYLOAD(attribute) == sizeof(narrow))
		memcpy(&narrow, RTA_DATA(attribute), sizeof(narrow));
	return narrow;
}

static int print_options(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[END] = { NULL }, *attribute;
	int left;

	(void)qu, (void)f;
	if (!opt)
		return 0;
	left = (int)RTA_PAYLOAD(opt);
	for (attribute = RTA_DATA(opt); RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		int type = attribute->rta_type & NLA_TYPE_MASK;

		if (type < END)
			tb[type] = attribute;
	}
	for (size_t n = 0; n < COUNT_OF(options); n++) {
		const struct rtattr *own = tb[options[n].attribute], *other = tb[options[n].other];

		if (options[n].name && (own || (options[n].kind == STEP && other)))
			print_option(&options[n], value_of(own), value_of(other));
	}
	return 0;
}

static void print_statistic(const struct statistic *statistic, uint64_t value)
{
	static const char *const decisions[] = { "none", "grew", "began_anew", "judged", "next_interval" };
	char format[64];

	switch (statistic->shown) {
	case COUNT:
		print_with(statistic->name, "", value);
		break;
	case SIGNED:
		snprintf(format, sizeof(format), "%s %%lld ", statistic->name);
		print_color_s64(PRINT_ANY, COLOR_NONE, statistic->name, format,
				sizeof(number_t) == sizeof(value) ? (int64_t)value : (int32_t)value);
		break;
	case PARTS:
		print_factor(statistic->name, (double)value / 1024);
		break;
	case NS:
		snprintf(format, sizeof(format), "%s %.3fms ", statistic->name, (double)value / 1e6);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", format);
		print_color_u64(PRINT_JSON, COLOR_NONE, statistic->name, NULL, value);
		break;
	case US:
		snprintf(format, sizeof(format), "%s %.3fms ", statistic->name, (double)value / 1e3);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", format);
		print_color_u64(PRINT_JSON, COLOR_NONE, statistic->name, NULL, value);
		break;
	case FRACTION:
		print_factor(statistic->name, (double)value / UINT32_MAX);
		break;
	case DECISION:
		print_word(statistic->name, value < COUNT_OF(decisions) ? decisions[value] : "unknown");
		break;
	}
}

static int print_statistics(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	size_t count = COUNT_OF(statistics), numbers;
	const struct statistic *table = statistics;
	number_t value;

	(void)qu, (void)f;
	if (!xstats || RTA_PAYLOAD(xstats) < sizeof(value))
		return 0;
	numbers = RTA_PAYLOAD(xstats) / sizeof(value);
	memcpy(&value, RTA_DATA(xstats), sizeof(value));
	if (KNOWS_FLOWS && value == 1) {
		table = of_flow;
		count = COUNT_OF(of_flow);
	}
	for (size_t n = 0; n < count; n++) {
		/* An older module has fewer. */
		if (!table[n].name || (size_t)table[n].index >= numbers)
			continue;
		memcpy(&value, (const char *)RTA_DATA(xstats) + table[n].index * sizeof(value), sizeof(value));
		if (table[n].begins) {
			if (n)
				print_nl();
			print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "  ");
		}
		print_statistic(&table[n], value);
	}
	return 0;
}

struct qdisc_util UTIL = {
	.id = NAME,
	.parse_qopt = parse_options,
	.print_qopt = print_options,
	.print_xstats = print_statistics,
};
