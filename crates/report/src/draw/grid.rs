//! The places of panels in a figure that has many.
use super::letters;

/// Panels in rows, all of the same size.
pub(super) struct Grid {
    pub(super) columns: usize,
    count: usize,
    /// Width of a panel, px.
    pub(super) width: i32,
    /// Height of a panel, px.
    pub(super) height: i32,
    /// Width of the figure, px.
    pub(super) total: i32,
}

/// A panel's place.
pub(super) struct Place {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) is_left: bool,
    /// Whether there is none below it.
    pub(super) is_lowest: bool,
}

impl Grid {
    pub(super) fn of(panels: &[&str], total: i32) -> Grid {
        let longest = panels.iter().map(|panel| panel.chars().count()).max().unwrap_or(0);
        let room = |columns: usize| (total - GRID_LEFT - GRID_RIGHT - GAP * (columns as i32 - 1)) / columns as i32;
        let most = panels.len().clamp(2, 4);
        let columns = (2..=most).rev().find(|&columns| longest <= letters(room(columns), SMALL)).unwrap_or(2);
        Grid { columns, count: panels.len(), width: room(columns), height: PANEL, total }
    }

    /// The same with panels that reach down to `bottom` px, if that is possible.
    pub(super) fn filling(self, bottom: i32) -> Grid {
        let rows = self.rows();
        let height = (bottom + GAP_BELOW - GRID_TOP) / rows - PANEL_TITLE - GAP_BELOW;
        Grid { height: height.max(LOWEST_PANEL), ..self }
    }

    fn rows(&self) -> i32 {
        self.count.div_ceil(self.columns) as i32
    }

    pub(super) fn place(&self, n: usize) -> Place {
        let (row, column) = ((n / self.columns) as i32, n % self.columns);
        Place {
            x: GRID_LEFT + column as i32 * (self.width + GAP),
            y: GRID_TOP + row * (PANEL_TITLE + self.height + GAP_BELOW),
            is_left: column == 0,
            is_lowest: n + self.columns >= self.count,
        }
    }

    /// The lower end of the lowest panel, px.
    pub(super) fn bottom(&self) -> i32 {
        GRID_TOP + self.rows() * (PANEL_TITLE + self.height + GAP_BELOW) - GAP_BELOW
    }
}

/// Panels: their height, the height of a panel's name, and the letters there.
const PANEL: i32 = 84;
pub(super) const PANEL_TITLE: i32 = 20;
/// Lowest panel of a figure of a chosen size, px.
const LOWEST_PANEL: i32 = 40;
pub(super) const SMALL: i32 = 14;
/// Room around and between panels.
pub(super) const GRID_LEFT: i32 = 52;
const GRID_RIGHT: i32 = 14;
pub(super) const GRID_TOP: i32 = 36;
const GAP: i32 = 20;
const GAP_BELOW: i32 = 8;
