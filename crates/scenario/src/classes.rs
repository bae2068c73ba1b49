//! Classes of a hop, as Linux's `htb` has them.
use crate::error::ScenarioError;
use crate::forms::{CodePoint, CodePoints, Kind, Maybe, NAME, within};
use crate::keys::{Rules, Table as _, keys};
use crate::model::{Hop, RateSpec};
use crate::parse::{Context, Section};
use narrows_core::htb::{MOST_CLASSES, MOST_LEVELS};
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::{Bytes, Dscp, Rate};
use std::collections::{HashMap, HashSet};

keys! {
    /// A part of a hop's rate, which borrows what others leave: [classes](#classes).
    pub struct Class, "hop.class", "[[hop.class]]" {
        /// Unique name in the hop.
        pub name: String [needed] = String::new(), Label, NAME;
        /// Its parent, a class further up in the file.
        pub parent: Option<String> ["the link"] = None, Algorithm, Maybe(NAME);
        /// What it always has. The classes of a parent, or of the link, have no more together than that has.
        pub rate: Rate [needed] = Rate::ZERO, Algorithm, within(Rate::kbit(8), Rate::gbit(1000));
        /// What it has at most, with what it borrows; not less than the rate.
        pub ceil: Rate ["the rate"] = Rate::ZERO, Algorithm, within(Rate::kbit(8), Rate::gbit(1000));
        /// Bytes that it may send back to back at its rate after a pause.
        pub burst: Bytes = Bytes(1600), Algorithm, within(Bytes(1), Bytes(1_000_000_000));
        /// The same at its ceiling.
        pub cburst: Bytes = Bytes(1600), Algorithm, within(Bytes(1), Bytes(1_000_000_000));
        /// Among those that may send by their own rates, and among those that borrow, the lowest number comes first.
        pub prio: u32 = 0, Algorithm, within(0, 7);
        /// Bytes that it sends in its turn, among equals.
        pub quantum: Bytes ["what its rate carries in 100 ms, 1 to 200 kB"] = Bytes(0), Algorithm, within(Bytes(1), Bytes(200_000));
        /// [Queue discipline](queues.md) of a class that is nobody's parent.
        pub queue: Option<QueueConfig> ["the hop's"] = None, Algorithm, Maybe(Kind);
        /// Code points of the packets that it takes. The one class without any that is nobody's parent takes all others.
        pub dscp: Vec<Dscp> = Vec::new(), Algorithm, CodePoints(CodePoint);
    }
}

impl Class {
    /// A class of the link that borrows nothing; its queue is the hop's, and it takes what no other class takes.
    pub fn new(name: impl Into<String>, rate: Rate) -> Class {
        Class { name: name.into(), rate, ceil: rate, quantum: quantum(rate), ..Class::blank() }
    }
}

impl Rules for Class {
    fn settle(&mut self, section: &Section<'_>, _: &Context<'_>) -> Result<(), ScenarioError> {
        if section.item("ceil").is_none() {
            self.ceil = self.rate;
        }
        if section.item("quantum").is_none() {
            self.quantum = quantum(self.rate);
        }
        Ok(())
    }
}

/// `tc`'s `r2q 10`, within the kernel's bounds.
fn quantum(rate: Rate) -> Bytes {
    Bytes((rate.as_bps() / 80).clamp(1000, 200_000))
}

impl Hop {
    /// The class above each, by its number; none below the link itself.
    pub fn parents(&self) -> Vec<Option<usize>> {
        let numbers: HashMap<&str, usize> =
            self.classes.iter().enumerate().map(|(n, c)| (c.name.as_str(), n)).collect();
        self.classes.iter().map(|class| numbers.get(class.parent.as_deref()?).copied()).collect()
    }

    /// What schedules its packets: its queue, or the tree of its classes.
    pub fn discipline(&self) -> String {
        let classes = self.classes.len();
        if classes == 0 { self.queue.to_string() } else { format!("htb:classes={classes}") }
    }

    /// Whether each class is a leaf, with a queue.
    pub fn leaves(&self) -> Vec<bool> {
        let mut leaves = vec![true; self.classes.len()];
        self.parents().into_iter().flatten().for_each(|parent| leaves[parent] = false);
        leaves
    }

    /// The queue of a class that is a leaf, and the link that it is made for: its rate is the ceiling.
    pub fn queue_in<'a>(&'a self, class: &'a Class, link: &LinkHint) -> (&'a QueueConfig, LinkHint) {
        (class.queue.as_ref().unwrap_or(&self.queue), LinkHint { rate: class.ceil.min(link.rate), ..*link })
    }

    /// The code points of classes, each with the number of its class.
    pub fn points(&self) -> impl Iterator<Item = (Dscp, usize)> {
        let of = |(number, class): (usize, &'_ Class)| class.dscp.clone().into_iter().map(move |point| (point, number));
        self.classes.iter().enumerate().flat_map(of)
    }

    /// The number of the class that takes the packets of a code point; none without classes.
    pub fn leaf_of(&self, point: Dscp) -> Option<usize> {
        self.classes.iter().position(|class| class.dscp.contains(&point)).or_else(|| self.default_leaf())
    }

    /// The queue into which packets of a code point go.
    pub fn queue_of(&self, point: Dscp) -> &QueueConfig {
        let class = self.leaf_of(point).map(|leaf| &self.classes[leaf]);
        class.and_then(|class| class.queue.as_ref()).unwrap_or(&self.queue)
    }

    /// The number of the leaf that takes the packets of no other.
    pub fn default_leaf(&self) -> Option<usize> {
        let leaves = self.leaves();
        (0..leaves.len()).find(|&n| leaves[n] && self.classes[n].dscp.is_empty())
    }
}

/// Checks the classes of a hop with each other. The message is about the key `class`.
pub(crate) fn check(hop: &Hop) -> Result<(), String> {
    let classes = &hop.classes;
    if classes.is_empty() {
        return Ok(());
    }
    if classes.len() > MOST_CLASSES {
        return Err(format!("{} classes; allowed: at most {MOST_CLASSES}", classes.len()));
    }
    let RateSpec::Schedule(steps) = &hop.rate else {
        return Err("classes share a rate; allowed: a hop with a rate or with steps of it, not a trace".to_owned());
    };
    if hop.mechanism.is_some() {
        return Err("classes share a rate; allowed: a hop without a mechanism".to_owned());
    }
    for class in classes {
        let of = |message: String| format!("class \"{}\": {message}", class.name);
        Class::KEYS.iter().try_for_each(|key| key.check(class)).map_err(of)?;
    }
    tree(hop)?;
    let link = steps.iter().map(|&(_, rate)| rate).min().unwrap_or_default();
    shares(hop, link)?;
    taken(hop)
}

/// Names are unique, parents come first, and no way is too long.
fn tree(hop: &Hop) -> Result<(), String> {
    let mut depths: HashMap<&str, usize> = HashMap::new();
    for class in &hop.classes {
        let of = |message: &str| Err(format!("class \"{}\": {message}", class.name));
        let above = match class.parent.as_deref().map(|parent| depths.get(parent)) {
            Some(None) => {
                let known =
                    hop.classes.iter().map(|other| other.name.as_str()).filter(|name| depths.contains_key(name));
                let known = known.collect::<Vec<_>>().join(", ");
                return of(&format!(
                    "no class \"{}\" further up; allowed: {}",
                    class.parent.as_deref().unwrap_or_default(),
                    if known.is_empty() { "no parent" } else { &known }
                ));
            }
            Some(Some(depth)) => *depth,
            None => 0,
        };
        if above == MOST_LEVELS {
            return of(&format!("too far from the link; allowed: at most {MOST_LEVELS} classes below each other"));
        }
        if depths.insert(&class.name, above + 1).is_some() {
            return of("its name is taken; names are unique");
        }
    }
    Ok(())
}

/// Checks that the rates of a parent's classes fit into its own, and that no class has a ceiling below its rate.
fn shares(hop: &Hop, link: Rate) -> Result<(), String> {
    let parents = hop.parents();
    if let Some(class) = hop.classes.iter().find(|class| class.ceil < class.rate) {
        let (name, ceil, rate) = (&class.name, class.ceil, class.rate);
        return Err(format!("class \"{name}\": ceil cannot be \"{ceil}\"; allowed: at least its rate of {rate}"));
    }
    for parent in [None].into_iter().chain((0..hop.classes.len()).map(Some)) {
        let own = parent.map_or(link, |parent| hop.classes[parent].rate);
        let children = hop.classes.iter().zip(&parents).filter(|&(_, &of)| of == parent);
        let sum: u128 = children.map(|(class, _)| u128::from(class.rate.as_bps())).sum();
        if sum > u128::from(own.as_bps()) {
            let sum = Rate::bit(u64::try_from(sum).unwrap_or(u64::MAX));
            let whose =
                parent.map_or("the link".to_owned(), |parent| format!("class \"{}\"", hop.classes[parent].name));
            return Err(format!("the classes of {whose} have {sum} together; allowed: at most its {own}"));
        }
    }
    Ok(())
}

/// Every packet has one class.
fn taken(hop: &Hop) -> Result<(), String> {
    let leaves = hop.leaves();
    let mut points = HashSet::new();
    for (class, is_leaf) in hop.classes.iter().zip(&leaves) {
        let of = |message: String| Err(format!("class \"{}\": {message}", class.name));
        if !is_leaf && (class.queue.is_some() || !class.dscp.is_empty()) {
            return of("it is a parent, and has neither queue nor dscp; allowed in a class that is nobody's".to_owned());
        }
        if let Some(point) = class.dscp.iter().find(|point| !points.insert(point.0)) {
            return of(format!("dscp {} is taken; allowed: one that no class of the hop has", point.0));
        }
        let queue = class.queue.as_ref().unwrap_or(&hop.queue);
        if *is_leaf && queue.traits().shapes_to.is_some() {
            return of(format!("{queue} shapes; allowed: a queue without a rate of its own"));
        }
    }
    let others = hop.classes.iter().zip(&leaves).filter(|&(class, &is_leaf)| is_leaf && class.dscp.is_empty()).count();
    if others == 1 {
        Ok(())
    } else {
        Err(format!(
            "{others} classes take the packets of all other code points; allowed: one without dscp that is nobody's parent"
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::{NoTraces, Scenario};

    /// The message for a hop of 10 Mbit/s with these classes: their names, and further keys.
    fn refused(classes: &[(&str, &str)]) -> String {
        let class = |(name, keys): &(&str, &str)| format!("[[hop.class]]\nname = \"{name}\"\n{keys}\n");
        let text = format!(
            "[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = \"fifo\"\n{}[[flow]]\nname = \"f\"\nrtt = \"20ms\"\n",
            classes.iter().map(class).collect::<String>()
        );
        match Scenario::parse(&text, "S.toml", &NoTraces) {
            Ok(scenario) => {
                assert_eq!(Scenario::parse(&scenario.to_toml(), "S.toml", &NoTraces), Ok(scenario));
                "allowed".to_owned()
            }
            Err(error) => error.message,
        }
    }

    #[test]
    fn a_tree_that_does_not_fit_together_is_refused() {
        const REST: (&str, &str) = ("rest", "rate = \"5mbit\"\nceil = \"10mbit\"");
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[REST], "allowed"),
            (&[REST, ("voice", "rate = \"1mbit\"\nqueue = \"fq_codel\"\ndscp = [\"ef\", 44]")], "allowed"),
            (&[("all", "rate = \"9mbit\""), ("rest", "parent = \"all\"\nrate = \"5mbit\"")], "allowed"),
            (&[REST, ("rest", "rate = \"1mbit\"\ndscp = [1]")], "class \"rest\": its name is taken; names are unique"),
            (
                &[("a", "parent = \"rest\"\nrate = \"1mbit\"\ndscp = [1]"), REST],
                "class \"a\": no class \"rest\" further up; allowed: no parent",
            ),
            (
                &[REST, ("a", "rate = \"6mbit\"\ndscp = [1]")],
                "the classes of the link have 11mbit together; allowed: at most its 10mbit",
            ),
            (
                &[("all", "rate = \"3mbit\""), ("rest", "parent = \"all\"\nrate = \"4mbit\"")],
                "the classes of class \"all\" have 4mbit together; allowed: at most its 3mbit",
            ),
            (
                &[("rest", "rate = \"3mbit\"\nceil = \"2mbit\"")],
                "class \"rest\": ceil cannot be \"2mbit\"; allowed: at least its rate of 3mbit",
            ),
            (
                &[REST, ("a", "rate = \"1mbit\"\ndscp = [1]"), ("b", "rate = \"1mbit\"\ndscp = [2, 1]")],
                "class \"b\": dscp 1 is taken; allowed: one that no class of the hop has",
            ),
            (
                &[REST, ("a", "rate = \"1mbit\"")],
                "2 classes take the packets of all other code points; allowed: one without dscp that is nobody's parent",
            ),
            (
                &[("a", "rate = \"1mbit\"\ndscp = [1]")],
                "0 classes take the packets of all other code points; allowed: one without dscp that is nobody's parent",
            ),
            (
                &[("all", "rate = \"9mbit\"\nqueue = \"codel\""), ("rest", "parent = \"all\"\nrate = \"5mbit\"")],
                "class \"all\": it is a parent, and has neither queue nor dscp; allowed in a class that is nobody's",
            ),
            (
                &[("rest", "rate = \"5mbit\"\nqueue = { kind = \"cake\", bandwidth = \"4mbit\" }")],
                "class \"rest\": cake:bandwidth=4mbit shapes; allowed: a queue without a rate of its own",
            ),
        ];
        for (classes, message) in cases {
            assert_eq!(&refused(classes), message, "{classes:?}");
        }
    }

    #[test]
    fn a_tree_has_an_end() {
        let names: Vec<String> = (0..9).map(|n| n.to_string()).collect();
        let keys: Vec<String> = (0..9).map(|n| format!("parent = \"{}\"\nrate = \"1mbit\"", n - 1)).collect();
        let mut deep: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(keys.iter().map(String::as_str)).collect();
        deep[0].1 = "rate = \"1mbit\"";
        assert_eq!(refused(&deep[..7]), "allowed");
        assert_eq!(refused(&deep), "class \"7\": too far from the link; allowed: at most 7 classes below each other");
        let names: Vec<String> = (0..64).map(|n| format!("c{n}")).collect();
        let keys: Vec<String> = (0..64).map(|n| format!("rate = \"10kbit\"\ndscp = [{n}]")).collect();
        let mut wide: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(keys.iter().map(String::as_str)).collect();
        wide[0].1 = "rate = \"10kbit\"";
        assert_eq!(refused(&wide[..63]), "allowed");
        assert_eq!(refused(&wide), "64 classes; allowed: at most 63");
    }
}
