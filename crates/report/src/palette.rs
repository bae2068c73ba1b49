//! Colours that colour-blind readers can distinguish (Okabe & Ito 2008, <https://jfly.uni-koeln.de/color/>; without its yellow, which
//! is too pale for lines), in a variant for light paper and one for dark screens; further lines are dashed.

/// The colours and dashes of a queue, in every table and chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paint {
    /// On a light ground, `#rrggbb`.
    pub light: &'static str,
    /// On a dark ground, `#rrggbb`.
    pub dark: &'static str,
    /// Lengths of dashes and gaps, px; empty for a solid line.
    pub dash: &'static [u32],
}

impl Paint {
    /// Its dashes as the chart library writes them: `solid`, `7px,4px`.
    pub fn dashes(&self) -> String {
        let lengths: Vec<String> = self.dash.iter().map(|length| format!("{length}px")).collect();
        if lengths.is_empty() { "solid".to_owned() } else { lengths.join(",") }
    }

    /// A mask of the same dashes for a swatch, in CSS.
    pub fn mask(&self) -> String {
        match self.dash {
            [on, off, ..] => {
                format!("repeating-linear-gradient(90deg, #000 0 {on}px, transparent {on}px {}px)", on + off)
            }
            _ => "none".to_owned(),
        }
    }
}

/// The paint of the `index`-th queue: colours first, then the same colours dashed.
pub fn paint(index: usize) -> Paint {
    let (light, dark) = COLOURS[index % COLOURS.len()];
    Paint { light, dark, dash: DASHES[index / COLOURS.len() % DASHES.len()] }
}

/// The dashes of the `index`-th member of a group, whose members share a colour.
pub fn member_dash(index: usize) -> &'static [u32] {
    DASHES[index % DASHES.len()]
}

/// Red, green and blue of `#rrggbb`; black for anything else.
pub fn rgb(colour: &str) -> (u8, u8, u8) {
    let channel = |at: usize| colour.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(0);
    (channel(1), channel(3), channel(5))
}

/// (light, dark): blue, vermillion, bluish green, orange, reddish purple, sky blue, grey.
const COLOURS: [(&str, &str); 7] = [
    ("#0072b2", "#3d9bdc"),
    ("#d55e00", "#f07f2e"),
    ("#009e73", "#1fbf92"),
    ("#b8860b", "#e6b12e"),
    ("#b0528f", "#d98cbb"),
    ("#4aa8dc", "#7cc7f2"),
    ("#5f6670", "#a9b1bd"),
];

/// Solid, dashed, dotted, long-dashed.
const DASHES: [&[u32]; 4] = [&[], &[7, 4], &[2, 3], &[12, 5]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_queues_stay_distinct() {
        let paints: Vec<Paint> = (0..28).map(paint).collect();
        for (i, a) in paints.iter().enumerate() {
            assert!(paints[i + 1..].iter().all(|b| (a.light, a.dash) != (b.light, b.dash)), "{a:?} twice");
        }
        assert_eq!(
            (paint(0).mask().as_str(), paint(7).mask().contains("#000 0 7px, transparent 7px 11px")),
            ("none", true)
        );
        assert_eq!(rgb("#0072b2"), (0x00, 0x72, 0xb2));
    }
}
