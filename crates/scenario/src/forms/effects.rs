//! What a hop does to packets besides queuing and delaying them, in `tc`'s words: those of `netem` and of `police`.
use super::{ANY, Form, FormSpec, SharePart, losses};
use crate::error::ScenarioError;
use crate::model::Scenario;
use crate::parse::{Context, Item};
use crate::schema;
use crate::tc;
use crate::write::{quoted, value};
use narrows_core::netem::{Chance, Loss, Reorder};
use narrows_core::params::{ParamValue as _, Unit};
use narrows_core::policer::{Exceed, Police};
use narrows_core::{Bytes, Rate};
use serde_json::{Value, json};

/// A value in `tc`'s words.
pub(crate) struct TcWords;

/// A type of value that has such words.
pub(crate) trait Worded: Sized {
    /// The kind of value in a word.
    const UNIT: &'static str;
    /// What is allowed.
    const ALLOWED: &'static str;
    /// Whether a bare number is a value, too: a share.
    const IS_SHARE: bool = true;

    /// The words as a regular expression, for the schema.
    fn pattern() -> String;

    /// The value of these words.
    fn of(words: &[&str]) -> Option<Self>;

    /// Its words.
    fn words(&self) -> String;

    /// The value as a bare number, if it can be written as one; another number is refused as a share.
    fn number(&self) -> Option<f64> {
        None
    }
}

impl<V: Worded> Form<V> for TcWords {
    fn spec(&self) -> FormSpec {
        FormSpec { range: Some(V::ALLOWED.to_owned()), ..FormSpec::new(V::UNIT, V::ALLOWED) }
    }

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<V, ScenarioError> {
        let number = || Form::<f64>::read(&ANY, item, cx).ok().filter(|_| V::IS_SHARE).map(|share| share.show());
        let text = item.as_str().map(str::to_owned).or_else(number);
        text.and_then(|text| read(&text)).ok_or_else(|| item.refuse(V::ALLOWED, ""))
    }

    /// Only what has words that mean it is legal.
    fn check(&self, key: &str, value: &V) -> Result<(), String> {
        let words = value.words();
        if read::<V>(&words).is_some() {
            Ok(())
        } else {
            Err(format!("{key} cannot be \"{words}\"; allowed: {}", V::ALLOWED))
        }
    }

    fn toml(&self, worded: &V, _: &Scenario) -> Option<String> {
        Some(worded.number().map_or_else(|| quoted(&worded.words()), |number| value(Unit::Number, &number.show())))
    }

    fn shown(&self, value: &V, _: &Scenario) -> String {
        value.words()
    }

    fn schema(&self) -> Value {
        let pattern = format!("^\\s*({})\\s*$", V::pattern());
        let words = schema::described("In tc's words.", json!({ "type": "string", "pattern": pattern }));
        if V::IS_SHARE {
            let upper = if V::of(&["1"]).is_some() { "maximum" } else { "exclusiveMaximum" };
            json!({ "anyOf": [{ "type": "number", "minimum": 0, upper: 1 }, words] })
        } else {
            words
        }
    }
}

/// A value from its words.
pub(crate) fn read<V: Worded>(text: &str) -> Option<V> {
    let text = text.to_ascii_lowercase().replace(" %", "%");
    V::of(&text.split_whitespace().collect::<Vec<_>>())
}

/// A probability: `1%`, `0.01`.
fn share(word: &str) -> Option<f64> {
    if word == "1" || word == "100%" { Some(1.0) } else { SharePart::parse(word).map(|share| share.0) }
}

/// A share below 1, as a regular expression.
const BELOW_ONE: &str = "(0?\\.[0-9]+|0|([0-9]+\\.?[0-9]*|\\.[0-9]+)\\s*%)";

/// A chance with its correlation, as a regular expression.
fn chance_pattern() -> String {
    format!("(1|{BELOW_ONE})(\\s+(1|{BELOW_ONE}))?")
}

/// A chance with its correlation.
fn chance(words: &[&str]) -> Option<Chance> {
    match *words {
        [one] => Some(Chance::of(share(one)?)),
        [one, correlation] => Some(Chance { share: share(one)?, correlation: share(correlation)? }),
        _ => None,
    }
}

fn chance_words(chance: &Chance) -> String {
    let share = chance.share.show();
    if chance.correlation > 0.0 { format!("{share} {}", chance.correlation.show()) } else { share }
}

impl Worded for Loss {
    const UNIT: &'static str = "loss";
    const ALLOWED: &'static str = "a share of at least 0 and less than 1, such as 0.01 or \"1%\"; with a correlation, \"1% 25%\"; \"gemodel P R 1-H 1-K\", such as \"gemodel 1% 10%\"; or { trace = \"FILE\" }, \"trace:FILE\"";

    fn pattern() -> String {
        let [gemodel, random] = ["gemodel", "random"].map(schema::any_case);
        format!("{gemodel}(\\s+(1|{BELOW_ONE})){{1,4}}|({random}\\s+)?{BELOW_ONE}(\\s+(1|{BELOW_ONE}))?")
    }

    fn of(words: &[&str]) -> Option<Loss> {
        match words {
            ["gemodel", shares @ ..] => {
                let shares: Vec<f64> = shares.iter().map(|word| share(word)).collect::<Option<_>>()?;
                let of = |p, r, bad, good| Some(Loss::Gemodel { p, r, bad, good });
                // tc's defaults: the Bernoulli model, and all packets of the bad state lost.
                match *shares {
                    [p] => of(p, 1.0 - p, 1.0, 0.0),
                    [p, r] => of(p, r, 1.0, 0.0),
                    [p, r, bad] => of(p, r, bad, 0.0),
                    [p, r, bad, good] => of(p, r, bad, good),
                    _ => None,
                }
            }
            ["random", words @ ..] | words => chance(words).filter(|chance| chance.share < 1.0).map(Loss::Random),
        }
    }

    fn words(&self) -> String {
        match self {
            Loss::Random(chance) => chance_words(chance),
            Loss::Gemodel { p, r, bad, good } => {
                format!("gemodel {} {} {} {}", p.show(), r.show(), bad.show(), good.show())
            }
            Loss::Trace(trace) => losses::shown(&trace.losses),
        }
    }

    fn number(&self) -> Option<f64> {
        self.independent()
    }
}

impl Worded for Chance {
    const UNIT: &'static str = "chance";
    const ALLOWED: &'static str = "a share from 0 to 1, such as 0.01 or \"1%\"; with a correlation, \"1% 25%\"";

    fn pattern() -> String {
        chance_pattern()
    }

    fn of(words: &[&str]) -> Option<Chance> {
        chance(words)
    }

    fn words(&self) -> String {
        chance_words(self)
    }

    fn number(&self) -> Option<f64> {
        (self.correlation == 0.0).then_some(self.share)
    }
}

impl Worded for Reorder {
    const UNIT: &'static str = "reordering";
    const ALLOWED: &'static str =
        "a share from 0 to 1, such as 0.25 or \"25%\"; with a correlation and a gap, \"25% 50% gap 5\"";

    fn pattern() -> String {
        format!("{}(\\s+{}\\s+[1-9][0-9]*)?", chance_pattern(), schema::any_case("gap"))
    }

    fn of(words: &[&str]) -> Option<Reorder> {
        let (words, gap) = match words {
            [words @ .., "gap", gap] => (words, gap.parse().ok().filter(|&gap: &u32| gap > 0)?),
            words => (words, 1),
        };
        Some(Reorder { chance: chance(words)?, gap })
    }

    fn words(&self) -> String {
        let chance = chance_words(&self.chance);
        if self.gap > 1 { format!("{chance} gap {}", self.gap) } else { chance }
    }
}

impl Worded for Police {
    const UNIT: &'static str = "policer";
    const ALLOWED: &'static str = "\"rate 10mbit burst 100kb\", a rate above 0 and a bucket of at least 1 byte; then perhaps \"conform-exceed mark\" in place of drop";
    const IS_SHARE: bool = false;

    fn pattern() -> String {
        let [rate, burst, exceed] = ["rate", "burst", "conform-exceed"].map(schema::any_case);
        let [rate, burst] = [rate, burst].map(|word| format!("{word}\\s+\\S+"));
        format!("({rate}\\s+{burst}|{burst}\\s+{rate})(\\s+{exceed}\\s+\\S+)?")
    }

    fn of(words: &[&str]) -> Option<Police> {
        let (words, exceed) = match words {
            [words @ .., "conform-exceed", exceed] => (words, Exceed::parse(exceed)?),
            words => (words, Exceed::Drop),
        };
        let (rate, burst) = match *words {
            ["rate", rate, "burst", burst] | ["burst", burst, "rate", rate] => (rate, burst),
            _ => return None,
        };
        let (rate, burst) = (Rate::parse(&tc::rate(rate)?)?, Bytes::parse(&tc::size(burst)?)?);
        let is_legal = rate > Rate::ZERO && (1..=1_000_000_000).contains(&burst.0);
        is_legal.then_some(Police { rate, burst, exceed })
    }

    fn words(&self) -> String {
        let Police { rate, burst, exceed } = self;
        let exceed = if *exceed == Exceed::Drop { "" } else { " conform-exceed mark" };
        format!("rate {} burst {}b{exceed}", rate.show(), burst.0)
    }
}
