//! Figures as PDF and as PGF: what the drawing library draws is recorded as paths, areas and texts, and then written.
//!
//! PDF is written with `pdf-writer`. A converter from SVG (`svg2pdf`) would bring a hundred crates and need fonts to be found on the
//! machine, so that the bytes would depend on it; the texts here are in Helvetica, which every viewer has. LaTeX sets the texts of PGF.
use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::{Content, Filter, Finish as _, Name, Pdf, Rect, Ref, Str, types::LineJoinStyle};
use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::Write as _;

/// Something drawn, in pixels of the drawing.
#[derive(Clone)]
pub(crate) enum Mark {
    Path {
        points: Vec<BackendCoord>,
        colour: Colour,
        width: u32,
    },
    Area {
        points: Vec<BackendCoord>,
        colour: Colour,
    },
    Text {
        text: String,
        at: BackendCoord,
        horizontal: HPos,
        vertical: VPos,
        size: f64,
        colour: Colour,
        is_upright: bool,
    },
}

/// Red, green, blue, and opacity in per cent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Colour {
    rgb: (u8, u8, u8),
    opacity: u8,
}

/// A backend that records.
pub(crate) struct Recorder<'a> {
    marks: &'a mut Vec<Mark>,
    size: (u32, u32),
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(marks: &'a mut Vec<Mark>, size: (u32, u32)) -> Recorder<'a> {
        Recorder { marks, size }
    }

    /// Records what can be seen.
    fn record(&mut self, colour: BackendColor, mark: impl FnOnce(Colour) -> Mark) -> Recorded {
        if colour.alpha > 0.0 {
            let opacity = (100.0 * colour.alpha).round() as u8;
            self.marks.push(mark(Colour { rgb: colour.rgb, opacity }));
        }
        Ok(())
    }
}

/// Recording cannot fail.
type Recorded = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for Recorder<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Recorded {
        Ok(())
    }

    fn present(&mut self) -> Recorded {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Recorded {
        let points = vec![(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)];
        self.record(colour, |colour| Mark::Area { points, colour })
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Recorded {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (x0, y0): BackendCoord,
        (x1, y1): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Recorded {
        let corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)];
        if fill {
            self.fill_polygon(corners, style)
        } else {
            self.draw_path(corners.into_iter().chain([(x0, y0)]), style)
        }
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Recorded {
        let (points, width) = (path.into_iter().collect(), style.stroke_width());
        self.record(style.color(), |colour| Mark::Path { points, colour, width })
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Recorded {
        let points = corners.into_iter().collect();
        self.record(style.color(), |colour| Mark::Area { points, colour })
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Recorded {
        let anchor = style.anchor();
        self.record(style.color(), |colour| Mark::Text {
            text: text.to_owned(),
            at,
            horizontal: anchor.h_pos,
            vertical: anchor.v_pos,
            // The drawing library's unit: what it writes into SVG.
            size: style.size() / 1.24,
            colour,
            is_upright: matches!(style.transform(), FontTransform::Rotate270),
        })
    }
}

/// The figure as a PDF of one page.
pub(crate) fn pdf(marks: &[Mark], (width, height): (u32, u32)) -> Vec<u8> {
    let (width, height) = (width as f32 * POINT as f32, height as f32 * POINT as f32);
    let ids = |n: i32| Ref::new(n);
    let (catalog, pages, page, font, content) = (ids(1), ids(2), ids(3), ids(4), ids(5));
    let mut pdf = Pdf::new();
    pdf.set_binary_marker(PDF_MARKER);
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let opacities: BTreeSet<u8> = marks.iter().map(|mark| mark.colour().opacity).collect();
    let mut written = pdf.page(page);
    written.media_box(Rect::new(0.0, 0.0, width, height)).parent(pages).contents(content);
    let mut resources = written.resources();
    resources.fonts().pair(FONT, font);
    let mut states = resources.ext_g_states();
    for opacity in &opacities {
        let share = f32::from(*opacity) / 100.0;
        let mut state =
            states.insert(Name(state_name(*opacity).as_bytes())).start::<pdf_writer::writers::ExtGraphicsState<'_>>();
        state.non_stroking_alpha(share).stroking_alpha(share);
    }
    states.finish();
    resources.finish();
    written.finish();
    pdf.type1_font(font).base_font(Name(b"Helvetica")).encoding_predefined(Name(b"WinAnsiEncoding"));
    let packed = compress_to_vec_zlib(&content_of(marks, height), 6);
    pdf.stream(content, &packed).filter(Filter::FlateDecode);
    pdf.finish()
}

fn content_of(marks: &[Mark], height: f32) -> Vec<u8> {
    let place = |&(x, y): &BackendCoord| (x as f32 * POINT as f32, height - y as f32 * POINT as f32);
    let mut out = Content::new();
    out.set_line_join(LineJoinStyle::RoundJoin);
    for mark in marks {
        let colour = mark.colour();
        let [r, g, b] = [colour.rgb.0, colour.rgb.1, colour.rgb.2].map(|part| f32::from(part) / 255.0);
        out.set_parameters(Name(state_name(colour.opacity).as_bytes()));
        match mark {
            Mark::Path { points, .. } | Mark::Area { points, .. } => {
                for (n, point) in points.iter().enumerate() {
                    let (x, y) = place(point);
                    if n == 0 {
                        out.move_to(x, y)
                    } else {
                        out.line_to(x, y)
                    };
                }
                match mark {
                    Mark::Path { width, .. } => {
                        out.set_line_width((*width).max(1) as f32 * POINT as f32).set_stroke_rgb(r, g, b).stroke()
                    }
                    _ => out.set_fill_rgb(r, g, b).close_path().fill_nonzero(),
                };
            }
            Mark::Text { text, at, horizontal, vertical, size, is_upright, .. } => {
                let size = (*size * POINT) as f32;
                let text = win_ansi(text);
                let width: f32 =
                    text.iter().map(|letter| f32::from(letter_width(*letter))).sum::<f32>() * size / 1000.0;
                let along = match horizontal {
                    HPos::Left => 0.0,
                    HPos::Center => -0.5 * width,
                    HPos::Right => -width,
                };
                let below = match vertical {
                    VPos::Top => 0.76,
                    VPos::Center => 0.26,
                    VPos::Bottom => -0.26,
                } * size;
                let (x, y) = place(at);
                let matrix = if *is_upright {
                    [0.0, 1.0, -1.0, 0.0, x + below, y + along]
                } else {
                    [1.0, 0.0, 0.0, 1.0, x + along, y - below]
                };
                out.begin_text().set_font(FONT, size).set_fill_rgb(r, g, b).set_text_matrix(matrix);
                out.show(Str(&text)).end_text();
            }
        }
    }
    out.finish().into_vec()
}

/// The figure as a `tikzpicture`.
pub(crate) fn pgf(marks: &[Mark], (_, height): (u32, u32)) -> String {
    let mut out =
        format!("{PGF_MARKER}: needs \\usepackage{{tikz}}\n\\begin{{tikzpicture}}[x=1pt,y=1pt,line join=round]\n");
    let place = |(x, y): BackendCoord| {
        let rounded = |pixels: i32| format!("{:.2}", f64::from(pixels) * POINT);
        format!("({},{})", rounded(x), rounded(height as i32 - y))
    };
    let path = |points: &[BackendCoord]| {
        // TeX reads lines of limited length.
        let parts: Vec<String> =
            points.chunks(8).map(|part| part.iter().map(|&p| place(p)).collect::<Vec<_>>().join("--")).collect();
        parts.join("--%\n")
    };
    let mut last = None;
    for mark in marks {
        let (r, g, b) = mark.colour().rgb;
        if last.replace((r, g, b)) != Some((r, g, b)) {
            let _ = writeln!(out, "\\definecolor{{narrows}}{{RGB}}{{{r},{g},{b}}}");
        }
        let opacity = f64::from(mark.colour().opacity) / 100.0;
        let _ = match mark {
            Mark::Path { points, width, .. } => {
                let width = f64::from((*width).max(1)) * POINT;
                writeln!(out, "\\draw[narrows,opacity={opacity},line width={width:.2}pt] {};", path(points))
            }
            Mark::Area { points, .. } => {
                writeln!(out, "\\fill[narrows,opacity={opacity}] {}--cycle;", path(points))
            }
            Mark::Text { text, at, horizontal, vertical, size, is_upright, .. } => {
                let anchor = match (vertical, horizontal) {
                    (VPos::Top, HPos::Left) => "north west",
                    (VPos::Top, HPos::Center) => "north",
                    (VPos::Top, HPos::Right) => "north east",
                    (VPos::Center, HPos::Left) => "west",
                    (VPos::Center, HPos::Center) => "center",
                    (VPos::Center, HPos::Right) => "east",
                    (VPos::Bottom, HPos::Left) => "south west",
                    (VPos::Bottom, HPos::Center) => "south",
                    (VPos::Bottom, HPos::Right) => "south east",
                };
                let (size, turned) = (size * POINT, if *is_upright { ",rotate=90" } else { "" });
                let (at, text) = (place(*at), tex(text));
                let font = format!("font=\\fontsize{{{size:.1}}}{{{size:.1}}}\\selectfont");
                writeln!(out, "\\node[narrows,anchor={anchor},inner sep=0{turned},{font}] at {at} {{{text}}};")
            }
        };
    }
    out + "\\end{tikzpicture}\n"
}

impl Mark {
    fn colour(&self) -> Colour {
        match self {
            Mark::Path { colour, .. } | Mark::Area { colour, .. } | Mark::Text { colour, .. } => *colour,
        }
    }
}

fn state_name(opacity: u8) -> String {
    format!("A{opacity}")
}

/// A text in Windows-1252, which PDF calls WinAnsi; a letter that it lacks is a question mark.
fn win_ansi(text: &str) -> Vec<u8> {
    let letter = |letter: char| match letter {
        ' '..='~' | '\u{a0}'..='\u{ff}' => letter as u8,
        '…' => 0x85,
        '’' => 0x92,
        '–' => 0x96,
        '—' => 0x97,
        _ => b'?',
    };
    text.chars().map(letter).collect()
}

/// Width of a letter of Helvetica, thousandths of an em.
fn letter_width(letter: u8) -> u16 {
    let known = usize::from(letter).checked_sub(32).and_then(|index| HELVETICA.get(index));
    known.copied().unwrap_or(556)
}

/// Text without meaning for TeX.
pub(crate) fn tex(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => out.extend(['\\', letter]),
            '±' => out += "$\\pm$",
            '×' => out += "$\\times$",
            '–' => out += "--",
            '…' => out += "\\dots{}",
            _ => out.push(letter),
        }
    }
    out
}

/// Width of a figure, px.
pub(crate) const WIDTH: i32 = 640;
/// Pixels of the drawing per pixel of the figure.
pub(crate) const SCALE: i32 = 4;
/// The size of a pixel of the drawing, pt: a figure is as wide as two thirds of a page, where its letters have 7 pt.
const POINT: f64 = 340.0 / (WIDTH * SCALE) as f64;
/// The first bytes of the second line of a PDF, above 127 as its standard asks: they mark our files.
pub(crate) const PDF_MARKER: &[u8; 4] = b"\xce\xd2\xd7\xd3";
/// The first words of a PGF file.
pub(crate) const PGF_MARKER: &str = "% A figure by Narrows";
const FONT: Name<'static> = Name(b"F1");

/// Adobe's metrics of Helvetica, from the space to the tilde.
#[rustfmt::skip]
const HELVETICA: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556,
    278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,
    611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833,
    556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(tex("50 % of_a {b} \\ ± 1"), "50 \\% of\\_a \\{b\\} \\textbackslash{} $\\pm$ 1");
        assert_eq!(win_ansi("a±–λ"), [b'a', 0xb1, 0x96, b'?']);
        assert_eq!([b' ', b'W', b'~', 0xb1].map(letter_width), [278, 944, 584, 556]);
    }

    #[test]
    fn marks_become_operators() {
        let colour = Colour { rgb: (0, 255, 0), opacity: 20 };
        let marks = [
            Mark::Path { points: vec![(0, 0), (256, 0)], colour, width: 4 },
            Mark::Area { points: vec![(0, 0), (4, 0), (4, 4)], colour },
            Mark::Text {
                text: "a_(b)".to_owned(),
                at: (0, 0),
                horizontal: HPos::Right,
                vertical: VPos::Center,
                size: 10.0,
                colour,
                is_upright: false,
            },
        ];
        let content = String::from_utf8(content_of(&marks, 100.0)).expect("only ASCII here");
        assert!(
            content.contains("/A20 gs") && content.contains("34 100 l") && content.contains("0 1 0 RG"),
            "{content}"
        );
        assert!(content.contains("0 1 0 rg") && content.contains("f\n") && content.contains(r"Tj"), "{content}");
        let pgf = pgf(&marks, (256, 100));
        assert!(pgf.starts_with(PGF_MARKER) && pgf.ends_with("\\end{tikzpicture}\n"), "{pgf}");
        assert!(
            pgf.contains("(0.00,13.28)--(34.00,13.28);") && pgf.contains("anchor=east") && pgf.contains("{a\\_(b)}"),
            "{pgf}"
        );
        let pdf = pdf(&marks, (256, 100));
        assert!(pdf.starts_with(b"%PDF-") && pdf.ends_with(b"%%EOF"), "a PDF");
        assert_eq!(pdf, super::pdf(&marks, (256, 100)));
    }
}
