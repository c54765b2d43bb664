//! A screen as a picture: every character where the terminal has it, whatever font there is.

use vt100::{Cell, Color, Screen};

const CELL_WIDTH: f32 = 8.4;
const CELL_HEIGHT: f32 = 19.0;
const MARGIN: f32 = 16.0;
const TITLE: f32 = 30.0;

/// The colours of a terminal.
#[derive(Clone, Copy)]
pub(super) struct Theme {
    paper: &'static str,
    frame: &'static str,
    text: &'static str,
    red: &'static str,
    green: &'static str,
    yellow: &'static str,
    cyan: &'static str,
}

impl Theme {
    pub(super) const DARK: Self = Self {
        paper: "#0d1117",
        frame: "#30363d",
        text: "#e6edf3",
        red: "#ff7b72",
        green: "#56d364",
        yellow: "#e3b341",
        cyan: "#56d4dd",
    };
    pub(super) const LIGHT: Self = Self {
        paper: "#ffffff",
        frame: "#d0d7de",
        text: "#1f2328",
        red: "#cf222e",
        green: "#1a7f37",
        yellow: "#9a6700",
        cyan: "#1b7c83",
    };

    fn colour(self, colour: Color) -> &'static str {
        match colour {
            Color::Default => self.text,
            Color::Idx(1) => self.red,
            Color::Idx(2) => self.green,
            Color::Idx(3) => self.yellow,
            Color::Idx(6) => self.cyan,
            other => panic!("{other:?} is not used: it cannot be read on every background"),
        }
    }
}

/// The screen as a picture.
pub(super) fn picture(screen: &Screen, theme: Theme) -> String {
    let (rows, columns) = screen.size();
    let (width, height) = (f32::from(columns) * CELL_WIDTH + 2.0 * MARGIN, f32::from(rows) * CELL_HEIGHT + MARGIN + TITLE);
    let Theme { paper, frame, red, yellow, green, .. } = theme;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\" fill=\"{paper}\" stroke=\"{frame}\"/>\n",
        width - 1.0,
        height - 1.0
    );
    for (at, colour) in [red, yellow, green].into_iter().enumerate() {
        text.push_str(&format!("<circle cx=\"{}\" cy=\"16\" r=\"5\" fill=\"{colour}\"/>\n", 20 + at * 18));
    }
    for row in 0..rows {
        let mut column = 0;
        while let Some(cell) = screen.cell(row, column) {
            let from = column;
            let mut run = String::new();
            while let Some(next) = screen.cell(row, column).filter(|next| alike(cell, next)) {
                // A wide character has a second cell, which is empty.
                if !next.is_wide_continuation() {
                    run.push_str(if next.has_contents() { next.contents() } else { " " });
                }
                column += 1;
            }
            write_run(&mut text, theme, cell, (row, from, column), &run);
        }
    }
    text + "</svg>\n"
}

fn alike(one: &Cell, other: &Cell) -> bool {
    let style = |cell: &Cell| (cell.fgcolor(), cell.bold(), cell.dim());
    style(one) == style(other)
}

fn write_run(text: &mut String, theme: Theme, cell: &Cell, (row, from, to): (u16, u16, u16), run: &str) {
    let skipped = run.len() - run.trim_start().len();
    let shown = run.trim();
    if shown.is_empty() {
        return;
    }
    let trailing = run.len() - skipped - shown.len();
    // The text is surrounded by spaces only, one cell each.
    let first = from + u16::try_from(skipped).unwrap_or(0);
    let wide = to - u16::try_from(trailing).unwrap_or(0) - first;
    let (x, y) = (f32::from(first) * CELL_WIDTH + MARGIN, f32::from(row) * CELL_HEIGHT + TITLE + 14.0);
    let weight = if cell.bold() { " font-weight=\"bold\"" } else { "" };
    let dim = if cell.dim() { " fill-opacity=\"0.65\"" } else { "" };
    let fill = theme.colour(cell.fgcolor());
    let shown = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.push_str(&format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" \
         fill=\"{fill}\"{weight}{dim}>{shown}</text>\n",
        f32::from(wide) * CELL_WIDTH
    ));
}

#[test]
fn a_run_is_positioned_at_its_cells_and_markup_is_escaped() {
    let mut parser = vt100::Parser::new(2, 20, 0);
    parser.process("  日本 \x1b[1;31m<a & b>\x1b[0m".as_bytes());
    let picture = picture(parser.screen(), Theme::DARK);
    assert!(picture.contains("x=\"32.8\" y=\"44.0\" textLength=\"33.6\""), "{picture}");
    assert!(picture.contains("font-weight=\"bold\">&lt;a &amp; b&gt;</text>"), "{picture}");
}
