/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end of each module's source: options, and what the kernel calls. The module defines before the include:
 *
 *   NW_NAME, NW_PREFIX         its name, and what its names in params.h begin with
 *   NW_ABOUT                   a sentence
 *   NW_CLASSES                 its classes; nothing if it shows none
 *   struct NAME_sched_data     begins with a struct nw_shell
 *   NAME_enqueue, _dequeue, _reset, _destroy
 *   NAME_begin(sch)            zeroed data become an empty discipline
 *   NAME_alloc(sch, values)    the memory that these options ask for; 0 or an error
 *   NAME_set(sch, values, adding)  options are these from now on; under the qdisc's lock
 *   NAME_statistics(sch, s)    after those that all have; under the lock
 */
#define NW_TEXT(name) NW_TEXT_OF(name)
#define NW_TEXT_OF(name) #name
#define NW_END NW_ENUM(NW_PREFIX, A_END)

static const struct nw_option nw_options[NW_END] = { NW_ENUM(NW_PREFIX, PARAMS)(NW_OPTION) };
static struct nla_policy nw_option_policy[NW_END];

static int NW_OWN(apply)(struct Qdisc *sch, struct nlattr *opt, bool adding, struct netlink_ext_ack *extack)
{
	struct nw_shell *shell = qdisc_priv(sch);
	u64 values[NW_OPTIONS];
	int err;

	memcpy(values, shell->options, sizeof(values));
	err = nw_parse(opt, nw_options, nw_option_policy, NW_END, values, adding, extack);
	if (!err && adding)
		err = NW_OWN(alloc)(sch, values);
	if (err)
		return err;
	sch_tree_lock(sch);
	memcpy(shell->options, values, sizeof(values));
	NW_OWN(set)(sch, values, adding);
	sch->limit = values[NW_A_LIMIT];
	nw_tell(sch, shell);
	sch_tree_unlock(sch);
	return 0;
}

static int NW_OWN(change)(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	return NW_OWN(apply)(sch, opt, false, extack);
}

static int NW_OWN(init)(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	NW_OWN(begin)(sch);
	nw_shell_init(qdisc_priv(sch), nw_options, NW_END);
	return NW_OWN(apply)(sch, opt, true, extack);
}

static int NW_OWN(dump)(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct nw_shell *shell = qdisc_priv(sch);

	return nw_dump(skb, nw_options, NW_END, shell->options);
}

static int NW_OWN(dump_stats)(struct Qdisc *sch, struct gnet_dump *d)
{
	u64 s[NW_ENUM(NW_PREFIX, S_END)];

	sch_tree_lock(sch);
	nw_shell_statistics(qdisc_priv(sch), s);
	NW_OWN(statistics)(sch, s);
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, s, sizeof(s));
}

static struct Qdisc_ops nw_qdisc_ops __read_mostly = {
#ifdef NW_CLASSES
	.cl_ops = &NW_CLASSES,
#endif
	.id = NW_TEXT(NW_NAME),
	.priv_size = sizeof(struct NW_OWN(sched_data)),
	.enqueue = NW_OWN(enqueue),
	.dequeue = NW_OWN(dequeue),
	.peek = qdisc_peek_dequeued,
	.init = NW_OWN(init),
	.reset = NW_OWN(reset),
	.destroy = NW_OWN(destroy),
	.change = NW_OWN(change),
	.dump = NW_OWN(dump),
	.dump_stats = NW_OWN(dump_stats),
	.owner = THIS_MODULE,
};

static int __init nw_module_init(void)
{
	nw_policy_init(nw_option_policy, nw_options, NW_END);
	return register_qdisc(&nw_qdisc_ops);
}

static void __exit nw_module_exit(void)
{
	unregister_qdisc(&nw_qdisc_ops);
}

module_init(nw_module_init);
module_exit(nw_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION(NW_ABOUT " (" NW_TEXT(NW_NAME) ")");
MODULE_ALIAS("net-sch-" NW_TEXT(NW_NAME));
MODULE_ALIAS("sch_" NW_TEXT(NW_NAME));
