//! Tables in other forms than the terminal's: Markdown for a wiki or an issue, LaTeX for a paper.
//!
//! Every table is made once, for the terminal, and its cells are written here.
use crate::vector::tex;
use comfy_table::{Cell, Row, Table};
use std::fmt::Write as _;

/// The form of a printed table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Markup {
    /// Columns of text for a terminal.
    #[default]
    Text,
    /// A pipe table, as GitHub and GitLab show it.
    Markdown,
    /// A `tabular` with the rules of the package `booktabs`.
    Latex,
}

impl Markup {
    /// The table, of which the first `names` columns are text; `None` for the terminal's own form.
    pub(crate) fn table(self, table: &Table, names: usize) -> Option<String> {
        let cells = |row: &Row| row.cell_iter().map(Cell::content).collect::<Vec<String>>();
        let head = table.header().map(cells).unwrap_or_default();
        let sides = |left, right| (0..head.len()).map(move |n| if n < names { left } else { right });
        let rows = table.row_iter().map(cells);
        let mut out = String::new();
        // Writing to a string cannot fail.
        match self {
            Markup::Text => return None,
            Markup::Markdown => {
                let line = |cells: Vec<String>| {
                    format!("| {} |\n", cells.iter().map(|cell| markdown(cell)).collect::<Vec<_>>().join(" | "))
                };
                let rule = sides("---", "--:").collect::<Vec<_>>().join("|");
                out += &line(head.clone());
                let _ = writeln!(out, "|{rule}|");
                out.extend(rows.map(line));
            }
            Markup::Latex => {
                let line = |cells: Vec<String>| {
                    format!(
                        "{} \\\\\n",
                        cells.iter().map(|cell| tex(&on_one_line(cell))).collect::<Vec<_>>().join(" & ")
                    )
                };
                let _ = writeln!(out, "\\begin{{tabular}}{{{}}}\n\\toprule", sides("l", "r").collect::<String>());
                out += &line(head.clone());
                out += "\\midrule\n";
                out.extend(rows.map(line));
                out += "\\bottomrule\n\\end{tabular}\n";
            }
        }
        Some(out)
    }
}

fn on_one_line(cell: &str) -> String {
    cell.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text without meaning for Markdown within a table.
fn markdown(cell: &str) -> String {
    let mut out = String::new();
    for letter in on_one_line(cell).chars() {
        if matches!(letter, '|' | '\\' | '`' | '*' | '_' | '<' | '[') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_or_latex() {
        let mut table = Table::new();
        table.set_header(["queue", "sojourn\np99 ms"]).add_row(["fq_codel", "5.0\n±0.1"]).add_row(["a|b", "–"]);
        let markdown = Markup::Markdown.table(&table, 1).expect("a table");
        assert_eq!(markdown, "| queue | sojourn p99 ms |\n|---|--:|\n| fq\\_codel | 5.0 ±0.1 |\n| a\\|b | – |\n");
        let latex = Markup::Latex.table(&table, 1).expect("a table");
        let body = "queue & sojourn p99 ms \\\\\n\\midrule\nfq\\_codel & 5.0 $\\pm$0.1 \\\\\na|b & -- \\\\\n";
        assert_eq!(latex, format!("\\begin{{tabular}}{{lr}}\n\\toprule\n{body}\\bottomrule\n\\end{{tabular}}\n"));
        assert_eq!(Markup::Text.table(&table, 1), None);
    }
}
