//! The values that each run of a cell draws: `[[draw]]` in a study's file.
//!
//! A draw has a name, and `"$name"` in the scenario stands for the value drawn. Each draw has a random stream of its own, named
//! after it and derived from the run's seed, so that the cells of a study have the same paths and differ only in their axes. Cells
//! that differ in an axis with `own_draws` have independent paths.
use narrows_core::Rng;
use serde::Deserialize;
use toml::Value;

/// A draw as the study's file gives it: `near` with `within`, `between`, or `among`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Draw {
    pub(crate) name: String,
    /// The middle of the range, a quantity or the name of an axis: values are drawn evenly from `near` · (1 ± `within`).
    pub(crate) near: Option<Value>,
    /// Half the range, as a part of `near`.
    pub(crate) within: Option<f64>,
    /// Two quantities with the same unit: drawn evenly between them.
    pub(crate) between: Option<[Value; 2]>,
    /// The draw is a multiple of this quantity, which may be an earlier draw.
    pub(crate) times: Option<Value>,
    /// Whether the logarithm is drawn evenly, not the value.
    #[serde(default)]
    pub(crate) log: bool,
    /// One of these; a value that is listed twice is drawn twice as often. A value may name other draws.
    pub(crate) among: Option<Vec<Value>>,
}

/// A number with its unit, or without one.
#[derive(Clone, PartialEq, Debug)]
struct Amount {
    number: f64,
    unit: Option<String>,
}

impl Amount {
    fn of(value: &Value) -> Result<Amount, String> {
        let wrong = || format!("{value} is not a number with a unit");
        match value {
            Value::Integer(n) => Ok(Amount { number: *n as f64, unit: None }),
            Value::Float(number) => Ok(Amount { number: *number, unit: None }),
            Value::String(text) => {
                let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
                let number = text[..digits].parse().map_err(|_| wrong())?;
                Ok(Amount { number, unit: Some(text[digits..].to_owned()) })
            }
            _ => Err(wrong()),
        }
    }

    /// The same unit with another number; packets and bytes are whole.
    fn with(&self, number: f64) -> Value {
        match &self.unit {
            Some(unit) if unit == "p" || unit == "B" => Value::String(format!("{number:.0}{unit}")),
            Some(unit) => Value::String(format!("{number:.6}{unit}")),
            None => Value::Float(number),
        }
    }
}

impl Draw {
    /// The values that may name an axis.
    pub(crate) fn quantities(&mut self) -> impl Iterator<Item = &mut Value> {
        let ranges = self.near.iter_mut().chain(self.between.iter_mut().flatten());
        ranges.chain(self.among.iter_mut().flatten()).chain(&mut self.times)
    }

    /// The value in the run with this seed, for cells with this stream name; earlier draws have already been put into `times`.
    pub(crate) fn value(&self, seed: u64, stream: &str) -> Result<Value, String> {
        let value = self.number(&mut Rng::stream(seed, &format!("draw.{}{stream}", self.name)))?;
        let Some(times) = &self.times else { return Ok(value) };
        let fault = |why: String| format!("draw {:?}: {why}", self.name);
        match (Amount::of(&value).map_err(fault)?, Amount::of(times).map_err(fault)?) {
            (Amount { number, unit: None }, times) => Ok(times.with(number * times.number)),
            _ => Err(fault("with `times` a number without a unit is drawn".into())),
        }
    }

    fn number(&self, rng: &mut Rng) -> Result<Value, String> {
        let fault = |why: String| format!("draw {:?}: {why}", self.name);
        match (&self.near, self.within, &self.between, &self.among) {
            (Some(near), Some(within), None, None) if !self.log && (0.0..1.0).contains(&within) => {
                let near = Amount::of(near).map_err(fault)?;
                Ok(near.with(near.number * (1.0 + within * (2.0 * rng.unit() - 1.0))))
            }
            (None, None, Some([from, to]), None) => {
                let (from, to) = (Amount::of(from).map_err(fault)?, Amount::of(to).map_err(fault)?);
                if from.unit != to.unit || to.number < from.number || (self.log && from.number <= 0.0) {
                    return Err(fault(
                        "`between` takes two quantities with the same unit, the smaller one first; with `log` above 0"
                            .into(),
                    ));
                }
                let part = rng.unit();
                let number = if self.log {
                    libm::exp(libm::log(from.number) * (1.0 - part) + libm::log(to.number) * part)
                } else {
                    from.number + part * (to.number - from.number)
                };
                Ok(from.with(number))
            }
            (None, None, None, Some(among)) if !among.is_empty() && !self.log => {
                Ok(among[rng.below(among.len() as u64) as usize].clone())
            }
            _ => Err(fault("give `near` with `within` (from 0 up to 1), `between`, or `among`".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(text: &str) -> Draw {
        toml::from_str(&format!("name = \"x\"\n{text}")).expect("a draw")
    }

    fn numbers(text: &str) -> Vec<f64> {
        (1..=400)
            .map(|seed| Amount::of(&draw(text).value(seed, "").expect("a value")).expect("a quantity").number)
            .collect()
    }

    fn range(values: &[f64]) -> (f64, f64) {
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (least.min(*v), most.max(*v)))
    }

    #[test]
    fn a_value_is_drawn_around_a_quantity_or_between_two() {
        let (least, most) = range(&numbers("near = \"50mbit\"\nwithin = 0.05"));
        assert!((47.5..47.6).contains(&least) && (52.4..52.5).contains(&most), "{least} to {most}");
        let values = numbers("between = [\"4ms\", \"200ms\"]\nlog = true");
        let (least, most) = range(&values);
        assert!((4.0..4.2).contains(&least) && (190.0..200.0).contains(&most), "{least} to {most}");
        let below = values.iter().filter(|v| **v < 800.0_f64.sqrt()).count();
        assert!((170..230).contains(&below), "half are below the geometric mean: {below} of 400");
        assert!(matches!(draw("between = [0, 5]").value(1, ""), Ok(Value::Float(_))));
        let whole = draw("between = [\"20p\", \"1000p\"]").value(3, "").expect("a value");
        assert!(whole.as_str().is_some_and(|text| !text.contains('.')), "{whole}");
    }

    #[test]
    fn a_quantity_can_be_a_multiple_of_another() {
        let value = draw("between = [2.0, 2.0]\ntimes = \"5mbit\"").value(1, "").expect("a value");
        assert_eq!(value.as_str(), Some("10.000000mbit"));
        let fault = draw("between = [\"2s\", \"3s\"]\ntimes = \"5mbit\"").value(1, "").expect_err("seconds of a rate");
        assert_eq!(fault, "draw \"x\": with `times` a number without a unit is drawn");
    }

    #[test]
    fn one_of_several_is_drawn_as_often_as_it_is_listed() {
        let fifos = (1..=400).filter(|seed| {
            draw("among = [\"fifo\", \"fifo\", \"fifo\", \"fq\"]").value(*seed, "") == Ok(Value::String("fifo".into()))
        });
        let fifos = fifos.count();
        assert!((270..330).contains(&fifos), "{fifos} of 400");
    }

    #[test]
    fn seeds_and_names_have_streams_of_their_own() {
        let of = |name: &str, seed| Draw { name: name.into(), ..draw("between = [0, 1]") }.value(seed, "");
        assert_eq!(of("a", 1), of("a", 1));
        assert!(of("a", 1) != of("a", 2) && of("a", 1) != of("b", 1));
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        for text in [
            "",
            "near = \"5ms\"",
            "near = \"5ms\"\nwithin = 1.5",
            "near = \"fq\"\nwithin = 0.1",
            "between = [\"5ms\", \"1s\"]",
            "between = [\"5ms\", \"1ms\"]",
            "between = [\"0ms\", \"1ms\"]\nlog = true",
            "among = []",
            "among = [1]\nbetween = [0, 1]",
        ] {
            assert!(draw(text).value(1, "").is_err(), "{text}");
        }
    }
}
