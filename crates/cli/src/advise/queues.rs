//! The queues that can be deployed on a router, and the commands that do it.
use narrows_core::Rate;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;

/// A queue, and what it takes to have it.
pub(super) struct Deployable {
    /// Its name in the registry.
    pub(super) name: &'static str,
    kind: Kind,
    /// What it needs, in words.
    pub(super) needs: &'static str,
}

enum Kind {
    /// In stock Linux, below a shaper; its name for `tc`, and whether `sqm-scripts` knows it.
    Leaf { tc: &'static str, sqm: bool },
    /// In stock Linux, with a shaper of its own.
    Cake,
    /// Ours, by `narrows qdisc attach`.
    Attached,
    /// Ours, as a kernel module below a shaper.
    Module,
}

const fn leaf(name: &'static str, tc: &'static str, sqm: bool, needs: &'static str) -> Deployable {
    Deployable { name, kind: Kind::Leaf { tc, sqm }, needs }
}

/// The candidates; of equals the first is preferred. Left out are `red` (its thresholds depend on the link), `fq` (for hosts that send),
/// `cobalt` (Linux has it only within `cake`) and `gsp` (Linux does not have it).
pub(super) const ALL: [Deployable; 12] = [
    Deployable { name: "cake", kind: Kind::Cake, needs: "Linux 4.19" },
    leaf("fq_codel", "fq_codel", true, "Linux 3.5"),
    leaf("fq_pie", "fq_pie", false, "Linux 5.6"),
    leaf("sfq", "sfq", true, "Linux"),
    leaf("codel", "codel", true, "Linux 3.5"),
    leaf("pie", "pie", true, "Linux 3.14"),
    leaf("dualpi2", "dualpi2", false, "Linux 6.17"),
    leaf("fifo", "pfifo limit 1000", false, "Linux"),
    Deployable { name: "cocoa", kind: Kind::Attached, needs: "Linux 6.16 with CONFIG_NET_SCH_BPF" },
    Deployable { name: "cp", kind: Kind::Attached, needs: "Linux 6.16 with CONFIG_NET_SCH_BPF" },
    Deployable { name: "fq_cp", kind: Kind::Module, needs: "our kernel module, in crates/kernel/qdisc" },
    Deployable { name: "fq_codel_fair", kind: Kind::Module, needs: "our kernel module, in crates/kernel/qdisc" },
];

/// Commands under a heading.
#[derive(serde::Serialize)]
pub(super) struct Recipe {
    pub(super) title: String,
    pub(super) lines: Vec<String>,
}

impl Deployable {
    /// The queue with its defaults.
    pub(super) fn config(&self) -> Option<QueueConfig> {
        QueueConfig::named(self.name)
    }

    /// Is it part of Linux?
    pub(super) const fn is_stock(&self) -> bool {
        matches!(self.kind, Kind::Leaf { .. } | Kind::Cake)
    }

    /// The commands that put it on an interface, for these rates down and up.
    pub(super) fn recipes(&self, interface: &str, rates: [Rate; 2]) -> Vec<Recipe> {
        let kbit = rates.map(|rate| rate.as_bps() / 1000);
        let [down, up] = kbit;
        let ifb = ifb(interface);
        let shaped = |root: &dyn Fn(&str, u64) -> Vec<String>| {
            let mut lines = root(interface, up);
            lines.push(format!("ip link add name {ifb} type ifb"));
            lines.push(format!("ip link set dev {ifb} up"));
            lines.push(format!("tc qdisc replace dev {interface} handle ffff: ingress"));
            lines.push(format!(
                "tc filter replace dev {interface} parent ffff: protocol all prio 10 matchall action mirred egress redirect dev {ifb}"
            ));
            lines.extend(root(&ifb, down));
            lines
        };
        let recipe = |title: &str, lines: Vec<String>| Recipe { title: title.to_owned(), lines };
        match self.kind {
            Kind::Cake => vec![
                recipe(
                    "tc",
                    shaped(&|device, rate| {
                        vec![format!("tc qdisc replace dev {device} root cake bandwidth {rate}kbit nat")]
                    }),
                ),
                recipe("OpenWrt", sqm(interface, kbit, "cake", "piece_of_cake.qos")),
            ],
            Kind::Leaf { tc, sqm: in_sqm } => {
                let mut all = vec![recipe("tc", shaped(&|device, rate| below_htb(device, rate, tc)))];
                if in_sqm {
                    all.push(recipe("OpenWrt", sqm(interface, kbit, tc, "simplest.qos")));
                }
                all
            }
            Kind::Attached => vec![recipe(
                "narrows",
                vec![
                    format!("narrows qdisc attach {interface} {} --rate {up}kbit", self.name),
                    format!("narrows qdisc attach {interface} {} --rate {down}kbit --ifb", self.name),
                ],
            )],
            Kind::Module => vec![recipe("tc", shaped(&|device, rate| below_htb(device, rate, self.name)))],
        }
    }
}

/// The name that `sqm-scripts` gives the device for what an interface receives; names have at most 15 bytes.
fn ifb(interface: &str) -> String {
    let name = format!("ifb4{interface}");
    name.chars().take(15).collect()
}

fn below_htb(device: &str, kbit: u64, leaf: &str) -> Vec<String> {
    vec![
        format!("tc qdisc replace dev {device} root handle 1: htb default 1"),
        format!("tc class replace dev {device} parent 1: classid 1:1 htb rate {kbit}kbit"),
        format!("tc qdisc replace dev {device} parent 1:1 {leaf}"),
    ]
}

fn sqm(interface: &str, [down, up]: [u64; 2], qdisc: &str, script: &str) -> Vec<String> {
    let packages = if matches!(qdisc, "cake" | "fq_codel") { "sqm-scripts" } else { "sqm-scripts and kmod-sched" };
    let mut lines = vec![format!("# packages: {packages}"), "uci set sqm.advised=queue".to_owned()];
    let (down, up) = (down.to_string(), up.to_string());
    let options = [
        ("interface", interface),
        ("download", &down),
        ("upload", &up),
        ("qdisc", qdisc),
        ("script", script),
        ("linklayer", "none"),
        ("enabled", "1"),
    ];
    lines.extend(options.map(|(key, value)| format!("uci set sqm.advised.{key}='{value}'")));
    lines.push("uci commit sqm && /etc/init.d/sqm restart".to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_is_in_the_registry_and_has_commands() {
        for one in &ALL {
            assert!(one.config().is_some(), "{}", one.name);
            let recipes = one.recipes("wan", [Rate::mbit(50), Rate::mbit(10)]);
            let lines: Vec<&String> = recipes.iter().flat_map(|recipe| &recipe.lines).collect();
            let both = ["50000", "10000"].map(|rate| lines.iter().any(|line| line.contains(rate)));
            assert_eq!(both, [true, true], "{}: {lines:?}", one.name);
        }
    }

    #[test]
    fn the_commands_for_fq_codel_are_those_of_the_manuals() {
        let all = ALL
            .iter()
            .find(|one| one.name == "fq_codel")
            .expect("it is there")
            .recipes("eth0", [Rate::mbit(9), Rate::kbit(950)]);
        let wanted = "\
tc qdisc replace dev eth0 root handle 1: htb default 1
tc class replace dev eth0 parent 1: classid 1:1 htb rate 950kbit
tc qdisc replace dev eth0 parent 1:1 fq_codel
ip link add name ifb4eth0 type ifb
ip link set dev ifb4eth0 up
tc qdisc replace dev eth0 handle ffff: ingress
tc filter replace dev eth0 parent ffff: protocol all prio 10 matchall action mirred egress redirect dev ifb4eth0
tc qdisc replace dev ifb4eth0 root handle 1: htb default 1
tc class replace dev ifb4eth0 parent 1: classid 1:1 htb rate 9000kbit
tc qdisc replace dev ifb4eth0 parent 1:1 fq_codel";
        assert_eq!(all[0].lines.join("\n"), wanted);
        assert!(all[1].lines.contains(&"uci set sqm.advised.script='simplest.qos'".to_owned()));
        assert_eq!(ifb("enp0s31f6u1u2"), "ifb4enp0s31f6u1");
    }
}
