//! The terminal view of the rows, until the user quits.

use std::time::{Duration, Instant};

use lab::{Cancel, Lab};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row as Cells, Table};

use super::programs;
use super::reading::Reading;
use super::row::{HEADER, Row, TEXT};
use crate::failure::Failure;

/// Interval for checking for cancellation.
const LOOK: Duration = Duration::from_millis(100);

/// Minimum terminal size: a smaller one shows nothing useful.
const SMALLEST: (u16, u16) = (60, 4);

pub(super) fn run(lab: &Lab, interval: Duration, cancel: &Cancel) -> Result<(), Failure> {
    let before = programs::take(lab)?;
    // From here on a panic also restores the terminal.
    let mut terminal = ratatui::try_init().map_err(Failure::failed)?;
    let done = watch(lab, before, interval, cancel, |view| {
        terminal.draw(|frame| view.draw(frame)).map(drop)
    });
    ratatui::restore();
    done
}

fn watch(
    lab: &Lab,
    mut before: Reading,
    interval: Duration,
    cancel: &Cancel,
    mut draw: impl FnMut(&mut View) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let mut view = View {
        title: lab.name().into(),
        interval,
        rows: Vec::new(),
        first: 0,
        page: 0,
        widths: [0; HEADER.len()],
    };
    let mut next = Instant::now() + interval;
    draw(&mut view).map_err(Failure::failed)?;
    while cancel.check().is_ok() {
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let now = programs::take(lab)?;
            view.rows = Row::between(&before, &now);
            (before, next) = (now, Instant::now() + interval);
        } else if !event::poll(left.min(LOOK)).map_err(Failure::failed)? {
            continue;
        } else if view.hears(&event::read().map_err(Failure::failed)?) {
            break;
        }
        draw(&mut view).map_err(Failure::failed)?;
    }
    Ok(())
}

/// The state of the view.
struct View {
    title: String,
    interval: Duration,
    rows: Vec<Row>,
    /// Index of the first visible row; `page` is the number of rows that fit.
    first: usize,
    page: usize,
    /// Largest width of each column so far, so that columns do not move with each number.
    widths: [u16; HEADER.len()],
}

impl View {
    /// Handles an event. Returns true if the user quits.
    fn hears(&mut self, event: &Event) -> bool {
        let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return false };
        if *kind == KeyEventKind::Release {
            return false;
        }
        let page = self.page.max(1);
        self.first = match code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            // In raw mode Ctrl-C is a key, not a signal.
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Down | KeyCode::Char('j') => self.first + 1,
            KeyCode::Up | KeyCode::Char('k') => self.first.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.first + page,
            KeyCode::PageUp => self.first.saturating_sub(page),
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            _ => self.first,
        };
        false
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let (width, height) = SMALLEST;
        if area.width < width || area.height < height {
            let text = format!("the terminal is too small: {width} x {height} at least");
            return frame.render_widget(Paragraph::new(text).wrap(Default::default()), area);
        }
        let [top, middle, bottom] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
                .areas(area);
        // Minus the header line of the table.
        self.page = usize::from(middle.height).saturating_sub(1);
        self.first = self.first.min(self.rows.len().saturating_sub(self.page));
        let title = format!("{}, every {} s", self.title, self.interval.as_secs_f64());
        frame.render_widget(Line::from(title).bold(), top);
        frame.render_widget(Line::from(self.foot()).dim(), bottom);
        self.table(frame, middle);
    }

    fn foot(&self) -> String {
        let last = (self.first + self.page).min(self.rows.len());
        match self.rows.len() {
            0 => "measuring; q ends it".into(),
            all if all > self.page => {
                format!("{} to {last} of {all}; ↑ ↓ move, q ends it", self.first + 1)
            }
            all => format!("{all} directions; q ends it"),
        }
    }

    fn table(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let shown: Vec<_> = self
            .rows
            .iter()
            .skip(self.first)
            .take(self.page)
            .map(|row| (row, row.cells()))
            .collect();
        for (column, width) in self.widths.iter_mut().enumerate() {
            let cells = shown.iter().map(|(_, cells)| cells[column].chars().count());
            let widest = cells.chain([HEADER[column].len()]).max().unwrap_or(0);
            *width = (*width).max(widest as u16);
        }
        let widths = self.widths.iter().enumerate().map(|(column, width)| match column + 1 {
            // The last column takes the rest of the line.
            last if last == HEADER.len() => Constraint::Fill(1),
            _ => Constraint::Length(*width),
        });
        let cell = |(column, text): (usize, String)| {
            let line = Line::from(text);
            Cell::from(if TEXT.contains(&column) { line } else { line.right_aligned() })
        };
        let header = HEADER.map(String::from).into_iter().enumerate().map(cell);
        let rows = shown.iter().map(|(row, cells)| {
            let style = match row.is_in_trouble() {
                true => Style::new().fg(Color::Yellow),
                false => Style::new(),
            };
            Cells::new(cells.clone().into_iter().enumerate().map(cell)).style(style)
        });
        let table = Table::new(rows, widths).header(Cells::new(header).bold()).column_spacing(2);
        frame.render_widget(table, area);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::commands::top::reading::{Count, Name};

    fn view(links: usize) -> View {
        let count = |at_ns, n: usize| Count {
            name: Name { link: format!("a{n}-b"), from: format!("a{n}"), to: "b".into() },
            at_ns,
            arrived: at_ns,
            dropped: vec![("queue".into(), at_ns * (n == 1) as u64)],
            ..Count::default()
        };
        let reading = |at_ns| Reading((0..links).map(|n| count(at_ns, n)).collect());
        let rows = Row::between(&reading(0), &reading(1_000_000_000));
        View {
            title: "wan".into(),
            interval: Duration::from_secs(1),
            rows,
            first: 0,
            page: 0,
            widths: [0; HEADER.len()],
        }
    }

    fn screen(view: &mut View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let lines = buffer.content.chunks(usize::from(width));
        let text = |line: &[ratatui::buffer::Cell]| {
            line.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()
        };
        lines.map(text).collect()
    }

    fn press(view: &mut View, code: KeyCode, modifiers: KeyModifiers) -> bool {
        view.hears(&Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn rows_that_have_no_room_come_by_moving() {
        let mut view = view(10);
        let before = screen(&mut view, 120, 6);
        assert_eq!(before[0], "wan, every 1 s");
        assert!(before[1].starts_with("LINK  FROM  SET-DELAY"), "{before:?}");
        assert!(before[3].starts_with("a1-b") && before[3].ends_with("queue 1000000000"));
        assert_eq!(before[5], "1 to 3 of 10; ↑ ↓ move, q ends it");
        assert!(!press(&mut view, KeyCode::Down, KeyModifiers::NONE));
        assert!(screen(&mut view, 120, 6)[2].starts_with("a1-b"));
        press(&mut view, KeyCode::PageDown, KeyModifiers::NONE);
        assert!(screen(&mut view, 120, 6)[2].starts_with("a4-b"));
        press(&mut view, KeyCode::End, KeyModifiers::NONE);
        let last = screen(&mut view, 120, 6);
        assert!(last[2].starts_with("a7-b") && last[4].starts_with("a9-b"), "{last:?}");
        press(&mut view, KeyCode::PageUp, KeyModifiers::NONE);
        assert!(screen(&mut view, 120, 6)[2].starts_with("a4-b"));
        // With enough room all rows are visible.
        let all = screen(&mut view, 120, 20);
        assert!(all[2].starts_with("a0-b"), "{all:?}");
        assert_eq!(all[19], "10 directions; q ends it");
    }

    #[test]
    fn a_terminal_that_is_too_small_says_so() {
        for (width, height) in [(59, 30), (200, 3)] {
            let said = screen(&mut view(3), width, height);
            assert!(said[0].starts_with("the terminal is too small: 60 x 4 at least"), "{said:?}");
        }
        // Drawing works at any size.
        screen(&mut view(3), 1, 1);
    }

    #[test]
    fn some_keys_end_it() {
        let mut view = view(1);
        assert!(press(&mut view, KeyCode::Char('q'), KeyModifiers::NONE));
        assert!(press(&mut view, KeyCode::Esc, KeyModifiers::NONE));
        assert!(press(&mut view, KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!press(&mut view, KeyCode::Char('c'), KeyModifiers::NONE));
        assert!(!view.hears(&Event::Resize(10, 10)));
    }
}
